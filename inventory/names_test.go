package inventory

import (
	"testing"

	"brine/bundle"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubectl/pkg/cmd/apply"
	"sigs.k8s.io/cli-utils/pkg/common"
	cliutils "sigs.k8s.io/cli-utils/pkg/inventory"
)

// The names that other tools find an inventory and its members by are theirs.
func TestNamesAreThoseOfCliUtilsAndKubectl(t *testing.T) {
	for _, c := range []struct{ ours, theirs string }{
		{Label, common.InventoryLabel},
		{OwningInventory, cliutils.OwningInventoryKey},
		{PartOf, apply.ApplysetPartOfLabel},
		{parentID, apply.ApplySetParentIDLabel},
		{tooling, apply.ApplySetToolingAnnotation},
		{containedKinds, apply.ApplySetGKsAnnotation},
		{moreNamespaces, apply.ApplySetAdditionalNamespacesAnnotation},
	} {
		if c.ours != c.theirs {
			t.Errorf("%s is %s to the others", c.ours, c.theirs)
		}
	}
	if got, want := ApplySetID("kube-system", "platform"), theirID("kube-system", "platform"); got != want {
		t.Errorf("the ApplySet's ID is %s, kubectl computes %s", got, want)
	}
}

func theirID(namespace, name string) string {
	parent := apply.ApplySetParentRef{Name: name, Namespace: namespace, RESTMapping: &meta.RESTMapping{GroupVersionKind: bundle.ConfigMapKind.WithVersion("v1")}}
	return apply.NewApplySet(&parent, apply.ApplySetTooling{Name: "kubectl"}, nil, nil).ID()
}
