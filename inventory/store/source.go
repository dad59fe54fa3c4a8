package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Source is the inventory as origins know it.
func (inv *Inventory) Source() inventory.Source {
	s := inventory.Source{Name: inv.Namespace + "/" + inv.Name, ID: inv.ID}
	if inv.object == nil {
		return s
	}
	s.UID = inv.object.GetUID()
	if words := strings.Fields(inv.object.GetAnnotations()[renamedFrom]); len(words) > 1 {
		s.UID = types.UID(words[len(words)-1])
	}
	return s
}

// ErrNotThere says that the inventory a member came from is not on the cluster.
var (
	ErrNotThere = errors.New("which is not there any more")
	errReplaced = fmt.Errorf("%w, and another one has its name", ErrNotThere)
)

// FindSource finds the inventory that a member came from, also after it was renamed. One
// without a name is looked for in the namespace near first.
func FindSource(ctx context.Context, c *cluster.Client, o inventory.Origin, near, version string) (*Inventory, error) {
	gone := ErrNotThere
	if namespace, name, ok := strings.Cut(o.From, "/"); ok {
		inv, err := Load(ctx, c, namespace, name, "", version)
		switch {
		case err != nil:
			return nil, err
		case inv.Exists() && o.IsFrom(inv.Source()):
			return inv, nil
		case o.FromUID == 0:
			return nil, gone
		case inv.Exists():
			gone = errReplaced
		}
		near = namespace
	}
	for _, namespace := range []string{near, ""} { // the second may need more rights
		all, err := OpenAll(ctx, c, namespace, version)
		if namespace == "" && o.FromUID != 0 && apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("it is not in namespace %s, and may have been renamed to another one: %w", near, err)
		}
		if err != nil {
			return nil, err
		}
		switch found := bundle.Where(all, func(inv *Inventory) bool { return o.IsFrom(inv.Source()) }); {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1: // copies, like those of a backup
			return nil, gone
		}
	}
	return nil, gone
}

// ErrSharedID says that another inventory has the ID of one that is to be made.
var ErrSharedID = errors.New("each would prune what the other one applied, so nothing is applied")

// RefuseSharedID is the error of an inventory that is to be made with the ID of another one: by its
// annotation, an object would belong to both. Copies are none (loadObject). Who may not list the ConfigMaps of
// all namespaces looks in the inventory's own.
func (inv *Inventory) RefuseSharedID(ctx context.Context) error {
	if inv.Exists() || inv.ID == inventory.DefaultID(inv.Namespace, inv.Name) {
		return nil
	}
	items, err := inv.client.ListMetadata(ctx, cluster.ConfigMaps, "", inventory.Label+"="+inv.ID)
	if apierrors.IsForbidden(err) {
		items, err = inv.client.ListMetadata(ctx, cluster.ConfigMaps, inv.Namespace, inventory.Label+"="+inv.ID)
	}
	if err != nil {
		return fmt.Errorf("look for another inventory with the ID %q: list ConfigMaps: %w", inv.ID, err)
	}
	advice := "Choose another " + remedy.InventoryID + ", or leave it out"
	if inv.OnlyAuxiliary() {
		advice = inv.repairCommand(inv.ID) + " finds the members of the second one"
	}
	for _, other := range items {
		own := inventory.ApplySetID(other.Namespace, other.Name)
		if set := cmp.Or(other.Labels[parentID], own); set == own && own != inv.ApplySetID() {
			return fmt.Errorf("inventory %s/%s has the ID %q, with which inventory %s/%s would be made: %w. %s",
				other.Namespace, other.Name, inv.ID, inv.Namespace, inv.Name, ErrSharedID, advice)
		}
	}
	return nil
}
