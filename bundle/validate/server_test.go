package validate

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/read"
	"brine/bundle/read/readtest"
)

// server applies as brine does.
type server struct {
	client    dynamic.Interface
	namespace string
}

func newServer(t *testing.T) server {
	c := clustertest.Shared(t)
	config := c.Config(t)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return server{client: client, namespace: c.Namespace(t)}
}

func (s server) apply(ctx context.Context, u *unstructured.Unstructured, resource, manager string, namespaced, dryRun bool) (*unstructured.Unstructured, error) {
	u = u.DeepCopy()
	client := s.client.Resource(u.GroupVersionKind().GroupVersion().WithResource(resource))
	in := dynamic.ResourceInterface(client)
	if namespaced {
		u.SetNamespace(s.namespace)
		in = client.Namespace(s.namespace)
	}
	data, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	o := metav1.PatchOptions{FieldManager: manager, Force: new(true), FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return in.Patch(ctx, u.GetName(), types.ApplyPatchType, data, o)
}

// define applies testdata/crds.yaml and waits until it is served.
func (s server) define(t *testing.T) {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, o := range readObjects(t, read.Options{Files: []string{"testdata/crds.yaml"}}) {
		if _, err := s.apply(t.Context(), o.Content, gvr.Resource, bundle.FieldManager, false, false); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.client.Resource(gvr).Delete(context.Background(), o.ID.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		plural, _, _ := unstructured.NestedString(o.Content.Object, "spec", "names", "plural")
		served := schema.GroupVersionResource{Group: "validate.brine.dev", Version: "v1", Resource: plural}
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, err := s.client.Resource(served).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
		if err != nil {
			t.Fatalf("%s is not served: %v", served, err)
		}
	}
}

// What the server says to every case is what Check says: the same object
// stored, or the same fields refused.
func TestCheckIsTheServer(t *testing.T) {
	clustertest.Shared(t).Needs(t, 28, "fieldPath in the validation rules of CRDs")
	s := newServer(t)
	s.define(t)
	crds := testCRDs(t)
	resources := map[string]string{"Widget": "widgets", "Planet": "planets", "Anything": "anythings"}
	for i, c := range crCases {
		t.Run(c.name, func(t *testing.T) {
			o := readtest.Objects(t, c.yaml)[0]
			resource, namespaced := resources[o.GVK.Kind], o.GVK.Kind != "Planet"
			content := o.Content.DeepCopy()
			if namespaced {
				content.SetNamespace(s.namespace)
			}
			var live *unstructured.Unstructured
			if c.old != "" {
				name := "w" + string(rune('a'+i%26)) + string(rune('a'+i/26))
				old := readtest.Objects(t, c.old)[0].Content.DeepCopy()
				old.SetName(name)
				content.SetName(name)
				var err error
				if live, err = s.apply(t.Context(), old, resource, "other", namespaced, false); err != nil {
					t.Fatal(err)
				}
			}
			stored, problems, _ := crds.Check(t.Context(), o, content, live)
			answer, err := s.apply(t.Context(), content, resource, bundle.FieldManager, namespaced, true)
			if err != nil {
				sameFields(t, problems, err)
				return
			}
			if len(problems) > 0 {
				t.Fatalf("accepted by the server, but: %v", text(problems))
			}
			if got, want := comparable(stored), comparable(answer); !reflect.DeepEqual(got, want) {
				t.Errorf("stored %v\nserver %v", got, want)
			}
		})
	}
}

// comparable leaves out what only a server can know.
func comparable(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	for _, f := range []string{"managedFields", "uid", "creationTimestamp", "resourceVersion"} {
		unstructured.RemoveNestedField(u.Object, "metadata", f)
	}
	return u.Object
}

var typedPath = regexp.MustCompile(`(?m)\.(\S+): (?:field not declared|expected|element|duplicate)`)

// sameFields compares the fields that the server names. It names only those of
// the first step that fails; we go on, so ours may be more.
func sameFields(t *testing.T, problems []bundle.Problem, err error) {
	t.Helper()
	if len(problems) == 0 {
		t.Fatalf("refused by the server, and no problem found: %v", err)
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return // the version is not served
	}
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	var status apierrors.APIStatus
	var want []string
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			want = append(want, cause.Field)
		}
	}
	exact := len(want) > 0
	if !exact {
		for _, m := range typedPath.FindAllStringSubmatch(err.Error(), -1) {
			want = append(want, m[1])
		}
	}
	if len(want) == 0 {
		t.Fatalf("no field in the server's answer: %v", err)
	}
	for _, w := range want {
		if w == "<nil>" { // the rules were not checked, or all of the object
			continue
		}
		if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, strings.TrimPrefix(w, ".")) }) {
			t.Errorf("the server refuses %s, and we %v: %v", w, text(problems), err)
		}
	}
	if exact && len(paths) != len(want) {
		t.Errorf("%d problems, and the server has %d: %v\n%v", len(paths), len(want), text(problems), err)
	}
}
