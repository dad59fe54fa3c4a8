package diff

import (
	"fmt"
	"strings"
)

// changes appends what differs between a and b, which are at path.
func changes(out []Change, path string, a, b any) []Change {
	if equal(a, b) {
		return out
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return mapChanges(out, path, x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			if id := identity(x, y); id != nil {
				return keyedChanges(out, path, x, y, id)
			}
			return alignedChanges(out, path, x, y)
		}
	}
	return append(out, Change{Path: path, Old: a, New: b})
}

func mapChanges(out []Change, path string, a, b map[string]any) []Change {
	for _, k := range merged(a, b) {
		out = changes(out, field(path, k), a[k], b[k])
	}
	return out
}

func keyedChanges(out []Change, path string, a, b []any, id []string) []Change {
	after := make(map[string]any, len(b))
	for _, item := range b {
		after[key(item, id)] = item
	}
	before := make(map[string]bool, len(a))
	var stayed, now []any
	for _, item := range a {
		k := key(item, id)
		before[k] = true
		if _, ok := after[k]; ok {
			stayed = append(stayed, k)
		}
		out = changes(out, path+"["+k+"]", item, after[k])
	}
	for _, item := range b {
		k := key(item, id)
		if before[k] {
			now = append(now, k)
			continue
		}
		out = append(out, Change{Path: path + "[" + k + "]", New: item})
	}
	if !equal(stayed, now) { // env and initContainers depend on their order
		out = append(out, Change{Path: path, Old: stayed, New: now})
	}
	return out
}

// identities distinguish the items of Kubernetes' lists, the most specific
// first: the merge keys of its built-in types (x-kubernetes-patch-merge-key and
// x-kubernetes-list-map-keys in kube's OpenAPI). They serve custom resources
// too, where they are nearly always named the same.
var identities = [][]string{
	{"name"}, {"containerPort", "protocol"}, {"containerPort"}, {"port", "protocol"}, {"port"},
	{"mountPath"}, {"devicePath"}, {"topologyKey", "whenUnsatisfiable"},
	{"type"}, {"key"}, {"ip"}, {"uid"}, {"host"}, {"id"},
}

// identity finds fields that distinguish all items of a, and all of b; nil
// where there are none.
func identity(a, b []any) []string {
	for _, id := range identities {
		if distinguishes(a, id) && distinguishes(b, id) {
			return id
		}
	}
	return nil
}

func distinguishes(list []any, id []string) bool {
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		k := key(item, id)
		if k == "" || seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

// key is "name=app", or "containerPort=80,protocol=TCP"; "" for an item that
// does not have these fields.
func key(item any, id []string) string {
	m, ok := item.(map[string]any)
	if !ok {
		return ""
	}
	parts := make([]string, len(id))
	for i, f := range id {
		switch v := m[f].(type) {
		case string, int64, int, float64:
			parts[i] = fmt.Sprintf("%s=%v", f, v)
		default:
			return ""
		}
	}
	return strings.Join(parts, ",")
}
