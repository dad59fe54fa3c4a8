//go:debug randseednop=0

package simulator

import (
	"encoding/json"
	"flag"
	"maps"
	legacy "math/rand"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brine/bundle"
	"brine/inventory"
)

var (
	histories = flag.Int("histories", 60, "how many histories to play")
	from      = flag.Uint64("seed", 1, "seed of the first history")
	during    = flag.Duration("for", 0, "play histories until this time is over")
	first     = flag.Bool("first", false, "end with the first violation")
	shrink    = flag.Uint64("shrink", 0, "seed of a history that is made as short as its violation lets it")
	verbose   = flag.Bool("script", false, "print every history")
)

// TestMain has the encoder of inventories make its channel outside of all bubbles. A history
// leaves nothing behind: the collector of garbage, which took two fifths of the time, has little to find.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	if _, _, err := (&inventory.Content{Bundle: &bundle.Bundle{}}).Encode(); err != nil {
		panic(err)
	}
	m.Run()
}

// playOne plays a history in a bubble of its own.
func playOne(t *testing.T, of trial) (f *Finding) {
	t.Helper()
	legacy.Seed(int64(of.Seed)) //nolint:staticcheck // client-go's watches pause by it
	synctest.Test(t, func(*testing.T) { f = play(of) })
	return f
}

// Histories of fixed seeds hold all invariants. scripts/simulate plays others.
func TestHistories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the files of runs
	began, covered, bad, steps, played := time.Now(), map[string]int{}, 0, 0, 0
	for i := 0; i < *histories || time.Since(began) < *during; i++ {
		f := playOne(t, trial{Seed: *from + uint64(i)})
		played++
		steps += f.Steps
		for key, n := range f.Covered {
			covered[key] += n
		}
		if len(f.Violated) > 0 || *verbose {
			bad++
			t.Errorf("seed %d:\n  %s\nhistory:\n  %s\nlog:\n  %s", f.Seed, strings.Join(f.Violated, "\n  "), strings.Join(f.Script, "\n  "), strings.Join(f.Log, "\n  "))
		}
		if bad > 20 || *first && bad > 0 {
			break
		}
	}
	took := time.Since(began)
	t.Logf("%d histories, %d runs in %s: %.1f histories a second; %d with a violation", played, steps, took.Round(time.Millisecond), float64(played)/took.Seconds(), bad)
	for _, key := range slices.Sorted(maps.Keys(covered)) {
		t.Logf("%6d  %s", covered[key], key)
	}
}

// The same seed is the same history: what is stored, when and by whom.
func TestReplay(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for seed := uint64(1); seed <= 4; seed++ {
		first := playOne(t, trial{Seed: seed})
		for range 2 {
			if again := playOne(t, trial{Seed: seed}); !slices.Equal(first.Log, again.Log) {
				for i := range min(len(first.Log), len(again.Log)) {
					if first.Log[i] != again.Log[i] {
						t.Errorf("seed %d: write %d was\n%s, and is\n%s", seed, i, first.Log[i], again.Log[i])
						break
					}
				}
				break
			}
		}
	}
}

// TestShrink leaves out steps and disturbances while the same invariant is violated, and
// prints what is left: scripts/simulate --shrink.
func TestShrink(t *testing.T) {
	if *shrink == 0 {
		t.Skip("no -shrink SEED")
	}
	t.Setenv("TMPDIR", t.TempDir())
	shortest := trial{Seed: *shrink}
	f := playOne(t, shortest)
	if len(f.Violated) == 0 {
		t.Fatalf("seed %d violates nothing", *shrink)
	}
	violates := func(f *Finding) string {
		if len(f.Violated) == 0 {
			return ""
		}
		return strings.Split(f.Violated[0], ":")[0]
	}
	invariant := violates(f)
	for _, of := range []func() []string{func() []string { return f.played }, func() []string { return f.disturbed }} {
		for _, one := range slices.Backward(of()) {
			if !slices.Contains(of(), one) {
				continue // it went with another one
			}
			try := trial{Seed: *shrink, Without: append(slices.Clone(shortest.Without), one)}
			if shorter := playOne(t, try); violates(shorter) == invariant {
				f, shortest = shorter, try
			}
		}
	}
	shortest.Without = slices.DeleteFunc(shortest.Without, func(one string) bool { // of a step that is not played any more
		step, _, isDisturbance := strings.Cut(one, ":")
		return isDisturbance && !slices.Contains(f.played, step)
	})
	f = playOne(t, shortest)
	text, err := json.Marshal(shortest)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\nhistory:\n  %s\nlog:\n  %s\nreplay:\n%s", strings.Join(f.Violated, "\n"), strings.Join(f.Script, "\n  "), strings.Join(f.Log, "\n  "), text)
}

// Histories that were found once, by what went wrong, violate nothing.
func TestFoundHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var of trial
		if err := json.Unmarshal(text, &of); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if f := playOne(t, of); len(f.Violated) > 0 {
			t.Errorf("%s:\n  %s\nhistory:\n  %s\nlog:\n  %s", file, strings.Join(f.Violated, "\n  "), strings.Join(f.Script, "\n  "), strings.Join(f.Log, "\n  "))
		}
	}
}
