package inventory

import "brine/bundle"

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

type fingerprintRecord struct {
	record
	Fingerprint
}

// EncodeFingerprints packs fingerprints, for one ConfigMap each.
func EncodeFingerprints(fingerprints map[bundle.ID]Fingerprint) ([]string, error) {
	return packChunks(fingerprints, hashBytes, func(r record, f Fingerprint) any { return fingerprintRecord{r, f} })
}

// packChunks packs what is known of members, for one ConfigMap each. bytes is how much is
// known of one.
func packChunks[V any](values map[bundle.ID]V, bytes int, recordOfOne func(record, V) any) ([]string, error) {
	var chunks []string
	for ids := bundle.SortedIDs(values); len(ids) > 0; {
		n := chunkLength(ids, bytes)
		packed, err := pack(bundle.Each(ids[:n], func(id bundle.ID) any { return recordOfOne(recordOf(id, Status{}), values[id]) }))
		if err != nil {
			return nil, err
		}
		chunks, ids = append(chunks, packed), ids[n:]
	}
	return chunks, nil
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

// chunkLength is how many of the ids go into one ConfigMap, with so many bytes for each.
func chunkLength(ids []bundle.ID, bytes int) int {
	size := 0
	for i, id := range ids {
		if size += len(id.String()) + bytes; i == chunkMembers || i > 0 && size > chunkBytes {
			return i
		}
	}
	return len(ids)
}
