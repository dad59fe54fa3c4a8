package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An API server that does not know a CRD yet, which another one has stored, still lists it.
func TestKindsThatDiscoveryDoesNotKnowAreLearnedOfCRDs(t *testing.T) {
	crd := func(plural, kind, established string) string {
		return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.example.com","uid":"u","resourceVersion":"1"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"%s","kind":"%s"},"versions":[{"name":"v1","served":true,"storage":true}]},
			"status":{"conditions":[{"type":"Established","status":"%s"}]}}`, plural, plural, kind, established)
	}
	crds := map[string]string{"gadgets": crd("gadgets", "Gadget", "True"), "news": crd("news", "New", "False"), "widgets": crd("widgets", "Widget", "True")}
	var read []string
	forbidden := false
	c := fakeClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
		for plural, text := range crds {
			if strings.HasSuffix(r.URL.Path, "/"+plural+".example.com") {
				read = append(read, plural)
				return answerOf(r, 200, nil, strings.NewReader(text)), nil
			}
		}
		if forbidden {
			return answerOf(r, 403, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)), nil
		}
		list := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[`
		for i, plural := range []string{"gadgets", "news", "widgets"} {
			list += strings.Repeat(",", min(i, 1)) + `{"metadata":{"name":"` + plural + `.example.com"}}`
		}
		return answerOf(r, 200, nil, strings.NewReader(list+"]}")), nil
	})
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "example.com", Kind: name} }
	c.kinds.byKind, c.kinds.preferred = map[schema.GroupVersionKind]Resource{}, map[schema.GroupKind]schema.GroupVersionKind{}
	c.Learn(Resource{ // which discovery knows
		GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, GVK: kind("Widget").WithVersion("v1"), Verbs: []string{"list"},
	})
	if err := c.LearnDefined(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Any(kind("Gadget")); err != nil || !r.Namespaced || !r.Can("list") {
		t.Errorf("the kind of an established CRD is %+v, %v", r, err)
	}
	if _, err := c.Any(kind("New")); err == nil {
		t.Error("a CRD that is not established has a kind")
	}
	if got := strings.Join(read, " "); got != "gadgets news" {
		t.Errorf("it read the CRDs %s", got)
	}
	forbidden = true
	if err := c.LearnDefined(t.Context()); err == nil || !strings.Contains(err.Error(), "CRDs") {
		t.Errorf("without the right to list CRDs: %v", err)
	}
}
