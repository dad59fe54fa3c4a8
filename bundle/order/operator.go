package order

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// An operator is a workload that acts on custom resources. Nothing declares it in
// its manifest but its rights: its roles name the resources' group and let it
// change them, or their status or finalizers. Who may only create them is a
// client, and roles with "*" for a group are ignored.

// grant is a role's rule for a custom resource; resource "*" is all of its
// group's.
type grant struct {
	resource schema.GroupResource
	acts     bool
}

// roleGrants are the grants of each role, with the parts that are aggregated into
// it.
func (b *builder) roleGrants(parts map[int][]int) map[int][]grant {
	all := map[int][]grant{}
	for _, role := range slices.Concat(b.byKind[roleKind], b.byKind[clusterRoleKind]) {
		for _, i := range append([]int{role}, parts[role]...) {
			for _, rule := range bundle.Items[map[string]any](content(b.objs[i]), "rules") {
				all[role] = append(all[role], b.ruleGrants(rule)...)
			}
		}
	}
	return all
}

func (b *builder) ruleGrants(rule map[string]any) []grant {
	verbs := bundle.Items[string](rule, "verbs")
	has := func(some ...string) bool {
		return slices.ContainsFunc(verbs, func(v string) bool { return slices.Contains(some, v) })
	}
	acts := has("update", "patch", "delete", "deletecollection", "*")
	if !acts && !has("watch", "list") {
		return nil
	}
	var all []grant
	for _, group := range bundle.Items[string](rule, "apiGroups") {
		if !b.custom(group) {
			continue
		}
		for _, resource := range bundle.Items[string](rule, "resources") {
			b.steps++
			resource, _, _ = strings.Cut(resource, "/")
			all = append(all, grant{schema.GroupResource{Group: group, Resource: resource}, acts})
		}
	}
	return all
}

// custom reports whether a group is one of CRDs: the bundle defines it, or its
// name is not one that Kubernetes keeps for itself.
func (b *builder) custom(group string) bool {
	return len(b.defined[group]) > 0 || !bundle.IsBuiltIn(group)
}

// operators puts the CRDs before the workloads that watch their resources, and
// records in acts who acts on them.
func (b *builder) operators(acts map[schema.GroupResource][]int, workloads []int, grants []grant) {
	merged := map[schema.GroupResource]bool{}
	for _, g := range grants {
		b.steps++
		merged[g.resource] = merged[g.resource] || g.acts
	}
	for resource, does := range merged {
		if does {
			acts[resource] = append(acts[resource], workloads...)
		}
		for _, c := range b.defined[resource.Group] {
			if resource.Resource != "*" && resource.Resource != c.plural {
				continue
			}
			for _, w := range workloads {
				if !b.pair("CRDs and the workloads that watch them") {
					return
				}
				b.need(w, c.object, Ready, rights, "watches "+c.plural+"."+resource.Group)
			}
		}
	}
}

// operated puts custom resources after their operators, so that an operator
// still runs when they are deleted and can take its finalizers off.
func (b *builder) operated(acts map[schema.GroupResource][]int) {
	if len(acts) == 0 {
		return
	}
	for i, o := range b.objs {
		group := o.ID.GroupKind.Group
		if !b.custom(group) {
			continue
		}
		for _, resource := range []string{b.plural(o.ID.GroupKind), "*"} {
			for _, w := range acts[schema.GroupResource{Group: group, Resource: resource}] {
				if !b.pair("custom resources and their operators") {
					return
				}
				b.need(i, w, Applied, operator, "operator of "+group)
			}
		}
	}
}
