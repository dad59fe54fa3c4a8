package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/inventory"
)

func idOf(u *unstructured.Unstructured) bundle.ID {
	return bundle.ID{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

const (
	namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: held, uid: n, annotations: {config.k8s.io/owning-inventory: inv}}}`
	crd       = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com, uid: c, annotations: {config.k8s.io/owning-inventory: inv}},
  spec: {group: example.com, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true}]}}`
)

func mine(metadata string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, uid: u, ` + metadata + `}}`
}

// dependent is owned by mine.
func dependent(t *testing.T) (bundle.ID, *unstructured.Unstructured) {
	t.Helper()
	u := bundletest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: ns, ownerReferences: [{kind: ConfigMap, name: c, uid: u}]}}`)
	return idOf(u), u
}

func TestGuard(t *testing.T) {
	const owned = "annotations: {config.k8s.io/owning-inventory: inv}"
	theirs := bundle.Contents{Unmanaged: []string{"Secret held/theirs"}}
	blind := bundle.Contents{Unknown: []string{"secrets (no right to list them)"}}
	for _, c := range []struct {
		name, live string
		holds      bundle.Contents
		guard      func(*Guard)
		want       string
	}{
		{"ours", mine(owned), bundle.Contents{}, nil, "pruned"},
		{"nobody's", mine("labels: {}"), bundle.Contents{}, nil, "detached: its annotation config.k8s.io/owning-inventory was removed"},
		{"another inventory's", mine("annotations: {config.k8s.io/owning-inventory: other}"), bundle.Contents{}, nil, `detached: it belongs to inventory "other"`},
		{"kept by cli-utils' annotation", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: keep}"), bundle.Contents{}, nil, "detached: cli-utils.sigs.k8s.io/on-remove: keep"},
		{"kept by the lifecycle's annotation", mine("annotations: {config.k8s.io/owning-inventory: inv, client.lifecycle.config.k8s.io/deletion: detach}"), bundle.Contents{}, nil, "detached: client.lifecycle.config.k8s.io/deletion: detach"},
		{"kept by the annotation of another tool", mine("annotations: {config.k8s.io/owning-inventory: inv, helm.sh/resource-policy: keep}"), bundle.Contents{}, nil, "detached: helm.sh/resource-policy: keep (Helm)"},
		{"kept by a label", mine("annotations: {config.k8s.io/owning-inventory: inv}, labels: {kustomize.toolkit.fluxcd.io/prune: disabled}"), bundle.Contents{}, nil, "detached: kustomize.toolkit.fluxcd.io/prune: disabled (a label, Flux)"},
		{"an annotation that says something else", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: delete}"), bundle.Contents{}, nil, "pruned"},
		{"a controller's", mine(owned + ", ownerReferences: [{kind: Owner, name: o, uid: o, controller: true}]"), bundle.Contents{}, nil, "detached: it is controlled by Owner o"},
		{"owned, not controlled", mine(owned + ", ownerReferences: [{kind: Owner, name: o, uid: o}]"), bundle.Contents{}, nil, "pruned"},
		{"another inventory itself", mine(owned + ", labels: {cli-utils.sigs.k8s.io/inventory-id: other}"), bundle.Contents{}, nil, `detached: it is a part of inventory "other" itself`},
		{"owns what stays", mine(owned), bundle.Contents{}, func(g *Guard) { g.Keep(dependent(t)) }, "skipped kept: the garbage collector would delete ConfigMap ns/d with it"},
		{"owns what stays, and leaves it", mine(owned), bundle.Contents{}, func(g *Guard) { g.Options.Orphans = true; g.Keep(dependent(t)) }, "pruned"},
		{"wanted absent", mine("labels: {}"), bundle.Contents{}, func(g *Guard) { g.Absent = sets.New(idOf(bundletest.Object(t, mine(owned)))) }, "pruned: the bundle wants it absent"},
		{"wanted absent and kept", mine("annotations: {cli-utils.sigs.k8s.io/on-remove: keep}"), bundle.Contents{}, func(g *Guard) { g.Absent = sets.New(idOf(bundletest.Object(t, mine(owned)))) }, "detached"},
		{"wanted absent and another's", mine("annotations: {config.k8s.io/owning-inventory: other}"), bundle.Contents{}, func(g *Guard) { g.Absent = sets.New(idOf(bundletest.Object(t, mine(owned)))) }, "detached"},
		{"the same object under another group", mine(owned), bundle.Contents{}, func(g *Guard) { g.Same = map[types.UID]bundle.ID{"u": {Name: "twin"}} }, "detached shared"},
		{"a move that was interrupted", mine(owned), bundle.Contents{}, func(g *Guard) {
			g.Moved = map[bundle.ID]Verdict{idOf(bundletest.Object(t, mine(owned))): {Action: Skipped, Kept: true}}
		}, "skipped kept"},
		{"moved here, and kept by an annotation", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: keep}"), bundle.Contents{}, func(g *Guard) {
			g.Moved = map[bundle.ID]Verdict{idOf(bundletest.Object(t, mine(owned))): {Action: Skipped}}
		}, "skipped"},
		{"the same object under another group, and kept by an annotation", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: keep}"), bundle.Contents{}, func(g *Guard) {
			g.Same = map[types.UID]bundle.ID{"u": {Name: "twin"}}
		}, "detached shared"},
		{"moved away", mine("annotations: {config.k8s.io/owning-inventory: other}"), bundle.Contents{}, func(g *Guard) {
			g.Moved = map[bundle.ID]Verdict{idOf(bundletest.Object(t, mine(owned))): {Action: Skipped, Kept: true}}
		}, "detached"},
		{"--no-prune", mine(owned), bundle.Contents{}, func(g *Guard) { g.Options.NoPrune = true }, "skipped: --no-prune"},
		{"an empty namespace", namespace, bundle.Contents{}, nil, "pruned"},
		{"a namespace in use", namespace, bundle.Contents{}, func(g *Guard) { g.Namespaces = map[string]string{"held": "Pod held/p"} }, "skipped: still in use by Pod held/p"},
		{"the inventory's namespace", namespace, bundle.Contents{}, func(g *Guard) { g.Of.Namespace = "held" }, "skipped: it holds the inventory itself"},
		{"the inventory's namespace, destroyed", namespace, bundle.Contents{}, func(g *Guard) { g.Of.Namespace, g.Options.Destroy = "held", true }, "pruned"},
		{"a namespace with unmanaged objects", namespace, theirs, nil, "skipped kept: contains objects outside this inventory: Secret held/theirs"},
		{"a namespace that cannot be read", namespace, blind, nil, "skipped kept: may contain objects outside this inventory: cannot read secrets (no right to list them)"},
		{"forced", namespace, theirs, func(g *Guard) { g.Options.ForceNamespaces = true }, "pruned"},
		{"forced blindly", namespace, blind, func(g *Guard) { g.Options.ForceNamespaces = true }, "pruned"},
		{"forced, and in use", namespace, theirs, func(g *Guard) {
			g.Options.ForceNamespaces, g.Namespaces = true, map[string]string{"held": "Pod held/p"}
		}, "skipped: still in use"},
		{"a namespace that is wanted absent", namespace, theirs, func(g *Guard) { g.Absent = sets.New(idOf(bundletest.Object(t, namespace))) }, "skipped kept"},
		{"a CRD without resources", crd, bundle.Contents{}, nil, "pruned"},
		{"a CRD with unmanaged resources", crd, theirs, nil, "skipped kept: contains objects outside this inventory"},
		{"a CRD that cannot be read", crd, blind, nil, "skipped kept: may contain"},
		{"a CRD in use", crd, bundle.Contents{}, func(g *Guard) {
			g.Kinds = map[schema.GroupKind]string{{Group: "example.com", Kind: "Thing"}: "Thing.example.com a"}
		}, "skipped: still in use by Thing.example.com a"},
		{"contents of what holds nothing", mine(owned), theirs, nil, "pruned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Guard{Of: inventory.Empty("home", "inv", "inv")}
			if c.guard != nil {
				c.guard(g)
			}
			live := bundletest.Object(t, c.live)
			v := g.Decide(idOf(live), live, c.holds)
			got := string(v.Action)
			for word, is := range map[string]bool{" kept": v.Kept, " shared": v.Shared} {
				if is {
					got += word
				}
			}
			if v.Reason != "" {
				got += ": " + v.Reason
			}
			if !strings.HasPrefix(got, c.want) || c.want == "pruned" && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
