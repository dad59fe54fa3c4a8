package order

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
)

// edges are a graph's edges as text, sorted, whatever the order of the objects.
func edges(g *Graph) []string {
	var all []string
	for i := range g.Objects {
		for _, e := range g.Needs[i] {
			all = append(all, line(g, e))
		}
	}
	for _, e := range g.Dropped {
		all = append(all, "dropped "+line(g, e))
	}
	slices.Sort(all)
	return all
}

func line(g *Graph, e Edge) string {
	return bundle.Name(g.Objects[e.From].ID) + " -> " + e.Want.String() + " " + bundle.Name(g.Objects[e.To].ID) + ": " + e.Reason
}

func TestRealBundles(t *testing.T) {
	const crd = "CustomResourceDefinition.apiextensions.k8s.io "
	tests := map[string][]string{
		"metalk8s-new": {
			"ServiceMonitor.monitoring.coreos.com metalk8s-certs/cert-manager -> ready " + crd + "servicemonitors.monitoring.coreos.com: defined by CustomResourceDefinition servicemonitors.monitoring.coreos.com",
			"ValidatingWebhookConfiguration.admissionregistration.k8s.io cert-manager-webhook -> ready Deployment.apps metalk8s-certs/cert-manager-webhook: backend of Service cert-manager-webhook",
			"MutatingWebhookConfiguration.admissionregistration.k8s.io cert-manager-webhook -> ready Deployment.apps metalk8s-certs/cert-manager-webhook: backend of Service cert-manager-webhook",
			"Deployment.apps metalk8s-certs/cert-manager -> ready " + crd + "issuers.cert-manager.io: watches issuers.cert-manager.io",
			"Deployment.apps metalk8s-auth/dex -> applied ClusterRoleBinding.rbac.authorization.k8s.io dex-cluster: rights of ServiceAccount dex",
			"StatefulSet.apps metalk8s-logging/loki -> applied StorageClass.storage.k8s.io metalk8s: of StorageClass metalk8s",
			"StatefulSet.apps metalk8s-logging/loki -> applied Service metalk8s-logging/loki-headless: its pods are named by Service loki-headless",
			"StatefulSet.apps metalk8s-logging/loki -> applied ConfigMap metalk8s-logging/loki-runtime: mounts ConfigMap loki-runtime",
			"Ingress.networking.k8s.io metalk8s-auth/dex -> applied IngressClass.networking.k8s.io nginx-control-plane: of IngressClass nginx-control-plane",
		},
		"metalk8s-old": {
			"ServiceMonitor.monitoring.coreos.com metalk8s-logging/loki -> ready " + crd + "servicemonitors.monitoring.coreos.com: defined by CustomResourceDefinition servicemonitors.monitoring.coreos.com",
			"PersistentVolume metalk8s-loki-0 -> applied StorageClass.storage.k8s.io metalk8s: of StorageClass metalk8s",
		},
		"unready": {
			"APIService.apiregistration.k8s.io v1beta1.metrics.k8s.io -> ready Deployment.apps metalk8s-monitoring/prometheus-adapter: backend of Service prometheus-adapter",
			"APIService.apiregistration.k8s.io v1beta1.metrics.k8s.io -> applied Service metalk8s-monitoring/prometheus-adapter: backend Service prometheus-adapter",
		},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			objs := folder(t, name)
			g, problems := Build(objs, Options{})
			if len(problems) > 0 || len(g.Notices) > 0 || len(g.Dropped) > 0 {
				t.Errorf("problems %v, notices %v, dropped %v", problems, g.Notices, g.Dropped)
			}
			sound(t, g)
			all := edges(g)
			for _, e := range want {
				if _, ok := slices.BinarySearch(all, e); !ok {
					t.Errorf("no edge %s", e)
				}
			}
			for round := range uint64(5) {
				shuffled := slices.Clone(objs)
				rand.New(rand.NewPCG(1, round)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				h, _ := Build(shuffled, Options{})
				if got := edges(h); !slices.Equal(got, all) {
					t.Fatalf("shuffled input gives other edges:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
				}
			}
		})
	}
}

// sound checks what has to hold for every graph: the order has each object
// once and after all that it needs; both directions say the same.
func sound(t testing.TB, g *Graph) {
	t.Helper()
	at := make(map[int]int, len(g.Sorted))
	for n, i := range g.Sorted {
		at[i] = n
	}
	if len(at) != len(g.Objects) || len(g.Sorted) != len(g.Objects) {
		t.Fatalf("sorted has %d of %d objects: there is a cycle", len(at), len(g.Objects))
	}
	back := map[Edge]bool{}
	for i, edges := range g.Dependents {
		for _, e := range edges {
			if e.To != i || back[e] {
				t.Fatalf("edge %s is in the wrong place or there twice", line(g, e))
			}
			back[e] = true
		}
	}
	needs := 0
	for i, edges := range g.Needs {
		needs += len(edges)
		for _, e := range edges {
			if e.From != i || at[e.To] >= at[i] || !back[e] {
				t.Fatalf("edge %s is out of order or has no way back", line(g, e))
			}
		}
	}
	if needs != len(back) {
		t.Fatalf("%d edges one way, %d the other", needs, len(back))
	}
}
