package cluster_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"brine/bundle/cluster"
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
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		}))
		c, err := cluster.New(&rest.Config{Host: s.URL}, cluster.Options{UserAgent: "brine", RetryFor: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		items, err := c.ListMetadata(ctx, cluster.ConfigMaps, "default", "")
		if (err != nil) != wrong {
			t.Errorf("%s: %v, %v", text, items, err)
		}
		cancel()
		c.Close()
		s.Close()
	}
}
