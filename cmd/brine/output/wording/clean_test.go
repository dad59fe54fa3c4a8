package wording

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain, with ümlaut and 日本":                    "plain, with ümlaut and 日本",
		"two\nlines\tand a tab":                        "two\nlines\tand a tab",
		"\x1b[31mred\x1b[0m":                           "red",
		"\x1b[2J\x1b[1;1Hgone":                         "gone",
		"\u009b31mred by C1":                           "red by C1",
		"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\":  "link",
		"\x1b]0;title\x07text":                         "text",
		"\u009d0;title\u009ctext":                      "text",
		"\x1b]0;no end of it":                          "\ufffd]0;no end of it",
		"a\rb":                                         "a\ufffdb",
		"a\r\nb":                                       "a\nb",
		"\u202eevil\u202c \u2066x\u2069 \u200f \u200b": "\ufffdevil\ufffd \ufffdx\ufffd \ufffd \ufffd",
		"a\u2028b":                                     "a\ufffdb",
		"\xff\xfe":                                     "\ufffd\ufffd",
		"\U000E0041 a tag":                             "\ufffd a tag",
		"\x7f\x00\x08":                                 "\ufffd\ufffd\ufffd",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := Line("a\n b\t c:\n\nd\x1b[1A"); got != "a; b c: d" {
		t.Errorf("one line: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "text", "\x1b[31m", "\x1b\x1b[0m[0m", "\u009b1A", "\x1b]8;;x\x07", "\xff", "a\r\n\u202eb", "\U000E0041"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, hidden) {
			t.Errorf("%q became %q", s, got)
		}
		if again := Clean(got); again != got {
			t.Errorf("%q, cleaned again, is %q", got, again)
		}
		if line := Line(s); strings.ContainsAny(line, "\n\r\t") || Line(line) != line {
			t.Errorf("one line: %q", line)
		}
		// JSON stays the same document.
		want, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := JSON(&b, map[string]string{s: s}); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b.Bytes()) || strings.ContainsFunc(b.String(), hidden) {
			t.Errorf("JSON of %q is %q", s, b.String())
		}
		var x, y any
		if json.Unmarshal(want, &x) != nil || json.Unmarshal(b.Bytes(), &y) != nil || !reflect.DeepEqual(x, y) {
			t.Errorf("JSON of %q is another document: %q", s, b.String())
		}
	})
}

// Every text of a result is cleaned; what objects hold is shown as it is but for that, and
// keeps its paths.
func TestRewrittenResults(t *testing.T) {
	object := func(end string) *report.ObjectResult {
		return &report.ObjectResult{
			Name: "web", Source: bundle.Source{File: "/srv/salt/shop/web.sls" + end}, NotServed: "since 1.36" + end, Why: []string{"see /srv/salt/shop/web.sls" + end},
			Claims: []plan.Claim{{Kept: "too small" + end}}, Diff: "+/srv/salt/shop/data" + end, Changes: []diff.Change{{Path: "data.at", New: "/srv/salt/shop/data" + end}},
		}
	}
	r := CleanResult(&report.Result{Objects: []*report.ObjectResult{object("\x1b[31m")}, Rollback: &report.Result{Objects: []*report.ObjectResult{object("\x1b[31m")}}})
	want := &report.Result{Objects: []*report.ObjectResult{object("")}, Rollback: &report.Result{Objects: []*report.ObjectResult{object("")}}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("cleaned: %+v", r.Objects[0])
	}
	short, root := ShortenPaths(r)
	o := short.Objects[0]
	if root != "/srv/salt/shop" || o.Source.File != "web.sls" || o.Why[0] != "see web.sls" || short.Rollback.Objects[0].Why[0] != "see web.sls" {
		t.Errorf("%q: shortened: %+v", root, o)
	}
	if o.Diff != "+/srv/salt/shop/data" || o.Changes[0].New != "/srv/salt/shop/data" {
		t.Errorf("what the object holds is shortened: %+v", o)
	}
}

// The line of a failure while the run goes on has the fact; what to do is in the list at the end.
func TestFirstSentence(t *testing.T) {
	for in, want := range map[string]string{
		"conflict: kubectl owns .spec.replicas (5 on the cluster, 2 in the bundle). Take the fields with --force-conflicts": "conflict: kubectl owns .spec.replicas (5 on the cluster, 2 in the bundle)",
		"a label (e.g. 'my-name', or '123-abc')":               "a label (e.g. 'my-name', or '123-abc')",
		"Deployment.apps \"web\" is invalid: spec.A: too long": "Deployment.apps \"web\" is invalid: spec.A: too long",
		"one.\nTwo": "one",
		"":          "",
	} {
		if got := FirstSentence(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
