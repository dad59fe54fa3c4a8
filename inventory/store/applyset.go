package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/inventory"
)

// The label and annotations of the inventory object as an ApplySet's parent
// (KEP-3659).
const (
	parentID       = "applyset.kubernetes.io/id"
	tooling        = "applyset.kubernetes.io/tooling"
	containedKinds = "applyset.kubernetes.io/contains-group-kinds"
	toolPrefix     = "brine/" // of tooling; the version is next
	moreNamespaces = "applyset.kubernetes.io/additional-namespaces"
)

// formatKey is the annotation of the inventory object with its format.
const formatKey = "brine.dev/inventory-format"

// annotationBytes are what the annotations of the inventory object may come to in all: the
// server takes 256 KiB, and others annotate it too. The ApplySet's list of
// namespaces, which is optional and only a hint where to look, is left out when
// it does not fit: cut, it would be wrong.
const annotationBytes = 192 << 10

// Kinds are the group-kinds of all members, sorted as the ApplySet's
// annotation lists them.
func (inv *Inventory) Kinds() []schema.GroupKind {
	kinds := sets.New[schema.GroupKind]()
	for id := range inv.Members {
		kinds.Insert(id.GroupKind)
	}
	if len(inv.damage) > 0 { // those of members that are still to be found
		recorded, _ := inv.RecordedKinds()
		kinds.Insert(recorded...)
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

func (inv *Inventory) namespaces() []string {
	namespaces := sets.New[string]()
	for id := range inv.Members {
		namespaces.Insert(id.Namespace)
	}
	if len(inv.damage) > 0 {
		recorded, _ := inv.RecordedNamespaces()
		namespaces.Insert(recorded...)
	}
	return sets.List(namespaces.Delete("", inv.Namespace))
}

// setParent makes the inventory object what cli-utils and kubectl expect of it.
func (inv *Inventory) setParent(u *unstructured.Unstructured) {
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{inventory.Label: inv.ID, parentID: inv.ApplySetID()}))

	names := bundle.Each(inv.Kinds(), schema.GroupKind.String)
	annotations := labels.Merge(u.GetAnnotations(), labels.Set{tooling: toolPrefix + inv.version, containedKinds: strings.Join(names, ","), formatKey: inventory.FormatText()})
	if inv.lastRevision != "" {
		annotations[revisionHead] = inv.lastRevision
	}
	if inv.begun != "" {
		annotations[begunKey] = inv.begun
	}
	if inv.ended {
		delete(annotations, begunKey)
	}
	if inv.renamedFrom != "" {
		annotations[renamedFrom] = inv.renamedFrom
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
	if size > annotationBytes || inv.searchAll {
		delete(annotations, moreNamespaces)
	}
	if inv.searchAll {
		delete(annotations, containedKinds) // else the next repair would search no others
	}
	u.SetAnnotations(annotations)
}

// Outdated says whether a version of brine wrote the inventory that had an older format.
func (inv *Inventory) Outdated() bool {
	if !strings.HasPrefix(inv.Tool(), toolPrefix) {
		return false // new, or another tool's
	}
	number, _ := inventory.ParseFormat(inv.object.GetAnnotations()[formatKey])
	return number < inventory.Format
}

// RecordedKinds are the kinds of all members, as the inventory object lists them; false if it
// does not.
func (inv *Inventory) RecordedKinds() ([]schema.GroupKind, bool) {
	names, ok := inv.recorded(containedKinds)
	return bundle.Each(names, schema.ParseGroupKind), ok
}

// RecordedNamespaces are the namespaces of all members, the inventory's own
// included, as the inventory object lists them; false if it does not.
func (inv *Inventory) RecordedNamespaces() ([]string, bool) {
	names, ok := inv.recorded(moreNamespaces)
	return append(names, inv.Namespace), ok
}

// MemberNamespaces are the namespaces that are members, or have some: as the inventory lists
// them, or as what is known of its members, or its history, says. Empty where none of it is left.
func (inv *Inventory) MemberNamespaces(ctx context.Context) (sets.Set[string], error) {
	namespaces := sets.New[string]()
	add := func(id bundle.ID) {
		if namespaces.Insert(id.Namespace); id.GroupKind == bundle.NamespaceKind {
			namespaces.Insert(id.Name)
		}
	}
	for id := range inv.Origins {
		add(id)
	}
	for id := range inv.Fingerprints {
		add(id)
	}
	err := inv.ReadHistory(ctx)
	for _, r := range inv.read.history { // also one that an older inventory object does not know of
		content, err := inv.LoadRevision(ctx, r.Number)
		if err != nil && !errors.Is(err, ErrDamagedRevision) {
			return nil, err
		}
		if err != nil {
			continue
		}
		namespaces.Insert(content.Namespace)
		for _, o := range content.Bundle.Objects {
			add(o.ID)
		}
	}
	recorded, known := inv.RecordedNamespaces()
	if err != nil || !known && len(namespaces) == 0 {
		return nil, err
	}
	for id := range inv.Members {
		add(id)
	}
	return namespaces.Insert(recorded...).Insert(""), nil // what is in none is no copy
}

func (inv *Inventory) recorded(key string) ([]string, bool) {
	if inv.object == nil || !strings.HasPrefix(inv.object.GetAnnotations()[tooling], toolPrefix) {
		return nil, false
	}
	text, ok := inv.object.GetAnnotations()[key]
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), ok
}
