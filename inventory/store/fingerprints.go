package store

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
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
		u := inv.auxiliary(name, inventory.FingerprintsLabel, fingerprintsKey, packed)
		at := slices.IndexFunc(old, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
		if at >= 0 {
			current, _, _ := unstructured.NestedString(old[at].Object, "binaryData", fingerprintsKey)
			if current == packed {
				inv.fingerprints, old = append(inv.fingerprints, old[at]), slices.Delete(old, at, at+1)
				continue
			}
			u = old[at].DeepCopy()
			u.Object["binaryData"] = map[string]any{fingerprintsKey: packed}
			u, err = inv.client.Update(ctx, cluster.ConfigMaps, u)
			old = slices.Delete(old, at, at+1)
		} else {
			u, err = inv.client.Create(ctx, cluster.ConfigMaps, u, cluster.Write{})
		}
		if err != nil {
			return inv.failed("fingerprints", err)
		}
		inv.fingerprints = append(inv.fingerprints, u)
	}
	for _, u := range old {
		if err := inv.remove(ctx, u); err != nil {
			return inv.failed("fingerprints", err)
		}
	}
	inv.Fingerprints = fingerprints
	return nil
}
