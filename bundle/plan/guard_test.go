package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"brine/bundle"
	"brine/bundle/order"
	"brine/inventory"
)

// object reads one object.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return u
}

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

func TestGuard(t *testing.T) {
	const owned = "annotations: {config.k8s.io/owning-inventory: inv}"
	theirs := Contents{Unmanaged: []string{"Secret held/theirs"}}
	blind := Contents{Unknown: []string{"secrets (no right to list them)"}}
	for _, c := range []struct {
		name, live string
		holds      Contents
		guard      func(*Guard)
		want       string
	}{
		{"ours", mine(owned), Contents{}, nil, "pruned"},
		{"nobody's", mine("labels: {}"), Contents{}, nil, "detached: its annotation config.k8s.io/owning-inventory is gone"},
		{"another inventory's", mine("annotations: {config.k8s.io/owning-inventory: other}"), Contents{}, nil, `detached: it belongs to inventory "other"`},
		{"kept by cli-utils' annotation", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: keep}"), Contents{}, nil, "detached: cli-utils.sigs.k8s.io/on-remove: keep"},
		{"kept by the lifecycle's annotation", mine("annotations: {config.k8s.io/owning-inventory: inv, client.lifecycle.config.k8s.io/deletion: detach}"), Contents{}, nil, "detached: client.lifecycle.config.k8s.io/deletion: detach"},
		{"an annotation that says something else", mine("annotations: {config.k8s.io/owning-inventory: inv, cli-utils.sigs.k8s.io/on-remove: delete}"), Contents{}, nil, "pruned"},
		{"a controller's", mine(owned + ", ownerReferences: [{kind: Owner, name: o, uid: o, controller: true}]"), Contents{}, nil, "detached: it is controlled by Owner o"},
		{"owned, not controlled", mine(owned + ", ownerReferences: [{kind: Owner, name: o, uid: o}]"), Contents{}, nil, "pruned"},
		{"wanted absent", mine("labels: {}"), Contents{}, func(g *Guard) { g.Absent = map[bundle.ID]bool{idOf(object(t, mine(owned))): true} }, "pruned: the bundle wants it absent"},
		{"wanted absent and kept", mine("annotations: {cli-utils.sigs.k8s.io/on-remove: keep}"), Contents{}, func(g *Guard) { g.Absent = map[bundle.ID]bool{idOf(object(t, mine(owned))): true} }, "detached"},
		{"wanted absent and another's", mine("annotations: {config.k8s.io/owning-inventory: other}"), Contents{}, func(g *Guard) { g.Absent = map[bundle.ID]bool{idOf(object(t, mine(owned))): true} }, "detached"},
		{"the same object under another group", mine(owned), Contents{}, func(g *Guard) { g.Same = map[types.UID]bundle.ID{"u": {Name: "twin"}} }, "detached shared"},
		{"--no-prune", mine(owned), Contents{}, func(g *Guard) { g.Options.NoPrune = true }, "skipped: --no-prune"},
		{"an empty namespace", namespace, Contents{}, nil, "pruned"},
		{"a namespace in use", namespace, Contents{}, func(g *Guard) { g.Namespaces = map[string]string{"held": "Pod held/p"} }, "skipped: still in use by Pod held/p"},
		{"the inventory's namespace", namespace, Contents{}, func(g *Guard) { g.Home = "held" }, "skipped: it holds the inventory itself"},
		{"the inventory's namespace, destroyed", namespace, Contents{}, func(g *Guard) { g.Home, g.Options.Destroy = "held", true }, "pruned"},
		{"a namespace with unmanaged objects", namespace, theirs, nil, "skipped stays: contains objects outside this inventory: Secret held/theirs"},
		{"a namespace that cannot be read", namespace, blind, nil, "skipped stays: may contain objects outside this inventory: cannot read secrets (no right to list them)"},
		{"forced", namespace, theirs, func(g *Guard) { g.Options.ForceNamespaces = true }, "pruned"},
		{"forced blindly", namespace, blind, func(g *Guard) { g.Options.ForceNamespaces = true }, "pruned"},
		{"forced, and in use", namespace, theirs, func(g *Guard) {
			g.Options.ForceNamespaces, g.Namespaces = true, map[string]string{"held": "Pod held/p"}
		}, "skipped: still in use"},
		{"a namespace that is wanted absent", namespace, theirs, func(g *Guard) { g.Absent = map[bundle.ID]bool{idOf(object(t, namespace)): true} }, "skipped stays"},
		{"a CRD without resources", crd, Contents{}, nil, "pruned"},
		{"a CRD with unmanaged resources", crd, theirs, nil, "skipped stays: contains objects outside this inventory"},
		{"a CRD that cannot be read", crd, blind, nil, "skipped stays: may contain"},
		{"a CRD in use", crd, Contents{}, func(g *Guard) {
			g.Kinds = map[schema.GroupKind]string{{Group: "example.com", Kind: "Thing"}: "Thing.example.com a"}
		}, "skipped: still in use by Thing.example.com a"},
		{"contents of what holds nothing", mine(owned), theirs, nil, "pruned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Guard{Inventory: "inv", Home: "home"}
			if c.guard != nil {
				c.guard(g)
			}
			live := object(t, c.live)
			v := g.Decide(idOf(live), live, c.holds)
			got := string(v.Action)
			for word, is := range map[string]bool{" stays": v.Stays, " shared": v.Shared} {
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

// A plan is data in, steps out: each line of bundle, live and absent is an
// object; every live one that is not marked otherwise is a member.
type planCase struct {
	name                 string
	bundle, live, absent string
	gone                 []bundle.ID         // members that are not on the cluster
	unsure               map[string]string   // by the object's name
	holds                map[string]Contents // by the object's name
	options              Options
	want                 string
}

func lines(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, object(t, line))
		}
	}
	return all
}

func (c *planCase) input(t *testing.T) Input {
	t.Helper()
	inv := inventory.Empty("home", "inv", "inv")
	inv.Members = map[bundle.ID]inventory.Status{}
	in := Input{Inventory: inv, Live: map[bundle.ID]*unstructured.Unstructured{}, Unsure: map[bundle.ID]error{}, Contents: map[bundle.ID]Contents{}, Options: c.options}
	for i, u := range lines(t, c.live) {
		id := idOf(u)
		if why, unsure := c.unsure[u.GetName()]; unsure {
			in.Unsure[id] = fmt.Errorf("%s", why)
		} else {
			u.SetUID(types.UID(fmt.Sprint("uid-", i)))
			in.Live[id] = u
		}
		if _, unmanaged := u.GetLabels()["unmanaged"]; unmanaged {
			continue
		}
		inv.Members[id] = inventory.Status{}
		if u.GetAnnotations()[inventory.OwningInventory] == "" {
			inv.Brand(u)
		}
		if holds, ok := c.holds[u.GetName()]; ok {
			in.Contents[id] = holds
		}
	}
	for _, id := range c.gone {
		inv.Members[id] = inventory.Status{}
	}
	var objects []*bundle.Object
	for _, u := range lines(t, c.bundle) {
		objects = append(objects, &bundle.Object{ID: idOf(u), GVK: u.GroupVersionKind(), Content: u})
	}
	for _, u := range lines(t, c.absent) {
		in.Absent = append(in.Absent, &bundle.Absent{ID: idOf(u), GVK: u.GroupVersionKind()})
	}
	g, problems := order.Build(objects, order.Options{External: func(id bundle.ID) bool { _, ok := inv.Members[id]; return ok }})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	in.Graph = g
	return in
}

func print(p *Plan, problems []bundle.Problem) string {
	var out []string
	for _, problem := range problems {
		out = append(out, "refused: "+problem.Message)
	}
	if p == nil {
		return strings.Join(out, "\n")
	}
	for _, s := range p.Steps {
		line := string(s.Action) + " " + bundle.Name(s.ID)
		if s.Stays {
			line += " (stays)"
		}
		if s.Reason != "" {
			line += ": " + s.Reason
		}
		out = append(out, line)
	}
	forget := []string{}
	for _, id := range p.Forget {
		forget = append(forget, "forget "+bundle.Name(id))
	}
	slices.Sort(forget)
	return strings.Join(append(out, forget...), "\n")
}
