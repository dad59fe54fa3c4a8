package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/inventory"
)

// Members are written: which ConfigMap has which, and in which order.

const (
	// objectBytes of keys and values go into the inventory object: managedFields
	// repeat every key, and etcd takes 1.5 MiB in all.
	objectBytes = 600 << 10
	// statusBytes is the room kept for a member's status in the inventory object.
	statusBytes = 80
	// overflowMembers go into one overflow ConfigMap; compressed they are far
	// under 1 MiB even with the longest names.
	overflowMembers = 2000
)

// Add writes the union of the members and ids, before the first of ids is
// applied: new ones as what the run is to create, but for those that have an origin,
// which is recorded by then. Members never move from one ConfigMap to another, so after
// every single write the inventory holds all that it held before.
func (inv *Inventory) Add(ctx context.Context, ids []bundle.ID, run int) error {
	created := slices.DeleteFunc(slices.Clone(ids), func(id bundle.ID) bool {
		_, member := inv.Members[id]
		return member || inv.Origins[id].How != inventory.Unknown
	})
	dirty := inv.assign(ids)
	for _, id := range created {
		status := inv.Members[id]
		status.Creating = run
		inv.Members[id] = status
	}
	return inv.write(ctx, dirty)
}

// assign makes members of ids, and says which ConfigMaps are to be written.
func (inv *Inventory) assign(ids []bundle.ID) (dirty map[string]bool) {
	counts := map[string]int{}
	for _, name := range inv.unusable() {
		counts[name] = overflowMembers
	}
	size := 0
	for id, place := range inv.place {
		counts[place]++
		if place == inv.Name {
			size += len(id.String()) + statusBytes
		}
	}
	dirty = map[string]bool{}
	for _, id := range ids {
		if _, ok := inv.Members[id]; ok {
			continue
		}
		place := inv.Name
		key, ok := inventory.MemberKey(id)
		if size += len(key) + statusBytes; !ok || size > objectBytes {
			size -= len(key) + statusBytes
			place = inv.roomyOverflow(counts)
		}
		inv.Members[id], inv.place[id] = inventory.Pending, place
		counts[place]++
		dirty[place] = true
	}
	if inv.object == nil {
		dirty[inv.Name] = true
	}
	return dirty
}

func (inv *Inventory) roomyOverflow(counts map[string]int) string {
	for n := 1; ; n++ {
		name := inventory.OverflowName(inv.Name, n)
		if counts[name] < overflowMembers {
			return name
		}
	}
}

// Finish writes how the run ended: gone leaves the inventory (each of them was
// deleted, detached, or of another inventory), statuses are stored. A move that
// began is not over with the run.
func (inv *Inventory) Finish(ctx context.Context, gone []bundle.ID, statuses map[bundle.ID]inventory.Status) error {
	for id, status := range statuses {
		status.MovingTo = inv.Members[id].MovingTo
		statuses[id] = status
	}
	return inv.set(ctx, gone, statuses)
}

func (inv *Inventory) set(ctx context.Context, gone []bundle.ID, statuses map[bundle.ID]inventory.Status) error {
	dirty := map[string]bool{}
	for _, id := range gone {
		if place, ok := inv.place[id]; ok {
			dirty[place] = true
			delete(inv.Members, id)
			delete(inv.place, id)
			delete(inv.Fingerprints, id)
		}
	}
	for id, status := range statuses {
		if old, ok := inv.Members[id]; ok && old != status {
			inv.Members[id] = status
			dirty[inv.place[id]] = true
		}
	}
	return inv.write(ctx, dirty)
}

// write writes what is dirty. A part of the overflow is written before the inventory object,
// which names it as it is then, and deleted after the inventory object names it no more: so
// a part that is missing, or is older than the inventory object says, is never the trace of
// a run that was killed.
func (inv *Inventory) write(ctx context.Context, dirty map[string]bool) error {
	maps.Copy(dirty, inv.dirty)
	counts := map[string]int{}
	for _, place := range inv.place {
		counts[place]++
	}
	var empty []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(dirty)) {
		if name == inv.Name {
			continue
		}
		if counts[name] > 0 {
			if err := inv.writeOverflow(ctx, name); err != nil {
				return inv.failed("overflow ConfigMap "+name, err)
			}
			continue
		}
		delete(inv.held, name)
		inv.overflow = slices.DeleteFunc(inv.overflow, func(u *unstructured.Unstructured) bool {
			if u.GetName() == name {
				empty = append(empty, u)
			}
			return u.GetName() == name
		})
	}
	if err := inv.writeObject(ctx, dirty[inv.Name]); err != nil {
		return inv.failed("ConfigMap", err)
	}
	inv.dirty = nil
	return inv.remove(ctx, empty)
}

func (inv *Inventory) failed(what string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = errors.Join(ErrConflict, err)
	}
	return fmt.Errorf("write inventory %s/%s: %s: %w", inv.Namespace, inv.Name, what, err)
}

// writeObject writes the inventory object if its members changed, what it says of the
// kinds and namespaces of all, or its format.
func (inv *Inventory) writeObject(ctx context.Context, dirty bool) error {
	object, same := inv.parent()
	if !dirty && same && !inv.Outdated() {
		return nil
	}
	data := map[string]any{}
	for id, place := range inv.place {
		if place != inv.Name {
			continue
		}
		if key, ok := inventory.MemberKey(id); ok {
			data[key] = inv.Members[id].Encode()
		}
	}
	for key, value := range inv.spare {
		if id, err := inventory.ParseMemberKey(key); err == nil {
			if _, ok := inv.Members[id]; ok {
				data[key] = value
			}
		}
	}
	object.Object["data"] = data
	stored, err := inv.put(ctx, object)
	if err != nil {
		return err
	}
	inv.object = stored
	return nil
}

// parent is the inventory object as it is to be but for its members, and whether it is
// so on the cluster, aside from the version of brine that wrote it and its format.
func (inv *Inventory) parent() (object *unstructured.Unstructured, same bool) {
	object = bundle.V1(configMapID(inv.Namespace, inv.Name), map[string]any{})
	if inv.object != nil {
		object = inv.object.DeepCopy()
	}
	inv.setParent(object)
	if inv.object == nil {
		return object, false
	}
	now, was := object.GetAnnotations(), inv.object.GetAnnotations()
	if strings.HasPrefix(was[tooling], toolPrefix) {
		for _, key := range []string{tooling, formatKey} {
			delete(now, key)
			delete(was, key)
		}
	}
	return object, maps.Equal(object.GetLabels(), inv.object.GetLabels()) && maps.Equal(now, was)
}

// Holds says whether the inventory on the cluster is what Finish, SaveOrigins and
// SaveFingerprints would make of it, in whatever format.
func (inv *Inventory) Holds(statuses map[bundle.ID]inventory.Status, origins map[bundle.ID]inventory.Origin, fingerprints map[bundle.ID]inventory.Fingerprint) bool {
	for id, status := range statuses {
		status.MovingTo = inv.Members[id].MovingTo // Finish keeps it
		if inv.Members[id] != status {
			return false
		}
	}
	_, same := inv.parent()
	return same && maps.EqualFunc(origins, inv.Origins, inventory.Origin.Equal) && maps.Equal(fingerprints, inv.Fingerprints)
}

// put creates or updates an object. One that somebody deleted since it was read
// is created again: all that it held is known.
func (inv *Inventory) put(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetResourceVersion() != "" {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields") // every key again: the server keeps its own
		stored, err := inv.client.Update(ctx, cluster.ConfigMaps, u)
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
		u.SetResourceVersion("")
		u.SetUID("")
	}
	stored, err := inv.client.Create(ctx, cluster.ConfigMaps, u, cluster.Write{})
	if id := bundle.IDOf(u); apierrors.IsAlreadyExists(err) && id.Name != inv.Name {
		live, readErr := inv.client.Get(ctx, cluster.ConfigMaps, id)
		return nil, cmp.Or(readErr, inv.refuseForeign(id, live), err)
	}
	return stored, err
}

// refuseForeign is why an auxiliary object cannot be written over what has its name.
func (inv *Inventory) refuseForeign(id bundle.ID, live *unstructured.Unstructured) error {
	if live == nil || live.GetLabels()[inventory.AuxiliaryLabel] == inv.ID {
		return nil
	}
	return fmt.Errorf("%s is there, and does not belong to the inventory: it has no label %s=%s. Nothing was written to it: rename or delete it",
		bundle.Name(id), inventory.AuxiliaryLabel, inv.ID)
}

func (inv *Inventory) writeOverflow(ctx context.Context, name string) error {
	members := map[bundle.ID]inventory.Status{}
	for id, place := range inv.place {
		if place == name {
			members[id] = inv.Members[id]
		}
	}
	packed, err := inventory.EncodeMembers(members)
	if err != nil {
		return err
	}
	now := part{Generation: max(inv.held[name].Generation, inv.lost[name].Generation) + 1, Members: len(members)}
	u, at := inv.auxiliary(inv.overflow, name, inventory.OverflowLabel, membersKey, packed)
	now.label(u, inv.ID)
	if u, err = inv.put(ctx, u); err != nil {
		return err
	}
	if at < 0 {
		inv.overflow = append(inv.overflow, u)
	} else {
		inv.overflow[at] = u
	}
	inv.held[name] = now
	return nil
}

// auxiliary is an auxiliary ConfigMap with new data: the one of the name, which is
// known[at], or, where at is -1, a new one.
func (inv *Inventory) auxiliary(known []*unstructured.Unstructured, name, label, key, packed string) (u *unstructured.Unstructured, at int) {
	data := map[string]any{key: packed}
	at = slices.IndexFunc(known, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
	if at >= 0 {
		u = known[at].DeepCopy()
		u.Object["binaryData"] = data
		return u, at
	}
	u = bundle.V1(configMapID(inv.Namespace, name), map[string]any{"binaryData": data})
	u.SetLabels(map[string]string{inventory.AuxiliaryLabel: inv.ID, label: inv.ID})
	return u, at
}

func (inv *Inventory) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if err := inv.removeOne(ctx, u); err != nil {
			return inv.failed("delete ConfigMap "+u.GetName(), err)
		}
	}
	return nil
}

// removeTries is how often another client may change an object before it is deleted.
const removeTries = 5

// removeOne deletes an auxiliary ConfigMap that holds what it held when it was read.
func (inv *Inventory) removeOne(ctx context.Context, u *unstructured.Unstructured) error {
	for try := 1; ; try++ {
		_, err := inv.client.Delete(ctx, cluster.ConfigMaps, u, cluster.Deletion{})
		if !answers.Overtaken(err) || try == removeTries {
			return err
		}
		live, getErr := inv.client.Get(ctx, cluster.ConfigMaps, configMapID(u.GetNamespace(), u.GetName()))
		if getErr != nil || live == nil {
			return getErr
		}
		if live.GetUID() != u.GetUID() || !equality.Semantic.DeepEqual(live.Object["binaryData"], u.Object["binaryData"]) {
			return err
		}
		u = live // another client annotated it, for example
	}
}

// Delete removes the inventory itself, when it has no members left: the history
// and the cache before the inventory object, so that it can be found until they are
// deleted; the overflow after it, because the inventory object names its parts. An inventory
// without an object is removed by what is left of it.
func (inv *Inventory) Delete(ctx context.Context) error {
	deleting, parallel := errgroup.WithContext(ctx)
	deleting.Go(func() error {
		if err := inv.DeleteHistory(parallel); err != nil {
			return inv.failed("delete the history", err)
		}
		return nil
	})
	deleting.Go(func() error { return inv.remove(parallel, slices.Concat(inv.fingerprints, inv.origins)) })
	if err := deleting.Wait(); err != nil {
		return err
	}
	if inv.object != nil {
		// Bound to the version that was read: whoever wrote it since added members.
		if _, err := inv.client.Delete(ctx, cluster.ConfigMaps, inv.object, cluster.Deletion{}); err != nil {
			return inv.failed("delete ConfigMap", err)
		}
	}
	if err := inv.remove(ctx, inv.overflow); err != nil {
		return err
	}
	inv.object, inv.overflow, inv.fingerprints, inv.origins = nil, nil, nil, nil
	return nil
}
