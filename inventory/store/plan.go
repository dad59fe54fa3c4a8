package store

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/inventory"
)

// PlanPlace is what a message calls the Secret with the saved plan of the inventory namespace/name.
func PlanPlace(namespace, name string) string { return bundle.Name(planID(namespace, name)) }

func planID(namespace, name string) bundle.ID {
	return bundle.ID{GroupKind: bundle.SecretKind, Namespace: namespace, Name: inventory.PlanName(name)}
}

// ReadPlan is the plan that WritePlan saved for the inventory namespace/name; nothing where
// there is none: one request. The plan says which inventory it is for.
func ReadPlan(ctx context.Context, c *cluster.Client, namespace, name string) ([]byte, error) {
	text, _, err := readPlan(ctx, c, planID(namespace, name))
	return text, err
}

// readPlan says of which inventory the plan is, too: its ID.
func readPlan(ctx context.Context, c *cluster.Client, id bundle.ID) (text []byte, of string, err error) {
	live, err := c.Get(ctx, cluster.Secrets, id)
	if err != nil {
		return nil, "", fmt.Errorf("read the saved plan in %s: %w", bundle.Name(id), err)
	}
	if live == nil {
		return nil, "", nil
	}
	text, err = inventory.DecodePlan(live, c.Commands())
	return text, live.GetLabels()[inventory.AuxiliaryLabel], err
}

// ReadPlan is the plan that was saved for this inventory, and for no other of its name.
func (inv *Inventory) ReadPlan(ctx context.Context) ([]byte, error) {
	id := planID(inv.Namespace, inv.Name)
	text, of, err := readPlan(ctx, inv.client, id)
	if text != nil && err == nil && of != inv.ID {
		return nil, fmt.Errorf("%s is the saved plan of another inventory, with the ID %q, and this one has %q: choose another name for the inventory, or delete it", bundle.Name(id), of, inv.ID)
	}
	return text, err
}

// WritePlan saves a plan in a Secret beside the inventory, which may not be there yet. Its
// namespace has to be.
func (inv *Inventory) WritePlan(ctx context.Context, text []byte) error {
	packed := inventory.Compress(text)
	id := planID(inv.Namespace, inv.Name)
	if len(packed) > revisionBytes {
		return fmt.Errorf("%s: the plan has %d KiB, and a Secret holds %d: save it in a file", bundle.Name(id), len(packed)>>10, revisionBytes>>10)
	}
	err := inv.putPart(ctx, inventory.EncodePlan(id, inv.ID, packed))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: a plan of a first apply goes into a file, or create the namespace before", err)
	}
	return err
}
