package main_test

import (
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

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// The soak: random commands on random bundles, with random faults and a second
// actor, against a model of what must be on the cluster. scripts/soak runs it.

// soaker is one worker: a fixture, and what must be on it.
type soaker struct {
	*clitest.Fixture
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
					k = newSoaker(clitest.On(t, cluster), report)
				}
				report.idle.RLock()
				ok := t.Run(fmt.Sprintf("%d/%d", worker, step), func(t *testing.T) {
					k.random = rand.New(rand.NewPCG(seed, uint64(worker)<<32+uint64(step)))
					k.step(t)
				})
				report.idle.RUnlock()
				if !ok {
					k = nil // what is on the cluster is not known
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

func newSoaker(s *clitest.Fixture, report *soakReport) *soaker {
	k := &soaker{Fixture: s, objects: soakObjects(), have: soakBundle{}, revisions: map[int]soakBundle{}, requests: map[string]int{}, report: report}
	all := soakBundle{}
	for _, o := range k.objects {
		all[o.key] = o.text("1")
	}
	for _, o := range objectsOf(s, all.text()) {
		if o.namespace() == "" {
			s.GoneAfter(o.resource, o.name())
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
	s := *k.Fixture
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
		t.Logf("the bundle before:\n%s", strings.ReplaceAll(k.have.text(), "{ns}", s.NS))
		return
	}
	k.have = want
	k.learn(t, &s, applied)
}
