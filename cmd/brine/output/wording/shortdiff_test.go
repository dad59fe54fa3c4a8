package wording

import (
	"strings"
	"testing"

	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
)

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
			if got := ShortDiff(&c.o, false); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := ShortDiff(&c.o, true); got != c.o.Diff {
				t.Errorf("-v shows %s", got)
			}
		})
	}
}
