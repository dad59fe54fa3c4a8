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
	encode := func(stored []string) ([]string, error) { return inventory.EncodeFingerprints(fingerprints, stored) }
	var err error
	if inv.fingerprints, err = inv.replace(ctx, inv.fingerprints, encode, inventory.FingerprintsName, inventory.FingerprintsLabel, fingerprintsKey); err != nil {
		return inv.failed("fingerprints", err)
	}
	inv.Fingerprints = fingerprints
	return nil
}

// SaveOrigins replaces the origins of the members, if they are not what is there
// already. The map may not be changed afterwards.
func (inv *Inventory) SaveOrigins(ctx context.Context, origins map[bundle.ID]inventory.Origin) error {
	if maps.EqualFunc(origins, inv.Origins, inventory.Origin.Equal) {
		return nil
	}
	encode := func(stored []string) ([]string, error) { return inventory.EncodeOrigins(origins, stored) }
	var err error
	if inv.origins, err = inv.replace(ctx, inv.origins, encode, inventory.OriginsName, inventory.OriginsLabel, originsKey); err != nil {
		return inv.failed("origins of the members", err)
	}
	inv.Origins = origins
	return nil
}

// takeOldOrigins reads where members came from in the way of versions before 0.3. They
// did not record of which object it was.
func (inv *Inventory) takeOldOrigins() {
	for id, status := range inv.Members {
		if _, known := inv.Origins[id]; known || status.Came == "" {
			continue
		}
		inv.Origins[id] = inventory.Origin{BroughtFrom: status.Came}
	}
}

// replace writes chunks to ConfigMaps of their own, in place of old ones: encode makes them, from what
// is stored in each. It returns what is there then, also after an error.
func (inv *Inventory) replace(ctx context.Context, old []*unstructured.Unstructured, encode func(stored []string) ([]string, error), nameOf func(string, int) string, label, key string) (now []*unstructured.Unstructured, err error) {
	stored := make([]string, len(old))
	for i := range stored {
		if at := slices.IndexFunc(old, func(u *unstructured.Unstructured) bool { return u.GetName() == nameOf(inv.Name, i+1) }); at >= 0 {
			stored[i], _, _ = unstructured.NestedString(old[at].Object, "binaryData", key)
		}
	}
	chunks, err := encode(stored)
	if err != nil {
		return old, err
	}
	for n, packed := range chunks {
		there := []*unstructured.Unstructured(nil)
		u, at := inv.auxiliary(old, nameOf(inv.Name, n+1), label, key, packed)
		if at >= 0 {
			there = old[at : at+1 : at+1]
			old = slices.Concat(old[:at], old[at+1:])
		}
		if n >= len(stored) || stored[n] != packed {
			if u, err = inv.put(ctx, u); err != nil {
				return slices.Concat(now, there, old), err
			}
		}
		now = append(now, u)
	}
	return now, inv.remove(ctx, old)
}
