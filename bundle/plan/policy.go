package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Policy says whose objects a run may take: cli-utils' inventory policies.
type Policy int

// The policies, from the most careful on.
const (
	MustMatch          Policy = iota // only our own
	AdoptIfNoInventory               // and those of no inventory
	AdoptAll                         // and those of others
)

func (p Policy) String() string {
	return [...]string{"must-match", "adopt-if-no-inventory", "adopt-all"}[p]
}

// Refusal says why an inventory may not take a live object, and what can be
// done about it; empty if it may (cli-utils' CanApply).
func Refusal(live *unstructured.Unstructured, inventoryID string, policy Policy) string {
	switch owner, part := live.GetAnnotations()[inventory.OwningInventory], inventory.PartOfInventory(live); {
	case part != "":
		return notAMember(part)
	case owner == inventoryID:
		return ""
	case owner == "" && policy == MustMatch:
		return "it is on the cluster and belongs to no inventory: " + remedy.InventoryPolicy + "=" + AdoptIfNoInventory.String() + " adopts it"
	case owner != "" && policy != AdoptAll:
		return fmt.Sprintf("it belongs to inventory %q: %s=%s adopts it (see %s)", owner, remedy.InventoryPolicy, AdoptAll, remedy.HelpOtherOwner)
	}
	return ""
}

func notAMember(of string) string {
	return fmt.Sprintf("it is a part of inventory %q itself, and can be no member of another one", of)
}

// Owned says whether a live object belongs to the inventory.
func Owned(live *unstructured.Unstructured, inventoryID string) bool {
	return live.GetAnnotations()[inventory.OwningInventory] == inventoryID
}

// LeavesAlone says whether an object of the bundle stays as it is once it is
// there.
func LeavesAlone(o *bundle.Object) bool {
	return o.Content.GetAnnotations()[bundle.LifecycleMutation] == "ignore"
}
