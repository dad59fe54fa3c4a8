//go:debug randseednop=0

package simulator

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	legacy "math/rand"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
	dimension = flag.String("around", "", "the dimensions that are around each history, with commas, instead of those of its seed")
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
	legacy.Seed(int64(of.seed)) //nolint:staticcheck // client-go's watches pause by it
	synctest.Test(t, func(*testing.T) { f = play(of) })
	return f
}

// Histories of fixed seeds hold all invariants. scripts/simulate plays others.
func TestHistories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the files of runs
	began, covered, bad, steps, played, converged := time.Now(), map[string]int{}, 0, 0, 0, 0
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM) // what was played until then counts
	defer stop()
	for _, name := range strings.FieldsFunc(*dimension, func(r rune) bool { return r == ',' }) {
		if !hasDimension(name) {
			t.Fatalf("there is no dimension %q: see around_test.go", name)
		}
	}
	for i := 0; ctx.Err() == nil && (i < *histories || time.Since(began) < *during); i++ {
		f := playOne(t, trial{seed: *from + uint64(i)})
		played++
		steps += f.Steps
		if f.Converged {
			converged++
		}
		for key, n := range f.Covered {
			covered[key] += n
		}
		say := t.Logf
		if len(f.Violated) > 0 {
			bad++
			say = t.Errorf
		}
		if len(f.Violated) > 0 || *verbose {
			say("seed %d:\n  %s\nhistory:\n  %s\nlog:\n  %s", f.Seed, strings.Join(f.Violated, "\n  "), strings.Join(f.Script, "\n  "), strings.Join(f.Log, "\n  "))
		}
		if bad > 20 || *first && bad > 0 {
			break
		}
	}
	took := time.Since(began)
	t.Logf("%d histories, %d runs in %s: %.1f histories a second; %d with a violation", played, steps, took.Round(time.Millisecond), float64(played)/took.Seconds(), bad)
	t.Logf("histories that converged: %d of %d", converged, played)
	for _, key := range slices.Sorted(maps.Keys(covered)) {
		t.Logf("%6d  %s", covered[key], key)
	}
}

// The same seed is the same history: what is stored, when and by whom.
func TestReplay(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for seed := uint64(1); seed <= 4; seed++ {
		first := playOne(t, trial{seed: seed})
		for range 2 {
			if again := playOne(t, trial{seed: seed}); !slices.Equal(first.Log, again.Log) {
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

// TestShrink prints what is left of a history that violates something: scripts/simulate --shrink.
func TestShrink(t *testing.T) {
	if *shrink == 0 {
		t.Skip("no -shrink SEED")
	}
	t.Setenv("TMPDIR", t.TempDir())
	shortest, f := shorten(t, *shrink)
	t.Logf("%s\nhistory:\n  %s\nlog:\n  %s\nfor found_test.go:", strings.Join(f.Violated, "\n"), strings.Join(f.Script, "\n  "), strings.Join(f.Log, "\n  "))
	fmt.Println(literal(reflect.ValueOf(shortest)))
}

// Of a history in which a ConfigMap c is what is wrong, a step that brings it is left.
func TestShorten(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	all := invariants
	t.Cleanup(func() { invariants = all })
	invariants = append(slices.Clone(all), invariant{"0 no ConfigMap c", func(o *oracle) (wrong []string) {
		for _, w := range o.own() {
			if w.Kind == bundle.ConfigMapKind && w.Name == "c" && w.After != nil {
				wrong = append(wrong, w.String())
			}
		}
		return wrong
	}})
	seed := uint64(1)
	for violates(playOne(t, trial{seed: seed})) == "" {
		seed++
	}
	shortest, _ := shorten(t, seed)
	if len(shortest.scenes) != 1 || strings.Count(shortest.scenes[0].step.text, "kind:") > 2 || !strings.Contains(shortest.scenes[0].step.text, "name: c,") {
		t.Errorf("seed %d: what is left is %s", seed, literal(reflect.ValueOf(shortest)))
	}
}

// shorten leaves out steps, objects of bundles and disturbances while the same invariant is violated.
func shorten(t *testing.T, seed uint64) (trial, *Finding) {
	t.Helper()
	shortest := trial{seed: seed, scenes: scenesOf(seed)}
	f := playOne(t, shortest)
	first := violates(f)
	if first == "" {
		t.Fatalf("seed %d violates nothing", seed)
	}
	for again := true; again; {
		again = false
		for shorter := range shorterThan(shortest, f.disturbed) {
			if try := playOne(t, shorter); violates(try) == first {
				shortest, f, again = shorter, try, true
				break
			}
		}
	}
	shortest.without = slices.DeleteFunc(shortest.without, func(one string) bool { // of a step that is not played any more
		at, _, _ := strings.Cut(one, ":")
		return !slices.ContainsFunc(shortest.scenes, func(s scene) bool { return s.at == at })
	})
	return shortest, f
}

// violates is the first invariant that a history violated.
func violates(f *Finding) string {
	if len(f.Violated) == 0 {
		return ""
	}
	return strings.Split(f.Violated[0], ":")[0]
}

// shorterThan are histories that lack one thing each.
func shorterThan(of trial, disturbed []string) iter.Seq[trial] {
	return func(yield func(trial) bool) {
		with := func(i int, change func(*scene)) trial {
			shorter := trial{of.seed, slices.Clone(of.scenes), of.without}
			change(&shorter.scenes[i])
			return shorter
		}
		for i := range slices.Backward(of.scenes) {
			if !yield(trial{of.seed, slices.Delete(slices.Clone(of.scenes), i, i+1), of.without}) {
				return
			}
		}
		for i, one := range of.scenes {
			if one.too != nil && (!yield(with(i, func(s *scene) { s.too = nil })) || !yield(with(i, func(s *scene) { s.step, s.too = *one.too, nil }))) {
				return
			}
			if one.mood.name != undisturbed && !yield(with(i, func(s *scene) { s.mood = mood{name: undisturbed} })) {
				return
			}
			for text := range withoutOne(one.step.text) {
				if !yield(with(i, func(s *scene) { s.step.text = text })) {
					return
				}
			}
			if one.too == nil {
				continue
			}
			for text := range withoutOne(one.too.text) {
				too := *one.too
				too.text = text
				if !yield(with(i, func(s *scene) { s.too = &too })) {
					return
				}
			}
		}
		for _, one := range slices.Backward(disturbed) {
			if !yield(trial{of.seed, of.scenes, append(slices.Clone(of.without), one)}) {
				return
			}
		}
	}
}

// withoutOne are bundles that lack one object each.
func withoutOne(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		objects := strings.Split(text, "---\n")
		for i := 1; i < len(objects); i++ { // the first one is empty
			if !yield(strings.Join(slices.Delete(slices.Clone(objects), i, i+1), "---\n")) {
				return
			}
		}
	}
}

// literal is a value as Go says it, without what is zero.
func literal(v reflect.Value) string {
	var b strings.Builder
	switch v.Kind() {
	case reflect.Pointer:
		return "&" + literal(v.Elem())
	case reflect.String:
		if text := v.String(); strings.Contains(text, "\n") {
			return "`" + text + "`"
		}
		return strconv.Quote(v.String())
	case reflect.Struct:
		b.WriteString(v.Type().Name() + "{")
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				b.WriteString(v.Type().Field(i).Name + ": " + literal(v.Field(i)) + ", ")
			}
		}
		return strings.TrimSuffix(b.String(), ", ") + "}"
	case reflect.Slice:
		b.WriteString(strings.ReplaceAll(v.Type().String(), "simulator.", "") + "{")
		for i := range v.Len() {
			b.WriteString(literal(v.Index(i)) + ", ")
		}
		return strings.TrimSuffix(b.String(), ", ") + "}"
	}
	return fmt.Sprint(v)
}

// Histories that were found once, by what went wrong, violate nothing.
func TestFoundHistories(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, of := range found {
		if f := playOne(t, of); len(f.Violated) > 0 {
			t.Errorf("%s:\n  %s\nhistory:\n  %s\nlog:\n  %s", name, strings.Join(f.Violated, "\n  "), strings.Join(f.Script, "\n  "), strings.Join(f.Log, "\n  "))
		}
	}
}
