package diff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/fields"
)

// Who wrote what differs, by managedFields.

// Written sets the Manager and the Time of each change whose Old value is in the
// live object: of other managers than brine the last one, else brine. It returns a
// sentence for people: "spec.replicas was written by kubectl (subresource scale) at
// …".
func Written(live *unstructured.Unstructured, changes []Change) string {
	type writer struct{ name, at string }
	var paths bundle.Groups[writer, string]
	for i := range changes {
		c := &changes[i]
		if c.Old == nil && c.New != nil {
			continue // an item's place would be that of another one
		}
		entry := lastWriter(live, c.Path)
		if entry == nil {
			continue
		}
		c.Manager, c.Time = entry.name, entry.time
		paths.Add(writer{entry.name, entry.time}, c.Path)
	}
	var parts []string
	for _, w := range paths.Keys {
		verb, at := " was", ""
		if len(paths.Of[w]) > 1 {
			verb = " were"
		}
		if w.at != "" {
			at = " at " + w.at
		}
		parts = append(parts, bundle.Some(paths.Of[w], 5)+verb+" written by "+w.name+at)
	}
	return strings.Join(parts, "; ")
}

// owner is an entry of managedFields that owns a field.
type owner struct {
	name, time string
	brine      bool
}

func lastWriter(live *unstructured.Unstructured, path string) *owner {
	steps := split(path)
	var last *owner
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var tree map[string]any
		if json.NewDecoder(bytes.NewReader(entry.FieldsV1.GetRawBytes())).Decode(&tree) != nil || !owns(tree, live.Object, steps) {
			continue
		}
		now := &owner{name: entry.Manager, brine: entry.Manager == bundle.FieldManager && entry.Operation == "Apply" && entry.Subresource == ""}
		if entry.Subresource != "" {
			now.name += " (subresource " + entry.Subresource + ")"
		}
		if entry.Time != nil {
			now.time = entry.Time.UTC().Format(time.RFC3339)
		}
		if last == nil || last.brine && !now.brine || last.brine == now.brine && cmp.Less(last.time, now.time) {
			last = now
		}
	}
	return last
}

// owns says whether a tree in the form of fieldsV1 has the value at a path, which
// is in the live object, or something in it.
func owns(tree map[string]any, live any, steps []step) bool {
	for _, s := range steps {
		if len(tree) == 0 {
			return true // of a value that has an owner as a whole
		}
		ok := false
		switch in := live.(type) {
		case map[string]any:
			value, there := in[s.key]
			if !there || s.item {
				return false
			}
			live = value
			tree, ok = fields.Below(tree, s.key, nil)
		case []any:
			at := slices.IndexFunc(in, s.is)
			if i, err := strconv.Atoi(s.key); err == nil && i < len(in) {
				at = i
			}
			if at < 0 {
				return false
			}
			live = in[at]
			tree, ok = fields.Below(tree, "", live)
		}
		if !ok {
			return false
		}
	}
	return true
}

// step is one step of a Change's path: a key of a map, or an item of a list.
type step struct {
	key  string // the key, "0", or "name=app" of an item
	item bool
}

// is says whether an item has the fields that the step names.
func (s step) is(item any) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	return slices.ContainsFunc(identities, func(id []string) bool { return strings.HasPrefix(s.key, id[0]+"=") && key(m, id) == s.key })
}

// split takes a Change's path apart: the inverse of field, and of how items are
// named.
func split(path string) (steps []step) {
	for path != "" {
		switch {
		case strings.HasPrefix(path, `["`):
			end := 2
			for end < len(path) && (path[end] != '"' || path[end-1] == '\\') {
				end++
			}
			steps = append(steps, step{key: strings.ReplaceAll(path[2:min(end, len(path))], `\"`, `"`)})
			path = path[min(end+2, len(path)):]
		case path[0] == '[':
			end := cmp.Or(max(strings.IndexByte(path, ']'), 0), len(path)-1)
			steps = append(steps, step{key: path[1:end], item: true})
			path = path[end+1:]
		case path[0] == '.':
			path = path[1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			steps = append(steps, step{key: path[:end]})
			path = path[end:]
		}
	}
	return steps
}
