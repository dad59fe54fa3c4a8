// Package inventory is the data of an inventory, which remembers the objects of
// a bundle: members with their statuses, fingerprints, revisions, the ownership
// metadata of members, and how all of it is encoded. Values come in, values and
// encoded text go out: package inventory/store reads and writes the cluster.
package inventory

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"brine/bundle"
)

// Labels and annotations that tie objects to an inventory. cli-utils' and
// kubectl's own packages name them too, but bring all of kubectl with them:
// 25 ms at every start.
const (
	// OwningInventory is the annotation of every member: the inventory's ID.
	OwningInventory = "config.k8s.io/owning-inventory"
	// PartOf is the label of every member: the ApplySet's ID (KEP-3659). Live
	// members are found by it, with one LIST a kind.
	PartOf = "applyset.kubernetes.io/part-of"
	// Label is cli-utils' label of the inventory object: the inventory's ID.
	Label = "cli-utils.sigs.k8s.io/inventory-id"
	// MadeAnnotation is on a namespace that brine made for an inventory, and names that.
	MadeAnnotation = "brine.dev/made-for"
	// AuxiliaryLabel is the label of all auxiliary objects: the inventory's ID.
	AuxiliaryLabel = "brine.dev/inventory"
	// OverflowLabel is the label of the ConfigMaps that hold what does not fit into
	// the inventory object. They must not carry cli-utils' label: it refuses two
	// objects with one ID.
	OverflowLabel = "brine.dev/inventory-overflow"
	// FingerprintsLabel is the label of the ConfigMaps that hold fingerprints.
	FingerprintsLabel = "brine.dev/inventory-fingerprints"
	// OriginsLabel is the label of the ConfigMaps that hold origins.
	OriginsLabel = "brine.dev/inventory-origins"
	// RevisionLabel is the label of the Secrets that hold a revision: its number.
	RevisionLabel = "brine.dev/revision"
)

// Status is cli-utils' status of one member, in its words:
// Apply or Delete; Pending, Succeeded, Skipped or Failed; the same and Timeout.
type Status struct {
	Strategy  string `json:"strategy,omitempty"`
	Actuation string `json:"actuation,omitempty"`
	Reconcile string `json:"reconcile,omitempty"`
	// MovingTo is the inventory, NAMESPACE/NAME, to which a move of the member began.
	// The member may not be deleted before the move has ended.
	MovingTo string `json:"movingTo,omitempty"`
	// Creating is the number of the run that was to create the member and has not ended:
	// nothing was there. See Origin.
	Creating int `json:"creating,omitempty"`
	// Came is Origin.BroughtFrom as versions before 0.3 wrote it.
	Came string `json:"from,omitempty"`
}

// Pending is a member's status before it was applied.
var Pending = Status{Strategy: "Apply", Actuation: "Pending", Reconcile: "Pending"}

// Inventory is what is known of one inventory.
type Inventory struct {
	Namespace string
	Name      string
	ID        string // cli-utils' inventory-id
	// Members are all that the inventory holds.
	Members map[bundle.ID]Status
	// Origins are of those members of which it is known; see OriginOf.
	Origins map[bundle.ID]Origin
	// Fingerprints are a cache; see Fingerprint.
	Fingerprints map[bundle.ID]Fingerprint
	// Key keys the hashes of Secrets; nil where none is needed.
	Key *Key
}

// ApplySetID is the ApplySet's ID of an inventory: the value of the PartOf
// label (KEP-3659, as kubectl computes it).
func ApplySetID(namespace, name string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{name, namespace, "ConfigMap", ""}, ".")))
	return fmt.Sprintf("applyset-%s-v1", base64.RawURLEncoding.EncodeToString(sum[:]))
}

// DefaultID is the inventory-id of an inventory that brine makes. It follows
// from the name, so that members are recognised after the
// inventory itself was lost.
func DefaultID(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	stem := strings.Trim(name[:min(len(name), 46)], "-_.")
	return stem + "-" + hex.EncodeToString(sum[:8])
}

// Empty is an inventory without members. Its ID is DefaultID if id is "".
func Empty(namespace, name, id string) *Inventory {
	return &Inventory{Namespace: namespace, Name: name, ID: cmp.Or(id, DefaultID(namespace, name))}
}

// ApplySetID is the value of this inventory's PartOf label.
func (inv *Inventory) ApplySetID() string { return ApplySetID(inv.Namespace, inv.Name) }

// Selector matches the inventory's live members.
func (inv *Inventory) Selector() string { return PartOf + "=" + inv.ApplySetID() }

// SetOwner puts the ownership metadata of a member on an object.
func (inv *Inventory) SetOwner(u *unstructured.Unstructured) {
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{OwningInventory: inv.ID}))
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{PartOf: inv.ApplySetID()}))
}

// ClearOwner is the metadata of a merge patch that takes the inventory's
// ownership metadata off an object; nil where there is none.
func (inv *Inventory) ClearOwner(live *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{}
	if live.GetAnnotations()[OwningInventory] == inv.ID {
		metadata["annotations"] = map[string]any{OwningInventory: nil}
	}
	if live.GetLabels()[PartOf] == inv.ApplySetID() {
		metadata["labels"] = map[string]any{PartOf: nil}
	}
	if len(metadata) == 0 {
		return nil
	}
	metadata["uid"] = live.GetUID()
	return metadata
}

//go:embed README.md
var readme string

// Readme is README.md, whose sections are topics of brine's help.
func Readme() string { return readme }
