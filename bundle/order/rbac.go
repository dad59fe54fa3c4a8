package order

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

const rbacGroup = "rbac.authorization.k8s.io"

var (
	roleKind               = schema.GroupKind{Group: rbacGroup, Kind: "Role"}
	clusterRoleKind        = schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"}
	roleBindingKind        = schema.GroupKind{Group: rbacGroup, Kind: "RoleBinding"}
	clusterRoleBindingKind = schema.GroupKind{Group: rbacGroup, Kind: "ClusterRoleBinding"}
)

// rbac puts roles and accounts before bindings, bindings before the workloads
// that run with them, and finds the operators among those workloads.
func (b *builder) rbac() {
	aggregated := b.aggregatedRoles()
	bindings := map[nsName][]int{} // by ServiceAccount
	roles := map[int]int{}         // binding -> role
	for _, i := range slices.Concat(b.byKind[roleBindingKind], b.byKind[clusterRoleBindingKind]) {
		roles[i] = b.binding(i, bindings)
	}
	var runners bundle.Groups[nsName, int] // workloads, by ServiceAccount
	for _, w := range b.workloads {
		if account := (nsName{w.namespace, accountName(w.pod)}); len(bindings[account]) > 0 {
			runners.Add(account, w.object)
		}
	}
	acts := map[schema.GroupResource][]int{} // who acts on a custom resource
	granted := b.roleGrants(aggregated)
	for _, account := range runners.Keys {
		var grants []grant
		for _, i := range bindings[account] {
			grants = append(grants, granted[roles[i]]...)
			for _, from := range runners.Of[account] {
				if !b.pair("bindings and workloads") {
					break
				}
				b.need(from, i, Applied, rights, "rights of ServiceAccount "+account.name)
			}
		}
		b.operators(acts, runners.Of[account], grants)
	}
	b.operated(acts)
}

// binding adds what a binding names, records it for its accounts and returns
// its role (-1: not in the bundle).
func (b *builder) binding(i int, bindings map[nsName][]int) int {
	o := b.objs[i]
	ref := bundle.At[map[string]any](content(o), "roleRef")
	role := -1
	switch name := bundle.At[string](ref, "name"); bundle.At[string](ref, "kind") {
	case "Role":
		role = b.find(roleKind, o.ID.Namespace, name)
	case "ClusterRole":
		role = b.find(clusterRoleKind, "", name)
	}
	if role >= 0 {
		b.need(i, role, Applied, named, "grants "+b.named(role))
	}
	for _, s := range bundle.Items[map[string]any](content(o), "subjects") {
		if bundle.At[string](s, "kind") != "ServiceAccount" {
			continue
		}
		account := nsName{bundle.At[string](s, "namespace"), bundle.At[string](s, "name")}
		b.name(i, bundle.ServiceAccountKind, account.namespace, account.name, "grants to")
		if all := bindings[account]; len(all) == 0 || all[len(all)-1] != i {
			bindings[account] = append(all, i)
		}
	}
	return role
}

// aggregatedRoles are the parts of each ClusterRole that is put together by
// labels. The parts come first.
func (b *builder) aggregatedRoles() map[int][]int {
	parts := map[int][]int{}
	for _, i := range b.byKind[clusterRoleKind] {
		for _, s := range bundle.Items[map[string]any](content(b.objs[i]), "aggregationRule", "clusterRoleSelectors") {
			selector := labelSelector(s)
			if selector == nil {
				continue
			}
			for _, part := range b.byKind[clusterRoleKind] {
				if !b.pair("aggregated ClusterRoles and their parts") {
					break
				}
				if selector.Matches(b.labels(part)) {
					b.need(i, part, Applied, named, "aggregates "+b.named(part))
					parts[i] = append(parts[i], part)
				}
			}
		}
	}
	return parts
}
