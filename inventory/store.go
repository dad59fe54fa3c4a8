package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
)

// configMaps is known without discovery.
func configMapID(namespace, name string) bundle.ID {
	return bundle.ID{Namespace: namespace, Name: name, GroupKind: bundle.ConfigMapKind}
}

const membersKey = "members.json.zst"

// Load reads the inventory namespace/name: two requests. One that is not there
// is empty. wantID, unless empty, has to be its ID. An inventory that cannot be
// read, wholly and surely, is an error: a run without it would forget objects.
func Load(ctx context.Context, c *cluster.Client, namespace, name, wantID, version string) (*Inventory, error) {
	inv, err := Open(ctx, c, namespace, name, wantID, version)
	if err != nil {
		return nil, err
	}
	return inv, inv.whole()
}

// Open is Load for an inventory that may be damaged: see Damage.
func Open(ctx context.Context, c *cluster.Client, namespace, name, wantID, version string) (*Inventory, error) {
	inv := &Inventory{Namespace: namespace, Name: name, ID: wantID, Version: version, client: c}
	if err := inv.load(ctx); err != nil {
		return nil, fmt.Errorf("read inventory %s/%s: %w", namespace, name, err)
	}
	return inv, nil
}

func (inv *Inventory) load(ctx context.Context) error {
	head, sides, err := inv.fetch(ctx)
	if err != nil {
		return err
	}
	return inv.decode(head, sides)
}

// decode takes what was fetched apart; what was known before is forgotten.
func (inv *Inventory) decode(head *unstructured.Unstructured, sides []unstructured.Unstructured) error {
	inv.Members, inv.Fingerprints = map[bundle.ID]Status{}, map[bundle.ID]Fingerprint{}
	inv.place, inv.spare = map[bundle.ID]string{}, map[string]string{}
	inv.overflow, inv.prints, inv.broken, inv.damage = nil, nil, nil, nil
	inv.held, inv.lost = map[string]part{}, map[string]part{}
	inv.unnamed, inv.unmarked, inv.taken = false, nil, nil
	inv.head = head
	if err := inv.loadHead(); err != nil {
		return err
	}
	slices.SortFunc(sides, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i := range sides {
		side := &sides[i]
		switch {
		case !strings.HasPrefix(side.GetName(), inv.Name+"-"):
			continue // another inventory's that has the same ID
		case side.GetLabels()[Overflow] != "":
			if err := inv.loadOverflow(side); err != nil {
				inv.broken = append(inv.broken, side)
				inv.damage = append(inv.damage, fmt.Sprintf("ConfigMap %s cannot be read: %s", side.GetName(), err.Error()))
			}
		case side.GetLabels()[Prints] != "":
			inv.prints = append(inv.prints, side)
			inv.loadPrints(side)
		}
	}
	inv.compare()
	return nil
}

// fetch reads the head, and what is beside it, at the same time: by the ID that
// was asked for, or the one that brine gives, and again if the head has another.
func (inv *Inventory) fetch(ctx context.Context) (head *unstructured.Unstructured, sides []unstructured.Unstructured, err error) {
	id := inv.ID
	if id == "" {
		id = DefaultID(inv.Namespace, inv.Name)
	}
	list := func(ctx context.Context) (err error) {
		sides, err = inv.client.List(ctx, cluster.ConfigMaps, inv.Namespace, Side+"="+id, "")
		return err
	}
	both, beside := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		head, err = inv.client.Get(beside, cluster.ConfigMaps, configMapID(inv.Namespace, inv.Name))
		return err
	})
	both.Go(func() error { return list(beside) })
	if err := both.Wait(); err != nil {
		return nil, nil, err
	}
	if head != nil && inv.ID == "" {
		if id = head.GetLabels()[Label]; id != DefaultID(inv.Namespace, inv.Name) && id != "" {
			err = list(ctx)
		}
	}
	return head, sides, err
}

func (inv *Inventory) loadHead() error {
	if inv.head == nil {
		if inv.ID == "" {
			inv.ID = DefaultID(inv.Namespace, inv.Name)
		}
		return nil
	}
	id := inv.head.GetLabels()[Label]
	switch {
	case id == "":
		return fmt.Errorf("ConfigMap %s/%s is there but is no inventory: it has no label %s; choose another name for the inventory",
			inv.Namespace, inv.Name, Label)
	case inv.ID != "" && inv.ID != id:
		return fmt.Errorf("its id is %q, not the %q that was asked for: it belongs to something else", id, inv.ID)
	}
	inv.ID = id
	data, _, err := unstructured.NestedStringMap(inv.head.Object, "data")
	if err != nil {
		return fmt.Errorf("data of the ConfigMap: %w", err)
	}
	for key, value := range data {
		id, err := parseKey(key)
		if err != nil {
			return fmt.Errorf("%w: repair or remove that key of the ConfigMap, nothing was changed", err)
		}
		if Auxiliary(inv.Namespace, inv.Name, id) != "" {
			continue // taken for a member by an older version: it would prune the inventory
		}
		inv.Members[id] = decodeStatus(value)
		inv.place[id] = inv.Name
		if own, ok := headKey(id); !ok || own != key {
			inv.spare[key] = value // written by another tool: we keep its spelling
		}
	}
	return nil
}

func (inv *Inventory) loadOverflow(side *unstructured.Unstructured) error {
	text, _, _ := unstructured.NestedString(side.Object, "binaryData", membersKey)
	var records memberRecords
	if err := unpack(text, &records); err != nil {
		return err
	}
	for _, r := range records {
		id := r.id()
		if _, ok := inv.place[id]; ok || Auxiliary(inv.Namespace, inv.Name, id) != "" {
			continue
		}
		inv.Members[id], inv.place[id] = r.Status, side.GetName()
	}
	inv.overflow = append(inv.overflow, side)
	inv.held[side.GetName()] = part{Generation: generationOf(side), Members: len(records)}
	return nil
}

// Add writes the union of the members and ids, before the first of ids is
// applied. Members never move from one ConfigMap to another, so after every
// single write the inventory holds all that it held before.
func (inv *Inventory) Add(ctx context.Context, ids []bundle.ID) error {
	return inv.write(ctx, inv.assign(ids))
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
		key, ok := headKey(id)
		if size += len(key) + statusBytes; !ok || size > headBytes {
			size -= len(key) + statusBytes
			place = inv.roomyOverflow(counts)
		}
		inv.Members[id], inv.place[id] = Pending, place
		counts[place]++
		dirty[place] = true
	}
	if inv.head == nil {
		dirty[inv.Name] = true
	}
	return dirty
}

func (inv *Inventory) roomyOverflow(counts map[string]int) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-overflow-%d", inv.Name, n)
		if counts[name] < overflowMembers {
			return name
		}
	}
}

// Reload reads the inventory again, after ErrConflict.
func (inv *Inventory) Reload(ctx context.Context) error {
	if err := inv.load(ctx); err != nil {
		return fmt.Errorf("read inventory %s/%s again: %w", inv.Namespace, inv.Name, err)
	}
	return inv.whole()
}

// Finish writes how the run ended: gone leaves the inventory (each of them was
// seen gone, detached, or never ours), statuses are stored.
func (inv *Inventory) Finish(ctx context.Context, gone []bundle.ID, statuses map[bundle.ID]Status) error {
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

// write writes what is dirty. A part of the overflow is written before the head,
// which names it as it is then, and deleted after the head names it no more: so
// a part that is missing, or is older than the head says, is never the trace of
// a run that was killed.
func (inv *Inventory) write(ctx context.Context, dirty map[string]bool) error {
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
	if err := inv.writeHead(ctx, dirty[inv.Name]); err != nil {
		return inv.failed("ConfigMap", err)
	}
	for _, u := range empty {
		if err := inv.remove(ctx, u); err != nil {
			return inv.failed("overflow ConfigMap "+u.GetName(), err)
		}
	}
	return nil
}

func (inv *Inventory) failed(what string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		err = errors.Join(ErrConflict, err)
	}
	return fmt.Errorf("write inventory %s/%s: %s: %w", inv.Namespace, inv.Name, what, err)
}

// writeHead writes the head if its members changed, or what it says of the
// kinds and namespaces of all.
func (inv *Inventory) writeHead(ctx context.Context, dirty bool) error {
	head := &unstructured.Unstructured{Object: map[string]any{}}
	if inv.head != nil {
		head = inv.head.DeepCopy()
	}
	head.SetGroupVersionKind(bundle.ConfigMapKind.WithVersion("v1"))
	head.SetNamespace(inv.Namespace)
	head.SetName(inv.Name)
	inv.brandHead(head)
	if !dirty && inv.head != nil && maps.Equal(head.GetLabels(), inv.head.GetLabels()) && maps.Equal(head.GetAnnotations(), inv.head.GetAnnotations()) {
		return nil
	}
	data := map[string]any{}
	for id, place := range inv.place {
		if place != inv.Name {
			continue
		}
		if key, ok := headKey(id); ok {
			data[key] = inv.Members[id].encode()
		}
	}
	for key, value := range inv.spare {
		if id, err := parseKey(key); err == nil {
			if _, ok := inv.Members[id]; ok {
				data[key] = value
			}
		}
	}
	head.Object["data"] = data
	stored, err := inv.put(ctx, head)
	if err != nil {
		return err
	}
	inv.head = stored
	return nil
}

// put creates or updates an object. One that somebody deleted since it was read
// is created again: all that it held is known.
func (inv *Inventory) put(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetResourceVersion() != "" {
		stored, err := inv.client.Update(ctx, cluster.ConfigMaps, u)
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
		u.SetResourceVersion("")
		u.SetUID("")
	}
	return inv.client.Create(ctx, cluster.ConfigMaps, u, cluster.Write{})
}

func (inv *Inventory) writeOverflow(ctx context.Context, name string) error {
	var records []record
	for id, place := range inv.place {
		if place == name {
			records = append(records, recordOf(id, inv.Members[id]))
		}
	}
	slices.SortFunc(records, func(a, b record) int { return strings.Compare(a.id().String(), b.id().String()) })
	packed, err := pack(records)
	if err != nil {
		return err
	}
	now := part{Generation: max(inv.held[name].Generation, inv.lost[name].Generation) + 1, Members: len(records)}
	at := slices.IndexFunc(inv.overflow, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
	side := inv.side(name, Overflow, membersKey, packed)
	if at >= 0 {
		side = inv.overflow[at].DeepCopy()
		side.Object["binaryData"] = map[string]any{membersKey: packed}
	}
	now.mark(side, inv.ID)
	if side, err = inv.put(ctx, side); err != nil {
		return err
	}
	if at < 0 {
		inv.overflow = append(inv.overflow, side)
	} else {
		inv.overflow[at] = side
	}
	inv.held[name] = now
	return nil
}

// side is a new ConfigMap beside the head.
func (inv *Inventory) side(name, label, key, packed string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"binaryData": map[string]any{key: packed}}}
	u.SetGroupVersionKind(bundle.ConfigMapKind.WithVersion("v1"))
	u.SetNamespace(inv.Namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{Side: inv.ID, label: inv.ID})
	return u
}

func (inv *Inventory) remove(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := inv.client.Delete(ctx, cluster.ConfigMaps, configMapID(u.GetNamespace(), u.GetName()), cluster.Deletion{UID: u.GetUID()})
	return err
}

// Delete removes the inventory itself, when it has no members left: the history
// and the cache before the head, so that it can be found until they are gone; the
// overflow after it, because the head names its parts. An inventory without a head
// is removed by what is left of it.
func (inv *Inventory) Delete(ctx context.Context) error {
	if err := inv.DeleteHistory(ctx); err != nil {
		return inv.failed("delete the history", err)
	}
	for _, u := range inv.prints {
		if err := inv.remove(ctx, u); err != nil {
			return inv.failed("delete ConfigMap "+u.GetName(), err)
		}
	}
	if inv.head != nil {
		// Bound to the version that was read: whoever wrote it since added members.
		id := configMapID(inv.Namespace, inv.Name)
		if _, err := inv.client.Delete(ctx, cluster.ConfigMaps, id, cluster.Deletion{UID: inv.head.GetUID(), Version: inv.head.GetResourceVersion()}); err != nil {
			return inv.failed("delete ConfigMap", err)
		}
	}
	for _, u := range inv.overflow {
		if err := inv.remove(ctx, u); err != nil {
			return inv.failed("delete ConfigMap "+u.GetName(), err)
		}
	}
	inv.head, inv.overflow, inv.prints = nil, nil, nil
	return nil
}
