package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
)

// Prints is the label of the ConfigMaps that hold fingerprints.
const Prints = "brine.dev/inventory-fingerprints"

const (
	printsKey     = "fingerprints.json.zst"
	printsMembers = 4000 // in one ConfigMap
	// printsBytes of ids and hashes go into one ConfigMap at most: names may be
	// random, and a hash is, so that they do not compress.
	printsBytes = 800 << 10
	hashBytes   = 100 // of one member
)

// Fingerprint says what a member was when it was last applied; package plan
// makes and compares them. It is a cache: losing it costs requests, no more.
type Fingerprint struct {
	Asked string `json:"a"` // hash of what the bundle asked for
	UID   string `json:"u"` // the live object's
	Owned string `json:"o"` // hash of the live values of the fields we own, and of our managedFields entry
}

type printRecord struct {
	record
	Fingerprint
}

func (inv *Inventory) loadPrints(side *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(side.Object, "binaryData", printsKey)
	var records []printRecord
	if unpack(text, &records) != nil {
		return // a cache
	}
	for _, r := range records {
		inv.Fingerprints[r.id()] = r.Fingerprint
	}
}

// SaveFingerprints replaces the fingerprints of the inventory, if they are not
// what is there already.
func (inv *Inventory) SaveFingerprints(ctx context.Context, prints map[bundle.ID]Fingerprint) error {
	if maps.Equal(prints, inv.Fingerprints) {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(prints), func(a, b bundle.ID) int { return strings.Compare(a.String(), b.String()) })
	old := inv.prints
	inv.prints = nil
	for n := 1; len(ids) > 0; n++ {
		chunk := ids[:printsThatFit(ids)]
		ids = ids[len(chunk):]
		records := make([]printRecord, len(chunk))
		for i, id := range chunk {
			records[i] = printRecord{record: recordOf(id, Status{}), Fingerprint: prints[id]}
		}
		packed, err := pack(records)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-fingerprints-%d", inv.Name, n)
		side := inv.side(name, Prints, printsKey, packed)
		at := slices.IndexFunc(old, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
		if at >= 0 {
			current, _, _ := unstructured.NestedString(old[at].Object, "binaryData", printsKey)
			if current == packed {
				inv.prints, old = append(inv.prints, old[at]), slices.Delete(old, at, at+1)
				continue
			}
			side = old[at].DeepCopy()
			side.Object["binaryData"] = map[string]any{printsKey: packed}
			side, err = inv.client.Update(ctx, cluster.ConfigMaps, side)
			old = slices.Delete(old, at, at+1)
		} else {
			side, err = inv.client.Create(ctx, cluster.ConfigMaps, side, cluster.Write{})
		}
		if err != nil {
			return inv.failed("fingerprints", err)
		}
		inv.prints = append(inv.prints, side)
	}
	for _, u := range old {
		if err := inv.remove(ctx, u); err != nil {
			return inv.failed("fingerprints", err)
		}
	}
	inv.Fingerprints = prints
	return nil
}

// printsThatFit is how many of the ids have their fingerprints in one ConfigMap.
func printsThatFit(ids []bundle.ID) int {
	size := 0
	for i, id := range ids {
		if size += len(id.String()) + hashBytes; i == printsMembers || i > 0 && size > printsBytes {
			return i
		}
	}
	return len(ids)
}
