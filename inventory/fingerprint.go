package inventory

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
)

const (
	chunkMembers = 4000 // in one ConfigMap
	// chunkBytes of ids and hashes go into one ConfigMap at most: names may be
	// random, and a hash is, so that they do not compress.
	chunkBytes = 800 << 10
	hashBytes  = 100 // of one member
)

// Fingerprint says what a member was when it was last applied; package plan
// makes and compares them. It is a cache: losing it costs requests, and Jobs that
// their TTL removed run again.
type Fingerprint struct {
	Desired string `json:"a"` // hash of the body that was applied
	UID     string `json:"u"` // the live object's
	Live    string `json:"o"` // hash of the live values of the fields we own, and of our managedFields entry
	// Completed is the hash of the spec for which a Job was seen complete; empty
	// for all others.
	Completed string `json:"c,omitempty"`
	// CompletedIn is the UID of the namespace in which it completed; empty where that is not known.
	CompletedIn string `json:"n,omitempty"`
}

// Applied is the part that says what was applied.
func (f Fingerprint) Applied() Fingerprint {
	f.Completed, f.CompletedIn = "", ""
	return f
}

// IsCompletedIn says whether a Job was seen complete, in this namespace: one that was deleted and made
// again has nothing of what the Job did. A UID that is not known, "", disproves nothing.
func (f Fingerprint) IsCompletedIn(namespace string) bool {
	return f.Completed != "" && (f.CompletedIn == "" || namespace == "" || f.CompletedIn == namespace)
}

// IsSame says whether a live object is still the one that was applied, by its fingerprint, and stays.
func (inv *Inventory) IsSame(id bundle.ID, live *unstructured.Unstructured) bool {
	known, ok := inv.Fingerprints[id]
	return live.GetDeletionTimestamp() == nil && (!ok || known.UID == string(live.GetUID()))
}

type fingerprintRecord struct {
	record
	Fingerprint
}

// EncodeFingerprints packs fingerprints, for one ConfigMap each; see packChunks.
func EncodeFingerprints(fingerprints map[bundle.ID]Fingerprint, stored []string) ([]string, error) {
	return packChunks(fingerprints, stored, hashBytes, func(r record, f Fingerprint) any { return fingerprintRecord{r, f} }, DecodeFingerprints)
}

// packChunks packs what is known of members, for one ConfigMap each. bytes is how much is
// known of one. What is stored already stays in its ConfigMap: they are written one after the
// other, and what moved between two would be in neither, for a run that is killed meanwhile.
func packChunks[V any](values map[bundle.ID]V, stored []string, bytes int, recordOfOne func(record, V) any, read func(string) map[bundle.ID]V) ([]string, error) {
	left, chunks := sets.KeySet(values), [][]bundle.ID(nil)
	for _, packed := range stored {
		stay := bundle.Where(bundle.SortedIDs(read(packed)), left.Has)
		left.Delete(stay...)
		chunks = append(chunks, stay)
	}
	size, at := 0, -1
	for _, id := range bundle.SortedIDs(left) {
		more := len(id.String()) + bytes
		for at < 0 || len(chunks[at]) >= chunkMembers || len(chunks[at]) > 0 && size+more > chunkBytes {
			if at++; at == len(chunks) {
				chunks = append(chunks, nil)
			}
			size = len(chunks[at]) * bytes
			for _, there := range chunks[at] {
				size += len(there.String())
			}
		}
		chunks[at], size = append(chunks[at], id), size+more
	}
	for len(chunks) > 0 && len(chunks[len(chunks)-1]) == 0 {
		chunks = chunks[:len(chunks)-1]
	}
	all := make([]string, len(chunks))
	for i, ids := range chunks {
		slices.SortFunc(ids, bundle.CompareIDs)
		var err error
		if all[i], err = pack(bundle.Each(ids, func(id bundle.ID) any { return recordOfOne(recordOf(id, Status{}), values[id]) })); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// DecodeFingerprints reads one ConfigMap's. What cannot be read is left out: it
// is a cache.
func DecodeFingerprints(packed string) map[bundle.ID]Fingerprint {
	return unpackChunk(packed, func(r fingerprintRecord) (bundle.ID, Fingerprint) { return r.id(), r.Fingerprint })
}

// unpackChunk is the inverse of packChunks for one chunk; nil if it cannot be read.
func unpackChunk[R, V any](packed string, of func(R) (bundle.ID, V)) map[bundle.ID]V {
	var records []R
	if unpack(packed, &records) != nil {
		return nil
	}
	values := make(map[bundle.ID]V, len(records))
	for _, r := range records {
		id, value := of(r)
		values[id] = value
	}
	return values
}
