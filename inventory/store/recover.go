package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
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
// metadata, and writes the inventory. Only when the search was complete are parts
// that are missing or unreadable given up; until then each run is refused. And only then
// does the inventory object say which kinds and namespaces to search the next time.
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
