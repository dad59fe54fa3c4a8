package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
)

// The soak: random commands on random bundles, with random faults and a second
// actor, against a model of what must be on the cluster. scripts/soak runs it.

// soakBundle is the objects of a bundle, by a key of their own.
type soakBundle map[string]string

func (b soakBundle) text() string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(b)) {
		texts = append(texts, b[key])
	}
	return documents(texts...)
}

// soakObject is one that a bundle may hold, in one of a few versions.
type soakObject struct {
	key, needs string
	text       func(version string) string
}

func soakObjects() []soakObject {
	same := func(text string) func(string) string { return func(string) string { return text } }
	valued := func(text string) func(string) string {
		return func(version string) string {
			return strings.NewReplacer("key: value", "key: value-"+version, "size: 1", "size: "+version, "replicas: 1", "replicas: "+version,
				"name: c,", "name: c-"+version+",").Replace(text)
		}
	}
	objects := []soakObject{{"always", "", valued(configMap("always"))}}
	for _, name := range []string{"goes", "stays", "comes"} {
		namespace := "a namespace " + name
		objects = append(objects, soakObject{namespace, "", same(platformNamespace(name))},
			soakObject{"inside " + name, namespace, valued(configMapIn("{ns}-"+name, "inside"))},
			soakObject{"deployment " + name, namespace, valued(strings.ReplaceAll(deployment("web", 1, "1m"), "namespace: {ns}", "namespace: {ns}-"+name))})
	}
	for _, kind := range []string{"Widget", "Gadget"} {
		plural := strings.ToLower(kind) + "s"
		objects = append(objects, soakObject{"a CRD " + plural, "", same(platformCRD(plural, kind))},
			soakObject{"resource " + kind, "a CRD " + plural, valued(platformResource(kind))})
	}
	for i := range 4 {
		n := strconv.Itoa(i)
		objects = append(objects, soakObject{"map " + n, "", valued(configMap("map-" + n))},
			soakObject{"account " + n, "", same(serviceAccount("account-" + n))},
			soakObject{"role " + n, "", same(platformRole("role_" + n))})
	}
	recreated := strings.Replace(job("migrate", "backoffLimit: 1"), "name: migrate,", "name: migrate, annotations: {brine.dev/on-immutable: recreate},", 1)
	return append(objects,
		soakObject{"dependent", "map 1", valued(configMap("dependent", dependsOn("/namespaces/{ns}/ConfigMap/map-1")))},
		soakObject{"secret", "", func(version string) string {
			return "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: '{ns}'}\nstringData: {password: hush-" + version + "}\n"
		}},
		soakObject{"deployment", "", valued(deployment("web", 1, "1m"))},
		soakObject{"job", "", valued(recreated)},
		soakObject{"set", "", valued(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: "{ns}"}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`)})
}

// soaker is one worker: a fixture, and what must be on it.
type soaker struct {
	*fixture
	random    *rand.Rand
	objects   []soakObject
	have      soakBundle
	revisions map[int]soakBundle
	requests  map[string]int // of the longest run of a command
	report    *soakReport
}

// soakReport counts what all workers did.
type soakReport struct {
	mu                sync.Mutex
	steps, violations int
	commands, hows    map[string]int
	stopped           bool
	// Steps hold idle; who measures waits until none is under way.
	idle       sync.RWMutex
	goroutines []int
	heap       []uint64
}

func (r *soakReport) note(command, how string, violated bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	r.commands[command]++
	if how != "" {
		r.hows[how]++
	}
	if violated {
		r.violations++
		r.stopped = r.stopped || os.Getenv("BRINE_TEST_SOAK_KEEP_GOING") == ""
	}
}

func (r *soakReport) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// measure notes goroutines and memory while nothing is under way.
func (r *soakReport) measure() {
	r.idle.Lock()
	defer r.idle.Unlock()
	time.Sleep(time.Second) // connections that were closed end their goroutines
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.goroutines = append(r.goroutines, runtime.NumGoroutine())
	r.heap = append(r.heap, m.HeapAlloc>>20)
}

func (r *soakReport) table(seed uint64, took time.Duration) string {
	var b strings.Builder
	rows := func(title string, counts map[string]int) {
		fmt.Fprintf(&b, "| %s | steps |\n|---|---|\n", title)
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&b, "| %s | %d |\n", name, counts[name])
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "seed %d, %s, %d steps, %d violations\n\n", seed, took.Round(time.Second), r.steps, r.violations)
	rows("command", r.commands)
	rows("disturbed by", r.hows)
	fmt.Fprintf(&b, "goroutines %v\nheap in MiB %v\n", r.goroutines, r.heap)
	return b.String()
}

func TestSoak(t *testing.T) {
	text := os.Getenv("BRINE_TEST_SOAK")
	if text == "" {
		t.Skip("scripts/soak runs this")
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	workers, err := strconv.Atoi(os.Getenv("BRINE_TEST_SOAK_WORKERS"))
	if err != nil {
		workers = 2
	}
	seed, begin := chaosSeed(t), time.Now()
	t.Logf("BRINE_TEST_SEED=%d", seed)
	report := &soakReport{commands: map[string]int{}, hows: map[string]int{}}
	cluster := clustertest.Shared(t)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for step, k := 0, (*soaker)(nil); time.Since(begin) < duration && !report.over(); step++ {
				if k == nil {
					k = newSoaker(fixtureOn(t, cluster), report)
				}
				report.idle.RLock()
				ok := t.Run(fmt.Sprintf("%d/%d", worker, step), func(t *testing.T) {
					k.random = rand.New(rand.NewPCG(seed, uint64(worker)<<32+uint64(step)))
					k.step(t)
				})
				report.idle.RUnlock()
				if !ok {
					k = nil // what is on the cluster is nobody's guess
				}
				if worker == 0 && step%25 == 0 {
					report.measure()
				}
			}
		})
	}
	group.Wait()
	report.measure()
	table := report.table(seed, time.Since(begin))
	t.Log(table)
	if path := os.Getenv("BRINE_TEST_SOAK_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
			t.Error(err)
		}
	}
	// The first numbers are of caches that were not filled yet.
	if n := len(report.heap); n > 4 {
		if early, late := slices.Max(report.goroutines[1:n/2]), slices.Min(report.goroutines[n/2:]); late > early+50 {
			t.Errorf("goroutines grow: %v", report.goroutines)
		}
		if early, late := slices.Max(report.heap[1:n/2]), slices.Min(report.heap[n/2:]); late > 2*early+20 {
			t.Errorf("memory grows (MiB): %v", report.heap)
		}
	}
}

func newSoaker(s *fixture, report *soakReport) *soaker {
	k := &soaker{fixture: s, objects: soakObjects(), have: soakBundle{}, revisions: map[int]soakBundle{}, requests: map[string]int{}, report: report}
	all := soakBundle{}
	for _, o := range k.objects {
		all[o.key] = o.text("1")
	}
	for _, o := range s.objectsOf(all.text()) {
		if o.namespace() == "" {
			s.goneAfter(o.resource, o.name())
		}
	}
	return k
}

// bundle is another one than the last: some objects come, go, change.
func (k *soaker) bundle() soakBundle {
	next := soakBundle{}
	for _, o := range k.objects {
		before, was := k.have[o.key]
		dice := k.random.IntN(100)
		switch {
		case o.needs != "" && next[o.needs] == "":
		case o.key == "always", !was && dice < 30, was && dice < 20:
			next[o.key] = o.text(strconv.Itoa(1 + k.random.IntN(3)))
		case was && dice < 85:
			next[o.key] = before
		}
	}
	return next
}

// step does one thing, looks whether all is as it must be, and cleans up after
// the second actor.
func (k *soaker) step(t *testing.T) {
	t.Helper()
	s := *k.fixture
	s.TB = t
	command, how, want := "", "", k.have
	defer func() { k.report.note(command, how, t.Failed()) }()
	next := k.bundle()
	applied := next
	switch dice := k.random.IntN(100); {
	case dice < 8:
		command, applied = "apply, again", k.have
		k.again(t, &s)
	case dice < 18:
		command, want = "preview, then apply", next
		k.previewed(t, &s, next)
	case dice < 24:
		command, want = "two at once", next
		k.twoAtOnce(t, &s, next)
	case dice < 30:
		command, applied = "another inventory with the same object", k.have
		k.overlap(t, &s)
	default:
		c := k.command(next)
		command, want = c.name, c.model
		if c.name == "rollback" {
			applied = want
		}
		how = k.disturbed(t, &s, c)
	}
	if t.Failed() {
		t.Logf("the bundle before:\n%s", strings.ReplaceAll(k.have.text(), "{ns}", s.ns))
		return
	}
	k.have = want
	k.learn(t, &s, applied)
}

// soakCommand is a command that may be disturbed, and what it makes of the cluster.
type soakCommand struct {
	chaosCommand
	model soakBundle
}

func (k *soaker) command(next soakBundle) *soakCommand {
	c := &soakCommand{chaosCommand{name: "apply", args: []string{"apply", "-f", "{file}"}, text: next.text()}, next}
	switch dice := k.random.IntN(100); {
	case dice < 12:
		c.name, c.args = "apply --no-prune", append(c.args, "--no-prune")
		c.model = maps.Clone(k.have)
		maps.Copy(c.model, next)
	case dice < 30 && len(k.revisions) > 1:
		numbers := slices.Sorted(maps.Keys(k.revisions))
		newest := numbers[len(numbers)-1]
		// Those that this very step may trim are left alone: it runs twice.
		numbers = slices.DeleteFunc(numbers, func(n int) bool { return n < newest-6 })
		number := numbers[k.random.IntN(max(1, len(numbers)-1))]
		c.name, c.args, c.text, c.model = "rollback", []string{"rollback", strconv.Itoa(number)}, "", k.revisions[number]
	case dice < 42 && len(k.have) > 0:
		c.name, c.args, c.text, c.model = "destroy", []string{"destroy"}, "", soakBundle{}
	}
	if len(c.model) > 0 {
		c.want = c.model.text()
	}
	return c
}

// disturbed runs a command, half of the time with a fault or a second actor.
func (k *soaker) disturbed(t *testing.T, s *fixture, c *soakCommand) string {
	t.Helper()
	how, hows := &disturbance{}, faults()
	if c.name != "apply --no-prune" { // which would not put right what somebody did to the rest
		hows = append(hows, actors()...)
	}
	if k.random.IntN(2) == 0 {
		how = &hows[k.random.IntN(len(hows))]
	}
	both := maps.Clone(k.have)
	maps.Copy(both, c.model)
	tr := newTrial(s, s.objectsOf(both.text()), &c.chaosCommand, how, k.random)
	places := max(k.requests[c.name], 60)
	if how.fits != nil {
		places = max(places/6, 1) // most faults are of a few requests only
	}
	hit := false
	if how.name == "" {
		tr.disturbed(0).want(t, 0)
	} else {
		hit = tr.run(t, 1+k.random.IntN(places), places)
	}
	k.requests[c.name] = max(k.requests[c.name], len(tr.proxy.Requests()))
	if t.Failed() {
		return how.name
	}
	k.cleanUp(t, tr)
	if again := tr.next("--force-conflicts", "--inventory-policy=adopt-all"); again.exit != 0 {
		t.Fatalf("%s: after all was cleaned up it ends with exit code %d:\n%s", tr.what(), again.exit, again.stderr)
	}
	tr.deed = nil
	tr.ends(t, "in the end")
	if !hit {
		return ""
	}
	return how.name
}

// cleanUp takes away what the second actor left.
func (k *soaker) cleanUp(t *testing.T, tr *trial) {
	t.Helper()
	d := tr.deed
	if d == nil {
		return
	}
	// What destroy has deleted for good, nobody puts half of it back.
	if tr.command.name != "destroy" || !d.lostInventory {
		if err := d.undoOnce(); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	wanted := map[string]bool{}
	if tr.command.want != "" {
		for _, o := range tr.objectsOf(tr.command.want) {
			wanted[o.String()] = true
		}
	}
	owned := tr.ours()
	var leftover []*target
	if d.theirs != nil && owned[d.theirs.String()] == nil {
		leftover = append(leftover, d.theirs)
	}
	if d.lostInventory {
		for name, o := range owned {
			if !wanted[name] {
				leftover = append(leftover, o)
			}
		}
	}
	background := metav1.DeletePropagationBackground
	for _, o := range leftover {
		err := tr.client(o.resource, o.namespace()).Delete(t.Context(), o.name(), metav1.DeleteOptions{PropagationPolicy: &background})
		if ignoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for _, o := range leftover {
		tr.eventually(o.String()+" is gone", func() bool { _, err := tr.read(o); return apierrors.IsNotFound(err) })
	}
}

// again: the same bundle once more changes nothing.
func (k *soaker) again(t *testing.T, s *fixture) {
	t.Helper()
	if len(k.have) == 0 {
		return
	}
	did := s.apply(k.have.text()).want(t, 0)
	for _, o := range did.result.Objects {
		if o.Action != "unchanged" {
			t.Errorf("%s %s was %s: %s", o.Kind, o.Name, o.Action, o.Reason)
		}
	}
	k.ends(t, s, k.have)
}

// previewed: a preview writes nothing, and says what the apply then does.
func (k *soaker) previewed(t *testing.T, s *fixture, next soakBundle) {
	t.Helper()
	through := *s
	p := through.proxied()
	preview := through.preview(next.text()).want(t, 0)
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("the preview wrote: %v", describe(writes))
	}
	same(t, preview, s.apply(next.text()).want(t, 0))
	k.ends(t, s, next)
}

// twoAtOnce: one of two runs does the work, the other waits, or is locked out.
func (k *soaker) twoAtOnce(t *testing.T, s *fixture, next soakBundle) {
	t.Helper()
	args := []string{"apply", "-f", s.file(next.text()), "--inventory", s.inventory, "--namespace", s.ns, "--timeout=3m"}
	var dids [2]outcome
	var group sync.WaitGroup
	for i := range dids {
		group.Go(func() { dids[i] = brine(t, s.kubeconfig, args...) })
	}
	group.Wait()
	for _, did := range dids {
		if did.exit != 0 && did.exit != 5 || dids[0].exit+dids[1].exit == 10 {
			t.Errorf("exit codes %d and %d:\n%s", dids[0].exit, dids[1].exit, did.stderr)
		}
	}
	k.ends(t, s, next)
}

// overlap: another inventory may not take what is ours, nor leave anything.
func (k *soaker) overlap(t *testing.T, s *fixture) {
	t.Helper()
	if k.have["always"] == "" {
		return
	}
	o := s.objectsOf(k.have["always"])[0]
	before, err := s.read(o)
	if err != nil {
		t.Fatal(err)
	}
	other := s.other("other")
	did := other.apply(documents(strings.Replace(configMap("always"), "key: value", "key: theirs", 1), configMap("others")))
	if did.exit != 1 {
		t.Errorf("exit code %d:\n%s", did.exit, did.stderr)
	}
	other.destroy().want(t, 0)
	after, err := s.read(o)
	if err != nil {
		t.Fatal(err)
	}
	if essence(before) != essence(after) {
		t.Errorf("another inventory changed what is ours:\n%s\n%s", essence(before), essence(after))
	}
	s.missing("v1/configmaps", "others", "other")
	k.ends(t, s, k.have)
}

func (k *soaker) ends(t *testing.T, s *fixture, model soakBundle) {
	t.Helper()
	c := &chaosCommand{name: "soak"}
	if len(model) > 0 {
		c.want = model.text()
	}
	tr := &trial{fixture: s, command: c}
	tr.ends(t, "in the end")
	if names := s.orphans(); len(names) > 0 {
		t.Errorf("not in the inventory: %v", names)
	}
}

// learn notes which revisions hold the bundle that this step applied.
func (k *soaker) learn(t *testing.T, s *fixture, applied soakBundle) {
	t.Helper()
	if len(k.have) == 0 {
		k.revisions = map[int]soakBundle{} // with the inventory
		return
	}
	did := brine(t, s.kubeconfig, "history", "--inventory", s.inventory, "-o", "json").want(t, 0)
	var history struct {
		Revisions []struct {
			Number int    `json:"number"`
			Result string `json:"result"`
		} `json:"revisions"`
	}
	if err := json.Unmarshal([]byte(did.stdout), &history); err != nil {
		t.Fatal(err)
	}
	known := map[int]soakBundle{}
	for _, r := range history.Revisions {
		switch before, ok := k.revisions[r.Number]; {
		case ok:
			known[r.Number] = before
		case r.Result == "applied":
			known[r.Number] = applied
		}
	}
	k.revisions = known
}
