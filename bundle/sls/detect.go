package sls

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// What a document of Salt's is: manifests, high data, low data, a rendered text, errors.

// Detect finds the shape of a document, under {"local": …} or a minion's id or not.
// A document of none of Salt's shapes is Manifests.
func Detect(doc *yaml.Node) Shape {
	n := resolve(doc)
	if isNull(n) {
		// A document of nothing but comments: usual between manifests.
		return Manifests
	}
	if s, ok := classify(n); ok {
		return s
	}
	root, minions := unwrap(n)
	if len(minions) == 0 {
		return Manifests
	}
	s, ok := classify(root)
	if ok {
		return s
	}
	if holdsBundle(root) {
		return Rendered
	}
	if root.Kind == yaml.ScalarNode {
		return Errors // "'state.show_sls' is not available."
	}
	return High // Decode reports what is wrong with it
}

// Unwrap takes {"local": X} or {"minion-id": X} off, where X is one of the
// shapes; every other document comes back as it is.
func Unwrap(doc *yaml.Node) *yaml.Node {
	if root, minions := unwrap(resolve(doc)); len(minions) == 1 {
		return root
	}
	return doc
}

// Text returns the bundle's text of the shape Rendered.
func Text(doc *yaml.Node) (string, bool) {
	root, minions := unwrap(resolve(doc))
	if len(minions) != 1 {
		return "", false
	}
	return root.Value, holdsBundle(root)
}

func holdsBundle(n *yaml.Node) bool {
	return isString(n) && (strings.HasPrefix(n.Value, "apiVersion:") || strings.Contains(n.Value, "\napiVersion:") ||
		strings.HasPrefix(n.Value, "kind:") || strings.Contains(n.Value, "\nkind:"))
}

// classify is Detect without unwrapping.
func classify(n *yaml.Node) (Shape, bool) {
	switch {
	case isMapping(n) && (field(n, "apiVersion") != nil || field(n, "kind") != nil):
		return Manifests, true
	case isEmpty(n):
		return Empty, true
	case isMapping(n) && looksHigh(n):
		return High, true
	case isSequence(n):
		return classifyList(n)
	}
	return Manifests, false
}

func classifyList(n *yaml.Node) (Shape, bool) {
	strs, sentence := 0, false // Salt's errors are sentences
	for _, item := range items(n) {
		if isString(item) && item.Tag == yaml.NodeTagString {
			strs++
			sentence = sentence || strings.Contains(item.Value, " ")
		}
		if field(item, "state") != nil && field(item, "fun") != nil {
			return Low, true
		}
	}
	if sentence && strs == len(n.Content) {
		return Errors, true
	}
	return Manifests, false
}

// looksHigh: at least one state declaration among the fields, or nothing but
// include, extend, exclude and Salt's own keys.
func looksHigh(n *yaml.Node) bool {
	states := slices.DeleteFunc(pairs(n), func(p pair) bool { return reserved(p.key) })
	return len(states) == 0 || slices.ContainsFunc(states, func(p pair) bool { return isBody(p.value) })
}

// isBody: {module.function: […]}, {module: [function, …]} or "module.function".
func isBody(n *yaml.Node) bool {
	if isString(n) {
		module, fun, ok := strings.Cut(n.Value, ".")
		return ok && module != "" && fun != "" && !strings.ContainsAny(n.Value, " /:\n")
	}
	for _, p := range pairs(n) {
		if p.key == "__sls__" {
			return true
		}
		if reserved(p.key) || strings.ContainsAny(p.key, " /") {
			continue
		}
		if strings.Contains(p.key, ".") && (isSequence(p.value) || isNull(p.value)) {
			return true
		}
		if slices.ContainsFunc(items(p.value), func(item *yaml.Node) bool { return presentFuns[text(item)] || absentFuns[text(item)] }) {
			return true
		}
	}
	return false
}

// unwrap takes {"local": X} or {"minion-id": X} off and returns X and the
// minions named; none when the document is not wrapped. The document itself
// comes back when it holds the answers of several.
func unwrap(n *yaml.Node) (*yaml.Node, []string) {
	if _, known := classify(n); known || !isMapping(n) {
		return n, nil
	}
	fields := pairs(n)
	var ids []string
	several := false // answers; every field has to be one
	for _, p := range fields {
		ids = append(ids, p.key)
		s, answers := classify(p.value)
		answers = answers || holdsBundle(p.value)
		switch {
		case len(fields) == 1 && (answers || p.key == "local"):
			return p.value, ids
		case !answers:
			return n, nil
		}
		several = several || s != Empty
	}
	if !several {
		return n, nil
	}
	return n, ids
}
