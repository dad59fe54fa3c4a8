package cluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// An admission webhook (apiserver's plugin/webhook/errors, ToStatusErr) says no "is forbidden".
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "policy.example.com" denied the request: not on Fridays`}}
	if err := mayNotCreate(denied, r, id); err.Error() != denied.Error() {
		t.Errorf("a webhook denied it: %v", err)
	}
	if err := mayNotCreate(nil, r, id); err != nil {
		t.Error(err)
	}
}
