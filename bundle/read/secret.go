package read

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// shown is a value as a message may show it.
func (c *converter) shown(n *yaml.Node) string {
	if !c.quotable() {
		return "this value"
	}
	return clip(n.Value)
}

// quotable reports whether messages may show values: not where anything in the
// object says that it is a Secret, be it in a merge or in a template, and not where
// its kind is not known.
func (c *converter) quotable() bool {
	if c.secret == nil {
		is := !kindSyntax().MatchString(c.kind) || isSecret(c.kind) || mentionsSecret(c.root, map[*yaml.Node]bool{})
		c.secret = &is
	}
	return !*c.secret
}

// isSecret: of any spelling, and own kinds that hold one.
func isSecret(kind string) bool { return strings.Contains(strings.ToLower(kind), "secret") }

func mentionsSecret(n *yaml.Node, seen map[*yaml.Node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	if n.Kind == yaml.AliasNode {
		seen[n] = true
		return mentionsSecret(n.Alias, seen)
	}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && resolved(n.Content[i-1]).Value == "kind" && isSecret(resolved(inner).Value) {
			return true
		}
		if inner.Kind != yaml.ScalarNode && mentionsSecret(inner, seen) {
			return true
		}
	}
	return false
}
