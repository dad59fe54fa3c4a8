package main_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// TestUpstreamProjects takes real projects in two releases through all steps of an upgrade
// and a downgrade; scripts/upstream takes others.
func TestUpstreamProjects(t *testing.T) {
	if version := os.Getenv("BRINE_TEST_KUBERNETES"); version != "" {
		t.Skipf("SKIPPED: the projects' releases ask for more than Kubernetes %s may have", version)
	}
	table := upstreamTable{}
	dirs := []string{os.Getenv("BRINE_TEST_UPSTREAM")}
	if dirs[0] == "" {
		dirs = []string{clitest.RealBundle(t, "."), clitest.RealBundle(t, "upstream")}
	}
	found := false
	for _, dir := range dirs {
		olds, err := filepath.Glob(filepath.Join(dir, "*-old"))
		if err != nil {
			t.Fatal(err)
		}
		for _, old := range olds {
			found = true
			name := strings.TrimSuffix(filepath.Base(old), "-old")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				u := &upstream{T: t, cluster: clustertest.New(t), name: name, old: old, latest: strings.TrimSuffix(old, "-old") + "-new", table: &table}
				u.run()
			})
		}
	}
	if !found {
		t.Fatalf("no NAME-old in %s", strings.Join(dirs, ", "))
	}
}

// upstream is one project on a cluster of its own.
type upstream struct {
	*testing.T
	cluster           *clustertest.Cluster
	name, old, latest string
	recreate          []string // the flags with which the project's objects are recreated
	table             *upstreamTable
}

// wayOn finds in an error what a person would give to go on.
var wayOn = regexp.MustCompile(`--(?:prune-first|recreate)=\S+`)

func (u *upstream) run() {
	var before map[string]bool
	clustertest.Eventually(u.T, "each namespace of a new cluster has its ServiceAccount", func() bool {
		before = u.objects()
		for name := range before {
			if namespace, is := strings.CutPrefix(name, "Namespace /"); is && !before["ServiceAccount "+namespace+"/default"] {
				return false
			}
		}
		return true
	})
	u.step("check old", "", 0, func() clitest.Outcome { return u.offline(u.old) })
	u.step("check new", "", 0, func() clitest.Outcome { return u.offline(u.latest) })
	u.change("first apply", u.old)
	u.again("apply it again", u.old)
	u.change("up", u.latest)
	u.again("apply it again", u.latest)
	u.step("drift", "", 0, func() clitest.Outcome { return u.brine("drift") })
	u.change("down", u.old)
	u.again("apply it again", u.old)
	u.step("rollback (up)", "", 0, func() clitest.Outcome { return u.brine("rollback", u.recreate...) })
	seen := u.brine("destroy", "--dry-run=server")
	u.step("destroy", "", 0, func() clitest.Outcome {
		did := u.brine("destroy")
		u.compare(seen, did)
		for _, o := range did.Result.Objects { // charts keep CRDs
			if o.Action == plan.Detached && strings.Contains(o.Reason, "helm.sh/resource-policy") {
				before[strings.TrimSpace(o.Kind+" "+o.Namespace+"/"+o.Name)] = true
			}
		}
		return did
	})
	after := u.objects()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !before[name] {
			u.table.note(u.name, "left", name)
			u.Errorf("destroy left %s", name)
		}
	}
}

func (u *upstream) brine(command string, args ...string) clitest.Outcome {
	args = append([]string{command, "--name", u.name, "--timeout=4m"}, args...)
	return clitest.Run(u.T, u.cluster.Kubeconfig, args...)
}

func (u *upstream) offline(bundle string) clitest.Outcome {
	return clitest.Command(u.Context(), nil, "check", "-f", bundle, "-o", "json")
}

// change previews and applies a bundle. Where it is refused, and the message names a flag
// with which it goes on, that is given.
func (u *upstream) change(what, bundle string) {
	u.Helper()
	args := append([]string{"-f", bundle}, u.recreate...)
	seen, did := u.brine("preview", args...), u.brine("apply", args...)
	if flag := wayOn.FindString(strings.Join(errorsOf(did), "\n")); flag != "" {
		u.step(what+", without a flag", "names "+flag, report.ExitFailed, func() clitest.Outcome { return did })
		// Again: a policy that the step before made acts only after a second.
		if seen = u.brine("preview", args...); !strings.Contains(strings.Join(errorsOf(seen), "\n"), flag) {
			u.table.note(u.name, "differs", fmt.Sprintf("%s: the preview does not name %s", what, flag))
			u.Errorf("%s: the preview does not name %s", what, flag)
		}
		if args = append(args, flag); strings.HasPrefix(flag, "--recreate=") {
			u.recreate = append(u.recreate, flag)
		}
		seen, did = u.brine("preview", args...), u.brine("apply", args...)
	}
	u.step(what, "", 0, func() clitest.Outcome {
		u.compare(seen, did)
		return did
	})
}

// again applies a bundle that is applied: nothing may change.
func (u *upstream) again(what, bundle string) {
	u.Helper()
	u.step(what, "", 0, func() clitest.Outcome {
		did := u.brine("apply", "-f", bundle)
		for name, action := range did.Actions(u.T) {
			if action != plan.Unchanged {
				u.table.note(u.name, "not the same twice", name)
				u.Errorf("%s: %s was %s", what, name, action)
			}
		}
		return did
	})
}

// compare notes where the preview and the run differ.
func (u *upstream) compare(seen, did clitest.Outcome) {
	u.Helper()
	want, got := seen.Actions(u.T), did.Actions(u.T)
	for name, action := range got {
		if want[name] != action {
			u.table.note(u.name, "differs", fmt.Sprintf("%s: %s, and was %s", name, cmp.Or(want[name], "nothing"), action))
			u.Errorf("%s: the preview says %q, and it was %s", name, want[name], action)
		}
	}
}

// step does one step, and prints a line about it.
func (u *upstream) step(what, note string, exit int, do func() clitest.Outcome) {
	u.Helper()
	out := do()
	line := fmt.Sprintf("%-14s %-30s exit %d", u.name, what, out.Exit)
	if out.Result != nil {
		s := out.Result.Summary
		line += fmt.Sprintf("  created %d, configured %d, unchanged %d, recreated %d, pruned %d, skipped %d, failed %d, not ready %d; %.1f s",
			s.Created, s.Configured, s.Unchanged, s.Recreated, s.Pruned, s.Skipped, s.Failed, s.NotReady, s.Seconds)
	}
	u.Log(strings.TrimSpace(line + "  " + note))
	u.table.step(u.name)
	if out.Exit != exit {
		why := slices.Concat(errorsOf(out), []string{""})[0]
		if n := len(errorsOf(out)); n > 1 {
			why += fmt.Sprintf(" (and %d more)", n-1)
		}
		u.table.note(u.name, "failed", fmt.Sprintf("%s: exit %d: %s", what, out.Exit, why))
		u.Errorf("%s: exit code %d, want %d: %s\n%s", what, out.Exit, exit, strings.Join(errorsOf(out), "\n"), clitest.Clip(out.Stderr))
	}
}

func errorsOf(o clitest.Outcome) []string {
	if o.Result == nil {
		return nil
	}
	return o.Result.Errors
}

// objects are all objects of the cluster that somebody made, by name.
func (u *upstream) objects() map[string]bool {
	u.Helper()
	config := u.cluster.Config(u.T)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		u.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		u.Fatal(err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		u.Fatal(err)
	}
	all := map[string]bool{}
	passing := []string{"Event", "Lease", "EndpointSlice", "Endpoints", "APIService", "PriorityLevelConfiguration", "FlowSchema"} // servers make them
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			u.Fatal(err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if slices.Contains(passing, r.Kind) || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			items, err := client.Resource(gv.WithResource(r.Name)).List(context.WithoutCancel(u.Context()), metav1.ListOptions{})
			if err != nil {
				u.Fatal(err)
			}
			for j := range items.Items {
				if items.Items[j].Name != "kube-root-ca.crt" { // each namespace gets it, some time
					all[strings.TrimSpace(r.Kind+" "+items.Items[j].Namespace+"/"+items.Items[j].Name)] = true
				}
			}
		}
	}
	return all
}

// upstreamTable is what is found, by project.
type upstreamTable struct {
	mu    sync.Mutex
	steps map[string]int
	notes map[string]map[string][]string
}

func (u *upstreamTable) step(project string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.steps == nil {
		u.steps, u.notes = map[string]int{}, map[string]map[string][]string{}
	}
	u.steps[project]++
	u.write()
}

func (u *upstreamTable) note(project, what, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.notes[project] == nil {
		u.notes[project] = map[string][]string{}
	}
	u.notes[project][what] = append(u.notes[project][what], text)
	u.write()
}

// write writes the table, where scripts/upstream wants it: one that is interrupted has it.
func (u *upstreamTable) write() {
	path := os.Getenv("BRINE_TEST_UPSTREAM_TABLE")
	if path == "" {
		return
	}
	columns := []string{"failed", "differs", "not the same twice", "left"}
	text := "| project | steps | " + strings.Join(columns, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n"
	for _, project := range slices.Sorted(maps.Keys(u.steps)) {
		text += fmt.Sprintf("| %s | %d |", project, u.steps[project])
		for _, column := range columns {
			text += " " + cmp.Or(strings.ReplaceAll(strings.Join(u.notes[project][column], "<br>"), "|", `\|`), "-") + " |"
		}
		text += "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		panic(err)
	}
}
