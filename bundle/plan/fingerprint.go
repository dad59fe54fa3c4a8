package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	text = appendFields(text, owned, content)
	var shared []string
	for _, other := range others {
		if common := sharedFields(owned, other); common != "" {
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

// sharedFields are the fields that two entries of managedFields share.
func sharedFields(a, b map[string]any) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(a)) {
		inB, ok := b[key].(map[string]any)
		if !ok {
			continue
		}
		inA, _ := a[key].(map[string]any)
		if below := sharedFields(inA, inB); below != "" || len(inA) == 0 || len(inB) == 0 {
			fmt.Fprintf(&text, "%q{%s}", key, below)
		}
	}
	return text.String()
}

// appendFields walks fieldsV1 and the live value side by side (the format:
// structured-merge-diff, fieldpath/serialize.go: f: a field, k: a list item by
// its keys, v: a set's value, i: an index, ".": the thing itself). The tree is
// walked as it was decoded: to read it into a fieldpath.Set first takes half as long again,
// and two thirds more memory (BenchmarkLiveHash).
func appendFields(text []byte, fields map[string]any, live any) []byte {
	if len(fields) == 0 {
		return appendValue(text, live)
	}
	var items func(key string) any
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		text = append(strconv.AppendQuote(text, key), '{')
		below, _ := fields[key].(map[string]any)
		kind, name, _ := strings.Cut(key, ":")
		switch kind {
		case "f":
			object, _ := live.(map[string]any)
			value, ok := object[name]
			if !ok {
				text = append(text, "absent"...)
				break
			}
			text = appendFields(text, below, value)
		case "k":
			if items == nil {
				items = itemsByKey(live)
			}
			item := items(name)
			if item == nil {
				text = append(text, "absent"...)
				break
			}
			text = appendFields(text, below, item)
		case "v":
			text = strconv.AppendBool(text, contains(live, name))
		case "i":
			text = appendValue(text, live)
		case ".":
			text = strconv.AppendBool(text, live != nil)
		}
		text = append(text, '}')
	}
	return text
}

func appendValue(text []byte, v any) []byte {
	if s, ok := v.(string); ok { // as nearly all of them are
		return strconv.AppendQuote(text, s)
	}
	value, err := json.Marshal(v)
	if err != nil {
		value = fmt.Append(nil, v)
	}
	return append(text, value...)
}

// itemsByKey finds items of a list by their keys, as JSON: {"name":"app"}.
// Each set of key fields is indexed once, so long lists stay cheap.
func itemsByKey(live any) func(string) any {
	list, _ := live.([]any)
	indices := map[string]map[string]any{}
	return func(key string) any {
		var wanted map[string]any
		if json.Unmarshal([]byte(key), &wanted) != nil {
			return nil
		}
		names := slices.Sorted(maps.Keys(wanted))
		index, ok := indices[strings.Join(names, ",")]
		if !ok {
			index = map[string]any{}
			for _, item := range list {
				if object, ok := item.(map[string]any); ok {
					index[keyOf(object, names)] = item
				}
			}
			indices[strings.Join(names, ",")] = index
		}
		return index[keyOf(wanted, names)]
	}
}

func keyOf(object map[string]any, names []string) string {
	var key strings.Builder
	for _, name := range names {
		text, err := json.Marshal(object[name])
		if err != nil {
			return ""
		}
		key.Write(text)
		key.WriteByte(',')
	}
	return key.String()
}

func contains(live any, value string) bool {
	list, _ := live.([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		text, err := json.Marshal(item)
		return err == nil && string(text) == value
	})
}
