package cluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster/answers"
)

// Kubernetes 1.29 refuses an apply that would create an object with no word of
// the right to create.
func TestRightToCreateOfOlderServers(t *testing.T) {
	r := Resource{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
	id := bundle.ID{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	for reason, want := range map[string]string{
		"":                         "create deployments.apps in namespace shop",
		`RBAC: role "r" not found`: "create deployments.apps in namespace shop",
		"exceeded quota: q":        "",
		`User "u" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`: "patch deployments.apps in namespace shop",
	} {
		refused := apierrors.NewForbidden(r.GVR.GroupResource(), id.Name, errors.New(reason))
		err := mayNotCreate(refused, r, id)
		if right, _ := answers.MissingRight(err); right != want || !apierrors.IsForbidden(err) {
			t.Errorf("%q: the right %q is missing, want %q: %v", reason, right, want, err)
		}
	}
	if err := mayNotCreate(nil, r, id); err != nil {
		t.Error(err)
	}
}
