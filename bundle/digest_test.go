package bundle

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKeySecretDigests(t *testing.T) {
	object := func(args, annotation string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"args": []any{"a", args}, "annotations": map[string]any{"x": annotation}}}
	}
	o := &Object{Content: object("plain", "plain")}
	b := &Bundle{Objects: []*Object{o}}
	args, annotation := []string{"args", "1"}, []string{"annotations", "x"}
	b.AddSecretDigest(o, args, "plain")
	b.AddSecretDigest(o, annotation, "plain")
	// The live annotation has the plain digest of an older version: it stays.
	live := func(ID) *unstructured.Unstructured { return object("other", "plain") }
	seen := map[string]string{}
	b.KeySecretDigests(func(plain string) string { return "keyed " + plain }, live, func(_ *Object, digest, live string) { seen[live] = digest })
	if got := valueAt(o.Content.Object, args); got != "keyed plain" || seen["other"] != got {
		t.Errorf("in a list: %v, seen %v", got, seen)
	}
	if got := valueAt(o.Content.Object, annotation); got != "plain" || seen["plain"] != got {
		t.Errorf("in a mapping: %v, seen %v", got, seen)
	}
}
