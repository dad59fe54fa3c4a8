package run_test

import (
	"slices"
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// Marks that say nothing are found before anything is written, by check and
// where there is no cluster as well.
func TestInvalidAnnotationsRefuseABundle(t *testing.T) {
	text := clitest.Documents(clitest.ConfigMap("a", "annotations: {cli-utils.sigs.k8s.io/on-remove: kep}"),
		clitest.ConfigMap("b", `annotations: {client.lifecycle.config.k8s.io/deletion: detatch, brine.dev/timout: "5m"}`), clitest.ConfigMap("c", "annotations: {brine.dev/on-immutable: recreat}"))
	says := []string{
		"bundle.yaml:6: ", `invalid value "kep": use keep`, "bundle.yaml:14: ", `invalid value "detatch": use detach`,
		"bundle.yaml:22: ", `invalid value "recreat": use recreate`, "did you mean brine.dev/timeout?",
	}
	late := clitest.ConfigMap("a", `annotations: {brine.dev/timeout: "5"}`)

	s := clitest.New(t)
	p := s.Proxied()
	s.Apply(text).Want(t, report.ExitBadBundle).Prints(t, says...)
	s.Preview(text).Want(t, report.ExitBadBundle).Prints(t, says...)
	s.Apply(late).Want(t, report.ExitBadBundle).Prints(t, "bundle.yaml:6: ", "not a duration")
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
}

func TestInvalidAnnotationsWithoutACluster(t *testing.T) {
	bad := clitest.BundleFile(t, clitest.Documents(clitest.ConfigMap("a", "annotations: {cli-utils.sigs.k8s.io/on-remove: kep}"), clitest.ConfigMap("b", `annotations: {brine.dev/timeout: soon, brine.dev/timout: "5m"}`)))
	says := []string{bad + ":6: ", `invalid value "kep": use keep`, bad + ":14: ", "not a duration", "did you mean brine.dev/timeout?"}
	clitest.Offline(t, "check", "-f", bad).Want(t, report.ExitBadBundle).Prints(t, says...)
	clitest.Offline(t, "apply", "--dry-run=client", "-o", "json", "-f", bad).Want(t, report.ExitBadBundle).Prints(t, says...)
}

func TestSkipInvalidWithoutACluster(t *testing.T) {
	text := invalidBundle()
	clitest.Offline(t, "apply", "--dry-run=client", "-o", "json", "-f", clitest.BundleFile(t, text)).Want(t, report.ExitBadBundle)
	s := clitest.Offline(t, "apply", "--dry-run=client", "--validation=skip-invalid", "-o", "json", "-f", clitest.BundleFile(t, text)).Want(t, report.ExitFailed)
	s.Did(t, "Pod", "one", plan.Created)
	s.Did(t, "Deployment", "web", plan.Created)
	for _, name := range []string{"external", "mutated", "depends-on-invalid"} { // only the cluster knows
		s.Did(t, "Pod", name, plan.Created)
	}
	for _, name := range []string{"cycle-a", "cycle-b", "rules", "depends-on-rules", ""} {
		if o := s.Did(t, "Pod", name, plan.Skipped); !strings.Contains(o.Reason, "invalid: ") {
			t.Errorf("the reason of %q is %q", name, o.Reason)
		}
	}
	s.Prints(t, "bundle.yaml:", "which is not in the bundle: it has to be on the cluster")
	if s.Result.Summary.Created != 6 { // a kind that nobody knows offline included
		t.Errorf("%+v", s.Result.Summary)
	}
}

// A member that became invalid is left as it is, and told once.
func TestSkippedMemberIsReportedOnce(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ConfigMap("gone"))).Want(t, 0)
	got := s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b", "annotations: {brine.dev/on-immutable: recreat}")), "--validation=skip-invalid").Want(t, report.ExitFailed)
	var told []string
	for _, o := range got.Result.Objects {
		told = append(told, o.Name+" "+string(o.Action))
	}
	slices.Sort(told)
	if want := []string{"a unchanged", "b skipped", "gone skipped"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	s.Holds("ConfigMap a", "ConfigMap b", "ConfigMap gone")
}
