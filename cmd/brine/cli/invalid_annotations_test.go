package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
)

// Marks that say nothing are found before anything is written, by check and
// where there is no cluster as well.
func TestInvalidAnnotations(t *testing.T) {
	text := documents(configMap("a", "annotations: {cli-utils.sigs.k8s.io/on-remove: kep}"),
		configMap("b", `annotations: {client.lifecycle.config.k8s.io/deletion: detatch, brine.dev/timout: "5m"}`), configMap("c", "annotations: {brine.dev/on-immutable: recreat}"))
	says := []string{
		"bundle.yaml:6: ", `invalid value "kep": use keep`, "bundle.yaml:14: ", `invalid value "detatch": use detach`,
		"bundle.yaml:22: ", `invalid value "recreat": use recreate`, "did you mean brine.dev/timeout?",
	}
	late := configMap("a", `annotations: {brine.dev/timeout: "5"}`)

	s := newFixture(t)
	p := s.proxied()
	s.apply(text).want(t, report.ExitBadBundle).prints(t, says...)
	s.preview(text).want(t, report.ExitBadBundle).prints(t, says...)
	s.apply(late).want(t, report.ExitBadBundle).prints(t, "bundle.yaml:6: ", "not a duration")
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
}

func TestInvalidAnnotationsWithoutACluster(t *testing.T) {
	bad := bundleFile(t, documents(configMap("a", "annotations: {cli-utils.sigs.k8s.io/on-remove: kep}"), configMap("b", `annotations: {brine.dev/timeout: soon, brine.dev/timout: "5m"}`)))
	says := []string{bad + ":6: ", `invalid value "kep": use keep`, bad + ":14: ", "not a duration", "did you mean brine.dev/timeout?"}
	offline(t, "check", "-f", bad).want(t, report.ExitBadBundle).prints(t, says...)
	offline(t, "apply", "--dry-run=client", "-o", "json", "-f", bad).want(t, report.ExitBadBundle).prints(t, says...)
}

// A preview of more deletions than --max-prune allows lists them all, and then
// says that apply would refuse.
func TestPreviewBeyondMaxPrune(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"), configMap("c"), configMap("d", "annotations: {cli-utils.sigs.k8s.io/on-remove: keep}"), configMap("e"))).want(t, 0)
	p := s.proxied()
	refused := "3 of 5 objects in inventory " + s.inventory + " would be pruned, more than --max-prune=2 allows"
	out := filepath.Join(t.TempDir(), "plan.json")
	got := s.preview(documents(configMap("a"), configMap("new")), "--max-prune=2", "--plan-out="+out).want(t, report.ExitBadBundle).prints(t, refused)
	for name, action := range map[string]plan.Action{"a": plan.Unchanged, "new": plan.Created, "b": plan.Pruned, "c": plan.Pruned, "d": plan.Detached, "e": plan.Pruned} {
		got.did(t, "ConfigMap", name, action)
	}
	if got.result.Summary.Pruned != 3 || len(got.result.Errors) != 1 {
		t.Errorf("%+v %q", got.result.Summary, got.result.Errors)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a plan that is refused was written")
	}
	text := s.preview(documents(configMap("a")), "--max-prune=2", "-o", "text").want(t, report.ExitBadBundle)
	if listed, told := strings.Index(text.stdout+text.stderr, "/e"), strings.Index(text.stdout+text.stderr, refused); listed < 0 || told < listed {
		t.Errorf("the deletions are not listed, and then the error:\n%s\n%s", text.stdout, text.stderr)
	}
	s.apply(documents(configMap("a")), "--max-prune=2").want(t, report.ExitBadBundle).prints(t, refused)
	for _, w := range p.Writes() {
		if !w.Query.Has("dryRun") {
			t.Errorf("it wrote: %s %s", w.Method, w.Path)
		}
	}
	s.exists("v1/configmaps", "b", "c", "d", "e")
	s.preview(documents(configMap("a")), "--max-prune=3").want(t, 0)
	// What stays, because something that stays needs it, does not count.
	s.apply(documents(configMap("a", "annotations: {config.kubernetes.io/depends-on: /namespaces/{ns}/ConfigMap/b}")), "--max-prune=2").want(t, 0)
	s.exists("v1/configmaps", "b")
	s.missing("v1/configmaps", "c", "e")
}

func TestSkipInvalidWithoutACluster(t *testing.T) {
	text := invalidBundle()
	offline(t, "apply", "--dry-run=client", "-o", "json", "-f", bundleFile(t, text)).want(t, report.ExitBadBundle)
	s := offline(t, "apply", "--dry-run=client", "--validation=skip-invalid", "-o", "json", "-f", bundleFile(t, text)).want(t, report.ExitFailed)
	s.did(t, "Pod", "one", plan.Created)
	s.did(t, "Deployment", "web", plan.Created)
	for _, name := range []string{"external", "cycle-a", "cycle-b", "mutated", "rules", "depends-on-invalid", ""} {
		if o := s.did(t, "Pod", name, plan.Skipped); !strings.Contains(o.Reason, "invalid: ") {
			t.Errorf("the reason of %q is %q", name, o.Reason)
		}
	}
	s.prints(t, "bundle.yaml:", "neither in the bundle nor in the inventory")
	if s.result.Summary.Created != 3 { // a kind that nobody knows offline included
		t.Errorf("%+v", s.result.Summary)
	}
}

// A member that became invalid is left as it is, and told once.
func TestSkippedMemberIsReportedOnce(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"), configMap("gone"))).want(t, 0)
	got := s.apply(documents(configMap("a"), configMap("b", "annotations: {brine.dev/on-immutable: recreat}")), "--validation=skip-invalid").want(t, report.ExitFailed)
	var told []string
	for _, o := range got.result.Objects {
		told = append(told, o.Name+" "+string(o.Action))
	}
	slices.Sort(told)
	if want := []string{"a unchanged", "b skipped", "gone skipped"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	s.holds("ConfigMap a", "ConfigMap b", "ConfigMap gone")
}
