package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/inventory"
)

// renamedFrom is the annotation of an inventory object that another one was renamed
// to: the other's name and uid, and its Source.UID if that is another one. It shows a
// repeated command that the first one began.
const renamedFrom = "brine.dev/renamed-from"

// BeginMove records of members that their move to another inventory begins: from now
// on no run of this one deletes them. A move to "" was given up.
func (inv *Inventory) BeginMove(ctx context.Context, ids []bundle.ID, to string) error {
	statuses := map[bundle.ID]inventory.Status{}
	for _, id := range ids {
		status := inv.Members[id]
		status.MovingTo = to
		statuses[id] = status
	}
	return inv.set(ctx, nil, statuses)
}

// Receive makes members of ids, which come from another inventory or were adopted,
// before the first of them changes its owner. Their origins are recorded first.
func (inv *Inventory) Receive(ctx context.Context, ids []bundle.ID, origins map[bundle.ID]inventory.Origin) error {
	all := maps.Clone(inv.Origins)
	maps.Copy(all, origins)
	if err := inv.SaveOrigins(ctx, all); err != nil {
		return err
	}
	dirty := inv.assign(ids)
	for _, id := range ids {
		if status := inv.Members[id]; status.MovingTo != "" {
			status.MovingTo = ""
			inv.Members[id] = status
			dirty[inv.place[id]] = true
		}
	}
	return inv.write(ctx, dirty)
}

// Forget removes members: they have another owner now, or were never ours.
func (inv *Inventory) Forget(ctx context.Context, ids []bundle.ID) error {
	if err := inv.set(ctx, ids, nil); err != nil {
		return err
	}
	origins := maps.Clone(inv.Origins)
	for _, id := range ids {
		delete(origins, id)
	}
	return inv.SaveOrigins(ctx, origins)
}

// Rename makes the next write of this inventory say that another one was renamed to
// it. It is an error if this one, or a part of it, is already there for another reason.
func (inv *Inventory) Rename(ctx context.Context, from *Inventory) error {
	if from.object == nil {
		return nil
	}
	was := fmt.Sprintf("%s/%s %s", from.Namespace, from.Name, from.object.GetUID())
	if inv.object != nil && !strings.HasPrefix(inv.object.GetAnnotations()[renamedFrom]+" ", was+" ") {
		return fmt.Errorf("inventory %s/%s exists: choose another name, or merge %s/%s into it", inv.Namespace, inv.Name, from.Namespace, from.Name)
	}
	if first := from.Source().UID; first != from.object.GetUID() {
		was += " " + string(first)
	}
	inv.renamedFrom = was
	if inv.object != nil {
		return inv.hasKeyOf(ctx, from)
	}
	// A rename that was interrupted has begun with the members.
	begun := func(status inventory.Status) bool { return status.MovingTo == inv.Namespace+"/"+inv.Name }
	if slices.ContainsFunc(slices.Collect(maps.Values(from.Members)), begun) {
		return nil
	}
	history, err := inv.revisions(ctx)
	if err != nil {
		return fmt.Errorf("read the history of inventory %s/%s: %w", inv.Namespace, inv.Name, err)
	}
	if inv.OnlyAuxiliary() || len(history) > 0 {
		return fmt.Errorf("ConfigMap %s/%s is missing, but other parts of an inventory of this name exist: choose another name, or find its members: %s",
			inv.Namespace, inv.Name, inv.repairCommand(inv.ID))
	}
	return nil
}

// hasKeyOf is an error if both inventories have a key, and not the same: since a rename was
// interrupted, a run has made the new name's.
func (inv *Inventory) hasKeyOf(ctx context.Context, from *Inventory) error {
	key, err := from.ReadKey(ctx)
	if err != nil {
		return err
	}
	there, err := inv.ReadKey(ctx)
	if err != nil || key.Fresh() || there.Fresh() || there.Equal(key) {
		return err
	}
	return fmt.Errorf("inventory %s/%s has a key of its own by now: merge %s/%s into it", inv.Namespace, inv.Name, from.Namespace, from.Name)
}

// RenamedFrom is the inventory, NAMESPACE/NAME, that was renamed to this one.
func (inv *Inventory) RenamedFrom() string {
	if inv.object == nil {
		return ""
	}
	name, _, _ := strings.Cut(inv.object.GetAnnotations()[renamedFrom], " ")
	return name
}

// CopyHistory copies the key and all revisions of another inventory to this one. The
// next write of the inventory object names the last one.
func (inv *Inventory) CopyHistory(ctx context.Context, from *Inventory) error {
	if err := inv.copyKey(ctx, from); err != nil {
		return err
	}
	items, err := inv.client.List(ctx, cluster.Secrets, from.Namespace, inventory.AuxiliaryLabel+"="+from.ID+","+inventory.RevisionLabel, "")
	if err != nil {
		return fmt.Errorf("read the history of inventory %s/%s: %w", from.Namespace, from.Name, err)
	}
	// The first part, which describes the revision, comes last.
	for _, first := range []bool{false, true} {
		for i := range items {
			if _, ok := items[i].GetAnnotations()[inventory.RevisionInfo]; ok == first {
				if err := inv.copyPart(ctx, from, &items[i]); err != nil {
					return err
				}
			}
		}
	}
	// Where an earlier rename was interrupted after that, runs may have gone on from there: what had begun
	// before it may have ended.
	begun := from.Begun()
	since := !inv.Exists() || inv.Begun().Number == 0 && from.Last().Number >= inv.Last().Number && begun.Time.After(inv.object.GetCreationTimestamp().Time)
	if begun.Number > 0 && since {
		inv.Begin(begun)
	}
	if last := from.Last(); last.Number > inv.Last().Number {
		inv.lastRevision = last.Encode()
	}
	return nil
}

func (inv *Inventory) copyKey(ctx context.Context, from *Inventory) error {
	key, err := from.ReadKey(ctx)
	if err != nil || key.Fresh() {
		return err
	}
	there, err := inv.ReadKey(ctx)
	switch {
	case err != nil:
		return err
	case !there.Fresh() && there.Equal(key):
		return nil
	case !there.Fresh():
		if err := inv.dropKey(ctx, there); err != nil {
			return err
		}
	}
	inv.Key = key.CopyTo(inv.Namespace, inv.Name)
	return inv.SaveKey(ctx)
}

// dropKey deletes a key that no inventory uses: a first run left it, which ended before its
// inventory was written.
func (inv *Inventory) dropKey(ctx context.Context, key *inventory.Key) error {
	live, err := inv.client.Get(ctx, cluster.Secrets, key.ID())
	if err != nil || live == nil {
		return err
	}
	if inv.Exists() || inv.OnlyAuxiliary() || live.GetLabels()[inventory.AuxiliaryLabel] != inv.ID {
		return fmt.Errorf("%s is there, and is another key: choose another name for the inventory, or delete it if nothing of an inventory of this name is left: %s",
			bundle.Name(key.ID()), inv.Commands().Delete(bundle.SecretKind, inv.Namespace, key.ID().Name))
	}
	if _, err := inv.client.Delete(ctx, cluster.Secrets, live, cluster.Deletion{}); err != nil {
		return fmt.Errorf("replace the key of inventory %s/%s, which was not there yet: %w", inv.Namespace, inv.Name, err)
	}
	return nil
}

func (inv *Inventory) copyPart(ctx context.Context, from *Inventory, part *unstructured.Unstructured) error {
	rest, ok := strings.CutPrefix(part.GetName(), from.Name+"-revision-")
	number, index, isPart := strings.Cut(rest, "-")
	n, err := strconv.Atoi(number)
	i, wrong := strconv.Atoi(index)
	if valid := ok && isPart && err == nil && wrong == nil; !valid || n <= inv.Last().Number {
		return nil // not a part of this inventory's history, or copied before, and maybe another run's by now
	}
	id := bundle.ID{Namespace: inv.Namespace, Name: inventory.RevisionName(inv.Name, n, i), GroupKind: bundle.SecretKind}
	u := bundle.V1(id, map[string]any{"type": part.Object["type"], "immutable": false, "data": part.Object["data"]})
	u.SetLabels(map[string]string{inventory.AuxiliaryLabel: inv.ID, inventory.RevisionLabel: number})
	if info, ok := part.GetAnnotations()[inventory.RevisionInfo]; ok {
		u.SetAnnotations(map[string]string{inventory.RevisionInfo: info})
	}
	if err := inv.putPart(ctx, u); err != nil {
		return fmt.Errorf("copy the history: %w", err)
	}
	return nil
}
