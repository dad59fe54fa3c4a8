package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
)

const rbac = "rbac.authorization.k8s.io"

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
	if get[map[string]any](c.After.Object, "aggregationRule") != nil {
		return // the server fills it
	}
	before := permissions(content(c.Before))
	gained := slices.DeleteFunc(permissions(c.After.Object), func(p permission) bool {
		return slices.ContainsFunc(before, func(b permission) bool { return b.covers(p) })
	})
	if len(gained) == 0 {
		return
	}
	if c.Action != plan.Created {
		r.add(Rights, c, 0, sentences(gained), "gains rights%s", strong(gained))
		return
	}
	var into []string
	for label := range c.After.GetLabels() {
		if to, ok := strings.CutPrefix(label, rbac+"/aggregate-to-"); ok && c.After.GetLabels()[label] == "true" {
			into = append(into, to)
		}
	}
	slices.Sort(into)
	switch {
	case len(into) > 0:
		r.add(Rights, c, 0, sentences(gained), "new; its rights are added to ClusterRole %s%s", strings.Join(into, ", "), strong(gained))
	case !r.isBound(c.ID):
		r.add(Rights, c, 0, sentences(gained), "new; no binding of this change refers to it%s", strong(gained))
	}
}

// isBound says whether a binding of the change gives a role to somebody.
func (r *reviewer) isBound(role bundle.ID) bool {
	return slices.ContainsFunc(r.changes, func(c Change) bool {
		return c.After != nil && strings.HasSuffix(c.ID.GroupKind.Kind, "Binding") && roleOf(&c) == role
	})
}

// roleOf is the role that a binding gives.
func roleOf(c *Change) bundle.ID {
	ref := get[map[string]any](c.After.Object, "roleRef")
	id := bundle.ID{GroupKind: schema.GroupKind{Group: rbac, Kind: get[string](ref, "kind")}, Name: get[string](ref, "name")}
	if id.GroupKind.Kind == "Role" {
		id.Namespace = c.ID.Namespace
	}
	return id
}

func (r *reviewer) binding(c *Change) {
	before := subjects(c.Before, c.ID.Namespace)
	gained := slices.DeleteFunc(subjects(c.After, c.ID.Namespace), func(s string) bool { return slices.Contains(before, s) })
	if len(gained) == 0 {
		return
	}
	role := roleOf(c)
	scope := "in the whole cluster"
	if c.ID.Namespace != "" {
		scope = "in namespace " + c.ID.Namespace
	}
	var details []string
	given := ""
	if known, ok := r.at[role]; ok && known.After != nil {
		all := permissions(known.After.Object)
		details, given = sentences(all), strong(all)
	} else if role.Name == "cluster-admin" {
		given = ": everything"
	}
	r.add(Rights, c, 0, details, "%s: %s %s gets %s %s %s%s", map[bool]string{true: "new", false: "gains subjects"}[c.Action == plan.Created],
		bundle.Some(gained, shownFields), map[bool]string{true: "", false: "each"}[len(gained) == 1], role.GroupKind.Kind, role.Name, scope, given)
	last := &r.found[len(r.found)-1]
	last.Text = strings.Join(strings.Fields(last.Text), " ")
}

// subjects are those of a binding: "ServiceAccount ns/name", "Group system:masters".
func subjects(u *unstructured.Unstructured, namespace string) []string {
	var found []string
	for _, v := range get[[]any](content(u), "subjects") {
		s, _ := v.(map[string]any)
		name := get[string](s, "name")
		if kind := get[string](s, "kind"); kind == "ServiceAccount" {
			if ns := get[string](s, "namespace"); ns != "" {
				namespace = ns
			}
			name = namespace + "/" + name
		}
		found = append(found, get[string](s, "kind")+" "+name)
	}
	return found
}

// permission is one verb on one resource, or on a path of the server.
type permission struct {
	verb, group, resource, name string // name "" is every name
	path                        string
}

// permissions are those of a role's rules.
func permissions(role map[string]any) []permission {
	var all []permission
	for _, v := range get[[]any](role, "rules") {
		rule, _ := v.(map[string]any)
		names := bundle.Texts(rule["resourceNames"])
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range bundle.Texts(rule["verbs"]) {
			for _, path := range bundle.Texts(rule["nonResourceURLs"]) {
				all = append(all, permission{verb: verb, path: path})
			}
			for _, group := range bundle.Texts(rule["apiGroups"]) {
				for _, resource := range bundle.Texts(rule["resources"]) {
					for _, name := range names {
						all = append(all, permission{verb: verb, group: group, resource: resource, name: name})
					}
				}
			}
		}
	}
	return all
}

// covers says whether a permission holds another one.
func (p permission) covers(q permission) bool {
	if p.path != "" || q.path != "" {
		prefix, wild := strings.CutSuffix(p.path, "*")
		return matches(p.verb, q.verb) && (p.path == q.path || wild && strings.HasPrefix(q.path, prefix))
	}
	sub := strings.HasPrefix(p.resource, "*/") && strings.HasSuffix(q.resource, p.resource[1:])
	return matches(p.verb, q.verb) && matches(p.group, q.group) && (matches(p.resource, q.resource) || sub) && (p.name == "" || p.name == q.name)
}

// matches says whether a word is another one, or stands for all.
func matches(have, want string) bool { return have == "*" || have == want }

// strong names what is most dangerous among rights, as the end of a sentence.
func strong(all []permission) string {
	found := map[string]bool{}
	for _, p := range all {
		reads := p.verb == "*" || p.verb == "get" || p.verb == "list" || p.verb == "watch"
		writes := p.verb == "*" || p.verb == "create" || p.verb == "update" || p.verb == "patch"
		switch {
		case p.path != "":
		case p.verb == "*" && p.group == "*" && p.resource == "*":
			return ": everything"
		case p.verb == "escalate" || p.verb == "bind" || p.verb == "impersonate":
			found[p.verb+" "+p.resource] = true
		case p.resource == "*":
			found[fmt.Sprintf("%s everything of group %q", p.verb, p.group)] = true
		case p.group == "" && p.resource == "secrets" && p.name == "":
			found["reads Secrets"] = found["reads Secrets"] || reads
			found["writes Secrets"] = found["writes Secrets"] || writes
		case p.group == "" && (p.resource == "pods/exec" || p.resource == "pods/attach" || p.resource == "nodes/proxy"):
			found[p.resource] = true
		case writes && p.group == rbac:
			found["writes "+p.resource] = true
		case writes && p.group == "admissionregistration.k8s.io":
			found["writes "+p.resource] = true
		case writes && p.group == "" && p.resource == "pods", writes && p.group == "apps" && !strings.Contains(p.resource, "/"), writes && p.group == "batch" && !strings.Contains(p.resource, "/"):
			found["starts pods"] = true
		}
	}
	var named []string
	for _, text := range slices.Sorted(maps.Keys(found)) {
		if found[text] {
			named = append(named, text)
		}
	}
	if len(named) == 0 {
		return ""
	}
	return ": " + strings.Join(named, ", ")
}

// sentences are rights in a few lines: "get, list: pods, services".
func sentences(all []permission) []string {
	verbs := map[string][]string{} // by what they are about
	var order []string
	for _, p := range all {
		what := p.resource
		if p.group != "" {
			what += "." + p.group
		}
		if p.name != "" {
			what += " " + p.name
		}
		if p.path != "" {
			what = p.path
		}
		if _, known := verbs[what]; !known {
			order = append(order, what)
		}
		if !slices.Contains(verbs[what], p.verb) {
			verbs[what] = append(verbs[what], p.verb)
		}
	}
	about := map[string][]string{} // by their verbs
	var lines []string
	for _, what := range order {
		words := strings.Join(verbs[what], ", ")
		if _, known := about[words]; !known {
			lines = append(lines, words)
		}
		about[words] = append(about[words], what)
	}
	for i, words := range lines {
		lines[i] = words + ": " + strings.Join(about[words], ", ")
	}
	return lines
}
