package rights

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"brine/bundle/cluster"
)

// Roles are the Role of each namespace and the ClusterRole that grant rights,
// called name, with a binding of each to subject unless that is nil, as YAML.
// fresh are namespaces that may not be there yet: they are made first, as no
// Role can be without its namespace.
func Roles(rights []Right, name string, subject *rbacv1.Subject, fresh []string) ([]byte, error) {
	byNamespace := map[string][]Right{}
	for _, r := range rights {
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	var docs []any
	for _, namespace := range fresh {
		docs = append(docs, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		kind := "Role"
		if namespace == "" {
			kind = "ClusterRole"
		}
		docs = append(docs, role(kind, namespace, name, byNamespace[namespace]))
		if subject != nil {
			docs = append(docs, binding(kind, namespace, name, *subject))
		}
	}
	var out bytes.Buffer
	for _, doc := range docs {
		text, err := yaml.Marshal(doc)
		if err != nil {
			return nil, fmt.Errorf("write a role: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

type header struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
}

type metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels"`
}

func newHeader(kind, namespace, name string) header {
	return header{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind, Metadata: metadata{
		Name: name, Namespace: namespace, Labels: map[string]string{cluster.RoleLabel: "role"},
	}}
}

func role(kind, namespace, name string, rights []Right) any {
	return struct {
		header `json:",inline"`
		Rules  []rbacv1.PolicyRule `json:"rules"`
	}{newHeader(kind, namespace, name), rules(rights)}
}

func binding(kind, namespace, name string, subject rbacv1.Subject) any {
	return struct {
		header   `json:",inline"`
		RoleRef  rbacv1.RoleRef   `json:"roleRef"`
		Subjects []rbacv1.Subject `json:"subjects"`
	}{newHeader(kind+"Binding", namespace, name), rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, []rbacv1.Subject{subject}}
}

// rules puts together what has the same verbs: as few rules as can be read.
func rules(rights []Right) []rbacv1.PolicyRule {
	type target struct{ group, resource, name string }
	verbs := map[target][]string{}
	for _, r := range rights {
		t := target{r.Resource.Group, r.Resource.Resource, r.Name}
		verbs[t] = append(verbs[t], r.Verb)
	}
	type class struct{ group, name, verbs string }
	classes := map[class][]string{}
	for t, v := range verbs {
		slices.SortFunc(v, func(a, b string) int { return order(a) - order(b) })
		c := class{t.group, t.name, strings.Join(v, ",")}
		classes[c] = append(classes[c], t.resource)
	}
	// The names of one resource that have the same verbs are one rule.
	type rule struct{ group, resources, verbs string }
	named := map[rule][]string{}
	for c, resources := range classes {
		slices.Sort(resources)
		r := rule{c.group, strings.Join(resources, ","), c.verbs}
		if c.name == "" {
			named[r] = append(named[r], "")
			continue
		}
		r.verbs = "named " + r.verbs
		named[r] = append(named[r], c.name)
	}
	var all []rbacv1.PolicyRule
	keys := slices.SortedFunc(maps.Keys(named), func(a, b rule) int {
		return strings.Compare(a.group+"\x00"+a.resources+"\x00"+a.verbs, b.group+"\x00"+b.resources+"\x00"+b.verbs)
	})
	for _, r := range keys {
		list, isNamed := strings.CutPrefix(r.verbs, "named ")
		p := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: strings.Split(r.resources, ","), Verbs: strings.Split(list, ",")}
		if isNamed {
			p.ResourceNames = named[r]
			slices.Sort(p.ResourceNames)
		}
		all = append(all, p)
	}
	return all
}

// order is the one in which verbs are usually written.
func order(verb string) int {
	return slices.Index([]string{"get", "list", "watch", "create", "update", "patch", "delete", "bind", "escalate"}, verb)
}

// ServiceAccount is a subject that NAMESPACE/NAME names.
func ServiceAccount(text string) (*rbacv1.Subject, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" {
		return nil, fmt.Errorf("%q: a ServiceAccount is NAMESPACE/NAME", text)
	}
	return &rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}, nil
}

// User is a subject of that name.
func User(name string) *rbacv1.Subject {
	return &rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// Group is a subject of that name.
func Group(name string) *rbacv1.Subject {
	return &rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}
