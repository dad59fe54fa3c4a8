//go:debug randseednop=0

package simulator

import (
	"flag"
	"maps"
	legacy "math/rand"
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
	verbose   = flag.Bool("script", false, "print every history")
)

// TestMain has the encoder of inventories make its channel outside of all bubbles.
func TestMain(m *testing.M) {
	if _, _, err := (&inventory.Content{Bundle: &bundle.Bundle{}}).Encode(); err != nil {
		panic(err)
	}
	m.Run()
}

// playOne plays a history in a bubble of its own.
func playOne(t *testing.T, seed uint64) (f *Finding) {
	t.Helper()
	legacy.Seed(int64(seed)) //nolint:staticcheck // client-go's watches pause by it
	synctest.Test(t, func(*testing.T) { f = play(seed) })
	return f
}

// Histories of fixed seeds hold all invariants. scripts/simulate plays others.
func TestHistories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the files of runs
	began, covered, bad, steps, played := time.Now(), map[string]int{}, 0, 0, 0
	for i := 0; i < *histories || time.Since(began) < *during; i++ {
		f := playOne(t, *from+uint64(i))
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
		first := playOne(t, seed)
		for range 2 {
			if again := playOne(t, seed); !slices.Equal(first.Log, again.Log) {
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
