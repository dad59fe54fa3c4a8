package cluster_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
)

// An answer that stays is taken at the first word, and told in the server's own.
func TestDeleteAsksOnce(t *testing.T) {
	c := clustertest.Shared(t)
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	configMaps := cluster.Resource{GVK: kind, GVR: kind.GroupVersion().WithResource("configmaps"), Namespaced: true}
	there := bundle.ID{GroupKind: kind.GroupKind(), Namespace: c.Namespace(t), Name: "there"}
	connect := func(user string) *cluster.Client {
		config := c.Config(t)
		config.Impersonate.UserName = user
		client, err := cluster.New(config, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		client.OnRetry(func(_ context.Context, err error, _ int) { t.Errorf("it is asked again after %v", err) })
		return client
	}
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there","namespace":"` + there.Namespace + `"}}`
	if _, _, err := connect("").Apply(t.Context(), configMaps, there, []byte(body), cluster.Write{}); err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		name, resource, user string
		uid                  types.UID
		is                   func(error) bool // nil: gone, no error
		says                 string
	}{
		"no such object":  {name: "not-there"},
		"no such kind":    {resource: "nothings"},
		"another object":  {uid: "another", is: apierrors.IsConflict, says: "the UID in the precondition (another) does not match"},
		"not permitted":   {user: "nobody", is: apierrors.IsForbidden, says: `User "nobody" cannot delete resource "configmaps"`},
		"the very object": {},
	} {
		t.Run(name, func(t *testing.T) {
			id, resource := there, configMaps
			if tc.name != "" {
				id.Name = tc.name
			}
			if tc.resource != "" {
				resource.GVR.Resource, resource.GVK.Kind = tc.resource, "Nothing"
			}
			client := connect(tc.user)
			isGone, err := client.Delete(t.Context(), resource, &metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: tc.uid}, cluster.Deletion{DryRun: true})
			if tc.is == nil && (err != nil || !isGone) || tc.is != nil && (!tc.is(err) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("gone: %v, error: %v", isGone, err)
			}
			if n := client.Requests.Counts()["delete"]; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
