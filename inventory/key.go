package inventory

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

const (
	keyType  = "brine.dev/key"
	keyField = "key"
	keyBytes = 32
	// Keyed is how a keyed digest begins.
	Keyed = "hmac-sha256:"
)

// Key keys the hashes of what Secrets hold: without it, whoever may read a
// ConfigMap or a pod template could try values until one fits. It is random, and
// kept in an auxiliary Secret.
type Key struct {
	namespace, name string
	secret          []byte
	fresh           bool
}

// NewKey is a key that is not on the cluster yet.
func NewKey(namespace, name string) *Key {
	k := &Key{namespace: namespace, name: KeyName(name), secret: make([]byte, keyBytes), fresh: true}
	_, _ = rand.Read(k.secret) // it never fails
	return k
}

// DecodeKey is the key of the inventory namespace/name from its Secret.
func DecodeKey(namespace, name string, live *unstructured.Unstructured) (*Key, error) {
	k := &Key{namespace: namespace, name: KeyName(name)}
	kind, _, _ := unstructured.NestedString(live.Object, "type")
	text, _, _ := unstructured.NestedString(live.Object, "data", keyField)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != keyBytes || kind != keyType {
		return nil, fmt.Errorf("%s is there, but is no key of an inventory: choose another name for the inventory, or delete it", bundle.Name(k.ID()))
	}
	k.secret = raw
	return k, nil
}

// Encode is the Secret that keeps the key of the inventory with the ID.
func (k *Key) Encode(inventoryID string) *unstructured.Unstructured {
	u := bundle.V1(k.ID(), map[string]any{
		"type": keyType, "immutable": true,
		"data": map[string]any{keyField: base64.StdEncoding.EncodeToString(k.secret)},
	})
	u.SetLabels(map[string]string{AuxiliaryLabel: inventoryID})
	return u
}

// CopyTo is the same key for the inventory namespace/name, not on the cluster yet.
func (k *Key) CopyTo(namespace, name string) *Key {
	return &Key{namespace: namespace, name: KeyName(name), secret: k.secret, fresh: true}
}

// Equal says whether two keys make the same hashes.
func (k *Key) Equal(other *Key) bool { return hmac.Equal(k.secret, other.secret) }

// ID names the Secret that holds the key.
func (k *Key) ID() bundle.ID {
	return bundle.ID{Namespace: k.namespace, Name: k.name, GroupKind: bundle.SecretKind}
}

// Fresh says whether the key is not on the cluster yet.
func (k *Key) Fresh() bool { return k.fresh }

// Saved makes the key one that is on the cluster.
func (k *Key) Saved() { k.fresh = false }

// Digest is the keyed form of a digest.
func (k *Key) Digest(plain string) string { return Keyed + hex.EncodeToString(k.sum(plain)) }

// Short is the keyed form of a hash in a fingerprint.
func (k *Key) Short(plain string) string {
	return base64.RawStdEncoding.EncodeToString(k.sum(plain)[:16])
}

func (k *Key) sum(plain string) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(plain))
	return h.Sum(nil)
}
