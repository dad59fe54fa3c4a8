package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle"
)

// Identity distinguishes a cluster from all others, whatever address it is
// reached at. What the user may not read is empty.
type Identity struct {
	UID string // of the namespace kube-system
	CA  string // "sha256:<hex>" over the certificates that the cluster's CA is known by
}

// Identify reads the identity of the cluster. Each namespace has the CA's
// certificates in a ConfigMap of its own; namespace is one that the user may read.
func (c *Client) Identify(ctx context.Context, namespace string) (Identity, error) {
	var id Identity
	u, err := c.Get(ctx, Namespaces, namespaceID("kube-system"))
	if err != nil && !apierrors.IsForbidden(err) {
		return id, fmt.Errorf("read which cluster this is: Namespace kube-system: %w", err)
	}
	if u != nil {
		id.UID = string(u.GetUID())
	}
	u, err = c.Get(ctx, ConfigMaps, bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: namespace, Name: "kube-root-ca.crt"})
	if err != nil && !apierrors.IsForbidden(err) {
		return id, fmt.Errorf("read which cluster this is: ConfigMap %s/kube-root-ca.crt: %w", namespace, err)
	}
	if u != nil {
		id.CA = certificatesDigest(bundle.At[string](u.Object, "data", "ca.crt"))
	}
	return id, nil
}

// certificatesDigest does not depend on how PEM is laid out; "" where there is
// no certificate.
func certificatesDigest(text string) string {
	var sums []string
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		sum := sha256.Sum256(block.Bytes)
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	if len(sums) == 0 {
		return ""
	}
	slices.Sort(sums)
	h := sha256.New()
	for _, s := range slices.Compact(sums) {
		h.Write([]byte(s))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
