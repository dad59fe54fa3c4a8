package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/inventory"
)

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
// metadata, and writes the inventory, which names the newest revision again. Only when
// the search was complete are parts that are missing or unreadable given up; until then
// each run is refused. And only then does the inventory object say which kinds and
// namespaces to search the next time.
func (inv *Inventory) Repair(ctx context.Context, found []bundle.ID, complete bool) error {
	gone := inv.broken
	_, recorded := inv.RecordedKinds()
	inv.searchAll = !complete && !recorded
	if complete {
		inv.lost, inv.broken, inv.damage, inv.unnamed = map[string]part{}, nil, nil, false
		for _, u := range gone {
			inv.taken = append(inv.taken, u.GetName())
		}
	}
	if last := inv.beyond(); last.Number > 0 {
		inv.lastRevision = last.Encode()
		inv.ended = inv.Begun().Time.After(last.Time) // that run was refused, and has changed no object
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

// Forgets is the error of an inventory that does not list what still belongs to it, as what is left of
// it says: its object was deleted, or replaced by an older one; so it is where the history goes beyond
// it. A run would write that list, and nothing would name these objects any more. takes are those that the run makes members. What a
// destroy by another tool leaves names nothing that is there. The history counts where it was
// read, or history says so.
func (inv *Inventory) Forgets(ctx context.Context, takes sets.Set[bundle.ID], history bool) error {
	if history {
		if err := inv.ReadTraces(ctx); err != nil {
			return err
		}
	}
	live, unknown, err := inv.outlived(ctx, inv.Last().Number+1, takes)
	there, damage := slices.Concat(bundle.SortedIDs(live), bundle.SortedIDs(unknown)), inv.Superseded()
	if err != nil || len(there) == 0 && damage == "" {
		return err
	}
	if !inv.Exists() {
		damage = "ConfigMap " + inv.Name + " is missing"
	} else if damage == "" {
		damage = "ConfigMap " + inv.Name + " is an older one, as of a backup"
	}
	if len(there) > 0 {
		damage += ", and these still belong to it, or cannot be read: " + bundle.Some(bundle.Each(there, bundle.Name), 5)
	}
	return inv.damagedBy(ctx, damage)
}

// damagedBy is the error of what other objects say of the inventory object that was read before them. It
// is ErrConflict where another run wrote that since: then they say nothing.
func (inv *Inventory) damagedBy(ctx context.Context, damage string) error {
	switch object, err := inv.now(ctx); {
	case err != nil:
		return fmt.Errorf("read inventory %s/%s again: %w", inv.Namespace, inv.Name, err)
	case !isSame(inv.object, object):
		return fmt.Errorf("read inventory %s/%s: %w", inv.Namespace, inv.Name, ErrConflict)
	}
	return fmt.Errorf("read inventory %s/%s: %w: %s; no object was changed; %s finds its members and its last revision again (see %s)",
		inv.Namespace, inv.Name, ErrDamaged, damage, inv.repairCommand(inv.ID), remedy.HelpDamaged)
}

func (inv *Inventory) refuseSuperseded(ctx context.Context) error {
	if damage := inv.Superseded(); damage != "" {
		return inv.damagedBy(ctx, damage)
	}
	return nil
}

// Superseded says that the history that was read goes beyond what the inventory object says; it is
// empty where it does not.
func (inv *Inventory) Superseded() string {
	beyond := inv.beyond()
	if beyond.Number == 0 {
		return ""
	}
	return fmt.Sprintf("ConfigMap %s is an older one, as of a backup: its last revision is %d, that of the history is %d", inv.Name, inv.Last().Number, beyond.Number)
}

// Outlived are the objects that the inventory does not list, but what is left of it names: those
// that are there and still belong to it, and those of which nothing can be known.
func (inv *Inventory) Outlived(ctx context.Context) (live map[bundle.ID]*unstructured.Unstructured, unknown map[bundle.ID]error, err error) {
	if err := inv.ReadHistory(ctx); err != nil {
		return nil, nil, err
	}
	return inv.outlived(ctx, 0, nil)
}

func (inv *Inventory) outlived(ctx context.Context, least int, takes sets.Set[bundle.ID]) (live map[bundle.ID]*unstructured.Unstructured, unknown map[bundle.ID]error, err error) {
	named, err := inv.named(ctx, least)
	if err != nil {
		return nil, nil, err
	}
	ids := bundle.SortedIDs(named.Difference(sets.KeySet(inv.Members)).Difference(takes))
	if len(ids) == 0 {
		return nil, nil, nil
	}
	view, err := inv.client.Snapshot(ctx, ids, nil, nil, inv.Selector())
	if err != nil {
		return nil, nil, fmt.Errorf("read what is left of inventory %s/%s: %w", inv.Namespace, inv.Name, err)
	}
	maps.DeleteFunc(view.Live, func(_ bundle.ID, u *unstructured.Unstructured) bool { return inventory.OwnerOf(u) != inv.ID })
	return view.Live, view.Unknown, nil
}

// named are the objects that what is left of an inventory names: origins, fingerprints, and, of the
// history as it was read, the revisions from least on that the inventory object does not know of,
// with the last one that it knows of.
func (inv *Inventory) named(ctx context.Context, least int) (sets.Set[bundle.ID], error) {
	ids, last := sets.KeySet(inv.Origins).Union(sets.KeySet(inv.Fingerprints)), inv.Last().Number
	for _, r := range inv.read.history {
		if r.Number < least {
			break
		}
		content, err := inv.LoadRevision(ctx, r.Number)
		switch {
		case errors.Is(err, ErrDamagedRevision), errors.Is(err, ErrNoRevision):
			continue
		case err != nil:
			return nil, err
		}
		for _, o := range content.Bundle.Objects {
			if o.ID.Name != "" { // else its name is generated
				ids.Insert(o.ID)
			}
		}
		if last == 0 || r.Number <= last {
			break
		}
	}
	return ids, nil
}
