package validate

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"brine/bundle"
	"brine/bundle/cluster/jsontree"
)

// What a server-side apply of a custom resource would store, or be refused for, by its CRD.

// Check is what the server would answer to a server-side apply, with force, of
// content, which is obj's or what is sent in its place. old is the live object
// with its managedFields, or nil: what comes out is the merge of the two, and
// rules on changes (oldSelf) are judged.
//
// stored is content as the server would store it, defaulted and pruned, in the
// version it was written in, without managedFields and resourceVersion; it is nil where that
// cannot be computed because of the problems. problems is all that the server would
// refuse it for, with the line of each field where obj knows it. known is false
// if no CRD of the bundle defines obj's kind; nothing was checked then.
func (c *CRDs) Check(ctx context.Context, obj *bundle.Object, content, old *unstructured.Unstructured) (stored *unstructured.Unstructured, problems []bundle.Problem, known bool) {
	if !c.Has(obj.GVK.GroupKind()) {
		return nil, nil, false
	}
	d := c.byKind[obj.GVK.GroupKind()]
	if reason := d.notServed(obj.GVK); reason != "" {
		return nil, []bundle.Problem{obj.Problem("apiVersion", reason)}, true
	}
	if d.broken {
		return nil, []bundle.Problem{obj.Problem("", fmt.Sprintf("cannot be checked: its CRD %s (%s) is invalid: correct that first", d.v1.Name, d.object.Source))}, true
	}
	v, err := d.version(obj.GVK.Version)
	if err != nil {
		return nil, []bundle.Problem{obj.Problem("", err.Error())}, true
	}
	sent, err := d.sent(obj, content)
	if err != nil {
		return nil, []bundle.Problem{obj.Problem("", err.Error())}, true
	}

	unknown, err := v.coerce(sent, d.v1.Spec.PreserveUnknownFields, false)
	if err != nil {
		return nil, []bundle.Problem{obj.Problem("metadata", err.Error())}, true
	}
	for _, path := range unknown {
		problems = append(problems, obj.Problem(path, v.unknownField(path)))
	}
	live, err := d.live(v, obj, old)
	if err != nil {
		return nil, append(problems, obj.Problem("", err.Error())), true
	}
	merged, typed := d.apply(v, obj, live, sent)
	if merged == nil {
		return nil, append(problems, typed...), true
	}
	invalid := bundle.Each(v.validate(ctx, d, merged, live), func(err *field.Error) bundle.Problem { return fieldProblem(obj, err) })
	problems = append(problems, uncovered(typed, invalid)...)
	problems = append(problems, invalid...)
	if err := d.store(v, merged); err != nil {
		return nil, append(problems, obj.Problem("", err.Error())), true
	}
	merged.SetManagedFields(nil)
	merged.SetResourceVersion("")
	return merged, problems, true
}

// sent is content as it arrives: values as JSON has them, in the namespace of
// the request.
func (d *crd) sent(obj *bundle.Object, content *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u, err := copied(content)
	if err != nil {
		return nil, fmt.Errorf("write it as JSON: %w", err)
	}
	u.SetGroupVersionKind(obj.GVK)
	if !d.namespaced() {
		unstructured.RemoveNestedField(u.Object, "metadata", "namespace")
		return u, nil
	}
	meta, ok := u.Object["metadata"].(map[string]any)
	if ns, _ := meta["namespace"].(string); ok && ns == "" {
		meta["namespace"] = metav1.NamespaceDefault
		if obj.ID.Namespace != "" {
			meta["namespace"] = obj.ID.Namespace
		}
	}
	return u, nil
}

// copied is a deep copy through JSON: DeepCopyJSON panics on an int.
func copied(in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if in == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}, nil
	}
	data, err := json.Marshal(in.Object)
	if err != nil {
		return nil, err
	}
	content, err := jsontree.Unmarshal(data)
	return &unstructured.Unstructured{Object: content}, err
}

// store makes u what it is after it was written to the storage, in the version
// that is stored, and read again.
func (d *crd) store(v *compiled, u *unstructured.Unstructured) error {
	written := u.GetAPIVersion()
	through := []*compiled{v}
	if in := d.storage(); !d.webhook() && d.versions[in] != v {
		inStore, err := d.version(in)
		if err != nil {
			return err
		}
		u.SetAPIVersion(d.kind.Group + "/" + in)
		through = []*compiled{inStore, v}
	}
	for _, v := range through {
		if _, err := v.coerce(u, d.v1.Spec.PreserveUnknownFields, true); err != nil {
			return fmt.Errorf("store it: %w", err)
		}
		defaulting.Default(u.Object, v.structural)
	}
	u.SetAPIVersion(written)
	return nil
}

// live is old as the server would read it in the version of obj; nil when there
// is none, or only the conversion webhook can convert it.
func (d *crd) live(v *compiled, obj *bundle.Object, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if old == nil || d.webhook() && !sameVersion(obj.GVK, old) {
		return nil, nil
	}
	u, err := copied(old)
	if err != nil {
		return nil, fmt.Errorf("read the live object: %w", err)
	}
	u.SetGroupVersionKind(obj.GVK)
	owners := u.GetManagedFields()
	for i := range owners {
		// A version that goes: its objects are rewritten first, and their ownership moves.
		if gv, err := schema.ParseGroupVersion(owners[i].APIVersion); err == nil && d.find(gv.Version) == nil {
			owners[i].APIVersion = obj.GVK.GroupVersion().String()
		}
	}
	u.SetManagedFields(owners)
	if _, err := v.coerce(u, d.v1.Spec.PreserveUnknownFields, true); err != nil {
		return nil, fmt.Errorf("read the live object: %w", err)
	}
	defaulting.Default(u.Object, v.structural)
	if u.GetResourceVersion() == "" {
		u.SetResourceVersion("1") // an update has to have one
	}
	return u, nil
}

// apply merges sent into live as server-side apply does, and fills in the
// defaults. It returns nil where there is nothing to merge with.
func (d *crd) apply(v *compiled, obj *bundle.Object, live, sent *unstructured.Unstructured) (*unstructured.Unstructured, []bundle.Problem) {
	if _, err := d.types.ObjectToTyped(sent); err != nil {
		problems := typedProblems(obj, err)
		if live != nil {
			return nil, problems
		}
		// Go on with what was written, so that all is reported at once.
		defaulting.Default(sent.Object, v.structural)
		return v.prepare(sent, nil), problems
	}
	onto := live
	if onto == nil {
		onto = &unstructured.Unstructured{}
		onto.SetGroupVersionKind(obj.GVK)
	}
	merged, err := v.fields.Apply(onto.DeepCopy(), sent, bundle.FieldManager, true)
	if err != nil {
		return nil, []bundle.Problem{obj.Problem("", err.Error())}
	}
	u, ok := merged.(*unstructured.Unstructured)
	if !ok { // nothing to change
		u = onto.DeepCopy()
	}
	return v.prepare(u, live), nil
}

// prepare does what the server does before it validates: the status subresource
// is not written through the object itself.
func (v *compiled) prepare(u, live *unstructured.Unstructured) *unstructured.Unstructured {
	if v.status {
		delete(u.Object, "status")
		if live != nil && live.Object["status"] != nil {
			u.Object["status"] = kruntime.DeepCopyJSONValue(live.Object["status"])
		}
	}
	if live == nil {
		u.SetGeneration(1)
	} else if !equality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(live)) {
		u.SetGeneration(live.GetGeneration() + 1)
	}
	return u
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "metadata")
	return out
}
