package main

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file of an archive or a package: its text, or where a link goes.
type entry struct {
	Path       string
	Data       []byte
	Link       string
	Executable bool
}

func (e entry) mode() int64 {
	if e.Executable {
		return 0o755
	}
	return 0o644
}

// folder gives the files of a folder below a path, by name. What Python and
// editors leave behind is not among them.
func folder(dir, below string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".pyc") || strings.HasSuffix(path, "~") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		entries = append(entries, entry{Path: join(below, filepath.ToSlash(name)), Data: data, Executable: info.Mode()&0o100 != 0})
		return err
	})
	return entries, err
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

// salt are the Salt modules, as file roots want them.
func (r *release) salt(below string) ([]entry, error) {
	var all []entry
	for _, dir := range []string{"_beacons", "_modules", "_states", "_runners"} {
		entries, err := folder(filepath.Join(r.Root, "scripts", "salt", dir), join(below, dir))
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

// license is brine's own, for all that leaves this repository.
func (r *release) license() ([]byte, error) {
	return os.ReadFile(filepath.Join(r.Root, "scripts", "releaser", "files", "LICENSE"))
}

// documents are what a reader finds beside the binary.
func (r *release) documents(below string) ([]entry, error) {
	license, err := r.license()
	if err != nil {
		return nil, err
	}
	changelog, err := os.ReadFile(filepath.Join(r.Root, "scripts", "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	pillar, err := os.ReadFile(filepath.Join(r.Root, "scripts", "releaser", "files", "pillar.sls"))
	if err != nil {
		return nil, err
	}
	job, err := r.jobManifest()
	if err != nil {
		return nil, err
	}
	return []entry{
		{Path: join(below, "LICENSE"), Data: license},
		{Path: join(below, "CHANGELOG.md"), Data: changelog},
		{Path: join(below, "THIRD-PARTY-LICENSES.txt"), Data: r.Licenses.text()},
		{Path: join(below, "examples/job.yaml"), Data: job},
		{Path: join(below, "examples/pillar.sls"), Data: pillar},
	}, nil
}

// archiveEntries are the files of an archive, all in one folder.
func (r *release) archiveEntries(p platform) ([]entry, error) {
	top := r.name(p, "")
	binary, err := os.ReadFile(r.binary(p))
	if err != nil {
		return nil, err
	}
	all := []entry{{Path: join(top, filepath.Base(r.binary(p))), Data: binary, Executable: true}}
	if p.OS == "windows" { // where a zip holds no links
		all = append(all, entry{Path: join(top, "kubectl-brine.exe"), Data: binary, Executable: true})
	} else {
		all = append(all,
			entry{Path: join(top, "kubectl-brine"), Link: "brine"},
			entry{Path: join(top, "kubectl_complete-brine"), Data: []byte(kubectlCompletes), Executable: true})
	}
	documents, err := r.documents(top)
	if err != nil {
		return nil, err
	}
	salt, err := r.salt(join(top, "salt"))
	if err != nil {
		return nil, err
	}
	all = slices.Concat(all, documents, salt)
	for _, dir := range []string{"man", "completions"} {
		entries, err := folder(filepath.Join(r.In, dir), join(top, dir))
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

// kubectlCompletes is what kubectl asks to complete the plugin's command line.
const kubectlCompletes = "#!/bin/sh\nexec kubectl brine __complete \"$@\"\n"

// gzipped compresses the same bytes to the same bytes.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
