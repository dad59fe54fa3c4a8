package order

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// maps of one object each, which need those whose numbers they are given.
func chained(needs ...[]int) []*bundle.Object {
	objs := make([]*bundle.Object, len(needs))
	for i := range needs {
		objs[i] = plain(bundle.ConfigMapKind, "", fmt.Sprintf("c%d", i))
		objs[i].Source = bundle.Source{File: "c.yaml", Line: i + 1}
	}
	for i, on := range needs {
		for _, n := range on {
			objs[i].Requisites = append(objs[i].Requisites, bundle.Requisite{On: objs[n].ID, Reason: "require"})
		}
	}
	return objs
}

func plain(gk schema.GroupKind, namespace, name string) *bundle.Object {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gk.WithVersion("v1"))
	u.SetNamespace(namespace)
	u.SetName(name)
	return &bundle.Object{
		ID:      bundle.ID{GroupKind: gk, Namespace: namespace, Name: name},
		GVK:     gk.WithVersion("v1"),
		Content: u,
	}
}

func TestExplicitCyclesAreNamedInFull(t *testing.T) {
	tests := []struct {
		name    string
		objs    []*bundle.Object
		cycles  []string // what each problem says, after "cycle: "
		invalid []int
	}{
		{
			"three in a cycle, with one before and one behind",
			chained([]int{1}, []int{2}, []int{3}, []int{1, 4}, nil),
			[]string{"ConfigMap c1 at c.yaml:2 needs ConfigMap c2 at c.yaml:3 (require), which needs ConfigMap c3 at c.yaml:4 (require), which needs ConfigMap c1 at c.yaml:2 (require)"},
			[]int{1, 2, 3},
		},
		{
			"two apart",
			chained([]int{1}, []int{0}, []int{3}, []int{2}),
			[]string{
				"ConfigMap c0 at c.yaml:1 needs ConfigMap c1 at c.yaml:2 (require), which needs ConfigMap c0 at c.yaml:1 (require)",
				"ConfigMap c2 at c.yaml:3 needs ConfigMap c3 at c.yaml:4 (require), which needs ConfigMap c2 at c.yaml:3 (require)",
			},
			[]int{0, 1, 2, 3},
		},
		{
			"two that share an object",
			chained([]int{1, 2}, []int{0}, []int{0}),
			[]string{
				"ConfigMap c0 at c.yaml:1 needs ConfigMap c1 at c.yaml:2 (require), which needs ConfigMap c0 at c.yaml:1 (require)",
				"ConfigMap c0 at c.yaml:1 needs ConfigMap c2 at c.yaml:3 (require), which needs ConfigMap c0 at c.yaml:1 (require)",
			},
			[]int{0, 1, 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, problems := Build(tt.objs, Options{})
			sound(t, g)
			var cycles []string
			for _, p := range problems {
				_, cycle, _ := strings.Cut(p.Message, "cycle: ")
				cycles = append(cycles, strings.TrimSuffix(cycle, "; remove one of these dependencies"))
			}
			if !slices.Equal(cycles, tt.cycles) {
				t.Errorf("cycles\n%s\nwant\n%s", strings.Join(cycles, "\n"), strings.Join(tt.cycles, "\n"))
			}
			if !slices.Equal(g.Invalid, tt.invalid) {
				t.Errorf("invalid %v, want %v", g.Invalid, tt.invalid)
			}
			if len(g.Dropped) > 0 {
				t.Errorf("explicit edges are among the dropped ones: %v", g.Dropped)
			}
		})
	}
}

func TestManyExplicitCyclesAreBounded(t *testing.T) {
	all := make([]int, 60)
	for i := range all {
		all[i] = i
	}
	needs := make([][]int, len(all))
	for i := range needs {
		needs[i] = slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n == i })
	}
	g, problems := Build(chained(needs...), Options{})
	sound(t, g)
	if len(problems) != maxRounds+1 {
		t.Errorf("%d problems, want %d cycles and one that counts the others", len(problems), maxRounds)
	}
	if len(g.Invalid) != len(all) {
		t.Errorf("%d objects are invalid, want all %d", len(g.Invalid), len(all))
	}
}

func TestTheWeakestTierGivesWay(t *testing.T) {
	runGraphs(t, []graphCase{{
		name: "an explicit edge beats the namespace, for the one object that is in the way",
		in: `
{apiVersion: v1, kind: Namespace, metadata: {name: ns, annotations: {config.kubernetes.io/depends-on: /namespaces/ns/ConfigMap/a}}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}}`,
		want: `
			Namespace ns
			  ready ConfigMap ns/a !: depends-on annotation
			ConfigMap ns/b
			  applied Namespace ns: namespace ns
			dropped: ConfigMap ns/a
			  applied Namespace ns: namespace ns`,
	}, {
		name: "the operator's own resource does not wait for it: what pods mount beats who acts",
		in: `
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: own, namespace: ns}, spec: {secretName: own-tls}}
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: other, namespace: ns}, spec: {secretName: other-tls}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cm, namespace: ns}, spec: {template: {spec: {containers: [{name: c}], volumes: [{name: v, secret: {secretName: own-tls}}]}}}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: cm}, roleRef: {kind: ClusterRole, name: cm}, subjects: [{kind: ServiceAccount, name: default, namespace: ns}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cm}, rules: [{apiGroups: [cert-manager.io], resources: ["*"], verbs: ["*"]}]}`,
		want: `
			Certificate.cert-manager.io ns/other
			  applied Deployment.apps ns/cm: operator of cert-manager.io
			Deployment.apps ns/cm
			  applied Certificate.cert-manager.io ns/own: mounts Secret own-tls made by Certificate own
			  applied ClusterRoleBinding.rbac.authorization.k8s.io cm: rights of ServiceAccount default
			ClusterRoleBinding.rbac.authorization.k8s.io cm
			  applied ClusterRole.rbac.authorization.k8s.io cm: grants ClusterRole cm
			dropped: Certificate.cert-manager.io ns/own
			  applied Deployment.apps ns/cm: operator of cert-manager.io`,
	}})
}

func TestSortedKeepsTheTextsOrderAndCriticalPathCounts(t *testing.T) {
	g, problems := Build(chained(nil, []int{3}, nil, []int{5}, []int{0}, nil), Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if want := []int{0, 2, 4, 5, 3, 1}; !slices.Equal(g.Sorted, want) {
		t.Errorf("sorted %v, want %v", g.Sorted, want)
	}
	if got, want := g.CriticalPath(), []int{1, 0, 0, 1, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("critical path %v, want %v", got, want)
	}
}

// FuzzBuild makes objects of kinds that get all tiers of edges between them,
// and explicit edges at random. Whatever comes: no cycle, and no explicit edge
// is lost unless a problem says so.
func FuzzBuild(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{0, 1, 1, 0})
	f.Add([]byte{3, 3, 3, 8, 8, 1, 1, 6, 7, 5, 4}, []byte{5, 2, 2, 7, 7, 5, 9, 1, 1, 9})
	f.Add([]byte("a webhook, its backend and an operator"), []byte("some explicit edges"))
	f.Fuzz(func(t *testing.T, kinds, explicitEdges []byte) {
		objs := random(kinds)
		if len(objs) == 0 {
			return
		}
		for i := 0; i+1 < len(explicitEdges); i += 2 {
			from, to := objs[int(explicitEdges[i])%len(objs)], objs[int(explicitEdges[i+1])%len(objs)]
			if from != to {
				from.Requisites = append(from.Requisites, bundle.Requisite{On: to.ID, Reason: "require"})
			}
		}
		g, problems := Build(objs, Options{})
		sound(t, g)
		for _, e := range g.Dropped {
			if !e.Weak {
				t.Fatalf("an explicit edge was dropped: %s", line(g, e))
			}
		}
		if len(problems) > 0 {
			if len(g.Invalid) == 0 {
				t.Fatalf("problems %v, but no object is invalid", problems)
			}
			return
		}
		for i, o := range objs {
			for _, r := range o.Requisites {
				if !slices.ContainsFunc(g.Needs[i], func(e Edge) bool { return !e.Weak && e.Want == Ready && objs[e.To].ID == r.On }) {
					t.Fatalf("%s lost its need of %s", bundle.Name(o.ID), bundle.Name(r.On))
				}
			}
		}
	})
}

// random makes an object of each byte.
func random(kinds []byte) []*bundle.Object {
	objs := make([]*bundle.Object, 0, len(kinds))
	for i, k := range kinds {
		ns, name := fmt.Sprintf("ns%d", k/16%3), fmt.Sprintf("o%d", i)
		at := func(n int) string { return fmt.Sprintf("o%d", (int(k)+n)%len(kinds)) }
		var o *bundle.Object
		set := func(v any, path ...string) {
			if err := unstructured.SetNestedField(o.Content.Object, v, path...); err != nil {
				panic(err)
			}
		}
		switch k % 9 {
		case 0:
			o = plain(bundle.NamespaceKind, "", ns)
		case 1:
			o = plain(bundle.ConfigMapKind, ns, name)
		case 2:
			o = plain(bundle.ServiceKind, ns, name)
			set("x", "spec", "selector", "app")
		case 3:
			o = plain(schema.GroupKind{Group: "apps", Kind: "Deployment"}, ns, name)
			set("x", "spec", "template", "metadata", "labels", "app")
			set(at(1), "spec", "template", "spec", "serviceAccountName")
			set([]any{map[string]any{"name": "c"}}, "spec", "template", "spec", "containers")
			set([]any{map[string]any{"secret": map[string]any{"secretName": at(3)}}}, "spec", "template", "spec", "volumes")
		case 4:
			o = plain(bundle.CRDKind, "", "certificates.cert-manager.io")
			set("cert-manager.io", "spec", "group")
			set("Certificate", "spec", "names", "kind")
			set("certificates", "spec", "names", "plural")
			set("Webhook", "spec", "conversion", "strategy")
			set(map[string]any{"name": at(2), "namespace": ns}, "spec", "conversion", "webhook", "clientConfig", "service")
		case 5:
			o = plain(schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}, ns, name)
			set(at(3), "spec", "secretName")
		case 6:
			o = plain(schema.GroupKind{Group: admissionGroup, Kind: "MutatingWebhookConfiguration"}, "", name)
			set([]any{map[string]any{
				"clientConfig": map[string]any{"service": map[string]any{"name": at(5), "namespace": ns}},
				"rules":        []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "operations": []any{"*"}}},
			}}, "webhooks")
		case 7:
			o = plain(clusterRoleBindingKind, "", name)
			set(map[string]any{"kind": "ClusterRole", "name": at(4)}, "roleRef")
			set([]any{map[string]any{"kind": "ServiceAccount", "name": at(1), "namespace": ns}}, "subjects")
		case 8:
			o = plain(clusterRoleKind, "", name)
			set([]any{map[string]any{"apiGroups": []any{"cert-manager.io"}, "resources": []any{"*"}, "verbs": []any{"*"}}}, "rules")
		}
		if !slices.ContainsFunc(objs, func(p *bundle.Object) bool { return p.ID == o.ID }) {
			objs = append(objs, o)
		}
	}
	return objs
}
