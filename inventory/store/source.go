package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
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
			return nil, gone // few are renamed to another namespace
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
