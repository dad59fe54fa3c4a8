package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"brine/bundle/cluster"
)

// A server of Kubernetes 1.27 to 1.29 knows aggregated discovery by its beta name
// only, and gives the first format of those asked for that it knows. (The real
// ones are asked by scripts/test --kubernetes.)
func TestDiscoveryOfOlderVersions(t *testing.T) {
	const beta, plain = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "application/json"
	var requests atomic.Int32 // two at once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		formats := strings.Split(r.Header.Get("Accept"), ",")
		for _, format := range formats {
			if format == plain {
				break
			}
			if format == beta {
				w.Header().Set("Content-Type", beta)
				items := "[]"
				if r.URL.Path == "/apis" {
					items = `[{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
						{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","verbs":["get"]}]}]}]`
				}
				_, _ = w.Write([]byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1","items":` + items + `}`))
				return
			}
		}
		t.Errorf("%s asks for %q", r.URL.Path, formats)
		w.WriteHeader(http.StatusNotAcceptable)
	}))
	t.Cleanup(server.Close)
	client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := client.Resource(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil || r.GVR.Resource != "deployments" || !r.Namespaced {
		t.Errorf("a Deployment is %+v, %v", r, err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}
