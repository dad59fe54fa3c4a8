package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
)

// profile writes cpu.pprof, heap.pprof, allocs.pprof and trace.out of one
// command into a directory, for --profile-dir.
type profile struct {
	dir        string
	cpu, trace *os.File
}

func (p *profile) start() error {
	if p.dir == "" {
		return nil
	}
	err := os.MkdirAll(p.dir, 0o750)
	if err == nil {
		p.cpu, err = os.Create(filepath.Join(p.dir, "cpu.pprof"))
	}
	if err == nil {
		err = pprof.StartCPUProfile(p.cpu)
	}
	if err == nil {
		p.trace, err = os.Create(filepath.Join(p.dir, "trace.out"))
	}
	if err == nil {
		err = trace.Start(p.trace)
	}
	if err != nil {
		return fmt.Errorf("--profile-dir: %w", err)
	}
	return nil
}

func (p *profile) stop() error {
	if p.dir == "" {
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
		file, err := os.Create(filepath.Join(p.dir, name+".pprof"))
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
