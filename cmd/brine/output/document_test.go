package output

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// A comment has a limited size: what matters most is in it, and it says that something
// was left out.
func TestMarkdownIsLimited(t *testing.T) {
	r := large()
	for i := range 2000 {
		r.Objects = append(r.Objects, &report.ObjectResult{Kind: "ConfigMap", Name: fmt.Sprintf("more-%d", i), Action: plan.Configured, Diff: strings.Repeat("+line\n", 30)})
	}
	text := markdown(r)
	if len(text) > longestComment+500 || !strings.Contains(text, "were left out") || !strings.Contains(text, "spec.x: unknown") {
		t.Errorf("%d bytes: %s", len(text), text[max(0, len(text)-300):])
	}
	outside := regexp.MustCompile("(?s)```diff.*?```|`[^`\n]*`").ReplaceAllString(text, "")
	if strings.Contains(outside, "<script>") || strings.Contains(outside, "<img") {
		t.Errorf("an object's name is markup:\n%s", outside[:2000])
	}
	whole := markdown(&report.Result{Objects: []*report.ObjectResult{{Kind: "ConfigMap", Name: "@all", Action: plan.Failed, Error: "a|b `c`\n```\n"}}})
	if strings.Contains(whole, "left out") || !strings.Contains(whole, "`ConfigMap @all`: a\\|b \\`c\\`") {
		t.Errorf("%s", whole)
	}
}

func TestJUnitIsXML(t *testing.T) {
	r := large()
	r.Objects[2].Action, r.Objects[2].Error = plan.Failed, "<bad> & \"worse\"\x1b[31m"
	var suites struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(junit(cleanResult(r), time.Now())), &suites); err != nil {
		t.Fatal(err)
	}
	if s := suites.Suite; s.Tests != len(s.Cases) || s.Tests != 301 || s.Failures != 2 {
		t.Errorf("%d tests, %d failures, %d cases", s.Tests, s.Failures, len(s.Cases))
	}
}

func TestShortenedDiffs(t *testing.T) {
	whole := "--- /dev/null\n+++ applied\n@@ -0,0 +1,30 @@\n+apiVersion: v1\n+kind: Service\n+metadata:\n+  name: a\n+spec:\n+  ports:\n" + strings.Repeat("+  - port: 1\n", 30) + "+  type: NodePort\n"
	changes := []diff.Change{{Path: "spec.a"}, {Path: "spec.b"}, {Path: `metadata.labels["x.y/z"]`}, {Path: "spec.list[name=q].c"}}
	long := strings.Repeat("+x\n", wholeChange+1)
	for name, c := range map[string]struct {
		o    report.ObjectResult
		want string
	}{
		"new":    {report.ObjectResult{Action: plan.Created, Diff: whole}, "spec.ports (31 lines), spec.type\n… -v or -o json show all of it\n"},
		"small":  {report.ObjectResult{Action: plan.Created, Diff: "+a\n"}, "+a\n"},
		"change": {report.ObjectResult{Action: plan.Configured, Diff: long, Changes: changes}, "~ spec: a, b\n~ metadata.labels: [\"x.y/z\"]\n~ spec.list[name=q]: c\n… -v or -o json show the values\n"},
		"a CRD":  {report.ObjectResult{Action: plan.Configured, Diff: "+a\n", Schema: &diff.SchemaChanges{Fields: []diff.SchemaChange{{Version: "v1", Field: "spec.a", Action: "added"}}, Descriptions: 2}}, "1 field added, 2 descriptions changed\n+ v1 spec.a: added\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&text{}).shorten(&c.o); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := (&text{o: Options{Verbose: true}}).shorten(&c.o); got != c.o.Diff {
				t.Errorf("-v shows %s", got)
			}
		})
	}
}

func TestAnnotationsNameTheLine(t *testing.T) {
	r := &report.Result{
		Objects:  []*report.ObjectResult{{Kind: "Pod", Name: "a", Action: plan.Failed, Error: "100% wrong:\nreally", Source: bundle.Source{File: "dir/a,b.yaml", Line: 7}}},
		Warnings: []string{"b.yaml:3: old"}, Errors: []string{"c.yaml:9 (state \"x\", sls y): gone"},
	}
	text := github(r)
	for _, want := range []string{
		"::error file=dir/a%2Cb.yaml,line=7,title=Pod a::100%25 wrong:%0Areally\n",
		"::warning file=b.yaml,line=3,title=brine::old\n", "::error file=c.yaml,line=9,title=brine::gone\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
