package inventory

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object"

	"brine/bundle"
)

const (
	maxKey = 253 // of a ConfigMap, in bytes
	// headBytes of keys and values go into the head: managedFields repeat every
	// key, and etcd takes 1.5 MiB in all.
	headBytes = 600 << 10
	// statusBytes is the room kept for a member's status in the head.
	statusBytes = 80
	// overflowMembers go into one overflow ConfigMap; compressed they are far
	// under 1 MiB even with the longest names.
	overflowMembers = 2000
)

var keyText = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// headKey is the member's key in the head; false when cli-utils could not
// read it back ("_" in a name, cli-utils#487) or a ConfigMap could not hold it.
func headKey(id bundle.ID) (string, bool) {
	key := id.String()
	if len(key) > maxKey || !keyText.MatchString(key) {
		return "", false
	}
	back, err := object.ParseObjMetadata(key)
	return key, err == nil && back == id
}

// parseKey reads a head's key, also those that cli-utils writes but cannot
// read: an RBAC name with "_" in it.
func parseKey(key string) (bundle.ID, error) {
	if id, err := object.ParseObjMetadata(key); err == nil {
		if id.GroupKind.Kind == "" || id.Name == "" {
			return bundle.ID{}, fmt.Errorf("key %q names no object", key)
		}
		return id, nil
	}
	parts := strings.Split(key, "_")
	if len(parts) < 4 {
		return bundle.ID{}, fmt.Errorf("key %q is not namespace_name_group_Kind", key)
	}
	n := len(parts)
	id := bundle.ID{
		Namespace: parts[0],
		Name:      strings.ReplaceAll(strings.Join(parts[1:n-2], "_"), "__", ":"),
		GroupKind: schema.GroupKind{Group: parts[n-2], Kind: parts[n-1]},
	}
	if !object.RBACGroupKind[id.GroupKind] || id.Name == "" {
		return bundle.ID{}, fmt.Errorf("key %q is not namespace_name_group_Kind", key)
	}
	return id, nil
}

func (s Status) encode() string {
	text, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(text)
}

// decodeStatus reads a member's value. What cannot be read is not lost with
// it: the key alone makes the member.
func decodeStatus(text string) Status {
	var s Status
	_ = json.Unmarshal([]byte(text), &s)
	return s
}

// record is a member in an overflow ConfigMap.
type record struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Status
}

func (r record) id() bundle.ID {
	return bundle.ID{Namespace: r.Namespace, Name: r.Name, GroupKind: schema.GroupKind{Group: r.Group, Kind: r.Kind}}
}

// memberRecords are what an overflow ConfigMap holds: each names an object.
type memberRecords []record

// UnmarshalJSON refuses what is no member.
func (m *memberRecords) UnmarshalJSON(text []byte) error {
	var records []record
	if err := json.Unmarshal(text, &records); err != nil {
		return err
	}
	for i, r := range records {
		if r.Kind == "" || r.Name == "" {
			return fmt.Errorf("its member %d names no object", i+1)
		}
	}
	*m = records
	return nil
}

func recordOf(id bundle.ID, s Status) record {
	return record{Group: id.GroupKind.Group, Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Status: s}
}

// pack is JSON, compressed, in base64 as binaryData wants it.
func pack(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", fmt.Errorf("compress: %w", err)
	}
	return base64.StdEncoding.EncodeToString(w.EncodeAll(text, nil)), errors.Join(w.Close())
}

// maxUnpacked bounds what a ConfigMap of at most 1 MiB may unpack to.
const maxUnpacked = 256 << 20

func unpack(text string, v any) error {
	compressed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	plain, err := decompress(compressed)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

func decompress(compressed []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	defer r.Close()
	plain, err := r.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return plain, nil
}
