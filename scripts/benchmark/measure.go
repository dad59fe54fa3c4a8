package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is one command, measured once.
type result struct {
	Tool     string         `json:"tool"`
	Work     string         `json:"work"`
	Count    int            `json:"count"`              // of objects
	Delay    int            `json:"delay"`              // round trip, ms
	Parallel int            `json:"parallel,omitempty"` // raw's
	Run      int            `json:"run"`
	Answered float64        `json:"answered,omitempty"` // raw delete: seconds until the last answer
	Requests map[string]int `json:"requests,omitempty"` // as the server counted them
	Costs    map[string]int `json:"costs,omitempty"`    // of the server: see counts
	Sent     map[string]int `json:"sent,omitempty"`     // as brine counted its own, of large works and the platform
	Bound    float64        `json:"bound,omitempty"`    // seconds that the server alone took
	Wire     *wired         `json:"wire,omitempty"`     // bytes of the tool's process
	Load     float64        `json:"load"`               // of the machine, the minute before
	Said     string         `json:"said,omitempty"`     // the end of what it said, when it failed
	usage
}

// wired are the bytes that a tool's process wrote and read, with those of TLS, but without what
// it printed and the bundle. What else it reads from files is in it: some KB.
type wired struct{ Sent, Received int64 }

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// bench is a measurement under way.
type bench struct {
	options
	report
	work string // directory
}

func measure(ctx context.Context, o options) (*report, error) {
	var err error
	if o.self, err = os.Executable(); err != nil {
		return nil, err
	}
	b := &bench{options: o}
	b.Machine, b.Commit, b.Versions = machine(), o.commit, map[string]string{}
	for peer, binary := range o.peers {
		b.Versions[peer] = versionOf(binary)
	}
	if b.work, err = os.MkdirTemp("", "brine-bench-*"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.work)
	// Started once for all, so that every cell is a reset.
	if _, err := b.control(ctx, "up"); err != nil {
		return nil, err
	}
	defer b.control(context.WithoutCancel(ctx), "down") //nolint:errcheck // said on stderr
	for run := 1; run <= o.runs && err == nil; run++ {
		err = b.round(ctx, run)
	}
	if err != nil && len(b.Results) > 0 {
		// What was measured is not lost.
		err = errors.Join(err, b.write(o.out))
	}
	return &b.report, err
}

// Up to few objects are measured in every run, and on a long wire as well; more
// of them once, where they are near; more than many without the peers.
const few, many = 1000, 5000

// round measures everything once.
func (b *bench) round(ctx context.Context, run int) error {
	if slices.Contains(b.works, "start") {
		if err := b.starts(ctx, run); err != nil {
			return err
		}
	}
	if slices.Contains(b.works, "mixed") {
		for _, count := range b.counts {
			made, err := generate(filepath.Join(b.work, fmt.Sprint(count)), count)
			if err != nil {
				return err
			}
			if count > few && run > 1 {
				continue
			}
			for _, ms := range b.delays {
				if count > few && ms > 0 {
					continue
				}
				for _, tool := range b.tools {
					if tool != "raw" && tool != "brine" && (run > b.peerRuns || count > many) {
						continue
					}
					if err := b.mixed(ctx, run, tool, ms, count, made); err != nil {
						return err
					}
				}
			}
		}
	}
	if slices.Contains(b.works, "scale") {
		if err := b.scale(ctx, run); err != nil {
			return err
		}
	}
	if slices.Contains(b.works, "platform") && b.bundles != "" {
		for _, tool := range b.tools {
			if tool != "brine" && run > b.peerRuns {
				continue
			}
			if err := b.platform(ctx, run, tool); err != nil {
				return err
			}
		}
	}
	return nil
}

// mixed measures a tool on a generated bundle, all its works on one fresh
// control plane; raw on one a concurrency.
func (b *bench) mixed(ctx context.Context, run int, tool string, ms, count int, made bundle) error {
	parallels := []int{0}
	if tool == "raw" {
		parallels = b.parallel
		if count > few {
			parallels = parallels[len(parallels)/2:]
		}
	}
	for _, parallel := range parallels {
		err := b.onFresh(ctx, ms, func(s *server, kubeconfig string) error {
			for _, work := range mixedWorks {
				c := b.mixedCommand(tool, work, kubeconfig, made, parallel)
				r := result{Tool: tool, Work: work, Count: count, Delay: ms, Run: run, Parallel: parallel}
				if err := b.take(ctx, s, c, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) platform(ctx context.Context, run int, tool string) error {
	if len(b.platformCommand(tool, toReady, "").args) == 0 {
		return nil
	}
	return b.onFresh(ctx, 0, func(s *server, kubeconfig string) error {
		for _, work := range platformWorks {
			r := result{Tool: tool, Work: work, Run: run}
			if err := b.take(ctx, s, b.platformCommand(tool, work, kubeconfig), r); err != nil {
				return err
			}
		}
		return nil
	})
}

// onFresh does something with an empty control plane, behind a long wire if
// there is a delay.
func (b *bench) onFresh(ctx context.Context, ms int, do func(s *server, kubeconfig string) error) error {
	kubeconfig, err := b.control(ctx, "reset")
	if err != nil {
		return err
	}
	s, err := connect(kubeconfig)
	if err != nil {
		return err
	}
	if s.etcd, err = b.etcd(); err != nil {
		return err
	}
	if ms > 0 {
		l, err := delay(s.host(), time.Duration(ms)*time.Millisecond)
		if err != nil {
			return err
		}
		defer l.Close()
		near := filepath.Join(b.work, "kubeconfig")
		if err := s.through(l.Addr().String(), kubeconfig, near); err != nil {
			return err
		}
		kubeconfig = near
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	return do(s, kubeconfig)
}

// etcd is the URL of the control plane's.
func (b *bench) etcd() (string, error) {
	text, err := os.ReadFile(filepath.Join(b.state, "cluster.json"))
	if err != nil {
		return "", err
	}
	var state struct{ Ports struct{ Etcd int } }
	if err := json.Unmarshal(text, &state); err != nil {
		return "", err
	}
	return fmt.Sprintf("http://127.0.0.1:%d", state.Ports.Etcd), nil
}

// settled waits until the default namespace has its ServiceAccount: by then
// the controllers are at work.
func (s *server) settled(ctx context.Context) error {
	for {
		there, err := s.exists("/api/v1/namespaces/default/serviceaccounts/default")
		if err == nil && there {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// take runs a command, counts what the server was asked for, and keeps both.
func (b *bench) take(ctx context.Context, s *server, c command, r result) error {
	if len(c.args) == 0 {
		return nil
	}
	var before, cost map[string]int
	var err error
	if s != nil {
		if before, cost, err = s.counts(); err != nil {
			return err
		}
	}
	said := filepath.Join(b.work, "said")
	r.Load = load()
	usage, messages, err := launch(ctx, said, c.env, c.args)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		usage.Exit, messages = -1, err.Error()+"\n"+messages
	}
	r.usage = usage
	if s != nil && r.Count > 0 { // all read the bundle; what they print is not sent
		r.Wire = &wired{Sent: usage.Wrote - fileSize(said) - int64(len(messages)), Received: usage.Read - fileSize(filepath.Join(b.work, fmt.Sprint(r.Count), "folder/bundle.yaml"))}
	}
	if s != nil {
		requests, costs, err := s.counts()
		if err != nil {
			return err
		}
		r.Requests, r.Costs = since(before, requests), since(cost, costs)
	}
	text, err := os.ReadFile(said)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if r.Tool == "raw" && r.Exit == 0 {
		// The loop's own time, without the start of its process: a stricter floor.
		var times rawTimes
		if err := json.Unmarshal(text, &times); err != nil {
			return fmt.Errorf("read what raw says: %w", err)
		}
		r.Seconds, r.Answered = max(times.Answered, times.Gone), times.Answered
	}
	if c.trace != "" && r.Exit == 0 {
		if r.Bound, r.Sent, err = readTrace(c.trace); err != nil {
			return err
		}
	}
	if r.Work == reading && r.Exit == 0 {
		before, _, ok := strings.Cut(string(text), " ns/op")
		words := strings.Fields(before)
		if !ok || len(words) == 0 {
			return fmt.Errorf("no time in what the benchmark says: %s", text)
		}
		nanoseconds, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return fmt.Errorf("read what the benchmark says: %w", err)
		}
		r.Seconds = nanoseconds / 1e9
	}
	if r.Tool == "brine" && slices.Contains(scaleWorks, r.Work) && r.Exit == 0 {
		var said struct {
			Summary struct{ Requests map[string]int }
		}
		if err := json.Unmarshal(text, &said); err != nil {
			return fmt.Errorf("read what brine says: %w", err)
		}
		r.Sent = said.Summary.Requests
	}
	if r.Exit != 0 {
		whole := string(text) + messages
		r.Said = strings.TrimSpace(whole[max(0, len(whole)-600):])
	}
	b.Results = append(b.Results, r)
	fmt.Fprintf(os.Stderr, "run %d  %-7s %-26s %6d objects  %2d ms  %8.2f s  %7.2f s CPU  %6.0f MB  exit %d  load %.1f\n",
		r.Run, r.Tool+at(r.Parallel), r.Work, r.Count, r.Delay, r.Seconds, r.CPU, r.Memory, r.Exit, r.Load)
	return b.save(b.out)
}

func at(parallel int) string {
	if parallel == 0 {
		return ""
	}
	return fmt.Sprint(" ", parallel)
}

// control runs scripts/cluster; it prints the kubeconfig's path.
func (b *bench) control(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, b.cluster, command, "--dir", b.state, "--port", "0")
	if command != "up" {
		cmd = exec.CommandContext(ctx, b.cluster, command, "--dir", b.state)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", b.cluster, command, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// load is the machine's load average of the last minute.
func load() float64 {
	var one float64
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(text), &one)
	return one
}

// machine names what it was measured on.
func machine() string {
	name := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			name = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), name)
}
