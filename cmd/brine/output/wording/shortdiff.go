package wording

import (
	"fmt"
	"strings"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// How many lines of a diff are shown of an object that is all new, or deleted, and of
// one that changes.
const (
	wholeObject   = 12
	wholeChange   = 80
	wholeSchema   = 12
	fieldsOfAPath = 4
)

// ShortDiff is an object's diff, where it is long by the paths of what changes, unless all of
// it was asked for. A CRD's is the fields that it adds, removes and changes.
func ShortDiff(o *report.ObjectResult, verbose bool) string {
	lines := strings.Count(o.Diff, "\n")
	switch {
	case verbose:
		return o.Diff
	case o.Schema != nil:
		text := schemaLines(o.Schema)
		if rest := OutsideSchema(o.Changes); len(rest) > 0 {
			text += byPath(rest)
		}
		return text
	case o.Action == plan.Created || o.Action == plan.Pruned:
		if lines > wholeObject+6 {
			return outline(o.Diff)
		}
	case lines > wholeChange && len(o.Changes) > 0:
		return byPath(o.Changes)
	}
	return o.Diff
}

// OutsideSchema are the changes of a CRD that are not about the schemas of its versions.
func OutsideSchema(changes []diff.Change) []diff.Change {
	return bundle.Where(changes, func(c diff.Change) bool { return !strings.HasPrefix(c.Path, "spec.versions") })
}

// schemaLines are the fields of a CRD that change.
func schemaLines(s *diff.SchemaChanges) string {
	var b strings.Builder
	b.WriteString(s.Summary() + "\n")
	for i, f := range s.Fields {
		if i == wholeSchema && len(s.Fields) > wholeSchema+1 {
			fmt.Fprintf(&b, "… %d more fields: -v or -o json show them\n", len(s.Fields)-i)
			break
		}
		b.WriteString(map[string]string{"added": "+", "removed": "-", "changed": "~"}[f.Action] + " " + Line(f.String()) + "\n")
	}
	return b.String()
}

// outline is an object that is all new, or deleted, by its fields: how many lines each
// of them has.
func outline(text string) string {
	type part struct {
		path  string
		lines int
	}
	var parts []part
	top := ""
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i < 2 || strings.HasPrefix(line, "@@") || line == "" {
			continue
		}
		line = line[1:]
		key, _, isField := strings.Cut(strings.TrimSpace(line), ":")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case isField && indent == 0 && !strings.HasPrefix(line, "-"):
			top = key
			parts = append(parts, part{key, 0})
		case isField && indent == 2 && !strings.HasPrefix(strings.TrimSpace(line), "-"):
			parts = append(parts, part{top + "." + key, 0})
		}
		if len(parts) > 0 {
			parts[len(parts)-1].lines++
		}
	}
	var words []string
	for _, p := range parts {
		switch {
		case p.path == "apiVersion" || p.path == "kind" || p.path == "metadata.name" || p.path == "metadata.namespace":
		case p.lines > 1:
			words = append(words, fmt.Sprintf("%s (%d lines)", p.path, p.lines))
		case p.path != "metadata" && p.path != "spec":
			words = append(words, p.path)
		}
	}
	return Line(strings.Join(words, ", ")) + "\n… -v or -o json show all of it\n"
}

// byPath are the changed fields, together where they are in the same place.
func byPath(changes []diff.Change) string {
	var b strings.Builder
	for at, of := range bundle.GroupBy(changes, func(c diff.Change) string { at, _ := parent(c.Path); return at }).All() {
		names := bundle.Each(of, func(c diff.Change) string { _, name := parent(c.Path); return name })
		fmt.Fprintf(&b, "~ %s: %s\n", Line(at), Line(bundle.Some(names, fieldsOfAPath)))
	}
	return b.String() + "… -v or -o json show the values\n"
}

// parent is the field around a field, and what the field is called in it.
func parent(path string) (at, name string) {
	depth := 0
	for i := len(path) - 1; i > 0; i-- {
		switch path[i] {
		case ']':
			depth++
		case '[':
			if depth--; depth == 0 {
				return path[:i], path[i:]
			}
		case '.':
			if depth == 0 {
				return path[:i], path[i+1:]
			}
		}
	}
	return "the object", path
}
