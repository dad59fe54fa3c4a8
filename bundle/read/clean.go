package read

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/remedy"
)

// From a document to an object: its identity, and what is taken out because only a server sets
// it.

// serverSet is the metadata that only a server sets; sending it back is at
// best ignored, and resourceVersion or uid turn an apply into a conflict.
var serverSet = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// listDefaults are what items of a typed list (ConfigMapList) may leave out.
type listDefaults struct{ apiVersion, kind string }

// object reads one object, or the items of a list.
func (r *reading) object(d *document, n *yaml.Node, o Options, defaults listDefaults) {
	c := &converter{doc: d, budget: &r.budget, expanding: r.expanding, duplicates: o.DuplicateKeys}
	refuse := func(format string, args ...any) {
		c.problem(n, format, args...)
		r.problems = append(r.problems, c.problems...)
	}
	if n.Kind == yaml.AliasNode {
		if slices.Contains(r.expanding, n.Alias) {
			refuse("an alias that contains itself")
			return
		}
		r.expanding = append(r.expanding, n.Alias)
		defer func() { r.expanding = r.expanding[:len(r.expanding)-1] }()
		c.expanding = r.expanding
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		refuse("%s", notAnObject(n))
		return
	}
	apiVersion, kind := text(n, "apiVersion"), text(n, "kind")
	if isKustomization(d.file, apiVersion) {
		refuse("this is a kustomization, not a Kubernetes object: run %s", remedy.ApplyOutputOf("kustomize build "+filepath.Dir(d.file)))
		return
	}
	if items := child(n, "items"); strings.HasSuffix(kind, "List") && items != nil && items.Kind == yaml.SequenceNode || kind == "List" && apiVersion == "v1" {
		c.checkList(n, apiVersion, kind, items)
		r.problems, r.warnings = append(r.problems, c.problems...), append(r.warnings, c.warnings...)
		if len(c.problems) > 0 {
			return
		}
		r.list(d, n, o, listDefaults{apiVersion, strings.TrimSuffix(kind, "List")})
		return
	}

	c.root, c.kind = n, cmp.Or(kind, defaults.kind)
	content := c.mapping(n)
	if defaults.kind != "" && content["apiVersion"] == nil && content["kind"] == nil {
		content["apiVersion"], content["kind"] = defaults.apiVersion, defaults.kind
	}
	obj := &bundle.Object{Content: &unstructured.Unstructured{Object: content}, Source: c.source(n), FieldLine: d.fieldLine(n.Line, n.Column)}
	k := checker{c: c, root: n}
	k.identity(obj, o.AllowGenerateName)
	sound := len(c.problems) == 0
	if obj.GVK.Kind != "" {
		k.traps(obj)
	}
	if clean(content) {
		r.dropped++
	}
	if c.unreported > 0 {
		c.problems = append(c.problems, bundle.Problem{Source: obj.Source, Message: fmt.Sprintf("and %s in this object", bundle.Count(c.unreported, "more problem"))})
	}
	for i := range c.problems {
		c.problems[i].ID = obj.ID
	}
	for i := range c.warnings {
		c.warnings[i].ID = obj.ID
	}
	r.warnings = append(r.warnings, c.warnings...)
	if o.SkipInvalid && len(c.problems) > 0 {
		r.invalid = append(r.invalid, c.problems...)
		return
	}
	r.problems = append(r.problems, c.problems...)
	if sound || !o.Partial {
		r.objects = append(r.objects, obj)
	}
}

// checkList reports what would leave out objects of a list without a word. An object whose own
// kind ends in List, and that has items, is a list to kubectl and to API servers, too.
func (c *converter) checkList(n *yaml.Node, apiVersion, kind string, items *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn := n.Content[i]
		c.path = bundle.Path{}.Field(kn.Value)
		if seen[kn.Value] {
			c.problem(kn, duplicateKey, c.doc.line-1+firstLine(n, kn))
		} else if kn.Tag != yaml.MergeTag && !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, kn.Value) {
			c.warnings = append(c.warnings, bundle.Problem{Source: c.source(kn), Path: c.path.String(), Message: fmt.Sprintf("a %s has no such field: it is left out", kind)})
		}
		seen[kn.Value] = true
	}
	c.path = nil
	switch {
	case items == nil:
		c.problem(n, "a %s must have items: write items: [] if it holds no object", kind)
	case items.Kind != yaml.SequenceNode && items.Tag != yaml.NodeTagNull:
		c.path = c.path.Field("items")
		c.problem(items, "must be a list of objects")
	case (kind != "List" || apiVersion != "v1") && (named(n) || len(items.Content) == 0 && !isBuiltIn(apiVersion, strings.TrimSuffix(kind, "List"))):
		c.path = c.path.Field("items")
		c.problem(items, "Kubernetes takes %s with items for a list of objects: if it is an object, its CustomResourceDefinition needs another field or kind", kind)
	}
}

// named reports whether metadata has a name. A list has none.
func named(n *yaml.Node) bool {
	metadata := child(n, "metadata")
	return metadata != nil && metadata.Kind == yaml.MappingNode && (child(metadata, "name") != nil || child(metadata, "generateName") != nil)
}

func isBuiltIn(apiVersion, kind string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && builtIn(gv.WithKind(kind)) != ScopeUnknown
}

func (r *reading) list(d *document, n *yaml.Node, o Options, defaults listDefaults) {
	items := child(n, "items")
	if items == nil {
		return
	}
	for _, item := range items.Content {
		if len(r.expanding) > 0 && !r.room(item) {
			c := &converter{doc: d, budget: &r.budget}
			c.tooMuch(item)
			r.problems = append(r.problems, c.problems...)
			return
		}
		r.object(d, item, o, defaults)
	}
}

func notAnObject(n *yaml.Node) string {
	const wanted = "a document must be a mapping with apiVersion, kind and metadata"
	switch {
	case n.Kind == yaml.SequenceNode:
		return wanted + ", and this is a list"
	case hasJinja(n.Value):
		return wanted + ", and this is text with Jinja left over: render the file before it gets here"
	}
	return wanted + ", and this is a single value"
}

// clean removes the fields that are not sent, and reports whether they were more
// than generated manifests always have (a status, creationTimestamp: null).
func clean(content map[string]any) bool {
	delete(content, "status")
	meta, _ := content["metadata"].(map[string]any)
	unusual := false
	for _, key := range serverSet {
		if v, ok := meta[key]; ok {
			unusual = unusual || v != nil
			delete(meta, key)
		}
	}
	// null is what a template leaves of "no namespace", "no labels".
	for _, key := range []string{"namespace", "labels", "annotations"} {
		if v, ok := meta[key]; ok && (v == nil || v == "") {
			delete(meta, key)
		}
	}
	return unusual
}

// checker finds in an object values that other tools read differently, and
// leftovers of templates and of Salt.
type checker struct {
	c    *converter
	root *yaml.Node
	path bundle.Path
	// builtIn: the kind is Kubernetes' own, so a field's name says its type.
	builtIn bool
	crd     bool
	group   string
	kind    string
}

// problem is one with the field at k.path.
func (k *checker) problem(format string, args ...any) {
	at, _ := locate(k.root, k.path)
	k.c.path = k.path
	for _, p := range k.c.problems { // this field already has a problem
		if p.Source.Line == k.c.source(at).Line && p.Path == k.path.String() {
			return
		}
	}
	k.c.problem(at, format, args...)
}

var kindSyntax = bundle.Pattern(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// identity reads apiVersion, kind, name and namespace into obj.
func (k *checker) identity(obj *bundle.Object, allowGenerateName bool) {
	content := obj.Content.Object
	if content["apiVersion"] == nil && content["kind"] == nil {
		k.problem("apiVersion and kind are missing, so this is not a Kubernetes object")
		return
	}
	apiVersion, kind := k.required(content, "apiVersion"), k.required(content, "kind")
	gv, err := schema.ParseGroupVersion(apiVersion)
	if apiVersion != "" && (err != nil || gv.Version == "" || len(validation.IsDNS1123Label(gv.Version)) > 0 ||
		gv.Group != "" && len(validation.IsDNS1123Subdomain(gv.Group)) > 0) {
		k.at("apiVersion", "%q is not an API version: write it like v1 or apps/v1", clip(apiVersion))
		apiVersion = ""
	}
	if kind != "" && !kindSyntax().MatchString(kind) {
		k.at("kind", "%q is not a kind: letters and digits only, like ConfigMap", clip(kind))
		kind = ""
	}
	if apiVersion != "" && kind != "" {
		obj.GVK = gv.WithKind(kind)
		obj.ID.GroupKind = obj.GVK.GroupKind()
	}

	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		if content["metadata"] != nil {
			k.at("metadata", "must be a mapping, and is a %s", typeName(content["metadata"]))
		} else {
			k.at("metadata", "is missing, and so is the name")
		}
		return
	}
	k.path = k.path.Field("metadata")
	defer func() { k.path = k.path[:len(k.path)-1] }()
	generate, _ := meta["generateName"].(string)
	switch v := meta["name"]; v {
	case nil, "":
		if generate == "" {
			k.at("name", "the name is missing or empty")
		} else if !allowGenerateName {
			k.at("generateName", "every run would create another object, and none would be tracked: give it a name, or allow it with "+remedy.AllowGenerateName)
		}
	default:
		obj.ID.Name = k.name("name", v)
	}
	if v := meta["namespace"]; v != nil && v != "" {
		obj.ID.Namespace = k.name("namespace", v)
		if ns := obj.ID.Namespace; ns != "" && len(validation.IsDNS1123Label(ns)) > 0 {
			k.at("namespace", "%q cannot be a namespace: %s", clip(ns), bundle.InWords(validation.IsDNS1123Label(ns)[0]))
		}
	}
	k.stringMap(meta, "labels")
	k.stringMap(meta, "annotations")
}

// required is the text of a field that must be there.
func (k *checker) required(content map[string]any, key string) string {
	switch v := content[key].(type) {
	case string:
		if v == "" {
			k.at(key, "is empty")
		} else if hasJinja(v) {
			k.at(key, "%s", leftOver)
			return ""
		}
		return v
	case nil:
		k.at(key, "is missing")
	default:
		k.at(key, "must be text, and is a %s", typeName(v))
	}
	return ""
}

// name checks the object's own name or namespace.
func (k *checker) name(key string, v any) string {
	s, ok := v.(string)
	if !ok {
		k.at(key, "%s", k.notText(v, k.path.Field(key)))
		return ""
	}
	switch bad := pathvalidation.IsValidPathSegmentName(s); {
	case hasJinja(s):
		k.at(key, "%s", leftOver)
	case s == "None":
		k.at(key, "%s", saysNone)
	case len(bad) > 0:
		k.at(key, "%q cannot be a name: it %s", clip(s), bad[0])
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		k.at(key, "%q cannot be a name: it contains white space", clip(s))
	case len(s) > validation.DNS1123SubdomainMaxLength:
		k.at(key, "a name of %d characters; %d are allowed", len(s), validation.DNS1123SubdomainMaxLength)
	}
	return s
}

// stringMap wants the object's labels or annotations to be a mapping of texts,
// which is how everything after this reads and extends them. An empty value
// becomes "", as it does on a server.
func (k *checker) stringMap(meta map[string]any, key string) {
	m, ok := meta[key].(map[string]any)
	if !ok && meta[key] != nil {
		k.at(key, "must be a mapping, and is a %s", typeName(meta[key]))
	}
	for name, v := range m {
		if v == nil {
			m[name] = ""
		}
	}
}

// at is a problem with a field of the mapping at k.path.
func (k *checker) at(key, format string, args ...any) {
	k.path = k.path.Field(key)
	k.problem(format, args...)
	k.path = k.path[:len(k.path)-1]
}

// notText is the message for a value that must be text and is v.
func (k *checker) notText(v any, p bundle.Path) string {
	_, n := locate(k.root, p)
	switch v.(type) {
	case bool, int64, float64:
		if !k.c.quotable() || n == nil || n.Kind != yaml.ScalarNode {
			return fmt.Sprintf("must be text, and this is a %s in YAML: put it in quotes", typeName(v))
		}
		return fmt.Sprintf("must be text, and %s is a %s in YAML: write %q", clip(n.Value), typeName(v), clip(n.Value))
	}
	return fmt.Sprintf("must be text, and is a %s", typeName(v))
}
