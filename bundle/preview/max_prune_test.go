package preview_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A preview of more deletions than --max-prune allows lists them all, and then
// says that apply would refuse.
func TestPreviewBeyondMaxPrune(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ConfigMap("c"), clitest.ConfigMap("d", "annotations: {cli-utils.sigs.k8s.io/on-remove: keep}"), clitest.ConfigMap("e"))).Want(t, 0)
	p := s.Proxied()
	refused := "3 of 5 objects in inventory " + s.Inventory + " would be pruned, more than --max-prune=2 allows"
	out := filepath.Join(t.TempDir(), "plan.json")
	got := s.Preview(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("new")), "--max-prune=2", "--plan-out="+out).Want(t, report.ExitBadBundle).Prints(t, refused)
	for name, action := range map[string]plan.Action{"a": plan.Unchanged, "new": plan.Created, "b": plan.Pruned, "c": plan.Pruned, "d": plan.Detached, "e": plan.Pruned} {
		got.Did(t, "ConfigMap", name, action)
	}
	if got.Result.Summary.Pruned != 3 || len(got.Result.Errors) != 1 {
		t.Errorf("%+v %q", got.Result.Summary, got.Result.Errors)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a plan that is refused was written")
	}
	text := s.Preview(clitest.Documents(clitest.ConfigMap("a")), "--max-prune=2", "-o", "text").Want(t, report.ExitBadBundle)
	if listed, told := strings.Index(text.Stdout, s.NS+"/e"), strings.Index(text.Stdout, refused); told < 0 || listed < told {
		t.Errorf("the error is not said, and then the deletions listed:\n%s\n%s", text.Stdout, text.Stderr)
	}
	s.Apply(clitest.Documents(clitest.ConfigMap("a")), "--max-prune=2").Want(t, report.ExitBadBundle).Prints(t, refused)
	for _, w := range p.Writes() {
		if !w.Query.Has("dryRun") {
			t.Errorf("it wrote: %s %s", w.Method, w.Path)
		}
	}
	s.Exists("v1/configmaps", "b", "c", "d", "e")
	s.Preview(clitest.Documents(clitest.ConfigMap("a")), "--max-prune=3").Want(t, 0)
	// What stays, because something that stays needs it, does not count.
	s.Apply(clitest.Documents(clitest.ConfigMap("a", "annotations: {config.kubernetes.io/depends-on: /namespaces/{ns}/ConfigMap/b}")), "--max-prune=2").Want(t, 0)
	s.Exists("v1/configmaps", "b")
	s.Missing("v1/configmaps", "c", "e")
}
