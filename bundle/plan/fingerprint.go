package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/fields"
	"brine/inventory"
)

// Fingerprints: whether the live object and the bundle are still what was applied.

// DesiredHash is the hash of what the bundle asks for: body as it is sent.
func DesiredHash(body []byte) string {
	sum := sha256.Sum256(body)
	return short(sum[:])
}

// desiredHash is the hash of an object without the fields that are left to
// others: body is already encoded where there are none.
func (s *Step) desiredHash(content map[string]any) (string, error) {
	if len(s.Ignored) == 0 {
		return DesiredHash(s.Body), nil
	}
	text, err := json.Marshal(s.Ignored.Without(content))
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return DesiredHash(text), nil
}

// short is enough of a hash for a cache that nobody attacks: 128 bits.
func short(sum []byte) string { return base64.RawStdEncoding.EncodeToString(sum[:16]) }

// Fingerprint makes the fingerprint of a member from the body that was applied
// and the live object; false when the object has no managedFields entry of ours
// (as on a server without server-side apply, or when somebody removed it), and
// where what is sent depends on more than the bundle. The hashes of what a Secret
// holds are keyed. left says whether fields were left to other managers by rules
// about conflicts: the fingerprint holds as long as these are the same.
func (s *Step) Fingerprint(live *unstructured.Unstructured, left bool) (inventory.Fingerprint, bool) {
	hash, ok := s.liveHash(live)
	if !ok || s.hashless {
		return inventory.Fingerprint{}, false
	}
	desired := s.Desired
	if left {
		desired = DesiredHash([]byte(desired + s.conflicts))
	}
	if s.key != nil {
		desired, hash = s.key.Short(desired), s.key.Short(hash)
	}
	return inventory.Fingerprint{Desired: desired, UID: string(live.GetUID()), Live: hash}, true
}

// matches says whether the live object and the bundle are still what was applied.
func (s *Step) matches(known inventory.Fingerprint) bool {
	now, ok := s.Fingerprint(s.Live, false)
	if ok && now != known && s.conflicts != "" {
		now, ok = s.Fingerprint(s.Live, true)
	}
	return ok && now == known
}

// liveHash hashes the live values of the fields that our managedFields entry
// owns, and the entry without its time. Live is compared with live, so
// defaulting and normalisation cannot fool it; a field that another manager
// took, or a value that anybody changed, changes the hash. So does a manager
// that came to share a field: the server may call that a conflict, if the
// bundle writes a value otherwise than it is stored (cpu: 1000m). Fields that are
// left to others do not count.
func (s *Step) liveHash(live *unstructured.Unstructured) (string, bool) {
	ours, others := fields.Managed(live)
	owned, ok := ours["fieldsV1"].(map[string]any)
	if !ok {
		return "", false
	}
	content := any(live.Object)
	if len(s.Ignored) > 0 {
		wanted := s.Object.Content.Object
		for i, other := range others {
			others[i], _ = s.Ignored.Trim(other, live.Object, wanted)
		}
		if owned, content = s.Ignored.Trim(owned, live.Object, wanted); len(owned) == 0 {
			content = nil // no owner of all, but of nothing
		}
	}
	text := fmt.Appendf(nil, "%v\n", ours["apiVersion"])
	text = fields.AppendOwned(text, owned, content)
	var shared []string
	for _, other := range others {
		if common := fields.Shared(owned, other); common != "" {
			shared = append(shared, common)
		}
	}
	slices.Sort(shared)
	for _, common := range slices.Compact(shared) {
		text = append(append(text, '\n'), common...)
	}
	sum := sha256.Sum256(text)
	return short(sum[:]), true
}
