package plan

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/inventory"
)

// set is a StatefulSet whose claims ask for this much, or what else their template says.
func set(size, more string) string {
	return `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: ns, uid: u}, spec: {selector: {matchLabels: {app: web}}, ` + more +
		`template: {metadata: {labels: {app: web, tier: a}}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: ` + size + `}}}}]}}`
}

func TestGuardRecreate(t *testing.T) {
	const owned = "annotations: {config.k8s.io/owning-inventory: inv}"
	for _, c := range []struct {
		name, live string
		guard      func(*Guard)
		want       string
	}{
		{"ours", mine(owned), nil, ""},
		{"kept", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: keep}"), nil, "cli-utils.sigs.k8s.io/on-remove: keep"},
		{"detached", mine("annotations: {config.k8s.io/owning-inventory: inv, client.lifecycle.config.k8s.io/deletion: detach}"), nil, "client.lifecycle.config.k8s.io/deletion: detach"},
		{"another value", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: delete}"), nil, ""},
		{"another inventory's", mine("annotations: {config.k8s.io/owning-inventory: other}"), nil, `it belongs to inventory "other": --inventory-policy=adopt-all adopts it (see brine help other-owner)`},
		{"of no inventory", mine("labels: {}"), nil, "it is on the cluster and belongs to no inventory: --inventory-policy=adopt-if-no-inventory adopts it"},
		{"adopted", mine("labels: {}"), func(g *Guard) { g.Options.Policy = AdoptIfNoInventory }, ""},
		{"itself", mine(owned), func(g *Guard) { g.Same["u"] = idOf(bundletest.Object(t, mine(owned))) }, ""},
		{"the same under another group", mine(owned), func(g *Guard) { g.Same["u"] = bundle.ID{Name: "twin"} }, "it is the same object as twin"},
		{"being moved", mine(owned), func(g *Guard) {
			g.Moved = map[bundle.ID]Verdict{idOf(bundletest.Object(t, mine(owned))): {Action: Skipped, Kept: true, Reason: "its move was interrupted"}}
		}, "its move was interrupted"},
		{"the inventory's namespace", namespace, func(g *Guard) { g.Of.Namespace = "held" }, "it holds the inventory itself"},
		{"another object of its name", mine(owned), func(g *Guard) { g.Of.Namespace = "c" }, ""},
		{"another namespace", namespace, func(g *Guard) { g.Of.Namespace = "c" }, ""},
		{"owns what stays", mine(owned), func(g *Guard) { g.Keep(dependent(t)) }, "the garbage collector would delete ConfigMap ns/d with it, which stays, and which it owns, perhaps through others: take the owner out of its ownerReferences first"},
		{"owns what stays, also with --cascade=orphan", mine(owned), func(g *Guard) { g.Options.Orphans = true; g.Keep(dependent(t)) }, "the garbage collector would delete ConfigMap ns/d with it, which stays, and which it owns, perhaps through others: take the owner out of its ownerReferences first"},
		{"no prune", mine(owned), func(g *Guard) { g.Options.NoPrune = true }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Guard{Of: inventory.Empty("home", "inv", "inv"), Same: map[types.UID]bundle.ID{}}
			if c.guard != nil {
				c.guard(g)
			}
			live := bundletest.Object(t, c.live)
			if got := g.Recreate(idOf(live), live, bundletest.Object(t, mine("annotations: {}")), false); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	ours := bundletest.Object(t, mine(owned))
	for annotation, want := range map[string]string{"cli-utils.sigs.k8s.io/on-remove: keep": "cli-utils.sigs.k8s.io/on-remove: keep", "client.lifecycle.config.k8s.io/deletion: other": ""} {
		wanted := bundletest.Object(t, mine("annotations: {"+annotation+"}"))
		if got := (&Guard{Of: inventory.Empty("home", "inv", "inv")}).Recreate(idOf(ours), ours, wanted, false); got != want {
			t.Errorf("in the bundle: %s: got %q", annotation, got)
		}
	}
}

func TestAbandons(t *testing.T) {
	for _, c := range []struct{ name, live, desired, want string }{
		{"the size of a claim", set("1Gi", ""), set("2Gi", ""), ""},
		{"another field", set("1Gi", ""), set("1Gi", "serviceName: web, "), ""},
		{"a selector that matches", set("1Gi", ""), set("1Gi", "selector: {matchExpressions: [{key: tier, operator: Exists}]}, "), ""},
		{
			"another selector", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {labels: {app: a}}}}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: b}}}}`,
			"its selector changes, and does not match the pods of the old one: the new one would not adopt them",
		},
		{
			"a ReplicationController's", `{apiVersion: v1, kind: ReplicationController, spec: {template: {metadata: {labels: {app: a}}}}}`, `{apiVersion: v1, kind: ReplicationController, spec: {selector: {app: a}}}`, "",
		},
		{"a Job", `{apiVersion: batch/v1, kind: Job}`, `{apiVersion: batch/v1, kind: Job}`, "a new Job does not adopt the pods of the old one"},
		{"a claim goes", set("1Gi", ""), `{apiVersion: apps/v1, kind: StatefulSet}`, ""},
		{
			"a claim comes", `{apiVersion: apps/v1, kind: StatefulSet}`, set("1Gi", ""),
			"its pods do not have the volumes of the new claim templates data, and cannot get them: its controller would be stuck",
		},
		{"without pods", mine("labels: {}"), mine("labels: {a: b}"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Abandons(bundletest.Object(t, c.live), bundletest.Object(t, c.desired)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestKeepLive(t *testing.T) {
	wanted := bundletest.Object(t, `{spec: {replicas: 2, paused: false, template: {image: new, probes: [1, 2]}, mode: x}}`)
	sent := bundletest.Object(t, `{metadata: {uid: u}, spec: {replicas: 2, template: {image: live, probes: [1]}}}`)
	live := bundletest.Object(t, `{spec: {replicas: 5, paused: true, template: {image: live}, other: y}}`)
	got, err := yaml.Marshal(KeepLive(wanted.Object, sent.Object, live.Object))
	if err != nil {
		t.Fatal(err)
	}
	if want := "spec:\n  mode: x\n  paused: true\n  replicas: 2\n  template:\n    image: live\n    probes:\n    - 1\n"; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestResize(t *testing.T) {
	claim := func(name, size, metadata, phase, class string) string {
		return fmt.Sprintf(`{metadata: {name: %s, namespace: ns%s}, spec: {storageClassName: %q, resources: {requests: {storage: %s}}}, status: {phase: %s}}`, name, metadata, class, size, phase)
	}
	for _, c := range []struct{ name, claim, want string }{
		{"grows", claim("data-web-0", "1Gi", "", "Bound", "fast"), "claim data-web-0: 1Gi → 2Gi"},
		{"the same in other words", claim("data-web-0", "2048Mi", "", "Bound", "fast"), ""},
		{"never shrinks", claim("data-web-11", "3Gi", "", "Bound", "fast"), "claim data-web-11 keeps its size 3Gi, not 2Gi: a claim never shrinks"},
		{"not expandable", claim("data-web-0", "1Gi", "", "Bound", "slow"), "claim data-web-0 keeps its size 1Gi, not 2Gi: StorageClass slow does not allow volume expansion"},
		{"unknown", claim("data-web-0", "1Gi", "", "Bound", "dark"), "error: no right"},
		{"not bound", claim("data-web-0", "1Gi", "", "Pending", "fast"), "claim data-web-0 keeps its size 1Gi, not 2Gi: only a bound claim can grow, and it is Pending"},
		{"no class", claim("data-web-0", "1Gi", "", "Bound", ""), "claim data-web-0 keeps its size 1Gi, not 2Gi: it has no StorageClass"},
		{"Terminating", claim("data-web-0", "1Gi", `, deletionTimestamp: "2026-01-01T00:00:00Z"`, "Bound", "fast"), "claim data-web-0 keeps its size 1Gi, not 2Gi: it is being deleted"},
		{"in an inventory", claim("data-web-0", "1Gi", ", annotations: {config.k8s.io/owning-inventory: x}", "Bound", "fast"), `claim data-web-0 keeps its size 1Gi, not 2Gi: it belongs to inventory "x"`},
		{"another set's", claim("data-web-blue-0", "1Gi", "", "Bound", "fast"), ""},
		{"another template's", claim("logs-web-0", "1Gi", "", "Bound", "fast"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			claim, differs, err := Resize(bundletest.Object(t, set("2Gi", "")), bundletest.Object(t, c.claim), func(class string) (string, error) {
				return map[string]string{"slow": "StorageClass slow does not allow volume expansion"}[class], map[string]error{"dark": errors.New("no right")}[class]
			})
			if differs {
				got = claim.String()
			}
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		live, desired string
		want          bool
	}{
		{set("1Gi", ""), set("2Gi", ""), true},
		{set("1024Mi", ""), set("1Gi", ""), false},
		{set("2Gi", ""), set("1Gi", ""), true},
		{set("1Gi", ""), `{apiVersion: apps/v1, kind: StatefulSet}`, false},
		{`{apiVersion: v1, kind: Pod}`, `{apiVersion: v1, kind: Pod}`, false},
	} {
		if got := Resizes(bundletest.Object(t, c.live), bundletest.Object(t, c.desired)); got != c.want {
			t.Errorf("%s to %s: %v", c.live, c.desired, got)
		}
	}
}

func TestCheckRecreate(t *testing.T) {
	for word, valid := range map[string]bool{
		"Job": true, "StatefulSet:orphan": true, "Deployment.apps:orphan": true, "*": true, "*:orphan": true,
		"StatefulSet:orphn": false, "StatefulSet:": false, ":orphan": false, "": false, "StatefulSet:recreate": false,
	} {
		if err := CheckRecreate([]string{"Job", word}); (err == nil) != valid {
			t.Errorf("%q: %v", word, err)
		}
	}
}
