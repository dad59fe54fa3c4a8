package inventory

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/remedy"
)

// MaxName is the longest name of an inventory: the names of its auxiliary
// objects begin with it.
const MaxName = 253 - len("-revision-1000000-1000")

var (
	auxiliaryMap    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-(overflow|fingerprints|origins)-\d+$`) })
	auxiliarySecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-(revision-\d+-\d+|brine-(key|plan))$`) })
)

// Auxiliary says what an object is to the inventory namespace/name itself, like
// "its lock"; "" for every other object. Such an object can be no member: the
// inventory would overwrite, and in the end delete, itself.
func Auxiliary(namespace, name string, id bundle.ID) string {
	if id.Namespace != namespace {
		return ""
	}
	rest, prefixed := strings.CutPrefix(id.Name, name)
	switch {
	case id.GroupKind == bundle.ConfigMapKind && prefixed && rest == "":
		return "the inventory itself"
	case id.GroupKind == bundle.ConfigMapKind && prefixed && auxiliaryMap().MatchString(rest):
		return "a part of the inventory"
	case id.GroupKind == bundle.SecretKind && prefixed && auxiliarySecret().MatchString(rest):
		return "a part of the inventory"
	case id.GroupKind == bundle.LeaseKind && id.Name == LockName(name):
		return "the lock of the inventory"
	}
	return ""
}

// LockName is the name of an inventory's Lease.
func LockName(inventory string) string { return "brine-" + inventory }

// OverflowName is the name of an inventory's overflow ConfigMap, from 1 on.
func OverflowName(inventory string, n int) string { return fmt.Sprintf("%s-overflow-%d", inventory, n) }

// FingerprintsName is the name of an inventory's ConfigMap of fingerprints, from 1 on.
func FingerprintsName(inventory string, n int) string {
	return fmt.Sprintf("%s-fingerprints-%d", inventory, n)
}

// OriginsName is the name of an inventory's ConfigMap of origins, from 1 on.
func OriginsName(inventory string, n int) string { return fmt.Sprintf("%s-origins-%d", inventory, n) }

// RevisionName is the name of the Secret with one part of a revision, from 0 on.
func RevisionName(inventory string, number, part int) string {
	return fmt.Sprintf("%s-revision-%d-%d", inventory, number, part)
}

// KeyName is the name of the Secret with an inventory's key.
func KeyName(inventory string) string { return inventory + "-brine-key" }

// PlanName is the name of the Secret with a saved plan.
func PlanName(inventory string) string { return inventory + "-brine-plan" }

// Reserved are the objects of a bundle that are the inventory namespace/name
// itself, or auxiliary to it: problems that stop a run before its first write.
func Reserved(namespace, name string, b *bundle.Bundle) []bundle.Problem {
	var problems []bundle.Problem
	check := func(id bundle.ID, source bundle.Source) {
		if what := Auxiliary(namespace, name, id); what != "" {
			problems = append(problems, bundle.Problem{Source: source, ID: id, Message: fmt.Sprintf(
				"this object is %s (%s/%s), which brine itself writes: take it out of the bundle, or choose another inventory with %s or %s",
				what, namespace, name, remedy.Inventory, remedy.Name)})
		}
	}
	for _, o := range b.Objects {
		check(o.ID, o.Source)
	}
	for _, a := range b.Absent {
		check(a.ID, a.Source)
	}
	return problems
}

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
