package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"brine/bundle"
	"brine/bundle/remedy"
	"brine/inventory"
)

const (
	// overflowParts is the annotation of the inventory object that names the overflow ConfigMaps
	// by their numbers: {"1":{"generation":3,"members":2000}}. cli-utils and
	// kubectl do not look at it; an inventory of an older version has none.
	overflowParts = "brine.dev/inventory-overflow-parts"
	// overflowGeneration is the annotation of an overflow ConfigMap that counts
	// how often it was written.
	overflowGeneration = "brine.dev/inventory-generation"
)

// part is an overflow ConfigMap as the inventory object names it. What is on the cluster may
// be newer, when a run was killed between two writes: it holds all that the run
// may own then. It is never older.
type part struct {
	Generation int64 `json:"generation"`
	Members    int   `json:"members"`
}

// ErrDamaged says that a part of an inventory is missing, and with it members
// that nothing else names.
var ErrDamaged = errors.New("the inventory is damaged")

func (p part) label(u *unstructured.Unstructured, id string) {
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{overflowGeneration: strconv.FormatInt(p.Generation, 10)}))
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{inventory.AuxiliaryLabel: id, inventory.OverflowLabel: id}))
}

func generationOf(u *unstructured.Unstructured) int64 {
	n, err := strconv.ParseInt(u.GetAnnotations()[overflowGeneration], 10, 64)
	if err != nil {
		return 0 // an older version wrote it
	}
	return n
}

// partsText is the annotation of the inventory object. What is lost stays named until it is found.
func (inv *Inventory) partsText() string {
	all := maps.Clone(inv.held)
	maps.Copy(all, inv.lost)
	if len(all) == 0 || inv.unnamed {
		return ""
	}
	numbered := map[string]part{}
	for name, p := range all {
		numbered[strings.TrimPrefix(name, inv.Name+"-overflow-")] = p
	}
	text, _ := json.Marshal(numbered)
	return string(text)
}

// compare finds what the inventory object names, and is not there.
func (inv *Inventory) compare() {
	if inv.object == nil {
		return
	}
	text, ok := inv.object.GetAnnotations()[overflowParts]
	if !ok {
		return
	}
	numbered := map[string]part{}
	if err := json.Unmarshal([]byte(text), &numbered); err != nil {
		inv.unnamed = true
		inv.damage = append(inv.damage, fmt.Sprintf("annotation %s of ConfigMap %s, which names the others, cannot be read", overflowParts, inv.Name))
		return
	}
	broken := bundle.SetOf(inv.broken, (*unstructured.Unstructured).GetName)
	for _, number := range slices.Sorted(maps.Keys(numbered)) {
		name, want := inv.Name+"-overflow-"+number, numbered[number]
		has, ok := inv.held[name]
		switch {
		case broken.Has(name): // reported already
		case !ok:
			inv.damage = append(inv.damage, fmt.Sprintf("ConfigMap %s with %d members is missing", name, want.Members))
		case has.Generation < want.Generation:
			inv.damage = append(inv.damage, fmt.Sprintf("ConfigMap %s is an old one: generation %d, and %d was written", name, has.Generation, want.Generation))
		case has.Generation == want.Generation && has.Members < want.Members:
			inv.damage = append(inv.damage, fmt.Sprintf("ConfigMap %s holds %d members, and %d were written", name, has.Members, want.Members))
		default:
			continue
		}
		inv.lost[name] = want
	}
}

// Damage says what is missing of the inventory; nothing if it is whole.
func (inv *Inventory) Damage() []string { return inv.damage }

// whole is an error for a damaged inventory: a run with it would forget members.
func (inv *Inventory) whole() error {
	if len(inv.damage) == 0 {
		return nil
	}
	return fmt.Errorf("read inventory %s/%s: %w: %s; nothing was changed; %s finds its members again (see %s)",
		inv.Namespace, inv.Name, ErrDamaged, strings.Join(inv.damage, "; "), inv.repairCommand(inv.ID), remedy.HelpDamaged)
}

// unusable are the names of overflow ConfigMaps that nothing may be written to.
func (inv *Inventory) unusable() []string {
	return slices.Concat(inv.taken, slices.Collect(maps.Keys(inv.lost)), bundle.Each(inv.broken, (*unstructured.Unstructured).GetName))
}
