package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// compare compares revisions of the fixture's inventory.
func compare(s *clitest.Fixture, flags ...string) clitest.Outcome {
	s.Helper()
	return clitest.Run(s.TB, s.Kubeconfig, append([]string{"diff", "--inventory", s.Inventory}, flags...)...)
}

func TestDiffOfRevisions(t *testing.T) {
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: {ns}}\nstringData: {password: " + value + "}\n"
	}
	digested := func(image string) string {
		return strings.Replace(clitest.Deployment("web", 1, "1m", "annotations: {brine.dev/digest-of: secrets/s}"), "pause:3.10", image, 1)
	}
	withoutNamespace := strings.Replace(clitest.ConfigMap("free"), "  namespace: {ns}\n", "", 1)
	first := clitest.Documents(clitest.ConfigMap("same"), clitest.ConfigMapOf("a", "{key: one}"), clitest.ConfigMap("gone"), secret("first-hidden"), digested("pause:3.10"), clitest.Widgets, clitest.Widget)
	second := clitest.Documents(clitest.ConfigMap("same"), clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("new"), secret("other-hidden"), digested("pause:3.10"), clitest.Widgets, clitest.Widget, withoutNamespace)
	s := clitest.New(t)
	s.Apply(first).Want(t, 0)
	s.Apply(second).Want(t, 0)
	wants := func(d clitest.Outcome) {
		t.Helper()
		if o := d.Did(t, "ConfigMap", "a", plan.Configured); len(o.Changes) != 1 || o.Changes[0].Path != "data.key" || o.Changes[0].Old != "one" || o.Changes[0].New != "two" {
			t.Errorf("a changes in %+v", o.Changes)
		}
		d.Did(t, "ConfigMap", "same", plan.Unchanged)
		d.Did(t, "ConfigMap", "gone", plan.Pruned)
		d.Did(t, "ConfigMap", "new", plan.Created)
		d.Did(t, "Widget", "one", plan.Unchanged)
		d.Did(t, "Deployment", "web", plan.Configured) // its digest of the Secret
		if o := d.Did(t, "Secret", "s", plan.Configured); !strings.Contains(o.Diff, "(changed)") {
			t.Errorf("the Secret's diff is\n%s", strings.ReplaceAll(o.Diff, "hidden", "(a value)"))
		}
		if strings.Contains(d.Stdout, "hidden") {
			t.Error("it shows a value of a Secret")
		}
	}
	wants(compare(s, "1", "2").Want(t, 0))
	wants(compare(s, "1").Want(t, 0))
	wants(compare(s, "1", "-f", s.File(second)).Want(t, 0))
	compare(s, "1", "2", "--detailed-exitcode").Want(t, report.ExitChanges)

	// The cluster is not read, and what was applied is no change.
	p := s.Proxied()
	same := compare(s, "-f", s.File(second), "--detailed-exitcode").Want(t, 0)
	if n := same.Result.Summary.Unchanged; n != len(same.Result.Objects) || n != 8 {
		t.Errorf("%d of %d objects are unchanged:\n%s", n, len(same.Result.Objects), clitest.Clip(same.Stdout))
	}
	for _, r := range p.Requests() {
		if r.IsWrite() || !strings.Contains(r.Path, "/inv") && !strings.HasSuffix(r.Path, "/configmaps") && !strings.HasSuffix(r.Path, "/secrets") {
			t.Errorf("it sent %s %s", r.Method, r.Path)
		}
	}
	text := compare(s, "1", "2", "-o", "text").Want(t, 0)
	text.Prints(t, "Changes of inventory "+s.Inventory+" from revision 1 to revision 2", "2 added, 3 changed, 1 removed", "Removed (1):", "-  key: one", "+  key: two")
	if strings.Contains(text.Stdout, "hidden") {
		t.Error("the text shows a value of a Secret")
	}
	page := compare(s, "1", "2", "-o", "html").Want(t, 0)
	page.Prints(t, "<title>Changes of inventory "+s.Inventory, ">two</td>")
	if strings.Contains(page.Stdout, "-hidden") {
		t.Error("the page shows a value of a Secret")
	}
	for line, want := range map[string]string{
		"1 x": "the revision is not a number", "": "give two revisions", "1 2 -f x": "give two revisions", "7": "no such revision", "-f /none": "/none",
	} {
		compare(s, strings.Fields(line)...).Want(t, 3).Prints(t, want)
	}
}

func TestHistoryShow(t *testing.T) {
	s := clitest.New(t)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: {ns}}\nstringData: {password: very-hidden}\n"
	copies := clitest.ConfigMapOf("copies", "{key: very-hidden}")
	s.Apply(clitest.Documents(clitest.States("one")), "--jid=2026").Want(t, 0)
	s.Apply(clitest.Documents(secret, copies), "--no-prune").Want(t, 0)
	show := func(flags ...string) clitest.Outcome {
		t.Helper()
		got := clitest.Run(t, s.Kubeconfig, append([]string{"history", "show", "--inventory", s.Inventory}, flags...)...)
		if strings.Contains(got.Stdout, "very-hidden") || strings.Contains(got.Stdout, "dmVyeS1oaWRkZW4") {
			t.Error("it shows a value of a Secret")
		}
		return got
	}
	show("1", "-o", "text").Want(t, 0).Prints(t, "# revision:  1\n", "# result:    applied\n", "# jid:       2026\n", "# absent:    ConfigMap "+s.NS+"/old\n", "bundle.yaml", "kind: ConfigMap", "  key: one\n")
	show("2", "-o", "text").Want(t, 0).Prints(t, "# option:    --no-prune=true\n", "kind: Secret")
	show("2", "-o", "html").Want(t, 0).Prints(t, "revision 2", "copies")
	var document struct {
		Kind     string
		Revision struct{ Number int }
		Objects  []report.RevisionObject
	}
	if err := json.Unmarshal([]byte(show("1").Want(t, 0).Stdout), &document); err != nil {
		t.Fatal(err)
	}
	if document.Kind != "Revision" || document.Revision.Number != 1 || len(document.Objects) != 3 || document.Objects[0].Source.SLS != "shop.settings" {
		t.Errorf("it is %+v", document)
	}
	show("9").Want(t, 3).Prints(t, "no such revision")
	show("x").Want(t, 3).Prints(t, "the revision is not a number")
}
