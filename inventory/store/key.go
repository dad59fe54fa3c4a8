package store

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle"
	"brine/bundle/cluster"
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
