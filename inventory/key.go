package inventory

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
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
// kept in a Secret beside the inventory.
type Key struct {
	namespace, name string
	id              string // the inventory's, as the Secret's label says it
	secret          []byte
	fresh           bool
}

func keyName(inventory string) string { return inventory + "-brine-key" }

// NewKey is a key that is not on the cluster yet.
func NewKey(namespace, name string) *Key {
	k := &Key{namespace: namespace, name: keyName(name), secret: make([]byte, keyBytes), fresh: true}
	_, _ = rand.Read(k.secret) // it never fails
	return k
}

// LoadKey reads the key of the inventory namespace/name, or makes one that is
// not on the cluster yet: one request.
func LoadKey(ctx context.Context, c *cluster.Client, namespace, name string) (*Key, error) {
	k := NewKey(namespace, name)
	live, err := c.Get(ctx, cluster.Secrets, k.ID())
	if err != nil {
		return nil, fmt.Errorf("read the key of inventory %s/%s, by which hashes of Secrets are made: %w", namespace, name, err)
	}
	if live == nil {
		return k, nil
	}
	kind, _, _ := unstructured.NestedString(live.Object, "type")
	text, _, _ := unstructured.NestedString(live.Object, "data", keyField)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != keyBytes || kind != keyType {
		return nil, fmt.Errorf("%s is there, but is no key of an inventory: choose another name for the inventory, or delete it", bundle.Name(k.ID()))
	}
	k.secret, k.fresh, k.id = raw, false, live.GetLabels()[Side]
	return k, nil
}

// ID names the Secret that holds the key.
func (k *Key) ID() bundle.ID {
	return bundle.ID{Namespace: k.namespace, Name: k.name, GroupKind: bundle.SecretKind}
}

// Fresh says whether the key is not on the cluster yet.
func (k *Key) Fresh() bool { return k.fresh }

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

// SaveKey writes a fresh key. If another run has written one meanwhile, that is
// ErrConflict.
func (inv *Inventory) SaveKey(ctx context.Context) error {
	k := inv.Key
	if k == nil || !k.fresh {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"type": keyType, "immutable": true,
		"data": map[string]any{keyField: base64.StdEncoding.EncodeToString(k.secret)},
	}}
	u.SetGroupVersionKind(bundle.SecretKind.WithVersion("v1"))
	u.SetNamespace(k.namespace)
	u.SetName(k.name)
	u.SetLabels(map[string]string{Side: inv.ID})
	if _, err := inv.client.Create(ctx, cluster.Secrets, u, cluster.Write{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			err = errors.Join(ErrConflict, err)
		}
		return fmt.Errorf("write the key of inventory %s/%s: %s: %w", inv.Namespace, inv.Name, bundle.Name(k.ID()), err)
	}
	k.fresh = false
	return nil
}
