package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
)

// An answer that is no list of metadata is never taken for an empty one.
func TestMetadataListThatIsNone(t *testing.T) {
	for text, wrong := range map[string]bool{
		`{"apiVersion": "proxy.example.com/v1", "kind": "Error", "message": "no backend"}`:                   true,
		`{"apiVersion": "proxy.example.com/v1", "kind": "Page", "items": "none"}`:                            true,
		`{"apiVersion": "example.com/v1", "kind": "Widgets", "items": [{"metadata": {"name": "a"}}]}`:        false,
		`{"apiVersion": "example.com/v1", "kind": "WidgetList"}`:                                             false,
		`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": []}`: false,
		`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}`:       true,
		`{"apiVersion": "v1", "kind": "Status", "status": "Success", "metadata": {}}`:                        true,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`:                               true,
	} {
		answering(t, text, func(ctx context.Context, c *cluster.Client) {
			if items, err := c.ListMetadata(ctx, cluster.ConfigMaps, "default", ""); (err != nil) != wrong {
				t.Errorf("%s: %v, %v", text, items, err)
			}
		})
	}
}

// Nor is an answer about something else taken for the object: it would belong to nobody, or a write
// would count as stored.
func TestObjectThatIsAnother(t *testing.T) {
	a := bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "a"}
	for text, wrong := range map[string]bool{
		`{"apiVersion": "proxy.example.com/v1", "kind": "Error", "message": "no backend"}`: true,
		`{"apiVersion": "v1", "kind": "Status", "status": "Success", "metadata": {}}`:      true,
		`{"apiVersion": "v1", "kind": "ConfigMapList", "items": []}`:                       true,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`:             true,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`:             false,
	} {
		answering(t, text, func(ctx context.Context, c *cluster.Client) {
			live, err := c.Get(ctx, cluster.ConfigMaps, a)
			if errors.Is(err, answers.ErrNotServed) != wrong || (live == nil) != wrong {
				t.Errorf("%s: %v, %v", text, live, err)
			}
			object := bundle.V1(a, map[string]any{})
			for what, write := range map[string]func() (*unstructured.Unstructured, error){
				"create": func() (*unstructured.Unstructured, error) {
					return c.Create(ctx, cluster.ConfigMaps, object, cluster.Write{})
				},
				"update": func() (*unstructured.Unstructured, error) { return c.Update(ctx, cluster.ConfigMaps, object) },
				"patch": func() (*unstructured.Unstructured, error) {
					return c.Patch(ctx, cluster.ConfigMaps, a, types.MergePatchType, []byte("{}"), cluster.Write{})
				},
				"apply": func() (*unstructured.Unstructured, error) {
					stored, _, err := c.Apply(ctx, cluster.ConfigMaps, a, []byte(`{"metadata":{"name":"a"}}`), cluster.Write{})
					return stored, err
				},
			} {
				if stored, err := write(); (err != nil) != wrong || (stored == nil) != wrong || answers.Refused(err) {
					t.Errorf("%s, %s: %v, %v", what, text, stored, err)
				}
			}
		})
	}
}

// answering has a client ask a server that answers all requests with the same.
func answering(t *testing.T, text string, do func(context.Context, *cluster.Client)) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	defer s.Close()
	c, err := cluster.New(&rest.Config{Host: s.URL}, cluster.Options{UserAgent: "brine", RetryFor: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	do(ctx, c)
}
