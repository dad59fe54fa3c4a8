// Package inventory remembers which objects belong to a bundle: cli-utils'
// ConfigMap (kapply reads it, prunes by it, destroys by it), which is also the
// parent of a kubectl ApplySet, with overflow ConfigMaps for what does not fit
// into it. At every instant the inventory holds at least all that we own.
package inventory

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
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
	// Label is cli-utils' label of the head: the inventory's ID.
	Label = "cli-utils.sigs.k8s.io/inventory-id"
	// Side is the label of all ConfigMaps beside the head: the inventory's ID.
	Side = "brine.dev/inventory"
	// Overflow is the label of the ConfigMaps that hold what does not fit into
	// the head. They must not carry cli-utils' label: it refuses two with one ID.
	Overflow = "brine.dev/inventory-overflow"

	// The head's label and annotations as an ApplySet's parent.
	parentID       = "applyset.kubernetes.io/id"
	tooling        = "applyset.kubernetes.io/tooling"
	containedKinds = "applyset.kubernetes.io/contains-group-kinds"
	moreNamespaces = "applyset.kubernetes.io/additional-namespaces"
)

// annotationBytes are what the head's annotations may come to in all: the
// server takes 256 KiB, and others annotate it too. The ApplySet's list of
// namespaces, which is optional and only a hint where to look, is left out when
// it does not fit: cut, it would be wrong.
const annotationBytes = 192 << 10

// ErrConflict says that somebody else wrote the inventory since it was read. The run has
// to look again before it writes anything.
var ErrConflict = errors.New("the inventory changed while it was being used")

// Status is cli-utils' status of one member, in its words:
// Apply or Delete; Pending, Succeeded, Skipped or Failed; the same and Timeout.
type Status struct {
	Strategy  string `json:"strategy,omitempty"`
	Actuation string `json:"actuation,omitempty"`
	Reconcile string `json:"reconcile,omitempty"`
}

// Pending is a member's status before it was applied.
var Pending = Status{Strategy: "Apply", Actuation: "Pending", Reconcile: "Pending"}

// Inventory is one inventory as it was read, with what changed since.
type Inventory struct {
	Namespace string
	Name      string
	ID        string // cli-utils' inventory-id
	// Members are all that the inventory holds.
	Members map[bundle.ID]Status
	// Fingerprints are a cache; see Fingerprint.
	Fingerprints map[bundle.ID]Fingerprint
	// Key keys the hashes of Secrets; nil where none is needed.
	Key *Key
	// Version is brine's version, for the ApplySet's tooling annotation.
	Version string

	client   *cluster.Client
	head     *unstructured.Unstructured   // nil: not there yet
	overflow []*unstructured.Unstructured // sorted by name
	prints   []*unstructured.Unstructured
	place    map[bundle.ID]string         // the ConfigMap that holds a member
	spare    map[string]string            // data of the head that is not a member's
	held     map[string]part              // what each of overflow is known to hold
	lost     map[string]part              // what the head names, and is not there
	broken   []*unstructured.Unstructured // overflow that cannot be read
	unnamed  bool                         // what the head names cannot be read
	unmarked []string                     // parts that lost their labels
	taken    []string                     // names of parts that are something else's
	damage   []string                     // why members may be missing; see Open

	lastRevision string // to be written to the head
}

// ApplySetID is the ApplySet's ID of an inventory: the value of the PartOf
// label (KEP-3659, as kubectl computes it).
func ApplySetID(namespace, name string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{name, namespace, "ConfigMap", ""}, ".")))
	return fmt.Sprintf("applyset-%s-v1", base64.RawURLEncoding.EncodeToString(sum[:]))
}

// DefaultID is the inventory-id of an inventory that brine makes. It follows
// from the name, so that members are still known to be ours after the
// inventory itself was lost.
func DefaultID(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	stem := strings.Trim(name[:min(len(name), 46)], "-_.")
	return stem + "-" + hex.EncodeToString(sum[:8])
}

// Empty is an inventory that is not on any cluster.
func Empty(namespace, name, id string) *Inventory {
	if id == "" {
		id = DefaultID(namespace, name)
	}
	return &Inventory{Namespace: namespace, Name: name, ID: id}
}

// ApplySetID is the value of this inventory's PartOf label.
func (inv *Inventory) ApplySetID() string { return ApplySetID(inv.Namespace, inv.Name) }

// Selector matches the inventory's live members.
func (inv *Inventory) Selector() string { return PartOf + "=" + inv.ApplySetID() }

// Exists says whether the inventory is on the cluster.
func (inv *Inventory) Exists() bool { return inv.head != nil }

// Brand puts on an object what makes it a member.
func (inv *Inventory) Brand(u *unstructured.Unstructured) {
	annotations := maps.Clone(u.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[OwningInventory] = inv.ID
	u.SetAnnotations(annotations)
	labels := maps.Clone(u.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[PartOf] = inv.ApplySetID()
	u.SetLabels(labels)
}

// Kinds are the group-kinds of all members, sorted as the ApplySet's
// annotation lists them.
func (inv *Inventory) Kinds() []schema.GroupKind {
	seen := map[schema.GroupKind]bool{}
	for id := range inv.Members {
		seen[id.GroupKind] = true
	}
	if len(inv.damage) > 0 { // those of members that are still to be found
		recorded, _ := inv.RecordedKinds()
		for _, gk := range recorded {
			seen[gk] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

func (inv *Inventory) namespaces() []string {
	seen := map[string]bool{}
	for id := range inv.Members {
		if id.Namespace != "" && id.Namespace != inv.Namespace {
			seen[id.Namespace] = true
		}
	}
	if len(inv.damage) > 0 {
		recorded, _ := inv.RecordedNamespaces()
		for _, namespace := range recorded {
			if namespace != inv.Namespace {
				seen[namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// brandHead makes the head what cli-utils and kubectl expect of it.
func (inv *Inventory) brandHead(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = inv.ID
	labels[parentID] = inv.ApplySetID()
	u.SetLabels(labels)

	kinds := inv.Kinds()
	names := make([]string, len(kinds))
	for i, gk := range kinds {
		names[i] = gk.String()
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[tooling] = "brine/" + inv.Version
	annotations[containedKinds] = strings.Join(names, ",")
	if inv.lastRevision != "" {
		annotations[revisionHead] = inv.lastRevision
	}
	if !inv.unnamed {
		delete(annotations, overflowParts)
	}
	if parts := inv.partsText(); parts != "" {
		annotations[overflowParts] = parts
	}
	annotations[moreNamespaces] = strings.Join(inv.namespaces(), ",")
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	if size > annotationBytes {
		delete(annotations, moreNamespaces)
	}
	u.SetAnnotations(annotations)
}
