// Package store reads and writes inventories on the cluster, by package cluster:
// cli-utils' ConfigMap (kapply reads it, prunes by it, destroys by it), which is
// also the parent of a kubectl ApplySet, with auxiliary ConfigMaps and Secrets. An inventory's data comes out, what a run did goes in. At
// every instant the inventory on the cluster holds at least all that we own.
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/inventory"
)

// ErrConflict says that another run or tool wrote the inventory since it was read.
// The run has to read the live state again before it writes anything.
var ErrConflict = errors.New("the inventory changed while it was being used")

// Inventory is one inventory as it was read, with what changed since.
type Inventory struct {
	inventory.Inventory

	version      string // brine's, for the ApplySet's tooling annotation
	client       *cluster.Client
	object       *unstructured.Unstructured   // the inventory object; nil: not there yet
	overflow     []*unstructured.Unstructured // sorted by name
	fingerprints []*unstructured.Unstructured
	origins      []*unstructured.Unstructured
	place        map[bundle.ID]string         // the ConfigMap that holds a member
	spare        map[string]string            // data of the inventory object in another tool's spelling
	held         map[string]part              // what each of overflow is known to hold
	lost         map[string]part              // what the inventory object names, and is not there
	broken       []*unstructured.Unstructured // overflow that cannot be read
	unnamed      bool                         // the names of the overflow cannot be read
	unlabelled   []string                     // parts that lost their labels
	taken        []string                     // names of parts that another object has
	dirty        map[string]bool              // ConfigMaps that the next write has to write as well; see Reload
	damage       []string                     // why members may be missing; see Open
	searchAll    bool                         // members may be of any kind
	lastRevision string                       // to be written to the inventory object
	renamedFrom  string                       // the same
	begun        string                       // the same
	replaced     *inventory.Revision          // what said so before this run began
	ended        bool                         // what has begun, so that the inventory object no more says so
	read         readRevisions
}

// Commands are how messages show commands about the inventory.
func (inv *Inventory) Commands() remedy.Commands { return inv.client.Commands() }

// Exists says whether the inventory is on the cluster.
func (inv *Inventory) Exists() bool { return inv.object != nil }

// OnlyAuxiliary says whether auxiliary objects are there without the inventory
// object. Origins alone are what a destroy by another tool or an older version leaves.
func (inv *Inventory) OnlyAuxiliary() bool {
	return inv.object == nil && len(inv.fingerprints)+len(inv.overflow) > 0
}

// Lost says what is not known where only auxiliary objects are there.
func (inv *Inventory) Lost() string {
	return fmt.Sprintf("ConfigMap %s/%s is missing, but other parts of the inventory exist: members that only it listed are unknown, and are not pruned. %s finds them",
		inv.Namespace, inv.Name, inv.repairCommand(inv.ID))
}

// repairCommand finds the members of the inventory again: with its ID, where no inventory object says that.
func (inv *Inventory) repairCommand(id string) string {
	command := inv.Commands().Repair(inv.Namespace, inv.Name)
	if inv.object == nil && id != inventory.DefaultID(inv.Namespace, inv.Name) {
		command += " " + remedy.InventoryID + "=" + id
	}
	return command
}

func configMapID(namespace, name string) bundle.ID {
	return bundle.ID{Namespace: namespace, Name: name, GroupKind: bundle.ConfigMapKind}
}

// isPart says whether an object is named as a part of this inventory. The label does not tell: another
// inventory in the namespace may have the same ID.
func (inv *Inventory) isPart(kind schema.GroupKind, name string) bool {
	return inventory.Auxiliary(inv.Namespace, inv.Name, bundle.ID{GroupKind: kind, Namespace: inv.Namespace, Name: name}) != ""
}

const (
	membersKey      = "members.json.zst"
	fingerprintsKey = "fingerprints.json.zst"
	originsKey      = "origins.json.zst"
)

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
	inv := &Inventory{Inventory: inventory.Inventory{Namespace: namespace, Name: name, ID: wantID}, version: version, client: c}
	if err := inv.load(ctx); err != nil {
		return nil, fmt.Errorf("read inventory %s/%s: %w", namespace, name, err)
	}
	return inv, nil
}

func (inv *Inventory) load(ctx context.Context) error {
	object, auxiliary, err := inv.fetch(ctx)
	if err != nil {
		return err
	}
	if err := inv.decode(object, auxiliary); err != nil || len(inv.damage) == 0 {
		return err
	}
	return inv.settle(ctx)
}

// settle reads again what looks damaged, the parts before the object: another run may have written it
// between two requests. Damage is what is missing of the object that was there before its parts were read,
// and still is after that.
func (inv *Inventory) settle(ctx context.Context) error {
	for range 3 {
		before := inv.object
		auxiliary, err := inv.parts(ctx, inv.ID)
		if err != nil {
			return err
		}
		object, err := inv.now(ctx)
		if err != nil {
			return err
		}
		if err := inv.decode(object, auxiliary); err != nil || len(inv.damage) == 0 || isSame(before, object) {
			return err
		}
	}
	return ErrConflict
}

// now is the inventory object as it is on the cluster.
func (inv *Inventory) now(ctx context.Context) (*unstructured.Unstructured, error) {
	return inv.client.Get(ctx, cluster.ConfigMaps, configMapID(inv.Namespace, inv.Name))
}

func (inv *Inventory) parts(ctx context.Context, id string) ([]unstructured.Unstructured, error) {
	return inv.client.List(ctx, cluster.ConfigMaps, inv.Namespace, inventory.AuxiliaryLabel+"="+id, "")
}

// isSame says whether an object was not written between two reads.
func isSame(a, b *unstructured.Unstructured) bool {
	return a == b || a != nil && b != nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// decode takes what was fetched apart; what was known before is forgotten.
func (inv *Inventory) decode(object *unstructured.Unstructured, auxiliary []unstructured.Unstructured) error {
	inv.Members, inv.Fingerprints = map[bundle.ID]inventory.Status{}, map[bundle.ID]inventory.Fingerprint{}
	inv.Origins = map[bundle.ID]inventory.Origin{}
	inv.place, inv.spare = map[bundle.ID]string{}, map[string]string{}
	inv.overflow, inv.fingerprints, inv.origins, inv.broken, inv.damage = nil, nil, nil, nil, nil
	inv.held, inv.lost = map[string]part{}, map[string]part{}
	inv.unnamed, inv.unlabelled, inv.taken = false, nil, nil
	inv.object = object
	if err := inv.loadObject(); err != nil {
		return err
	}
	slices.SortFunc(auxiliary, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i := range auxiliary {
		u := &auxiliary[i]
		switch {
		case !inv.isPart(bundle.ConfigMapKind, u.GetName()):
			continue
		case u.GetLabels()[inventory.OverflowLabel] != "":
			if err := inv.loadOverflow(u); err != nil {
				inv.broken = append(inv.broken, u)
				inv.damage = append(inv.damage, fmt.Sprintf("ConfigMap %s cannot be read: %s", u.GetName(), err.Error()))
			}
		case u.GetLabels()[inventory.FingerprintsLabel] != "":
			inv.fingerprints = append(inv.fingerprints, u)
			text, _, _ := unstructured.NestedString(u.Object, "binaryData", fingerprintsKey)
			maps.Copy(inv.Fingerprints, inventory.DecodeFingerprints(text))
		case u.GetLabels()[inventory.OriginsLabel] != "":
			inv.origins = append(inv.origins, u)
			text, _, _ := unstructured.NestedString(u.Object, "binaryData", originsKey)
			maps.Copy(inv.Origins, inventory.DecodeOrigins(text))
		}
	}
	inv.takeOldOrigins()
	inv.compare()
	return nil
}

// fetch reads the inventory object and the auxiliary objects at the same time: by
// the ID that was given, or the default one, and again if the inventory object has
// another.
func (inv *Inventory) fetch(ctx context.Context) (object *unstructured.Unstructured, auxiliary []unstructured.Unstructured, err error) {
	id := cmp.Or(inv.ID, inventory.DefaultID(inv.Namespace, inv.Name))
	list := func(ctx context.Context) (err error) {
		auxiliary, err = inv.parts(ctx, id)
		return err
	}
	reading, parallel := errgroup.WithContext(ctx)
	reading.Go(func() (err error) {
		object, err = inv.now(parallel)
		return err
	})
	reading.Go(func() error { return list(parallel) })
	if err := reading.Wait(); err != nil {
		return nil, nil, err
	}
	if object != nil && inv.ID == "" {
		if id = object.GetLabels()[inventory.Label]; id != inventory.DefaultID(inv.Namespace, inv.Name) && id != "" {
			err = list(ctx)
		}
	}
	return object, auxiliary, err
}

func (inv *Inventory) loadObject() error {
	if inv.object == nil {
		inv.ID = cmp.Or(inv.ID, inventory.DefaultID(inv.Namespace, inv.Name))
		return nil
	}
	id, set := inv.object.GetLabels()[inventory.Label], inv.object.GetLabels()[parentID]
	switch {
	case id == "":
		return fmt.Errorf("ConfigMap %s/%s is there but is no inventory: it has no label %s; choose another name for the inventory",
			inv.Namespace, inv.Name, inventory.Label)
	case set != "" && set != inv.ApplySetID():
		return fmt.Errorf("ConfigMap %s/%s is a copy of another inventory, as a backup that is restored under another name: its label %s is not that of this name. "+
			"What it lists is the other one's, so nothing was changed. If it is not needed, delete it, and what was copied with it: %s and %s",
			inv.Namespace, inv.Name, parentID, inv.Commands().Delete(bundle.ConfigMapKind, inv.Namespace, inv.Name), inv.Commands().DeleteLabelled(inv.Namespace, inventory.AuxiliaryLabel+"="+id))
	case inv.ID != "" && inv.ID != id:
		return fmt.Errorf("its id is %q, not %q: it belongs to another inventory", id, inv.ID)
	}
	if number, since := inventory.ParseFormat(inv.object.GetAnnotations()[formatKey]); number > inventory.Format {
		return inventory.CheckFormat(number, since, inv.version)
	}
	inv.ID = id
	data, _, err := unstructured.NestedStringMap(inv.object.Object, "data")
	if err != nil {
		return fmt.Errorf("data of the ConfigMap: %w", err)
	}
	statuses := map[string]inventory.Status{} // most are the same
	for key, value := range data {
		id, err := inventory.ParseMemberKey(key)
		if err != nil {
			return fmt.Errorf("%w: repair or remove that key of the ConfigMap, nothing was changed", err)
		}
		if inventory.Auxiliary(inv.Namespace, inv.Name, id) != "" {
			continue // taken for a member by an older version: it would prune the inventory
		}
		status, known := statuses[value]
		if !known {
			status = inventory.DecodeStatus(value)
			statuses[value] = status
		}
		inv.Members[id] = status
		inv.place[id] = inv.Name
		if own, ok := inventory.MemberKey(id); !ok || own != key {
			inv.spare[key] = value // written by another tool: we keep its spelling
		}
	}
	return nil
}

func (inv *Inventory) loadOverflow(u *unstructured.Unstructured) error {
	text, _, _ := unstructured.NestedString(u.Object, "binaryData", membersKey)
	members, err := inventory.DecodeMembers(text)
	if err != nil {
		return err
	}
	for id, status := range members {
		if _, ok := inv.place[id]; ok || inventory.Auxiliary(inv.Namespace, inv.Name, id) != "" {
			continue
		}
		inv.Members[id], inv.place[id] = status, u.GetName()
	}
	inv.overflow = append(inv.overflow, u)
	inv.held[u.GetName()] = part{Generation: generationOf(u), Members: len(members)}
	return nil
}

// Reload reads the inventory again, after ErrConflict. Where somebody has deleted
// it, what it held is kept, to be written again. So are members that it lists no more, as
// after somebody put an older state of it back: the run may have created them.
func (inv *Inventory) Reload(ctx context.Context) error {
	before := *inv
	if err := inv.load(ctx); err != nil {
		return fmt.Errorf("read inventory %s/%s again: %w", inv.Namespace, inv.Name, err)
	}
	if inv.object == nil && before.object != nil {
		*inv = before
		inv.object = nil
		return nil
	}
	if err := inv.whole(); err != nil {
		return err
	}
	lost := bundle.SortedIDs(sets.KeySet(before.Members).Difference(sets.KeySet(inv.Members)))
	inv.dirty = inv.assign(lost)
	for _, id := range lost {
		inv.Members[id] = before.Members[id]
	}
	return nil
}
