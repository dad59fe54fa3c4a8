package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile writes a file with a mode, whole or not at all: into
// a new file beside it, which then takes its name. A link that somebody
// puts there is replaced, and not followed.
func writeFile(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if message := unwritable(path); message != "" {
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

// unwritable is the reason why writeFile could not write a file. It leaves the file as
// it is.
func unwritable(path string) string {
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
