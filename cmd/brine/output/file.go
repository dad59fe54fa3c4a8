package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// WriteFile writes a file with a mode, whole or not at all: into
// a new file beside it, which then takes its name. A link that somebody
// puts there is replaced, and not followed.
func WriteFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if message := Unwritable(path); message != "" {
		return errors.New(message) // it may have become another thing since the run began
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".brine-*") // with mode 0600
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = errors.Join(file.Chmod(mode), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Unwritable is the reason why WriteFile could not write a file. It leaves the file as
// it is.
func Unwritable(path string) string {
	if path == "" {
		return ""
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err != nil:
	case info.IsDir():
		return "it is a folder"
	case info.Mode()&fs.ModeSymlink != 0:
		return "it is a symbolic link, which is not followed: give the file itself"
	case !info.Mode().IsRegular():
		return "it exists and is no regular file"
	}
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(filepath.Dir(path), ".brine-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("cannot be written: %s: %v", filepath.Dir(path), at.Err)
	}
	if err != nil {
		return fmt.Sprintf("cannot be written: %v", err)
	}
	return ""
}

// WriteReport writes a result into a file, in the format that its name says.
func WriteReport(path string, result *report.Result) error {
	o := wording.Options{Format: strings.TrimPrefix(filepath.Ext(path), "."), Err: io.Discard}
	mode := fs.FileMode(0o600)
	var unreadable error
	if o.Format == "prom" {
		mode = 0o644 // node_exporter is another user, and reads nothing but numbers in it
		before, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unreadable = err
		}
		o.Previous = string(before)
	}
	err := WriteFile(path, mode, func(w io.Writer) error {
		o.Out = w
		return Finished(o, result)
	})
	if err = errors.Join(unreadable, err); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Finished prints the result of a run that is over.
func Finished(o wording.Options, result *report.Result) error {
	printer := New(o)
	printer.Event(report.Event{Payload: report.Finished{Result: result}})
	return printer.Close()
}
