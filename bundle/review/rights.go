package review

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/plan"
)

// Who may do more than before.

const rbac = "rbac.authorization.k8s.io"

// wherever is the scope of a ClusterRole that RoleBindings outside of the change may give
// in one namespace, and ClusterRoleBindings in all.
const wherever = "*"

// grant is what somebody may do that he could not before.
type grant struct {
	subject string // "ServiceAccount shop/web"
	scope   string // the namespace, "" for the whole cluster
	all     []permission
	by      *Change
	// unknown names a role that could not be read.
	unknown string
}

// rights is about what a role gains, and who gains a role.
func (r *reviewer) rights(c *Change) {
	if c.ID.GroupKind.Group != rbac || c.After == nil {
		return
	}
	switch c.ID.GroupKind.Kind {
	case "Role", "ClusterRole":
		r.role(c)
	case "RoleBinding", "ClusterRoleBinding":
		r.binding(c)
	}
}

func (r *reviewer) role(c *Change) {
	if rule := bundle.At[map[string]any](c.After.Object, "aggregationRule"); rule != nil {
		if !reflect.DeepEqual(rule, bundle.At[map[string]any](content(c.Before), "aggregationRule")) {
			r.unchecked("what "+plain(c.ID)+" allows", "the server fills it from other roles", Rights)
		}
		return
	}
	before := permissions(content(c.Before))
	gained := slices.DeleteFunc(permissions(c.After.Object), func(p permission) bool {
		return slices.ContainsFunc(before, func(b permission) bool { return b.covers(p) })
	})
	if len(gained) == 0 {
		return
	}
	var into []string
	for label := range c.After.GetLabels() {
		if to, ok := strings.CutPrefix(label, rbac+"/aggregate-to-"); ok && c.After.GetLabels()[label] == "true" {
			into = append(into, to)
		}
	}
	slices.Sort(into)
	for _, to := range into {
		subject := "whoever has ClusterRole " + to
		if !slices.Contains([]string{"admin", "edit", "view"}, to) && r.at[bundle.ID{GroupKind: c.ID.GroupKind, Name: to}] == nil {
			subject += " (not a default ClusterRole: perhaps there is none)"
		}
		r.grants = append(r.grants, grant{subject: subject, scope: wherever, all: gained, by: c})
	}
	bound := false
	for _, b := range r.changes {
		if !isBinding(b.ID) || b.Action == plan.Pruned || roleOf(b) != c.ID {
			continue
		}
		bound = true
		before := subjects(b.Before, b.ID.Namespace) // those who come are the binding's own
		for _, s := range subjects(latest(b), b.ID.Namespace) {
			if slices.Contains(before, s) {
				r.grants = append(r.grants, grant{subject: s, scope: b.ID.Namespace, all: gained, by: c})
			}
		}
	}
	if !bound && len(into) == 0 {
		r.grants = append(r.grants, grant{subject: "whoever is bound to " + plain(c.ID), scope: cmp.Or(c.ID.Namespace, wherever), all: gained, by: c})
	}
}

func isBinding(id bundle.ID) bool {
	return id.GroupKind.Group == rbac && strings.HasSuffix(id.GroupKind.Kind, "Binding")
}

// latest is an object as it will be, or as it is where that is not known.
func latest(c *Change) *unstructured.Unstructured { return cmp.Or(c.After, c.Before) }

// roleOf is the role that a binding gives.
func roleOf(c *Change) bundle.ID {
	ref := bundle.At[map[string]any](content(latest(c)), "roleRef")
	id := bundle.ID{GroupKind: schema.GroupKind{Group: rbac, Kind: bundle.At[string](ref, "kind")}, Name: bundle.At[string](ref, "name")}
	if id.GroupKind.Kind == "Role" {
		id.Namespace = c.ID.Namespace
	}
	return id
}

// given is what the role of a binding permits, where that is known.
func (r *reviewer) given(c *Change) (all []permission, known bool) {
	id := roleOf(c)
	role := r.cluster.Found[id]
	if at, ok := r.at[id]; ok && at.Action != plan.Pruned {
		role = latest(at)
	}
	switch {
	case role != nil:
		all = permissions(role.Object)
		return all, len(all) > 0 || bundle.At[map[string]any](role.Object, "aggregationRule") == nil // else the server is to fill it
	case id.Name == "cluster-admin":
		return []permission{{verb: "*", group: "*", resource: "*"}}, true
	}
	return nil, false
}

func (r *reviewer) binding(c *Change) {
	gained := gainers(c)
	if len(gained) == 0 {
		return
	}
	g := grant{scope: c.ID.Namespace, by: c}
	var known bool
	if g.all, known = r.given(c); !known {
		g.unknown = plain(roleOf(c))
	}
	for _, g.subject = range gained {
		r.grants = append(r.grants, g)
	}
}

// gainers are the subjects that a binding gets: all of them, where it gives another role.
func gainers(c *Change) []string {
	before := subjects(c.Before, c.ID.Namespace)
	if c.Before != nil && roleOf(c) != roleOf(&Change{ID: c.ID, Before: c.Before}) {
		before = nil
	}
	return slices.DeleteFunc(subjects(c.After, c.ID.Namespace), func(s string) bool { return slices.Contains(before, s) })
}

// widened are the rights that everybody gains, a Risk for each subject.
func (r *reviewer) widened() {
	for subject, grants := range bundle.GroupBy(r.grants, func(g grant) string { return g.subject }).All() {
		r.found = append(r.found, wider(subject, grants))
	}
}

// wider is all that somebody gains, the cluster before the namespaces.
func wider(subject string, grants []grant) Risk {
	risk := Risk{Type: Rights, Subject: subject, Severe: slices.Contains(everybody, subject)}
	for _, g := range grants {
		if o := bundle.ReferTo(g.by.ID); !slices.Contains(risk.Objects, o) {
			risk.Objects = append(risk.Objects, o)
		}
	}
	scopes := sets.List(bundle.SetOf(grants, func(g grant) string { return g.scope }))
	var texts, lesser []string
	for _, scope := range scopes {
		where := "in the whole cluster"
		switch scope {
		case "":
		case wherever:
			where = "wherever it is bound"
		default:
			where = "in namespace " + scope
		}
		all, unknown := within(grants, scope)
		lines := sentences(all)
		text, severe, weight := notable(all, scope == "" || scope == wherever || scope == "kube-system")
		if len(unknown) > 0 {
			text, severe = strings.TrimPrefix(text+"; ", "; ")+"do all that "+strings.Join(unknown, ", ")+" allows, which is not known here", true
			weight += heaviest
		}
		risk.Severe, risk.weight = risk.Severe || severe, max(risk.weight, weight)
		if text != "" {
			texts = append(texts, where+": "+text)
		} else if len(lines) > 0 {
			lesser = append(lesser, where+": "+bundle.Some(lines, 1))
		}
		if text == "" && len(lines) == 1 && len(scopes) == 1 {
			continue // the text says it
		}
		for _, line := range lines {
			if len(scopes) > 1 {
				line = where + ": " + line
			}
			risk.Details = append(risk.Details, line)
		}
	}
	if len(texts) == 0 {
		texts, lesser = lesser, nil
	}
	if risk.Text = "may " + strings.Join(texts, "; "); len(lesser) > 0 {
		risk.Text += ", and has lesser rights"
	}
	return risk
}

// within are the rights that are granted in one scope, and the roles of which they are
// not known.
func within(grants []grant, scope string) (all []permission, unknown []string) {
	for _, g := range grants {
		if g.scope != scope {
			continue
		}
		all = append(all, g.all...)
		if g.unknown != "" && !slices.Contains(unknown, g.unknown) {
			unknown = append(unknown, g.unknown)
		}
	}
	return all, unknown
}

// everybody are subjects that nobody should give rights to unawares.
var everybody = []string{"Group system:authenticated", "Group system:unauthenticated", "Group system:serviceaccounts", "User system:anonymous"}

// subjects are those of a binding: "ServiceAccount ns/name", "Group system:masters".
func subjects(u *unstructured.Unstructured, namespace string) []string {
	var found []string
	for _, s := range bundle.Items[map[string]any](content(u), "subjects") {
		name := bundle.At[string](s, "name")
		if kind := bundle.At[string](s, "kind"); kind == "ServiceAccount" {
			namespace = cmp.Or(bundle.At[string](s, "namespace"), namespace)
			name = namespace + "/" + name
		}
		found = append(found, bundle.At[string](s, "kind")+" "+name)
	}
	return found
}

// rankOf puts severe risks first, and of these what leads to most.
func rankOf(r Risk) int {
	if r.Severe {
		return -r.weight - 2*heaviest
	}
	return -r.weight
}

// plain names an object. Kinds of Kubernetes itself go without their group.
func plain(id bundle.ID) string {
	if bundle.IsBuiltIn(id.GroupKind.Group) {
		id.GroupKind.Group = ""
	}
	return bundle.Name(id)
}
