package store

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/inventory"
)

// SaveFingerprints replaces the fingerprints of the inventory, if they are not
// what is there already.
func (inv *Inventory) SaveFingerprints(ctx context.Context, fingerprints map[bundle.ID]inventory.Fingerprint) error {
	if maps.Equal(fingerprints, inv.Fingerprints) {
		return nil
	}
	chunks, err := inventory.EncodeFingerprints(fingerprints)
	if err != nil {
		return err
	}
	old := inv.fingerprints
	inv.fingerprints = nil
	for n, packed := range chunks {
		name := inventory.FingerprintsName(inv.Name, n+1)
		current := ""
		u, at := inv.auxiliary(old, name, inventory.FingerprintsLabel, fingerprintsKey, packed)
		if at >= 0 {
			current, _, _ = unstructured.NestedString(old[at].Object, "binaryData", fingerprintsKey)
			old = slices.Delete(old, at, at+1)
		}
		if current != packed {
			if u, err = inv.put(ctx, u); err != nil {
				return inv.failed("fingerprints", err)
			}
		}
		inv.fingerprints = append(inv.fingerprints, u)
	}
	if err := inv.remove(ctx, old); err != nil {
		return err
	}
	inv.Fingerprints = fingerprints
	return nil
}
