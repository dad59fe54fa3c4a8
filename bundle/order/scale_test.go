package order

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// large makes n objects as bundles have them: per ten, a namespace with a
// workload, its account, binding, settings, network policy and a custom
// resource; and five webhooks that judge everything.
func large(t testing.TB, n int) []*bundle.Object {
	set := func(o *bundle.Object, v any, path ...string) {
		if err := unstructured.SetNestedField(o.Content.Object, v, path...); err != nil {
			t.Fatal(err)
		}
	}
	thing := plain(bundle.CRDKind, "", "things.example.com")
	set(thing, "example.com", "spec", "group")
	set(thing, "Thing", "spec", "names", "kind")
	objs := []*bundle.Object{thing}
	for i := range 5 {
		w := plain(schema.GroupKind{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"}, "", fmt.Sprintf("w%d", i))
		set(w, []any{map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{"*"}, "resources": []any{"*/*"}, "operations": []any{"*"},
		}}}}, "webhooks")
		objs = append(objs, w)
	}
	for i := 0; len(objs) < n; i++ {
		ns := fmt.Sprintf("ns%d", i)
		d := plain(schema.GroupKind{Group: "apps", Kind: "Deployment"}, ns, "app")
		set(d, "app", "spec", "template", "metadata", "labels", "app")
		set(d, "app", "spec", "template", "spec", "serviceAccountName")
		set(d, []any{map[string]any{"name": "c", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "c0"}}}}},
			"spec", "template", "spec", "containers")
		b := plain(roleBindingKind, ns, "app")
		set(b, map[string]any{"kind": "Role", "name": "app"}, "roleRef")
		set(b, []any{map[string]any{"kind": "ServiceAccount", "name": "app", "namespace": ns}}, "subjects")
		p := plain(networkPolicyKind, ns, "app")
		set(p, "app", "spec", "podSelector", "matchLabels", "app")
		objs = append(objs, d, b, p, plain(bundle.NamespaceKind, "", ns), plain(bundle.ServiceAccountKind, ns, "app"), plain(roleKind, ns, "app"),
			plain(schema.GroupKind{Group: "example.com", Kind: "Thing"}, ns, "t"))
		for c := range 3 {
			objs = append(objs, plain(bundle.ConfigMapKind, ns, fmt.Sprintf("c%d", c)))
		}
	}
	return objs[:n]
}

// steps builds a graph and counts what that took.
func steps(t *testing.T, objs []*bundle.Object) (steps, edges int, g *Graph) {
	t.Helper()
	g, problems, steps := build(objs, Options{})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for _, needs := range g.Needs {
		edges += len(needs)
	}
	return steps, edges, g
}

func TestOperationsGrowAsObjectsDo(t *testing.T) {
	small, _, _ := steps(t, large(t, 5_000))
	objs := large(t, 20_000)
	big, edges, g := steps(t, objs)
	if len(g.Sorted) != len(objs) || len(g.Notices) > 0 {
		t.Fatalf("%d of %d sorted, notices %v", len(g.Sorted), len(objs), g.Notices)
	}
	t.Logf("%d objects, %d edges, %d operations", len(objs), edges, big)
	if big > 5*small {
		t.Errorf("four times the objects took %d operations after %d", big, small)
	}
	if limit := 10 * (len(objs) + edges); big > limit {
		t.Errorf("%d operations for %d objects and %d edges, want at most %d", big, len(objs), edges, limit)
	}
}

func TestManyTimesManyIsBoundedAndTold(t *testing.T) {
	var objs []*bundle.Object
	for i := range 3_000 {
		pod := plain(schema.GroupKind{Kind: "Pod"}, "ns", fmt.Sprintf("p%d", i))
		objs = append(objs, pod, plain(networkPolicyKind, "ns", fmt.Sprintf("p%d", i)))
		if err := unstructured.SetNestedField(pod.Content.Object, "c", "spec", "nodeName"); err != nil {
			t.Fatal(err)
		}
	}
	took, edges, g := steps(t, objs)
	sound(t, g)
	if limit := 30 * (20_000 + 20*len(objs)); took > limit || edges == 0 {
		t.Errorf("%d operations, %d edges; want at most %d, and some", took, edges, limit)
	}
	if len(g.Notices) != 1 {
		t.Errorf("notices %v, want one that says what was left out", g.Notices)
	}
}

func TestBadShapesDoNotPanic(t *testing.T) {
	junk := []any{nil, "s", int64(1), true, []any{nil, "x", []any{}}, map[string]any{"": nil, "name": int64(3)}}
	kinds := []schema.GroupKind{
		{Kind: "Pod"}, {Group: "batch", Kind: "CronJob"}, bundle.StatefulSetKind, bundle.PersistentVolumeClaimKind, bundle.PersistentVolumeKind, networkPolicyKind,
		clusterRoleKind, clusterRoleBindingKind, bundle.CRDKind, bundle.APIServiceKind, ingressKind, bundle.HorizontalPodAutoscalerKind, bundle.ServiceKind, bundle.SecretKind,
		{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"}, {Group: admissionGroup, Kind: "ValidatingAdmissionPolicyBinding"},
	}
	var objs []*bundle.Object
	for _, gk := range kinds {
		for i, j := range junk {
			o := plain(gk, "ns", fmt.Sprintf("o%d", i))
			for _, field := range []string{"spec", "webhooks", "rules", "subjects", "roleRef", "aggregationRule", "imagePullSecrets"} {
				o.Content.Object[field] = j
			}
			objs = append(objs, o)
			p := plain(gk, "ns", fmt.Sprintf("p%d", i))
			p.Content.Object["metadata"] = j
			p.Content.Object["spec"] = map[string]any{"template": j, "containers": j, "podSelector": j, "names": j, "group": j, "service": j, "volumes": j}
			objs = append(objs, p)
		}
	}
	objs = append(objs, &bundle.Object{}, &bundle.Object{})
	g, _ := Build(objs, Options{})
	if g == nil || len(g.Sorted) != len(objs) {
		t.Error("not all objects are in the order")
	}
	if g, problems := Build(nil, Options{}); len(g.Sorted) != 0 || len(problems) != 0 {
		t.Errorf("nothing in, %v and %v out", g.Sorted, problems)
	}
	if !slices.IsSorted(g.Invalid) {
		t.Error("invalid objects are not ascending")
	}
}

func BenchmarkBuild(b *testing.B) {
	objs := large(b, 50_000)
	b.ReportAllocs()
	for b.Loop() {
		Build(objs, Options{})
	}
}
