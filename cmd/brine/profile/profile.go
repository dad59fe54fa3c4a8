// Package profile writes what a command spent its time and memory on, for --profile-dir.
package profile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
)

// Profile writes cpu.pprof, heap.pprof, allocs.pprof and trace.out of one
// command into a directory.
type Profile struct {
	Dir string // "" writes nothing

	cpu, trace *os.File
}

// Start begins them.
func (p *Profile) Start() error {
	if p.Dir == "" {
		return nil
	}
	err := os.MkdirAll(p.Dir, 0o750)
	if err == nil {
		p.cpu, err = os.Create(filepath.Join(p.Dir, "cpu.pprof"))
	}
	if err == nil {
		err = pprof.StartCPUProfile(p.cpu)
	}
	if err == nil {
		p.trace, err = os.Create(filepath.Join(p.Dir, "trace.out"))
	}
	if err == nil {
		err = trace.Start(p.trace)
	}
	if err != nil {
		return fmt.Errorf("--profile-dir: %w", err)
	}
	return nil
}

// Stop ends and writes them.
func (p *Profile) Stop() error {
	if p.Dir == "" {
		return nil
	}
	var errs []error
	if p.trace != nil {
		trace.Stop()
		errs = append(errs, p.trace.Close())
	}
	if p.cpu != nil {
		pprof.StopCPUProfile()
		errs = append(errs, p.cpu.Close())
	}
	runtime.GC() // the heap's profile is as of the last collection
	for _, name := range []string{"heap", "allocs"} {
		file, err := os.Create(filepath.Join(p.Dir, name+".pprof"))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, pprof.Lookup(name).WriteTo(file, 0), file.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("--profile-dir: %w", err)
	}
	return nil
}
