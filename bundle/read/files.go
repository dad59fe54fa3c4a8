package read

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"brine/bundle"
)

// From -f to texts: files, folders and standard input, with limits, and only UTF-8.

// Stdin is the file name of standard input.
const Stdin = "-"

// endings are the names of files that are read from a folder; a file that is
// named itself may be called anything.
var endings = []string{".yaml", ".yml", ".json", ".sls"}

type file struct {
	name string
	data []byte
}

// readFiles finds and reads what -f names, files at once, in the order given
// (a folder's files by name).
func readFiles(ctx context.Context, o Options) (files []file, problems bundle.Problems, warnings []bundle.Problem) {
	var names []string
	all := make([]found, len(o.Files))
	for i, name := range o.Files {
		var err error
		if all[i], err = find(name, o.Recursive); err != nil {
			problems = append(problems, fileProblem(name, err))
			continue
		}
		for _, f := range all[i].files {
			// The same file twice (a folder and a file in it) is one file.
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}

	named := slices.Concat(names, bundle.Each(o.Files, filepath.Clean))
	for i, name := range o.Files {
		all[i].drop(named)
		if text := all[i].passedOver(name); text != "" {
			warnings = append(warnings, bundle.Problem{Source: bundle.Source{File: name}, Message: text})
		}
	}
	files, errs := make([]file, len(names)), make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(max(4, runtime.GOMAXPROCS(0)))
	for i, name := range names {
		g.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				files[i].name = name
				files[i].data, errs[i] = readUnless(ctx, name, o.Stdin)
			}
			if errs[i] == nil {
				errs[i] = checkEncoding(name, files[i].data)
			}
			if errs[i] != nil {
				files[i].data = nil
			}
			return nil
		})
	}
	_ = g.Wait() // every error is in errs
	for i, err := range errs {
		if err != nil {
			problems = append(problems, fileProblem(names[i], err))
		}
	}
	return files, problems, warnings
}

// found is what a folder, or a file, has to be read, and what looks as if it were to be read.
type found struct{ files, folders, capitals []string }

// drop leaves out what is named itself.
func (f *found) drop(named []string) {
	given := func(path string) bool { return slices.Contains(named, path) }
	f.folders, f.capitals = slices.DeleteFunc(f.folders, given), slices.DeleteFunc(f.capitals, given)
}

// passedOver says what of a folder is not read: objects in it would be missing, and be pruned.
func (f *found) passedOver(folder string) string {
	var parts []string
	for _, one := range []struct {
		paths  []string
		advice string
	}{
		{f.folders, "-R reads folders in it, too"},
		{f.capitals, "files end in " + strings.Join(endings, ", ") + ", in small letters: rename it, or name it itself with -f"},
	} {
		inside := bundle.Each(one.paths, func(path string) string {
			return strings.TrimPrefix(strings.TrimPrefix(path, filepath.Clean(folder)), string(filepath.Separator))
		})
		if len(inside) > 0 {
			parts = append(parts, fmt.Sprintf("not read: %s (%s)", bundle.Some(inside, 5), one.advice))
		}
	}
	return strings.Join(parts, "; ")
}

// holdsFiles says whether a folder below another one has a file that -R would read. Hidden ones
// are other programs' (.git, and ..data of a mounted ConfigMap).
func holdsFiles(folder string) (holds bool) {
	if strings.HasPrefix(filepath.Base(folder), ".") {
		return false
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // what cannot be read is no reason to fail
		if err == nil && !d.IsDir() && slices.Contains(endings, filepath.Ext(path)) {
			holds = true
			return fs.SkipAll
		}
		return nil
	})
	return holds
}

func fileProblem(name string, err error) bundle.Problem {
	if p, ok := errors.AsType[bundle.Problem](err); ok {
		return p
	}
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path == name {
		err = pe.Err // the problem names the path already
	}
	msg := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		path, _ := filepath.Abs(name)
		msg = fmt.Sprintf("no such file or folder (looked for %s)", cmp.Or(path, name))
	}
	return bundle.Problem{Source: bundle.Source{File: name}, Message: msg}
}

func find(name string, recursive bool) (all found, err error) {
	if name == Stdin {
		return found{files: []string{Stdin}}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return all, err
	}
	if !info.IsDir() {
		return found{files: []string{name}}, nil
	}
	// WalkDir goes in lexical order. With the separator a link to the folder is followed.
	root := name + string(filepath.Separator)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path == root || recursive {
				return nil
			}
			if holdsFiles(path) {
				all.folders = append(all.folders, path)
			}
			return fs.SkipDir
		}
		if ending := filepath.Ext(path); !slices.Contains(endings, ending) && slices.Contains(endings, strings.ToLower(ending)) {
			all.capitals = append(all.capitals, path)
		}
		link := d.Type()&fs.ModeSymlink != 0
		if !link && !slices.Contains(endings, filepath.Ext(path)) {
			return nil
		}
		// A link may lead to a folder, or to a file, which is read as kubectl does.
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir() && recursive && !strings.HasPrefix(d.Name(), ".."): // not ..data of a mounted ConfigMap
			return bundle.Problem{Source: bundle.Source{File: path}, Message: "this is a link to a folder, which is not followed: name it itself with -f, or move it out of the folder"}
		case err == nil && info.IsDir(), !slices.Contains(endings, filepath.Ext(path)):
			return nil
		case err == nil && !info.Mode().IsRegular(): // an error is reported when the file is read
			return bundle.Problem{Source: bundle.Source{File: path}, Message: "this is not a regular file: move it out of the folder, or name it itself with -f"}
		}
		all.files = append(all.files, path)
		return nil
	})
	if err == nil && len(all.files) == 0 {
		err = fmt.Errorf("no file in this folder ends in %s", strings.Join(endings, ", "))
		if passed := all.passedOver(name); passed != "" {
			err = fmt.Errorf("%w; %s", err, passed)
		}
	}
	if err != nil {
		return found{}, err
	}
	return all, nil
}

// readUnless reads a file, or returns when ctx ends: a FIFO without a writer, or a
// silent standard input, never ends.
func readUnless(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	var data []byte
	read := make(chan error, 1)
	go func() {
		var err error
		data, err = readFile(name, stdin)
		read <- err
	}()
	select {
	case err := <-read:
		return data, err
	case <-ctx.Done():
		return nil, fmt.Errorf("not read to its end: %w", context.Cause(ctx))
	}
}

// maxFile is more than any cluster would take.
const maxFile = 256 << 20

func readFile(name string, stdin io.Reader) ([]byte, error) {
	tooLarge := fmt.Errorf("larger than %d MiB, the limit for one file: split it", maxFile>>20)
	if name != Stdin {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			if info.Size() > maxFile {
				return nil, tooLarge
			}
			return os.ReadFile(name)
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // nothing was written
		stdin = file
	}
	if stdin == nil {
		return nil, errors.New("there is no standard input to read")
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxFile+1))
	if err == nil && len(data) > maxFile {
		return nil, tooLarge
	}
	return data, err
}

// checkEncoding wants UTF-8, with or without a byte order mark.
func checkEncoding(name string, data []byte) error {
	head := data[:min(len(data), 4)]
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) || bytes.IndexByte(head, 0) >= 0 {
		return errors.New("this is UTF-16 or UTF-32 (or not text at all); save it as UTF-8")
	}
	if utf8.Valid(data) {
		return nil
	}
	line := 1
	for text := range bytes.Lines(data) {
		if !utf8.Valid(text) {
			break
		}
		line++
	}
	return bundle.Problem{Source: bundle.Source{File: name, Line: line}, Message: "not valid UTF-8; save the file as UTF-8"}
}
