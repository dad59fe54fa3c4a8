package validate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/read"
	"brine/bundle/validate/published"
)

// asker dry-runs objects of any kind.
type asker struct {
	server
	mapper meta.RESTMapper
}

func newAsker(t *testing.T) asker {
	client, err := discovery.NewDiscoveryClientForConfig(clustertest.Shared(t).Config(t))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	return asker{server: newServer(t), mapper: restmapper.NewDiscoveryRESTMapper(groups)}
}

func (a asker) ask(ctx context.Context, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	m, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	_, err = a.apply(ctx, u, m.Resource.Resource, bundle.FieldManager, m.Scope.Name() == meta.RESTScopeNameNamespace, true)
	return err
}

func accepted(t testing.TB) []*bundle.Object {
	return readObjects(t, read.Options{Files: []string{"testdata/accepted.yaml"}})
}

func offlineOne(t testing.TB, o *bundle.Object) []string {
	t.Helper()
	problems, _, err := Offline([]*bundle.Object{o}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return text(problems)
}

// Nothing that a server accepts is a problem.
func TestOfflineAccepts(t *testing.T) {
	clustertest.Shared(t).Needs(t, 37, "all fields of the types that brine checks with")
	a := newAsker(t)
	for _, o := range accepted(t) {
		if err := a.ask(t.Context(), o.Content); err != nil {
			t.Errorf("%s: the server refuses it: %v", bundle.Name(o.ID), err)
		}
		for _, p := range offlineOne(t, o) {
			t.Errorf("%s: %s", bundle.Name(o.ID), p)
		}
	}
}

// OpenAPI calls fields required that the server does well without. Those that
// are left (scripts/schemagen/optional.txt has the others) are taken out of accepted
// objects, one at a time: the server has to refuse that, and so have we.
func TestRequiredFields(t *testing.T) {
	clustertest.Shared(t).Needs(t, 37, "all fields of the types that brine checks with")
	a := newAsker(t)
	doc, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	untried := requiredFields(doc)
	for _, o := range accepted(t) {
		model := doc.Kinds[published.Key(o.GVK)]
		fieldsIn(doc, o.Content.Object, model, func(name string, path []any, required bool, _ *published.Type) {
			if !required {
				return
			}
			delete(untried, name)
			without := *o
			without.Content = o.Content.DeepCopy()
			put(without.Content.Object, path, nil)
			problems := offlineOne(t, &without)
			if len(problems) == 0 {
				t.Errorf("%s without %v: no problem", bundle.Name(o.ID), path)
			}
			if err := a.ask(t.Context(), without.Content); err == nil {
				t.Errorf("%s is accepted without %v, but: %v", bundle.Name(o.ID), path, problems)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(untried)) {
		t.Errorf("nothing in testdata/accepted.yaml has %s: add it there, or to scripts/schemagen/optional.txt", name)
	}
}

// requiredFields are those of all types that can be in an object.
func requiredFields(doc *published.Document) map[string]bool {
	fields, seen := map[string]bool{}, map[string]bool{}
	var visit func(t *published.Type, name string)
	visit = func(t *published.Type, name string) {
		if t != nil && t.Ref != "" {
			if name = t.Ref; seen[name] || strings.HasSuffix(name, "Status") || strings.HasSuffix(name, "ManagedFieldsEntry") {
				return
			}
			seen[name] = true
			t = doc.Types[name]
		}
		if t == nil {
			return
		}
		for _, f := range t.Required {
			fields[name+"."+f] = true
		}
		for _, f := range t.Fields {
			visit(f, name)
		}
		visit(t.Values, name)
		visit(t.Items, name)
	}
	for _, model := range doc.Kinds {
		visit(&published.Type{Ref: model}, "")
	}
	return fields
}

// A value that is none of an enumeration, and an item that is in a list twice,
// are tried likewise in every place that the accepted objects have.
func TestEnumsAndTwins(t *testing.T) {
	clustertest.Shared(t).Needs(t, 37, "all fields of the types that brine checks with")
	a := newAsker(t)
	doc, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, o := range accepted(t) {
		fieldsIn(doc, o.Content.Object, doc.Kinds[published.Key(o.GVK)], func(_ string, path []any, _ bool, f *published.Type) {
			broken := *o
			broken.Content = o.Content.DeepCopy()
			list, isList := at(o.Content.Object, path).([]any)
			switch {
			case len(f.Enum) > 0:
				put(broken.Content.Object, path, "Bogus")
			case isList && len(list) > 0 && (f.Set || len(f.Keys) > 0):
				put(broken.Content.Object, path, append(slices.Clone(list), list[0]))
			default:
				return
			}
			tried++
			problems := offlineOne(t, &broken)
			if len(problems) == 0 {
				t.Errorf("%s with %v broken: no problem", bundle.Name(o.ID), path)
			}
			if err := a.ask(t.Context(), broken.Content); err == nil {
				t.Errorf("%s is accepted with %v broken, but: %v", bundle.Name(o.ID), path, problems)
			}
		})
	}
	if tried < 90 {
		t.Errorf("only %d tried", tried)
	}
}

// fieldsIn finds the fields of a type in v: type and field, and path.
func fieldsIn(doc *published.Document, v any, model string, found func(name string, path []any, required bool, f *published.Type)) {
	var visit func(v any, t *published.Type, name string, at []any)
	visit = func(v any, t *published.Type, name string, at []any) {
		if t != nil && t.Ref != "" {
			name = t.Ref
		}
		if t = doc.Resolve(t); t == nil {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				path := append(slices.Clone(at), k)
				f := t.Fields[k]
				if f == nil {
					f = t.Values
				}
				if r := doc.Resolve(f); r != nil {
					found(name+"."+k, path, slices.Contains(t.Required, k), r)
				}
				visit(inner, f, name, path)
			}
		case []any:
			for i, inner := range v {
				visit(inner, t.Items, name, append(slices.Clone(at), i))
			}
		}
	}
	visit(v, &published.Type{Ref: model}, "", nil)
}

// at is the value at a path.
func at(v any, path []any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			v = v.([]any)[s]
		}
	}
	return v
}

// put writes a field; nil takes it out.
func put(in any, path []any, v any) {
	fields, name := at(in, path[:len(path)-1]).(map[string]any), path[len(path)-1].(string)
	if v == nil {
		delete(fields, name)
		return
	}
	fields[name] = v
}

// Everything in brokenCases is refused by the server too.
func TestOfflineRefusesAsTheServer(t *testing.T) {
	a, minor := newAsker(t), clustertest.Shared(t).Minor(t)
	for _, c := range brokenCases {
		if c.since > minor {
			continue
		}
		o := unread(t, c.yaml)
		if err := a.ask(t.Context(), o.Content); err == nil {
			t.Errorf("%s: the server accepts it", c.want[0])
		}
	}
}
