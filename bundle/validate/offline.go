package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"brine/bundle"
	"brine/bundle/validate/published"
)

// What is wrong with a built-in object, for a version of Kubernetes, without a server.

//go:generate go run ../../scripts/schemagen

// Options are the server that Offline validates for.
type Options struct {
	// KubernetesVersion is one of Versions, also written v1.37 or 1.37.1; the
	// newest if empty. It decides which versions of a kind are served; the
	// fields of a kind are always those of the newest.
	KubernetesVersion string
	// CRDs are the bundle's, or nil. The problems that Compile found are not
	// reported again.
	CRDs *CRDs
}

// Offline finds, without a server, what is wrong with objects: versions that are
// not served, unknown fields, wrong types, missing fields, values that are none
// of an enumeration, items of a list that may be there only once, labels that
// are none. Custom resources of the bundle's CRDs are checked as Check does.
// Warnings are deprecated versions and fields, and unknown kinds of groups that are not built in.
//
// What only a server can find (admission, references) and what is rare in the server's own
// validation is not found: TestMistakes counts it. The error is about Options. No value of a Secret is in any message.
func Offline(objs []*bundle.Object, o Options) (problems, warnings []bundle.Problem, err error) {
	minor, err := minorOf(o.KubernetesVersion)
	if err != nil {
		return nil, nil, err
	}
	doc, err := published.Load()
	if err != nil {
		return nil, nil, err
	}
	for _, obj := range objs {
		p, w := offline(obj, doc, minor, o.CRDs)
		problems = append(problems, p...)
		warnings = append(warnings, w...)
	}
	return problems, warnings, nil
}

func offline(obj *bundle.Object, doc *published.Document, minor int, crds *CRDs) (problems, warnings []bundle.Problem) {
	if crds.Has(obj.GVK.GroupKind()) {
		if reason := crds.Warning(obj.GVK); reason != "" {
			warnings = append(warnings, obj.Problem("apiVersion", reason))
		}
		_, problems, _ := crds.Check(context.Background(), obj, obj.Content, nil)
		return problems, warnings
	}
	typed := known(obj.GVK)
	model := doc.Kinds[published.Key(obj.GVK)]
	if reason := notServed(typed, obj.GVK, minor); reason != "" {
		return []bundle.Problem{obj.Problem("apiVersion", reason)}, nil
	}
	if typed == nil && model == "" {
		field, reason, builtIn := unknownKind(doc, obj.GVK, minor)
		if builtIn {
			return []bundle.Problem{obj.Problem(field, reason)}, nil
		}
		return nil, []bundle.Problem{obj.Problem("apiVersion", "not checked: "+reason)}
	}
	if reason := versionWarning(doc, typed, obj.GVK, minor); reason != "" {
		warnings = append(warnings, obj.Problem("apiVersion", reason))
	}
	content, err := copied(obj.Content)
	if err != nil {
		return []bundle.Problem{obj.Problem("", "write it as JSON: "+err.Error())}, warnings
	}
	w := &walker{doc: doc, obj: obj}
	if model != "" {
		w.value(nil, content.Object, &published.Type{Ref: model})
	}
	if typed == nil {
		return w.problems, warnings
	}
	structure := w.problems
	if !w.decode(content.Object, typed) {
		if len(structure) > 0 { // which says it better
			w.problems = structure
		}
		return w.problems, warnings
	}
	warnings = append(warnings, deprecatedIn(obj, typed, minor)...)
	wrong := bundle.Each((&values{minor: minor}).of(typed), func(err *field.Error) bundle.Problem { return fieldProblem(obj, err) })
	wrong = slices.DeleteFunc(uncovered(wrong, w.problems), func(v bundle.Problem) bool {
		_, name := split(v.Path)
		return slices.ContainsFunc(w.problems, func(p bundle.Problem) bool {
			return inside(v.Path, p.Path) || strings.HasSuffix(p.Message, fmt.Sprintf("did you mean %q?", name))
		})
	})
	return append(w.problems, wrong...), warnings
}

// decode reads the object into its Go type, as the server does: quantities,
// durations and the like have their own forms. It returns whether it could be read.
func (w *walker) decode(content map[string]any, into any) bool {
	data, err := json.Marshal(content)
	if err != nil {
		w.report("", "write it as JSON: %v", err)
		return false
	}
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		if isSecret(w.obj) { // whose values an error may quote
			w.report("", "cannot be read as a Secret: a value is of the wrong type")
			return false
		}
		w.report("", "cannot be read as a %s: %v", w.obj.GVK.Kind, err)
		return false
	}
	if len(w.problems) > 0 {
		return true // the walker has found them
	}
	for _, err := range unknown {
		message := err.Error()
		path := ""
		if inner, ok := strings.CutPrefix(message, `unknown field "`); ok {
			path = strings.TrimSuffix(inner, `"`)
			_, name := split(path)
			message = unknownMessage(name, nil)
		}
		w.report(path, "%s", message)
	}
	return true
}

// Metadata is what every version of Kubernetes refuses of an object, whatever its kind is:
// labels, annotations and names that are none.
func Metadata(o *bundle.Object) (problems []bundle.Problem) {
	at := field.NewPath("metadata")
	errs := v1validation.ValidateLabels(o.Content.GetLabels(), at.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(o.Content.GetAnnotations(), at.Child("annotations"))...)
	problems = bundle.Each(errs, func(err *field.Error) bundle.Problem { return fieldProblem(o, err) })
	validate := apivalidation.ValidateNameFunc(path.ValidatePathSegmentName)
	if dnsNames[o.GVK.Group] && o.GVK.Kind != "IPAddress" {
		validate = apivalidation.NameIsDNSSubdomain
	}
	if o.ID.Name == "" { // it has generateName
		return problems
	}
	for _, reason := range validate(o.ID.Name, false) {
		problems = append(problems, o.Problem("metadata.name", reason))
	}
	return problems
}

// dnsNames are the groups whose kinds have names that are DNS subdomains;
// others may have colons and more in them (RBAC, bundles of trust, PodDisruptionBudgets).
var dnsNames = map[string]bool{
	"": true, "admissionregistration.k8s.io": true, "apps": true, "autoscaling": true, "batch": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "networking.k8s.io": true,
	"node.k8s.io": true, "resource.k8s.io": true, "scheduling.k8s.io": true, "storage.k8s.io": true,
}

// unknownKind is what to say of a kind that is neither built in nor in the bundle, of which
// field, and whether its group is built in: then no server has it.
func unknownKind(doc *published.Document, gvk schema.GroupVersionKind, minor int) (field, reason string, builtIn bool) {
	gv := gvk.GroupVersion().String()
	other := "" // the best that is not served by default
	var kinds []string
	for key := range doc.Kinds {
		version, kind, _ := strings.Cut(key, " ")
		in, err := schema.ParseGroupVersion(version)
		if err != nil || in.Group != gvk.Group {
			continue
		}
		builtIn = true
		if version == gv {
			kinds = append(kinds, kind)
		}
		if kind == gvk.Kind {
			other = max(other, version)
		}
	}
	reason = fmt.Sprintf("Kubernetes has no kind %s in %s", gvk.Kind, gv)
	if best := cmp.Or(servedVersion(gvk.GroupKind(), minor), other); best != "" {
		return "apiVersion", fmt.Sprintf("Kubernetes has no %s in %s; write apiVersion: %s", gvk.Kind, gv, best), builtIn
	}
	if !builtIn {
		return "apiVersion", fmt.Sprintf("%s %s is not built into Kubernetes, and no CRD of the bundle defines it", gv, gvk.Kind), false
	}
	if best := bundle.Nearest(gvk.Kind, kinds); best != "" {
		return "kind", reason + "; did you mean " + best + "?", true
	}
	return "kind", reason, true
}
