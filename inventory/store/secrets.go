package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/inventory"
)

// LoadKey reads the key of the inventory namespace/name, or makes one that is
// not on the cluster yet: one request.
func LoadKey(ctx context.Context, c *cluster.Client, namespace, name string) (*inventory.Key, error) {
	k := inventory.NewKey(namespace, name)
	live, err := c.Get(ctx, cluster.Secrets, k.ID())
	if err != nil {
		return nil, fmt.Errorf("read the key of inventory %s/%s, by which hashes of Secrets are made: %w", namespace, name, err)
	}
	if live == nil {
		return k, nil
	}
	return inventory.DecodeKey(namespace, name, live)
}

// ReadKey is LoadKey for this inventory.
func (inv *Inventory) ReadKey(ctx context.Context) (*inventory.Key, error) {
	return LoadKey(ctx, inv.client, inv.Namespace, inv.Name)
}

// SaveKey writes a fresh key. If another run has written one meanwhile, that is
// ErrConflict.
func (inv *Inventory) SaveKey(ctx context.Context) error {
	if inv.Key == nil || !inv.Key.Fresh() {
		return nil
	}
	if _, err := inv.client.Create(ctx, cluster.Secrets, inv.Key.Encode(inv.ID), cluster.Write{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			err = errors.Join(ErrConflict, err)
		}
		return fmt.Errorf("write the key of inventory %s/%s: %s: %w", inv.Namespace, inv.Name, bundle.Name(inv.Key.ID()), err)
	}
	inv.Key.Saved()
	return nil
}

const (
	planType = "brine.dev/plan"
	planKey  = "plan.json.zst"
)

// PlanPlace is what a message calls the Secret with the saved plan of the inventory namespace/name.
func PlanPlace(namespace, name string) string { return bundle.Name(planID(namespace, name)) }

func planID(namespace, name string) bundle.ID {
	return bundle.ID{GroupKind: bundle.SecretKind, Namespace: namespace, Name: inventory.PlanName(name)}
}

// ReadPlan is the plan that WritePlan saved for the inventory namespace/name; nothing where
// there is none: one request. The plan says which inventory it is for.
func ReadPlan(ctx context.Context, c *cluster.Client, namespace, name string) ([]byte, error) {
	id := planID(namespace, name)
	live, err := c.Get(ctx, cluster.Secrets, id)
	if err != nil {
		return nil, fmt.Errorf("read the saved plan of inventory %s/%s: %w", namespace, name, err)
	}
	if live == nil {
		return nil, nil
	}
	return unpackPlan(c, live, id)
}

// unpackPlan is the plan in a Secret.
func unpackPlan(c *cluster.Client, live *unstructured.Unstructured, id bundle.ID) ([]byte, error) {
	kind, _, _ := unstructured.NestedString(live.Object, "type")
	packed, _, _ := unstructured.NestedString(live.Object, "data", planKey)
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil || len(raw) == 0 || kind != planType || live.GetLabels()[inventory.AuxiliaryLabel] == "" {
		return nil, fmt.Errorf("%s is there, but is no saved plan: choose another name for the inventory, or delete it", bundle.Name(id))
	}
	text, err := inventory.Decompress(raw)
	if err == nil && !json.Valid(text) {
		err = errors.New("it is no JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("the saved plan in %s cannot be decoded: %w. Delete it, and make a new one with %s: %s",
			bundle.Name(id), err, remedy.PlanOut, c.Commands().Delete(id.GroupKind, id.Namespace, id.Name))
	}
	return text, nil
}

// ReadPlan is the plan that was saved for this inventory, and for no other of its name.
func (inv *Inventory) ReadPlan(ctx context.Context) ([]byte, error) {
	id := planID(inv.Namespace, inv.Name)
	live, err := inv.client.Get(ctx, cluster.Secrets, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the saved plan of inventory %s/%s: %w", inv.Namespace, inv.Name, err)
	case live == nil:
		return nil, nil
	}
	text, err := unpackPlan(inv.client, live, id)
	if of := live.GetLabels()[inventory.AuxiliaryLabel]; err == nil && of != inv.ID {
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
	u := bundle.V1(id, map[string]any{"type": planType, "immutable": false, "data": map[string]any{planKey: base64.StdEncoding.EncodeToString(packed)}})
	u.SetLabels(map[string]string{inventory.AuxiliaryLabel: inv.ID})
	err := inv.putPart(ctx, u)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: a plan of a first apply goes into a file, or create the namespace before", err)
	}
	return err
}
