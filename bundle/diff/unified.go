package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// The unified diff of two objects as YAML.

// unified is the diff of a and b as YAML; nil is an object that is not there.
func unified(a, b any) string {
	from, to := "live", "applied"
	if a == nil {
		from = "/dev/null"
	}
	if b == nil {
		to = "/dev/null"
	}
	a, b, files := takeFiles(a, b)
	text := lines(from, to, render(a), render(b))
	if text == "" && len(files) > 0 {
		text = fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	}
	for _, f := range files {
		_, hunks, _ := strings.Cut(lines(from, to, f.before, f.after), "\n+++ ")
		_, hunks, _ = strings.Cut(hunks, "\n")
		text += "@@ " + f.path + " @@\n" + hunks
	}
	return text
}

// lines is the unified diff of two texts, "" where they are the same.
func lines(from, to, x, y string) string {
	text, err := udiff.ToUnified(from, to, x, edits(x, y, 0), udiff.DefaultContextLines)
	if err != nil { // cannot be: the edits are udiff's own
		return fmt.Sprintf("--- %s\n+++ %s\n# no diff: %v\n", from, to, err)
	}
	return renumbered(text)
}

var header = bundle.Pattern(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// renumbered is a unified diff with the line numbers of the second text as they are:
// udiff does not count the lines between two changes of one hunk.
func renumbered(text string) string {
	all := strings.SplitAfter(text, "\n")
	more := 0 // lines that the second text has, up to here
	for i, l := range all {
		m := header().FindStringSubmatch(l)
		if m == nil {
			continue
		}
		number := func(s string) int {
			n, err := strconv.Atoi(s)
			if err != nil {
				return 1 // a count that is left out
			}
			return n
		}
		if from := number(m[1]); from > 0 && number(m[3]) > 0 {
			all[i] = strings.Replace(l, " +"+m[3], " +"+strconv.Itoa(from+more), 1)
		}
		more += number(m[4]) - number(m[2])
	}
	return strings.Join(all, "")
}

// file is a value of a ConfigMap that is a file: it has lines.
type file struct{ path, before, after string }

// takeFiles takes the files that differ out of two versions of a ConfigMap, so that
// they are compared line by line, however YAML would write them. JSON of one line is
// given lines.
func takeFiles(a, b any) (x, y any, files []file) {
	before, _ := a.(map[string]any)
	after, _ := b.(map[string]any)
	if before == nil || after == nil || before["kind"] != "ConfigMap" || before["apiVersion"] != "v1" {
		return a, b, nil
	}
	old, _ := before["data"].(map[string]any)
	now, _ := after["data"].(map[string]any)
	old, now = maps.Clone(old), maps.Clone(now)
	for _, key := range slices.Sorted(maps.Keys(old)) {
		was, isText := old[key].(string)
		is, isText2 := now[key].(string)
		if !isText || !isText2 || was == is {
			continue
		}
		if was, is = withLines(was), withLines(is); strings.Contains(was, "\n") || strings.Contains(is, "\n") {
			files = append(files, file{field("data", key), was, is})
			delete(old, key)
			delete(now, key)
		}
	}
	if len(files) == 0 {
		return a, b, nil
	}
	before, after = maps.Clone(before), maps.Clone(after)
	before["data"], after["data"] = old, now
	return before, after, files
}

// withLines is a text that ends with its last line; JSON of one line is indented.
func withLines(text string) string {
	var b bytes.Buffer
	if !strings.Contains(text, "\n") && strings.HasPrefix(text, "{") && json.Indent(&b, []byte(text), "", "  ") == nil {
		text = b.String()
	}
	if strings.Contains(text, "\n") && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// edits turns x, which begins at byte offset of the whole, into y. udiff.Lines
// gives up after a hundred differences and calls all between the first and the
// last fifty different, so what it left in the middle is compared again.
func edits(x, y string, offset int) []udiff.Edit {
	var out []udiff.Edit
	for _, e := range udiff.Lines(x, y) {
		old := x[e.Start:e.End]
		// No progress (all of x is one edit), or too little to be worth it.
		if (len(old) == len(x) && len(e.New) == len(y)) || strings.Count(old, "\n") < 50 || strings.Count(e.New, "\n") < 50 {
			out = append(out, udiff.Edit{Start: offset + e.Start, End: offset + e.End, New: e.New})
			continue
		}
		out = append(out, edits(old, e.New, offset+e.Start)...)
	}
	return out
}

// render is YAML with sorted keys, but what names the object on top.
func render(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	first := []string{"apiVersion", "kind", "metadata"}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(k string) bool { return slices.Contains(first, k) })
	var b strings.Builder
	for _, k := range append(first, keys...) {
		v, ok := m[k]
		if !ok {
			continue
		}
		text, err := yaml.Marshal(map[string]any{k: v})
		if err != nil { // cannot be: what came from JSON goes back into it
			fmt.Fprintf(&b, "# %s: %v\n", k, err)
			continue
		}
		b.Write(text)
	}
	return b.String()
}
