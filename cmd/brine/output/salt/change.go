package salt

import (
	"cmp"
	"fmt"
	"strings"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// What a person reads of an object's changes, and Salt keeps in its job cache: the
// report file has all of it.
const (
	mostFields  = 20  // of an object
	longestText = 200 // characters of a value
	mostBytes   = 40_000
)

// roomOf is how many bytes of changed fields an object has, so that the return
// of a run which changes hundreds of objects stays below 100 KB on Salt's bus.
func roomOf(objects []*report.ObjectResult) int {
	configured := bundle.Where(objects, func(o *report.ObjectResult) bool { return len(o.Changes) > 0 })
	return mostBytes / max(len(configured), 1)
}

// keyOf is "apps/v1/Deployment ns/name".
func keyOf(o *report.ObjectResult) string {
	key := o.Version + "/" + o.Kind + " "
	if o.Group != "" {
		key = o.Group + "/" + key
	}
	if o.Namespace != "" {
		key += o.Namespace + "/"
	}
	return key + o.Name
}

func changed(o *report.ObjectResult) bool { return changeOf(o, 0) != nil }

// changeOf is {old, new} for an object that changed, nil for every other. A
// configured object has its fields by path; their values come masked where
// they are a Secret's, and as many of them as there is room for.
func changeOf(o *report.ObjectResult, room int) map[string]any {
	change := func(from, to any) map[string]any { return map[string]any{"old": from, "new": to} }
	switch o.Action {
	case plan.Created:
		return change("absent", "present")
	case plan.Pruned:
		return change("present", "absent")
	case plan.Detached:
		return change("tracked", "detached")
	case plan.Configured, plan.Recreated:
	default:
		return nil
	}
	switch {
	case len(o.Changes) == 0:
		return change("present", string(o.Action))
	case o.Group == bundle.CRDKind.Group && o.Kind == bundle.CRDKind.Kind:
		return change("present", string(o.Action)+": "+fieldCounts(o.Changes))
	}
	before, after := map[string]any{}, map[string]any{}
	put := func(side map[string]any, path string, v any) {
		if v != nil {
			side[path] = shortened(v)
			room -= len(path) + len(encode(side[path]))
		}
	}
	for i, c := range o.Changes {
		if i == mostFields || i > 0 && room < 0 {
			after["…"] = "and " + fieldCounts(o.Changes[i:])
			break
		}
		put(before, c.Path, c.Old)
		put(after, cmp.Or(c.Moved, c.Path), c.New)
	}
	return change(before, after)
}

// fieldCounts is "3 fields added, 1 removed, 2 changed".
func fieldCounts(changes []diff.Change) string {
	verbs := []string{"added", "removed", "changed"}
	counts := map[string]int{}
	for _, c := range changes {
		switch {
		case c.Old == nil:
			counts["added"]++
		case c.New == nil:
			counts["removed"]++
		default:
			counts["changed"]++
		}
	}
	var parts []string
	for _, verb := range verbs {
		switch n := counts[verb]; {
		case n > 0 && parts == nil:
			parts = append(parts, bundle.Count(n, "field")+" "+verb)
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, verb))
		}
	}
	return strings.Join(parts, ", ")
}

// shortened is a field's value, or the beginning of a long one.
func shortened(v any) any {
	text, ok := v.(string)
	if !ok {
		text = strings.TrimSpace(string(encode(v)))
	}
	if runes := []rune(text); len(runes) > longestText {
		return fmt.Sprintf("%s… (%d characters)", string(runes[:longestText/2]), len(runes))
	}
	return v
}
