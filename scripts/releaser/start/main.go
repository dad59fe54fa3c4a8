//go:build unix

// Command start measures what it costs to start programs. Each is run with the
// argument "version". It is a program of its own, because Linux counts the memory
// of the parent as that of a new process: a small parent disturbs least.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runs is how often each program is started; medians are printed.
const runs = 20

// initialized is a line of the Go runtime about a package that was initialized.
type initialized struct {
	name  string
	bytes int
}

func main() {
	if err := table(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "start: %v\n", err)
		os.Exit(1)
	}
}

// table writes a row for each program, and which packages of the first one allocate
// most while they are initialized.
func table(w io.Writer, programs []string) error {
	if len(programs) == 0 {
		return errors.New("usage: start PROGRAM...")
	}
	var most []initialized
	fmt.Fprintf(w, "| program | file, kB | memory, kB | CPU, ms | page faults | packages with an init | allocated by them, kB |\n|---|---|---|---|---|---|---|\n")
	for _, program := range programs {
		info, err := os.Stat(program)
		if err != nil {
			return err
		}
		var memory, faults []int64
		var cpu []time.Duration
		for range runs {
			cmd := exec.Command(program, "version")
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %w", cmd, err)
			}
			usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			memory, faults = append(memory, usage.Maxrss), append(faults, usage.Minflt+usage.Majflt)
			cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
		packages, err := inits(program)
		if err != nil {
			return err
		}
		allocated := 0
		for _, p := range packages {
			allocated += p.bytes
		}
		fmt.Fprintf(w, "| %s | %d | %d | %.1f | %d | %d | %d |\n", filepath.Base(program), info.Size()/1000,
			median(memory), median(cpu).Seconds()*1000, median(faults), len(packages), allocated/1000)
		if most == nil {
			most = packages
		}
	}
	slices.SortFunc(most, func(a, b initialized) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.name, b.name))
	})
	fmt.Fprintf(w, "\n| package of %s | its init allocates, kB |\n|---|---|\n", filepath.Base(programs[0]))
	for _, p := range most[:min(len(most), 20)] {
		fmt.Fprintf(w, "| %s | %d |\n", p.name, p.bytes/1000)
	}
	return nil
}

func median[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// inits are the packages of a program that have something to initialize, as the Go
// runtime traces them: init NAME @0.5 ms, 0.06 ms clock, 1024 bytes, 12 allocs.
func inits(program string) ([]initialized, error) {
	cmd := exec.Command(program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	var packages []initialized
	for line := range strings.Lines(trace.String()) {
		p, ms := initialized{}, 0.0
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &p.name, &ms, &ms, &p.bytes); err == nil {
			packages = append(packages, p)
		}
	}
	return packages, nil
}
