package run

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/redact"
	"brine/bundle/report"
	"brine/inventory"
)

// holdsSecrets says whether hashes of what a Secret holds are to be made: a bundle
// without Secrets needs no key, and costs no request for one.
func holdsSecrets(o *Options, b *bundle.Bundle) bool {
	return o.Mode != Destroy && (b.HasSecretDigests() || slices.ContainsFunc(b.Objects, func(o *bundle.Object) bool { return redact.Holds(o.Content) }))
}

// keyDigests keys the digests of Secrets in pod templates. Those that no key on
// the cluster stands behind yet are not shown: the next run would have others.
func keyDigests(record *report.Recorder, o *Options, b *bundle.Bundle, key *inventory.Key, live map[bundle.ID]*unstructured.Unstructured) {
	if key == nil {
		return
	}
	there := func(id bundle.ID) *unstructured.Unstructured { return live[id] }
	var restarted []string
	b.KeySecretDigests(key.Digest, there, func(object *bundle.Object, digest, live string) {
		keyed := strings.HasPrefix(digest, inventory.Keyed)
		if !keyed || key.Fresh() && (o.DryRun != report.None || o.SavedPlan != nil) {
			record.Secrets.AddValue(digest)
		}
		if keyed && key.Fresh() && strings.HasPrefix(live, inventory.Keyed) {
			restarted = append(restarted, bundle.Name(object.ID))
		}
	})
	if len(restarted) > 0 {
		record.Warn(fmt.Sprintf("the key of the inventory, %s, is gone, and a new one is made: the digests of Secrets in pod templates change, and pods restart even if their Secrets have not changed: %s",
			bundle.Name(key.ID()), strings.Join(restarted, ", ")))
	}
}

// digestOf is the bundle's, keyed where it is one of Secrets, too. Before there is
// a key on the cluster, their values do not take part in it.
func digestOf(b *bundle.Bundle, key *inventory.Key) string {
	switch {
	case key == nil:
		return b.Digest
	case key.Fresh():
		return b.DigestWithoutSecrets(redact.Holds)
	}
	return key.Digest(b.Digest)
}
