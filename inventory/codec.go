package inventory

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cli-utils/pkg/object"

	"brine/bundle"
)

// How members are encoded: a key and a value each, or packed.

// MemberKey is the member's key in the inventory object; false when cli-utils
// could not read it back ("_" in a name, cli-utils#487) or a ConfigMap could not
// hold it.
func MemberKey(id bundle.ID) (string, bool) {
	key := id.String()
	if len(validation.IsConfigMapKey(key)) > 0 {
		return "", false
	}
	back, err := object.ParseObjMetadata(key)
	return key, err == nil && back == id
}

// ParseMemberKey reads a key of the inventory object, also those that cli-utils
// writes but cannot read: an RBAC name with "_" in it.
func ParseMemberKey(key string) (bundle.ID, error) {
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

// Encode is the value of a member in the inventory object.
func (s Status) Encode() string {
	text, _ := json.Marshal(s)
	return string(text)
}

// DecodeStatus reads a member's value. A value that cannot be read is an empty
// status: the key alone makes the member.
func DecodeStatus(text string) Status {
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

// EncodeMembers packs members for an overflow ConfigMap.
func EncodeMembers(members map[bundle.ID]Status) (string, error) {
	return pack(bundle.Each(bundle.SortedIDs(members), func(id bundle.ID) record { return recordOf(id, members[id]) }))
}

// DecodeMembers is the inverse of EncodeMembers. Each member names an object.
func DecodeMembers(packed string) (map[bundle.ID]Status, error) {
	var records []record
	if err := unpack(packed, &records); err != nil {
		return nil, err
	}
	members := map[bundle.ID]Status{}
	for i, r := range records {
		if r.Kind == "" || r.Name == "" {
			return nil, fmt.Errorf("decode: its member %d names no object", i+1)
		}
		members[r.id()] = r.Status
	}
	return members, nil
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
	return base64.StdEncoding.EncodeToString(Compress(text)), nil
}

// encoder is shared, as making one takes longer than compressing a small inventory. It is
// made when it is needed: it allocates a megabyte.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) // an error would be one of the options, which are constants
	return e
})

// Compress is what a ConfigMap or a Secret keeps of a text.
func Compress(plain []byte) []byte { return encoder().EncodeAll(plain, nil) }

// maxUnpacked bounds what a ConfigMap of at most 1 MiB may unpack to.
const maxUnpacked = 256 << 20

func unpack(text string, v any) error {
	compressed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	plain, err := Decompress(compressed)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// Decompress is the inverse of Compress.
func Decompress(compressed []byte) ([]byte, error) {
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
