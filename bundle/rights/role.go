package rights

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"brine/bundle"
	"brine/bundle/cluster"
)

// Rights as Roles, ClusterRoles and their bindings.

// maxName is the longest name of most kinds. Roles may have longer ones, tools may not.
const maxName = 253

// RoleName is what the roles for an inventory are called, and those that may only read it.
// No two inventories have the same, as no name of a namespace or ConfigMap contains a
// colon. Without an inventory it is one for all.
func RoleName(namespace, name string, readOnly bool) string {
	if name == "" {
		return "brine"
	}
	full := "brine:" + namespace + ":" + name
	if readOnly {
		full += ":read-only"
	}
	if len(full) <= maxName {
		return full
	}
	hash := fmt.Sprintf(":%x", sha256.Sum256([]byte(full)))[:1+16]
	return full[:maxName-len(hash)] + hash
}

// NewNamespaces are the namespaces of a bundle that a Role must be in.
func NewNamespaces(b *bundle.Bundle, rights []Right) (names []string) {
	for _, o := range b.Objects {
		in := func(r Right) bool { return r.Namespace == o.ID.Name }
		if o.ID.GroupKind == bundle.NamespaceKind && slices.ContainsFunc(rights, in) {
			names = append(names, o.ID.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Roles are the Role of each namespace and the ClusterRole that grant rights,
// called name, with a binding of each to subject unless that is nil, as YAML.
// fresh are namespaces that may not be there yet: they are made first, as no
// Role can be without its namespace.
func Roles(rights []Right, name string, subject *rbacv1.Subject, fresh []string) ([]byte, error) {
	byNamespace := bundle.GroupBy(rights, func(r Right) string { return r.Namespace }).Of
	docs := bundle.Each(fresh, func(namespace string) any {
		return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}
	})
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		kind := "Role"
		if namespace == "" {
			kind = "ClusterRole"
		}
		// A ClusterRole and its binding have the same fields as a Role and its own.
		docs = append(docs, rbacv1.Role{TypeMeta: typeOf(kind), ObjectMeta: metadata(namespace, name), Rules: rules(byNamespace[namespace])})
		if subject != nil {
			docs = append(docs, rbacv1.RoleBinding{
				TypeMeta: typeOf(kind + "Binding"), ObjectMeta: metadata(namespace, name),
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, Subjects: []rbacv1.Subject{*subject},
			})
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

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func metadata(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{cluster.RoleLabel: "role"}}
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
