// Command benchmark measures brine against other appliers and against a bare
// loop of requests. scripts/bench builds what it needs and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// options are what scripts/bench passes on.
type options struct {
	out      string
	cluster  string // scripts/cluster
	state    string // the cluster's directory
	brine    string
	reader   string            // the tests of bundle/run, for what is no command of brine's
	self     string            // this program
	peers    map[string]string // name -> binary
	bundles  string            // the real platform's, or ""
	tools    []string
	counts   []int
	delays   []int // round trips in milliseconds
	parallel []int // raw's concurrencies
	works    []string
	runs     int
	peerRuns int
	readme   string
	render   bool
	redraw   bool
	record   string // the repository, or ""
	commit   string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "raw" {
		// The loop that the others are measured against, in a process of its own.
		if err := raw(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "benchmark raw:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		if err := launched(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "benchmark launch:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.redraw {
		return redraw(o.record)
	}
	var report *report
	if o.render {
		report, err = readReport(filepath.Join(o.out, resultsFile))
	} else {
		report, err = measure(ctx, o)
	}
	if err != nil {
		return err
	}
	if err := report.write(o.out); err != nil {
		return err
	}
	if o.readme != "" {
		if err := replaceSection(o.readme, sectionBegin, report.section()); err != nil {
			return err
		}
	}
	if o.record != "" {
		return report.record(o.record)
	}
	return nil
}

func parse(args []string) (options, error) {
	o := options{peers: map[string]string{}}
	f := flag.NewFlagSet("benchmark", flag.ContinueOnError)
	f.StringVar(&o.out, "out", "", "directory for results.json, results.md and results.svg")
	f.StringVar(&o.cluster, "cluster", "", "scripts/cluster")
	f.StringVar(&o.state, "state", "", "directory of the cluster to measure on")
	f.StringVar(&o.brine, "brine", "", "brine's binary")
	f.StringVar(&o.reader, "reader", "", "the test binary of bundle/run")
	f.StringVar(&o.bundles, "bundles", "", "folder of the real platform's bundles, metalk8s-old and metalk8s-new")
	f.StringVar(&o.readme, "readme", "", "README whose marked section is replaced")
	f.BoolVar(&o.render, "render", false, "measure nothing: write the report of the results in --out")
	f.BoolVar(&o.redraw, "redraw", false, "measure nothing: draw the picture of what is recorded in --record")
	f.StringVar(&o.record, "record", "", "repository whose recorded medians, picture and README are replaced")
	f.StringVar(&o.commit, "commit", "", "brine's commit, which is recorded")
	f.IntVar(&o.runs, "runs", 3, "runs of each cell; medians are shown")
	f.IntVar(&o.peerRuns, "peer-runs", 3, "of these, with other tools")
	tools := f.String("tools", "raw,brine,"+strings.Join(peers, ","), "what is measured")
	counts := f.String("counts", "100,1000,5000,10000", "objects in the generated bundles")
	delays := f.String("delays", "0,20", "round trips, milliseconds")
	parallel := f.String("parallel", "8,16,32,64", "concurrencies that raw tries")
	works := f.String("works", "mixed,platform,start", "mixed: generated bundles; platform: the real one; start: start times and reading; scale: 20,000 and 50,000 objects, an hour")
	f.Func("peer", "NAME=BINARY", func(v string) error {
		name, path, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("it is NAME=BINARY")
		}
		o.peers[name] = path
		return nil
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.tools, o.works = strings.Split(*tools, ","), strings.Split(*works, ",")
	for _, list := range []struct {
		name, text string
		to         *[]int
	}{{"counts", *counts, &o.counts}, {"delays", *delays, &o.delays}, {"parallel", *parallel, &o.parallel}} {
		for _, word := range strings.Split(list.text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil {
				return o, fmt.Errorf("--%s=%s: %w", list.name, list.text, err)
			}
			*list.to = append(*list.to, n)
		}
	}
	if o.out == "" {
		return o, errors.New("--out is missing")
	}
	return o, os.MkdirAll(o.out, 0o777)
}
