package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
)

// What a deleted object owns goes with it, and is not lost by the deletion of its namespace;
// where dependents are to stay, it would be.
func TestDependentsOfWhatIsDeleted(t *testing.T) {
	t.Parallel()
	for _, orphan := range []bool{false, true} {
		deleted := &Deleted{}
		owner := bundle.V1(bundle.ID{Namespace: "shop", Name: "web", GroupKind: bundle.DeploymentKind}, map[string]any{})
		owner.SetUID("owner")
		deleted.Add(owner)
		s := &search{
			Search:      Search{Deleted: deleted, Orphan: orphan, Keeps: func(metav1.Object) bool { return false }, Auxiliary: func(bundle.ID, map[string]string) bool { return false }},
			disposables: map[types.UID]bool{}, found: map[types.UID]*item{},
		}
		owned := &item{id: bundle.ID{Namespace: "shop", Name: "a", GroupKind: bundle.ConfigMapKind}}
		owned.meta.UID = "owned"
		owned.meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "owner"}}
		if got := s.disposable(t.Context(), owned); got == orphan {
			t.Errorf("dependents stay: %v, and what it owns may be lost: %v", orphan, got)
		}
	}
}
