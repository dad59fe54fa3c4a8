package run_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

func TestApplyAndDestroy(t *testing.T) {
	s := clitest.New(t)
	text := clitest.Documents(clitest.ConfigMap("settings"), clitest.Deployment("web", 2, "1m"))
	s.Apply(text).Want(t, 0).Did(t, "Deployment", "web", plan.Created)
	if got, want := s.Members(), []string{"ConfigMap " + s.NS + "/settings", "Deployment.apps " + s.NS + "/web"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.Apply(text).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
	s.Destroy().Want(t, 0).Did(t, "Deployment", "web", plan.Pruned)
	s.Missing("v1/configmaps", "settings", "inv")
	s.Missing("apps/v1/deployments", "web")
}

// shuffled writes the documents of all files of a folder into one, in random
// order.
func shuffled(t testing.TB, folder string, seed uint64) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	var documents []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for d := range strings.SplitSeq("\n"+string(text), "\n---") {
			d = strings.TrimPrefix(strings.TrimSpace(d), "#!jinja | metalk8s_kubernetes")
			if strings.Contains(d, "kind:") {
				documents = append(documents, d)
			}
		}
	}
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
	path := filepath.Join(t.TempDir(), "shuffled.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(documents, "\n---\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func counts(r *report.Result) string {
	s := r.Summary
	return fmt.Sprintf("created %d configured %d unchanged %d recreated %d pruned %d detached %d skipped %d failed %d ready %d notReady %d",
		s.Created, s.Configured, s.Unchanged, s.Recreated, s.Pruned, s.Detached, s.Skipped, s.Failed, s.Ready, s.NotReady)
}

// memberWrites are the writes that were not to brine's own records.
func memberWrites(p *clustertest.Proxy) []string {
	var writes []string
	for _, r := range p.Writes() {
		if !strings.Contains(r.Path, "/leases") && !strings.Contains(r.Path, "/configmaps/platform") && !strings.Contains(r.Path, "-revision-") &&
			(r.Method != http.MethodPost || !strings.HasSuffix(r.Path, "/configmaps")) {
			writes = append(writes, r.Method+" "+r.Path)
		}
	}
	return writes
}

// statusWaits are the objects that were waited for because they had not said yet how they are.
// None of them needs another one, at whatever distance: together they cost one such wait.
func statusWaits(t *testing.T, r *report.Result) []string {
	t.Helper()
	type id struct{ group, kind, namespace, name string }
	needs, waited := map[id][]id{}, map[id]bool{}
	var names []string
	for _, o := range r.Objects {
		at := id{o.Group, o.Kind, o.Namespace, o.Name}
		for _, n := range o.Needs {
			needs[at] = append(needs[at], id{n.Group, n.Kind, n.Namespace, n.Name})
		}
		if slices.ContainsFunc(o.Waits, func(w report.Wait) bool { return strings.Contains(w.Reason, "counts as ready after") }) {
			waited[at] = true
			names = append(names, o.Kind+" "+o.Name)
		}
	}
	var count func(at id) int
	count = func(at id) int {
		most := 0
		for _, n := range needs[at] {
			most = max(most, count(n))
		}
		if waited[at] {
			most++
		}
		return most
	}
	for at := range waited {
		if n := count(at); n > 1 {
			t.Errorf("%v is the last of %d that were waited for one after the other", at, n)
		}
	}
	return names
}

// TestRealReleasesUpgradeAndDowngradeInOneRun is the main job: two releases of a real platform, to
// and fro, each in one run, whatever the order of the documents.
func TestRealReleasesUpgradeAndDowngradeInOneRun(t *testing.T) {
	release, before := clitest.RealBundle(t, "metalk8s-new"), clitest.RealBundle(t, "metalk8s-old")
	c := clustertest.New(t)
	p := c.Proxy(t, clustertest.ProxyOptions{})
	run := func(bundle string) *report.Result {
		t.Helper()
		p.Forget()
		got := clitest.Run(t, p.Kubeconfig, "apply", "-f", bundle, "--name", "platform", "--timeout=5m").Want(t, 0)
		if got.Result.Summary.NotReady != 0 || len(got.Result.Errors) != 0 {
			t.Fatalf("not all is ready: %s %v", counts(got.Result), got.Result.Errors)
		}
		waited := statusWaits(t, got.Result)
		t.Logf("%d objects said nothing yet, and were waited for at the same time: %v", len(waited), waited)
		if got.Result.Summary.Unchanged == len(got.Result.Objects) && len(waited) > 0 {
			t.Errorf("an unchanged run waited for the first status of %v", waited)
		}
		return got.Result
	}
	first := run(release)
	if got, want := counts(first), "created 101 configured 0 unchanged 0 recreated 0 pruned 0 detached 0 skipped 0 failed 0 ready 101 notReady 0"; got != want {
		t.Errorf("first run: %s, want %s", got, want)
	}
	kinds := map[string]bool{}
	for _, o := range first.Objects {
		kinds[o.Kind] = true
	}
	if got, most := len(p.Requests()), 101+3*len(kinds)+20; got > most {
		t.Errorf("first run: %d requests, at most %d allowed", got, most)
	}

	again := run(release)
	if got, want := counts(again), "created 0 configured 0 unchanged 101 recreated 0 pruned 0 detached 0 skipped 0 failed 0 ready 101 notReady 0"; got != want {
		t.Errorf("second run: %s, want %s", got, want)
	}
	if writes := memberWrites(p); len(writes) > 0 {
		t.Errorf("the second run wrote %v", writes)
	}
	if got, most := len(p.Requests()), 2*len(kinds)+15; got > most {
		t.Errorf("second run: %d requests, at most %d allowed", got, most)
	}

	older := run(before)
	members := map[string]bool{}
	for _, o := range older.Objects {
		if o.Action != plan.Pruned && o.Action != plan.Detached {
			members[o.Kind+" "+o.Namespace+"/"+o.Name] = true
		}
	}
	for _, o := range first.Objects {
		name := o.Kind + " " + o.Namespace + "/" + o.Name
		left := slices.ContainsFunc(older.Objects, func(x *report.ObjectResult) bool {
			return x.Kind+" "+x.Namespace+"/"+x.Name == name && (x.Action == plan.Pruned || x.Action == plan.Detached && x.Kind == "CustomResourceDefinition")
		})
		if left == members[name] {
			t.Errorf("%s: pruned or kept is %v, but the older release has it is %v", name, left, members[name])
		}
	}
	run(shuffled(t, release, 7))

	gone := clitest.Run(t, p.Kubeconfig, "destroy", "--name", "platform", "--timeout=5m").Want(t, 0)
	if s := gone.Result.Summary; s.Pruned != 95 || s.Detached != 6 { // cert-manager's chart keeps its CRDs
		t.Errorf("destroy: %s", counts(gone.Result))
	}
	api := c.Dynamic(t)
	s := &clitest.Fixture{TB: t, API: api}
	for _, resource := range []string{"v1/namespaces", "rbac.authorization.k8s.io/v1/clusterroles", "apiextensions.k8s.io/v1/customresourcedefinitions", "v1/persistentvolumes", "v1/configmaps", "v1/secrets", "coordination.k8s.io/v1/leases"} {
		list, err := s.Resources(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if bundle.KeptBy(u) == "" && (strings.HasPrefix(u.GetName(), "metalk8s") || u.GetLabels()["app.kubernetes.io/managed-by"] == "salt" || strings.HasPrefix(u.GetName(), "platform")) {
				t.Errorf("destroy left %s %s", u.GetKind(), u.GetName())
			}
		}
	}
}

// Shuffled from the start, the release gets ready in one run just as well.
func TestOrderOfDocumentsDoesNotMatter(t *testing.T) {
	release := clitest.RealBundle(t, "metalk8s-new")
	c := clustertest.New(t)
	for seed := range uint64(2) {
		got := clitest.Run(t, c.Kubeconfig, "apply", "-f", shuffled(t, release, seed), "--name", "platform", "--timeout=5m").Want(t, 0)
		if s := got.Result.Summary; s.Created+s.Configured != 101 || s.Ready != 101 { // the CRDs that the chart keeps are adopted the second time
			t.Errorf("seed %d: %s", seed, counts(got.Result))
		}
		clitest.Run(t, c.Kubeconfig, "destroy", "--name", "platform", "--timeout=5m").Want(t, 0)
	}
}

// APIServices without a backend never become available: they are named with
// their reason, the rest is ready, other bundles are not disturbed, and no
// namespace hangs when all is deleted.
func TestUnreadyAPIServicesBlockNothingElse(t *testing.T) {
	release, unready := clitest.RealBundle(t, "metalk8s-new"), clitest.RealBundle(t, "unready")
	c := clustertest.New(t)
	got := clitest.Run(t, c.Kubeconfig, "apply", "-f", filepath.Join(release, "namespaces.yaml"), "-f", unready, "--name", "unready", "--timeout=15s").Want(t, report.ExitNotReady)
	for _, name := range []string{"v1beta1.custom.metrics.k8s.io", "v1beta1.metrics.k8s.io"} {
		if o := got.Object(t, "APIService", name); o.Ready == "ready" || !strings.Contains(o.Reason, "FailedDiscoveryCheck") {
			t.Errorf("%s: %s: %s", name, o.Ready, o.Reason)
		}
	}
	if s := got.Result.Summary; s.NotReady != 2 || s.Ready != s.Created-2 {
		t.Errorf("%s: want all ready but two", counts(got.Result))
	}
	clitest.Run(t, c.Kubeconfig, "apply", "-f", filepath.Join(release, "dex-chart.yaml"), "--name", "dex", "--timeout=60s").Want(t, 0)
	clitest.Run(t, c.Kubeconfig, "destroy", "--name", "dex", "--timeout=60s").Want(t, 0)
	clitest.Run(t, c.Kubeconfig, "destroy", "--name", "unready", "--timeout=60s").Want(t, 0)
	list, err := (&clitest.Fixture{TB: t, API: c.Dynamic(t)}).Resources("v1/namespaces").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].GetName(), "metalk8s") {
			t.Errorf("namespace %s is still there", list.Items[i].GetName())
		}
	}
}

// A namespace that holds what is not ours stays, and so does the inventory.
func TestUnmanagedObjectsKeepTheirNamespace(t *testing.T) {
	s := clitest.New(t)
	name := s.NS + "-extra"
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}-extra}\n---\n" + strings.ReplaceAll(clitest.ConfigMap("ours"), "{ns}", "{ns}-extra")
	s.GoneAfter("v1/namespaces", name)
	s.Apply(text).Want(t, 0)
	s.Create("v1/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: {ns}-extra}\n")
	s.Destroy().Want(t, report.ExitFailed).Prints(t, "ConfigMap "+name+"/theirs", "--force-namespaces")
	if s.Live("v1/configmaps", name, "theirs") == nil {
		t.Error("what is not ours was deleted")
	}
	if got := s.Members(); !slices.Equal(got, []string{"Namespace " + name}) {
		t.Errorf("the inventory holds %v", got)
	}
	s.Destroy("--force-namespaces").Want(t, 0)
	if s.Live("v1/namespaces", "", name) != nil {
		t.Error("the namespace is still there")
	}
}

// Bad input is exit code 3, tells all its problems with file and line, and
// sends no request that writes.
func TestBadInputIsRefusedWithItsLines(t *testing.T) {
	good := clitest.ConfigMap("fine")
	cases := map[string]struct {
		text string
		says []string
	}{
		"tab":                {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n", []string{":11", "tab"}},
		"duplicate key":      {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n", []string{":12", "name"}},
		"two for one object": {good + "---\n" + strings.Replace(good, "value", "other", 1), []string{":1", ":8", "ConfigMap"}},
		"unknown kind":       {good + "---\napiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: a}\n", []string{":8", "Nothing"}},
		"Jinja left over":    {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'x-{{ pillar.name }}'}\n", []string{":10", "Jinja"}},
		"None as a name":     {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: None}\n", []string{":10", "None"}},
		"Python tag":         {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: !!python/object:os.x {a: b}\n", []string{":11", "python"}},
		"boolean label":      {good + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {enabled: yes}\n", []string{":12", "enabled", "\"yes\""}},
		"cycle": {clitest.Documents(clitest.ConfigMap("a", "annotations: {config.kubernetes.io/depends-on: /namespaces/{ns}/ConfigMap/b}"),
			clitest.ConfigMap("b", "annotations: {config.kubernetes.io/depends-on: /namespaces/{ns}/ConfigMap/a}")), []string{":1", ":9", "cycle"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			p := s.Proxied()
			got := s.Apply(c.text).Want(t, report.ExitBadBundle)
			got.Prints(t, c.says...)
			if writes := p.Writes(); len(writes) > 0 {
				t.Errorf("it wrote: %v", writes)
			}
		})
	}
	t.Run("empty over full", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(good).Want(t, 0)
		p := s.Proxied()
		s.Apply("# nothing\n").Want(t, report.ExitBadBundle).Prints(t, "--allow-empty")
		if writes := p.Writes(); len(writes) > 0 {
			t.Errorf("it wrote: %v", writes)
		}
		s.Exists("v1/configmaps", "fine")
	})
	t.Run("all problems at once", func(t *testing.T) {
		s := clitest.New(t)
		got := s.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: None}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {a: 1}}\n").Want(t, report.ExitBadBundle)
		if len(got.Result.Errors) != 2 {
			t.Errorf("it tells %v", got.Result.Errors)
		}
	})
}

// The first apply costs one PATCH an object and few other requests; a second
// one asks for no single object at all. These numbers are exact.
func TestRequestCounts(t *testing.T) {
	s := clitest.New(t)
	var texts []string
	for i := range 60 {
		texts = append(texts, clitest.ConfigMap(fmt.Sprintf("c%d", i)), clitest.ServiceAccount(fmt.Sprintf("s%d", i)))
	}
	text := clitest.Documents(texts...)
	p := s.Proxied()
	s.Apply(text).Want(t, 0)
	by := map[string]int{}
	for _, r := range p.Requests() {
		by[r.Method]++
	}
	// The lock (POST, PUT), the inventory (POST, PUT), the fingerprints, the origins; one more
	// PATCH is the revision.
	if by[http.MethodPatch] != 121 || by[http.MethodPost] != 4 || by[http.MethodPut] != 2 || by[http.MethodDelete] != 0 {
		t.Errorf("first apply: %v", by)
	}
	if others := by[http.MethodGet]; others > 3*2+6 {
		t.Errorf("first apply: %d reads", others)
	}
	p.Forget()
	s.Apply(text).Want(t, 0)
	var reads, writes int
	for _, r := range p.Requests() {
		if r.IsWrite() {
			writes++
		} else {
			reads++
		}
	}
	if writes != 0 || reads != 7 {
		t.Errorf("second apply: %d reads, %d writes: %v", reads, writes, p.Requests())
	}

	// A preview of what is there asks for nothing; of what is new it sends one
	// dry run an object, and writes nothing.
	p.Forget()
	s.Preview(text).Want(t, 0)
	if others := len(p.Requests()); others > 2*2+4 || len(p.Writes()) > 0 {
		t.Errorf("preview of no change: %d requests, %d writes", others, len(p.Writes()))
	}
	p.Forget()
	s.Other("new").Preview(strings.ReplaceAll(text, "name: ", "name: new-")).Want(t, 0)
	var dryRuns, others int
	for _, r := range p.Requests() {
		if r.Method == http.MethodPatch {
			dryRuns++
		} else {
			others++
		}
	}
	if dryRuns != 120 || others > 2*2+4 || len(p.Writes()) > 0 {
		t.Errorf("preview of 120 new objects: %d dry runs, %d other requests, %d writes", dryRuns, others, len(p.Writes()))
	}

	// Destroy: one DELETE a member, and those of the records: the lock, the
	// inventory, the fingerprints, the origins, the revision.
	p.Forget()
	s.Destroy().Want(t, 0)
	clear(by)
	for _, r := range p.Requests() {
		by[r.Method]++
	}
	if by[http.MethodDelete] != 120+5 || by[http.MethodPatch] != 0 || by[http.MethodPost] != 0 || by[http.MethodPut] != 1 || by[http.MethodGet] > 3*2+6 {
		t.Errorf("destroy: %v", by)
	}
}

// A conflict names the other manager and the fields; --force-conflicts takes
// them.
func TestConflictNamesTheManagerAndTheFields(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("shared")).Want(t, 0)
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"},"data":{"key":"theirs"}}`)
	force := true
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(t.Context(), "shared", "application/apply-patch+yaml", body, metav1.PatchOptions{FieldManager: "somebody", Force: &force}); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(clitest.ConfigMap("shared"), "value", "ours", 1)
	s.Apply(text).Want(t, report.ExitFailed).Prints(t, "somebody owns", ".data.key", "--force-conflicts")
	s.Apply(text, "--force-conflicts").Want(t, 0)
	if got, _, _ := unstructuredString(s, "shared", "data", "key"); got != "ours" {
		t.Errorf("data.key is %q", got)
	}
}

// An object whose field cannot change is recreated only where that is allowed.
func TestImmutableObjectIsRecreatedOnlyIfAllowed(t *testing.T) {
	s := clitest.New(t)
	job := func(command string, metadata ...string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: once\n  namespace: {ns}\n  " + strings.Join(metadata, "\n  ") +
			"\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: c, image: 'registry.k8s.io/pause:3.10', args: [" + command + "]}]\n"
	}
	s.Apply(job("one")).Want(t, 0)
	for _, run := range []clitest.Outcome{s.Apply(job("two")), s.Preview(job("two"))} {
		run.Want(t, report.ExitFailed).Prints(t, "immutable", "brine.dev/on-immutable")
		if told := run.Did(t, "Job", "once", plan.Failed).Error; strings.Contains(told, "pause:3.10") {
			t.Errorf("the server's answer is told with the value of the field: %s", told)
		}
	}
	s.Apply(job("two"), "--recreate=Job").Want(t, 0).Did(t, "Job", "once", plan.Recreated)
	s.Apply(job("three", "annotations: {brine.dev/on-immutable: recreate}")).Want(t, 0).Did(t, "Job", "once", plan.Recreated)
}

// What depends on a failed object is skipped and says on whom; the rest goes
// on; nothing is pruned.
func TestFailureSkipsDependents(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("old")).Want(t, 0)
	bad := clitest.RefusedService("bad")
	needs := clitest.ConfigMap("needs", "annotations: {config.kubernetes.io/depends-on: /namespaces/{ns}/Service/bad}")
	got := s.Apply(clitest.Documents(bad, needs, clitest.ConfigMap("fine"))).Want(t, report.ExitFailed)
	got.Did(t, "Service", "bad", plan.Failed)
	if o := got.Did(t, "ConfigMap", "needs", plan.Skipped); !strings.Contains(o.Reason, "Service "+s.NS+"/bad") {
		t.Errorf("skipped because %q", o.Reason)
	}
	got.Did(t, "ConfigMap", "fine", plan.Created)
	got.Did(t, "ConfigMap", "old", plan.Skipped)
	s.Exists("v1/configmaps", "old", "fine")
}

func unstructuredString(s *clitest.Fixture, name string, path ...string) (string, bool, error) {
	u := s.ConfigMap(name)
	if u == nil {
		return "", false, nil
	}
	v, ok := u.Object[path[0]].(map[string]any)[path[1]].(string)
	return v, ok, nil
}

// What is still being deleted is waited for, and made again.
func TestTerminatingObjectIsCreatedAgain(t *testing.T) {
	s := clitest.New(t)
	name := s.NS + "-again"
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}-again}\n---\n" + strings.ReplaceAll(clitest.ConfigMap("in-it"), "{ns}", "{ns}-again")
	s.GoneAfter("v1/namespaces", name)
	s.Apply(text).Want(t, 0)
	if err := s.Resources("v1/namespaces").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(text).Want(t, 0).Did(t, "Namespace", name, plan.Created)
	if u := s.Live("v1/configmaps", name, "in-it"); u == nil || u.GetDeletionTimestamp() != nil {
		t.Error("the ConfigMap is not there")
	}
}

// Destroying what is not there is done.
func TestDestroyWithoutAnInventoryIsDone(t *testing.T) {
	s := clitest.New(t)
	s.Destroy().Want(t, 0).Prints(t, "there is no inventory")
}
