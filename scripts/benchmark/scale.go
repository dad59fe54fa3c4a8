package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The works of brine on one inventory that is larger than a ConfigMap, in this order.
const (
	scaleFirst     = "large: first apply"
	scaleUnchanged = "large: nothing changed"
	scaleChanged   = "large: 1 % changed"
	scalePruned    = "large: half pruned"
	scaleDestroyed = "large: destroyed"

	scaleAddresses = "large: first apply, Services with addresses" // by raw
)

var (
	scaleWorks  = []string{scaleFirst, scaleUnchanged, scaleChanged, scalePruned, scaleDestroyed}
	scaleCounts = []int{20_000, 50_000} // the first with 800 namespaces, the second with 2,000
)

// large writes a bundle of count objects as a work wants it.
func large(file string, count int, work string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	namespaces := count / 25
	for i := range count {
		if work == scalePruned && i >= namespaces && i%8 >= 4 {
			continue
		}
		text, _ := headless(i, namespaces)
		if work != scaleFirst && work != scaleUnchanged && i%100 == 0 {
			text = strings.Replace(text, "mode: fast", "mode: slow", 1)
		}
		fmt.Fprintf(w, "---\n%s", text)
	}
	return errors.Join(w.Flush(), f.Close())
}

// headless is mixed, but its Services get no address. A server needs more and more time
// for each address that it gives: it counts all of them twice (kube's
// pkg/registry/core/service/ipallocator/ipallocator.go, createIPAddress and release).
func headless(i, namespaces int) (string, request) {
	text, r := mixed(i, namespaces)
	r.Body = bytes.Replace(r.Body, []byte(`"spec":{"selector"`), []byte(`"spec":{"clusterIP":"None","selector"`), 1)
	return strings.Replace(text, "spec:\n  selector:", "spec:\n  clusterIP: None\n  selector:", 1), r
}

// largeRequests writes what raw sends for the bundle of the first apply.
func largeRequests(file string, count int, object func(i, namespaces int) (string, request)) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	encoder := json.NewEncoder(w)
	for i := range count {
		_, r := object(i, count/25)
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

// scaleFloor measures how the server's own time grows with the objects: a first apply by
// raw, and one whose Services have addresses.
func (b *bench) scaleFloor(ctx context.Context, count, run int) error {
	requests := filepath.Join(b.work, "large.jsonl")
	parallel := slices.Max(b.parallel)
	for work, object := range map[string]func(int, int) (string, request){scaleFirst: headless, scaleAddresses: mixed} {
		if err := largeRequests(requests, count, object); err != nil {
			return err
		}
		err := b.onFresh(ctx, 0, func(s *server, kubeconfig string) error {
			args := []string{b.self, "raw", "apply", "--kubeconfig", kubeconfig, "--requests", requests, "--parallel", strconv.Itoa(parallel)}
			return b.take(ctx, s, command{args: args}, result{Tool: "raw", Work: work, Count: count, Run: run, Parallel: parallel})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scale measures brine on one control plane a count and a round trip, and raw.
func (b *bench) scale(ctx context.Context, run int) error {
	for _, count := range scaleCounts {
		if slices.Contains(b.tools, "raw") {
			if err := b.scaleFloor(ctx, count, run); err != nil {
				return err
			}
		}
		for _, ms := range b.delays {
			err := b.onFresh(ctx, ms, func(s *server, kubeconfig string) error {
				file := filepath.Join(b.work, "large.yaml")
				for _, work := range scaleWorks {
					args := []string{b.brine, "apply", "-f", file, "--timeout=1h"}
					if work == scaleDestroyed {
						args = []string{b.brine, "destroy", "--timeout=1h"}
					} else if err := large(file, count, work); err != nil {
						return err
					}
					args = append(args, "--kubeconfig", kubeconfig, "--inventory", "default/large", "-o", "json", "--report", filepath.Join(b.work, "large.html"))
					if err := b.take(ctx, s, command{args: args}, result{Tool: "brine", Work: work, Count: count, Delay: ms, Run: run}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// large is the table of what scale measured.
func (r *report) large() string {
	var rows [][]string
	for _, work := range scaleWorks {
		for _, count := range of(r, []string{work}, func(x result) int { return x.Count }) {
			for _, ms := range of(r, []string{work}, func(x result) int { return x.Delay }) {
				c := r.cell("brine", work, count, ms)
				if c == nil {
					continue
				}
				row := []string{strings.TrimPrefix(work, "large: "), fmt.Sprint(count), fmt.Sprintf("%d ms", ms)}
				if c.failed != "" {
					row = append(row, "", "fails", "", "", "", "", "")
				} else {
					n := float64(count)
					requests := 0
					for _, number := range c.sent {
						requests += number
					}
					row = append(row, fmt.Sprint(requests), seconds(c.seconds), fmt.Sprintf("%.2f s", c.seconds*1000/n), r.floorOf(work, count, ms), seconds(c.cpu), fmt.Sprintf("%.0f MB", c.memory), fmt.Sprintf("%.1f KB", c.memory*1024/n))
				}
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("**Many objects in one inventory**, with `-o json` and an HTML report (peak memory)\n\n")
	table(&b, []string{"work", "objects", "round trip", "requests of brine", "time", "time for 1000", "raw for 1000", "CPU", "memory", "for one object"}, rows)
	var addresses []string
	for _, count := range of(r, []string{scaleAddresses}, func(x result) int { return x.Count }) {
		if with, without := r.floorOf(scaleAddresses, count, 0), r.floorOf(scaleFirst, count, 0); with != "" && without != "" {
			addresses = append(addresses, fmt.Sprintf("%s instead of %s for 1000 of %d objects", with, without, count))
		}
	}
	if len(addresses) > 0 {
		fmt.Fprintf(&b, "The Services of these bundles are headless. With an address for each of them, raw needs %s.\n", strings.Join(addresses, ", "))
	}
	return b.String()
}

// floorOf is what raw took for 1000 objects of as many.
func (r *report) floorOf(work string, count, ms int) string {
	c := r.cell("raw", work, count, ms)
	if c == nil || c.failed != "" {
		return ""
	}
	return fmt.Sprintf("%.2f s", c.seconds*1000/float64(count))
}
