package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
)

// A server before Kubernetes 1.27, and a gateway that does not route some of its paths: what
// has no answer is unknown.
func TestDiscoverOlderServer(t *testing.T) {
	const (
		versions    = `{"kind":"APIVersions","versions":["v1"]}`
		groups      = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`
		core        = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}`
		deployments = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["list"]}]}`
	)
	for name, c := range map[string]struct {
		unrouted    string
		unreachable bool
		failed      string
	}{
		"all":                      {"", false, "-"},
		"not the core group":       {"/api", true, ""},
		"no group":                 {"/apis", true, ""},
		"not version v1":           {"/api/v1", false, ""},
		"not a version of a group": {"/apis/apps/v1", false, "apps"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, ok := map[string]string{"/api": versions, "/apis": groups, "/api/v1": core, "/apis/apps/v1": deployments}[r.URL.Path]
				if !ok || r.URL.Path == c.unrouted {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(text))
			}))
			t.Cleanup(server.Close)
			client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Discover(t.Context()); (err != nil) != c.unreachable {
				t.Fatalf("discovered with error %v", err)
			}
			if c.unreachable {
				return
			}
			for _, gk := range []schema.GroupKind{{Kind: "Pod"}, {Group: "apps", Kind: "Deployment"}} {
				_, err := client.Any(gk)
				if failed := gk.Group == c.failed; (err != nil) != failed || (client.Failed(gk.Group) != nil) != failed {
					t.Errorf("%s: %v; the group: %v", gk, err, client.Failed(gk.Group))
				}
			}
		})
	}
}

type plainAccept struct{ http.RoundTripper }

func (p plainAccept) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	return p.RoundTripper.RoundTrip(r)
}

// Asked version by version, a real server says the same.
func TestDiscoverVersionByVersion(t *testing.T) {
	config := clustertest.Shared(t).Config(t)
	old := rest.CopyConfig(config)
	old.Wrap(func(rt http.RoundTripper) http.RoundTripper { return plainAccept{rt} })
	var found [2][]cluster.Resource
	for i, config := range []*rest.Config{config, old} {
		client, err := cluster.New(config, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		found[i], _ = client.Listable()
		found[i] = slices.DeleteFunc(found[i], func(r cluster.Resource) bool { return strings.HasSuffix(r.GVR.Group, ".example.com") }) // other tests' come and go
		for j := range found[i] {
			slices.Sort(found[i][j].Verbs)
		}
	}
	if len(found[0]) < 30 || !reflect.DeepEqual(found[0], found[1]) {
		t.Errorf("aggregated:\n%+v\nversion by version:\n%+v", found[0], found[1])
	}
}
