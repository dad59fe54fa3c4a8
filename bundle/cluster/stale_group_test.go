package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"brine/bundle/cluster"
)

// Aggregated discovery may call a group stale whose server answers (Kubernetes 1.27,
// for a minute after the APIService came). Only those groups are asked that the run needs.
func TestStaleGroupIsAskedItself(t *testing.T) {
	var mu sync.Mutex // two requests come at once
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		switch r.URL.Path {
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
				{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
					{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","verbs":["get"]}]}]},
				{"metadata":{"name":"new.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]},
				{"metadata":{"name":"away.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]},
				{"metadata":{"name":"other.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`))
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}`))
		case "/apis/new.example.com/v1":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"new.example.com/v1","resources":[
				{"name":"things","kind":"Thing","namespaced":true,"verbs":["get","list"]},{"name":"things/status","kind":"Thing","namespaced":true,"verbs":["get"]}]}`))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.AskFailed(t.Context(), func(group string) bool { return group != "other.example.com" })
	if r, err := client.Any(schema.GroupKind{Group: "new.example.com", Kind: "Thing"}); err != nil || r.GVR.Resource != "things" || !r.Namespaced {
		t.Errorf("a Thing is %+v, %v", r, err)
	}
	if client.Failed("new.example.com") != nil || client.Failed("away.example.com") == nil || client.Failed("other.example.com") == nil {
		t.Error("only the group that answered is known")
	}
	if asked["/apis/other.example.com/v1"] > 0 || asked["/apis/new.example.com/v1"] != 1 {
		t.Errorf("asked: %v", asked)
	}
}
