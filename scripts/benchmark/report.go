package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const resultsFile = "results.json"

// report is all that was measured.
type report struct {
	Machine  string            `json:"machine"`
	Time     time.Time         `json:"time"`
	Commit   string            `json:"commit,omitempty"`   // brine's
	Versions map[string]string `json:"versions,omitempty"` // of the other tools
	Results  []result          `json:"results"`
}

func readReport(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return r, nil
}

func (r *report) save(dir string) error { return r.saveAs(filepath.Join(dir, resultsFile)) }

func (r *report) saveAs(file string) error {
	if r.Time.IsZero() {
		r.Time = time.Now().UTC().Truncate(time.Second)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o666)
}

// write writes results.json, results.md and results.svg.
func (r *report) write(dir string) error {
	return errors.Join(
		r.save(dir),
		os.WriteFile(filepath.Join(dir, "results.md"), []byte(r.markdown()), 0o666),
		os.WriteFile(filepath.Join(dir, "results.svg"), []byte(r.picture()), 0o666),
	)
}

// cell is the medians of the runs of one tool at one work.
type cell struct {
	seconds, answered, cpu, memory float64
	load                           float64 // the highest
	toBound                        float64 // seconds to the bound, 0 where there is none
	parallel                       int
	requests, sent, costs          map[string]int
	wire                           wired
	runs                           int
	failed                         string // exit, and the end of what it said
	exit                           int
	said                           string
}

// cell finds the medians; raw's are those of its best concurrency. nil where
// nothing was measured.
func (r *report) cell(tool, work string, count, delay int) *cell {
	byParallel := map[int][]result{}
	for _, x := range r.Results {
		if x.Tool == tool && x.Work == work && x.Count == count && x.Delay == delay {
			byParallel[x.Parallel] = append(byParallel[x.Parallel], x)
		}
	}
	var best *cell
	for parallel, runs := range byParallel {
		c := &cell{parallel: parallel}
		for _, x := range runs {
			if x.Exit != 0 {
				c.exit, c.said = x.Exit, lastLine(x.Said)
				c.failed = fmt.Sprintf("exit code %d: %s", c.exit, c.said)
			}
			c.runs, c.load = max(c.runs, x.Run), max(c.load, x.Load)
		}
		of := func(value func(result) float64) float64 { return median(runs, value) }
		c.seconds, c.answered = of(func(x result) float64 { return x.Seconds }), of(func(x result) float64 { return x.Answered })
		c.toBound = of(func(x result) float64 { return x.Seconds / max(x.Bound, 0.001) })
		if of(func(x result) float64 { return x.Bound }) == 0 {
			c.toBound = 0
		}
		c.cpu, c.memory = of(func(x result) float64 { return x.CPU }), of(func(x result) float64 { return x.Memory })
		last := runs[len(runs)-1]
		c.requests, c.sent, c.costs = last.Requests, last.Sent, last.Costs
		if last.Wire != nil {
			c.wire = *last.Wire
		}
		if best == nil || (c.failed == "" && (best.failed != "" || c.seconds < best.seconds)) {
			best = c
		}
	}
	return best
}

// pairs is the median of brine's times to raw's, at its best concurrency, of the same
// runs; 0 where there are none.
func (r *report) pairs(work string, count, delay int) float64 {
	raw := r.cell("raw", work, count, delay)
	if raw == nil || raw.failed != "" {
		return 0
	}
	beside := map[int]float64{}
	var ours []result
	for _, x := range r.Results {
		switch {
		case x.Work != work || x.Count != count || x.Delay != delay:
		case x.Tool == "raw" && x.Parallel == raw.parallel:
			beside[x.Run] = x.Seconds
		case x.Tool == "brine" && x.Exit != 0:
			return 0
		case x.Tool == "brine":
			ours = append(ours, x)
		}
	}
	ours = slices.DeleteFunc(ours, func(x result) bool { return beside[x.Run] == 0 })
	if len(ours) == 0 {
		return 0
	}
	return median(ours, func(x result) float64 { return x.Seconds / beside[x.Run] })
}

func median(runs []result, value func(result) float64) float64 {
	var all []float64
	for _, x := range runs {
		all = append(all, value(x))
	}
	slices.Sort(all)
	n := len(all)
	if n%2 == 1 {
		return all[n/2]
	}
	return (all[n/2-1] + all[n/2]) / 2
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	return line[:min(len(line), 160)]
}

// of collects what was measured, sorted: counts, delays or tools.
func of[T int | string](r *report, works []string, value func(result) T) []T {
	var all []T
	for _, x := range r.Results {
		if slices.Contains(works, x.Work) && !slices.Contains(all, value(x)) {
			all = append(all, value(x))
		}
	}
	slices.Sort(all)
	return all
}

func (r *report) toolsOf(works []string) []string {
	measured := of(r, works, func(x result) string { return x.Tool })
	var ordered []string
	for _, tool := range append([]string{"raw", "brine"}, peers...) {
		if slices.Contains(measured, tool) {
			ordered = append(ordered, tool)
		}
	}
	return ordered
}

// bestPeer is the fastest of the others that did the work.
func (r *report) bestPeer(work string, count, delay int) (string, *cell) {
	var name string
	var best *cell
	for _, tool := range peers {
		c := r.cell(tool, work, count, delay)
		if c != nil && c.failed == "" && (best == nil || c.seconds < best.seconds) {
			name, best = tool, c
		}
	}
	return name, best
}

func (r *report) loads() string {
	low, high, runs, others, large := 1e9, 0.0, 0, 0, 0
	for _, x := range r.Results {
		runs = max(runs, x.Run)
		if x.Count <= few { // of more, the load is their own
			low, high = min(low, x.Load), max(high, x.Load)
		}
		if x.Tool != "raw" && x.Tool != "brine" && x.Work == first {
			others = max(others, x.Run)
		}
		if x.Count > few {
			large = max(large, x.Run)
		}
	}
	text := fmt.Sprintf("%s; %s; medians of %d runs", r.Time.Format("2 January 2006"), r.Machine, runs)
	if runs == 1 {
		text = strings.Replace(text, "medians of 1 runs", "a single run, no medians", 1)
	}
	for _, fewer := range []struct {
		what string
		runs int
	}{{"generated bundles with other tools", others}, {fmt.Sprintf("more than %d objects", few), large}} {
		if fewer.runs > 0 && fewer.runs < runs {
			text += fmt.Sprintf("; of %d for %s", fewer.runs, fewer.what)
		}
	}
	if low <= high {
		text += fmt.Sprintf("; load average %.1f to %.1f", low, high)
	}
	var cores float64 // where it was measured, which need not be here
	if _, err := fmt.Sscan(r.Machine, &cores); err == nil && high > 2*cores {
		text += ". Others kept the machine busy, more at some times than at others: the ratios are rough, and so is every verdict below"
	}
	return text
}
