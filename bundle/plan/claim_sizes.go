package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/inventory"
)

// Claim is a PersistentVolumeClaim of a StatefulSet whose template asks for another
// size than the claim does.
type Claim struct {
	Name string `json:"name" text:"name"`
	// From is the size that it asks for, To the one that its template asks for.
	From string `json:"from" text:"content"`
	To   string `json:"to" text:"content"`
	// Kept is why it keeps its size; "" if it grows.
	Kept string `json:"kept,omitempty"`
}

// String is "claim data-web-0: 1Gi → 2Gi".
func (c Claim) String() string {
	if c.Kept != "" {
		return fmt.Sprintf("claim %s keeps its size %s, not %s: %s", c.Name, c.From, c.To, c.Kept)
	}
	return fmt.Sprintf("claim %s: %s → %s", c.Name, c.From, c.To)
}

func claimTemplates(set *unstructured.Unstructured) []map[string]any {
	return bundle.Items[map[string]any](set.Object, "spec", "volumeClaimTemplates")
}

func nameOf(template map[string]any) string { return bundle.At[string](template, "metadata", "name") }

// Resizes says whether the templates of a StatefulSet ask for other sizes than
// before. If not, its claims need not be read.
func Resizes(live, desired *unstructured.Unstructured) bool {
	if live.GroupVersionKind().GroupKind() != bundle.StatefulSetKind {
		return false
	}
	had := bundle.By(claimTemplates(live), nameOf)
	return slices.ContainsFunc(claimTemplates(desired), func(t map[string]any) bool {
		was, known := had[nameOf(t)]
		before, _ := request(was)
		now, ok := request(t)
		return known && ok && before.Cmp(now) != 0
	})
}

// ClaimsDie says whether the controller of a StatefulSet deletes its claims with it
// (persistentVolumeClaimRetentionPolicy).
func ClaimsDie(set *unstructured.Unstructured) bool {
	return set.GroupVersionKind().GroupKind() == bundle.StatefulSetKind && bundle.At[string](set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete"
}

// Resize says what becomes of a claim of a StatefulSet; false if it has the size that
// its template asks for. rigid says why the claims of a StorageClass cannot grow, ""
// if they can. An error of it is returned: what is unknown is neither.
func Resize(desired, claim *unstructured.Unstructured, rigid func(class string) (string, error)) (c Claim, differs bool, err error) {
	var size resource.Quantity
	found := false
	for _, t := range claimTemplates(desired) {
		ordinal, ok := strings.CutPrefix(claim.GetName(), nameOf(t)+"-"+desired.GetName()+"-")
		if ok && ordinal != "" && strings.Trim(ordinal, "0123456789") == "" {
			size, found = request(t)
		}
	}
	has, ok := request(claim.Object)
	if !found || !ok || size.Cmp(has) == 0 {
		return Claim{}, false, nil
	}
	c = Claim{Name: claim.GetName(), From: has.String(), To: size.String()}
	phase, class := bundle.At[string](claim.Object, "status", "phase"), bundle.At[string](claim.Object, "spec", "storageClassName")
	owner := claim.GetAnnotations()[inventory.OwningInventory]
	switch {
	case size.Cmp(has) < 0:
		c.Kept = "a claim never shrinks"
	case claim.GetDeletionTimestamp() != nil:
		c.Kept = "it is being deleted"
	case owner != "":
		c.Kept = fmt.Sprintf("it belongs to inventory %q", owner)
	case phase != "Bound":
		c.Kept = "only a bound claim can grow, and it is " + phase
	case class == "":
		c.Kept = "it has no StorageClass"
	default:
		c.Kept, err = rigid(class)
	}
	return c, true, err
}
