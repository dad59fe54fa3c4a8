package cluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
)

// statuses counts the server's answers.
type statuses struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen map[int]int
}

func (s *statuses) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.seen[response.StatusCode]++
	}
	return response, err
}

// What the server serves is sent once, asked for every time, and never stale.
func TestDiscoveryIsCachedSafely(t *testing.T) {
	c, dir := clustertest.New(t), t.TempDir() // a cluster whose kinds nobody else changes
	discover := func() (*cluster.Client, map[int]int) {
		t.Helper()
		seen := map[int]int{}
		config := c.Config(t)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &statuses{next: next, seen: seen} })
		client, err := cluster.New(config, cluster.Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); err != nil {
			t.Errorf("Deployments are not known: %v", err)
		}
		return client, seen
	}
	if _, seen := discover(); seen[http.StatusOK] != 2 {
		t.Errorf("the first time: %v", seen)
	}
	if _, seen := discover(); seen[http.StatusNotModified] != 2 {
		t.Errorf("the second time: %v, want nothing sent again", seen)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files in the cache, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, seen := discover(); seen[http.StatusOK] != 2 {
		t.Errorf("with damaged files: %v, want all sent again", seen)
	}

	crds := c.Dynamic(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "caches.test.brine.dev"},
		"spec": map[string]any{
			"group": "test.brine.dev", "scope": "Cluster", "names": map[string]any{"kind": "Cache", "plural": "caches"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		client, _ := discover()
		if _, err := client.Resource(schema.GroupVersionKind{Group: "test.brine.dev", Version: "v1", Kind: "Cache"}); err == nil {
			break
		}
	}

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // nothing can be kept there
		t.Fatal(err)
	}
	if _, seen := discover(); seen[http.StatusOK] != 2 {
		t.Errorf("without a directory: %v", seen)
	}
}
