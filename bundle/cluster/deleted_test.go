package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What was deleted is known by its UID, an APIService by its name, a StatefulSet by the
// claims that its controller made.
func TestDeleted(t *testing.T) {
	object := func(api, kind, namespace, name, uid string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": api, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name, "uid": uid},
			"spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}},
		}}
	}
	claim := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	var d Deleted
	if d.has("") || d.has("1") || d.apiService("v1.example.com") || d.HasSets("a") || d.Claim(claim("a", "data-web-0")) {
		t.Error("nothing was deleted yet")
	}
	d.Add(object("apps/v1", "StatefulSet", "a", "web", "1"))
	d.Add(object("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com", "2"))
	d.Add(object("v1", "ConfigMap", "b", "v2.example.com", ""))
	for what, c := range map[string]struct{ got, want bool }{
		"a UID":                         {d.has("1"), true},
		"another UID":                   {d.has("3"), false},
		"no UID":                        {d.has(""), false},
		"the APIService":                {d.apiService("v1.example.com"), true},
		"the name of another kind":      {d.apiService("v2.example.com"), false},
		"sets of its namespace":         {d.HasSets("a"), true},
		"sets of another namespace":     {d.HasSets("b"), false},
		"its claim":                     {d.Claim(claim("a", "data-web-0")), true},
		"a claim of another set":        {d.Claim(claim("a", "data-other-0")), false},
		"its name in another namespace": {d.Claim(claim("b", "data-web-0")), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %t, want %t", what, c.got, c.want)
		}
	}
}
