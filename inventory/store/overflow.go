package store

import (
	"context"
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
	"brine/bundle/cluster"
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
	broken := map[string]bool{}
	for _, u := range inv.broken {
		broken[u.GetName()] = true
	}
	for _, number := range slices.Sorted(maps.Keys(numbered)) {
		name, want := inv.Name+"-overflow-"+number, numbered[number]
		has, ok := inv.held[name]
		switch {
		case broken[name]: // reported already
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
		inv.Namespace, inv.Name, ErrDamaged, strings.Join(inv.damage, "; "), inv.Commands().Repair(inv.Namespace, inv.Name), remedy.HelpDamaged)
}

// unusable are the names of overflow ConfigMaps that nothing may be written to.
func (inv *Inventory) unusable() []string {
	names := slices.AppendSeq(slices.Clone(inv.taken), maps.Keys(inv.lost))
	for _, u := range inv.broken {
		names = append(names, u.GetName())
	}
	return names
}

// Recover reads again, by their names, the parts that are missing: one that only
// lost its labels still holds its members. Nothing is written.
func (inv *Inventory) Recover(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(inv.lost)) {
		if _, there := inv.held[name]; there {
			continue
		}
		u, err := inv.client.Get(ctx, cluster.ConfigMaps, configMapID(inv.Namespace, name))
		if err != nil {
			return fmt.Errorf("read inventory %s/%s: ConfigMap %s: %w", inv.Namespace, inv.Name, name, err)
		}
		if u == nil {
			continue
		}
		text, _, _ := unstructured.NestedString(u.Object, "binaryData", membersKey)
		if text == "" {
			inv.taken = append(inv.taken, name) // it is somebody else's
			continue
		}
		if err := inv.loadOverflow(u); err != nil {
			inv.broken = append(inv.broken, u)
			continue
		}
		inv.unlabelled = append(inv.unlabelled, name)
	}
	return nil
}

// Repair makes members of what was found to carry the inventory's ownership
// metadata, and writes the inventory. Only when the search was complete are parts
// that are missing or unreadable given up; until then each run is refused.
func (inv *Inventory) Repair(ctx context.Context, found []bundle.ID, complete bool) error {
	gone := inv.broken
	if complete {
		inv.lost, inv.broken, inv.damage, inv.unnamed = map[string]part{}, nil, nil, false
		for _, u := range gone {
			inv.taken = append(inv.taken, u.GetName())
		}
	}
	dirty := inv.assign(found)
	for _, name := range inv.unlabelled {
		dirty[name] = true
	}
	if err := inv.write(ctx, dirty); err != nil {
		return err
	}
	if !complete {
		return nil
	}
	return inv.remove(ctx, gone)
}

// SaveFingerprints replaces the fingerprints of the inventory, if they are not
// what is there already.
func (inv *Inventory) SaveFingerprints(ctx context.Context, fingerprints map[bundle.ID]inventory.Fingerprint) error {
	if maps.Equal(fingerprints, inv.Fingerprints) {
		return nil
	}
	chunks, err := inventory.EncodeFingerprints(fingerprints)
	if err != nil {
		return err
	}
	if inv.fingerprints, err = inv.replace(ctx, inv.fingerprints, chunks, inventory.FingerprintsName, inventory.FingerprintsLabel, fingerprintsKey); err != nil {
		return inv.failed("fingerprints", err)
	}
	inv.Fingerprints = fingerprints
	return nil
}

// SaveOrigins replaces the origins of the members, if they are not what is there
// already. The map may not be changed afterwards.
func (inv *Inventory) SaveOrigins(ctx context.Context, origins map[bundle.ID]inventory.Origin) error {
	if maps.Equal(origins, inv.Origins) {
		return nil
	}
	chunks, err := inventory.EncodeOrigins(origins)
	if err != nil {
		return err
	}
	if inv.origins, err = inv.replace(ctx, inv.origins, chunks, inventory.OriginsName, inventory.OriginsLabel, originsKey); err != nil {
		return inv.failed("origins of the members", err)
	}
	inv.Origins = origins
	return nil
}

// takeOldOrigins reads where members came from in the way of versions before 0.3. They
// did not record of which object it was.
func (inv *Inventory) takeOldOrigins() {
	for id, status := range inv.Members {
		if _, known := inv.Origins[id]; known || status.Came == "" {
			continue
		}
		inv.Origins[id] = inventory.Origin{BroughtFrom: status.Came}
	}
}

// replace writes chunks to ConfigMaps of their own, in place of old ones. It returns what
// is there then, also after an error.
func (inv *Inventory) replace(ctx context.Context, old []*unstructured.Unstructured, chunks []string, nameOf func(string, int) string, label, key string) (now []*unstructured.Unstructured, err error) {
	for n, packed := range chunks {
		current, there := "", []*unstructured.Unstructured(nil)
		u, at := inv.auxiliary(old, nameOf(inv.Name, n+1), label, key, packed)
		if at >= 0 {
			current, _, _ = unstructured.NestedString(old[at].Object, "binaryData", key)
			there = old[at : at+1 : at+1]
			old = slices.Concat(old[:at], old[at+1:])
		}
		if current != packed {
			if u, err = inv.put(ctx, u); err != nil {
				return slices.Concat(now, there, old), err
			}
		}
		now = append(now, u)
	}
	return now, inv.remove(ctx, old)
}
