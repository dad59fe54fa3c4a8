package main

import (
	"os"
	"path/filepath"
)

// source writes the sources of the commit, with all modules in vendor/: who has Go builds
// brine from it without a network (go build -mod=vendor).
func (r *release) source() error {
	if r.Source == "" {
		return nil
	}
	entries, err := folder(r.Source, "brine-"+r.Version)
	if err != nil {
		return err
	}
	data, err := tarred(entries, r.Date)
	if err != nil {
		return err
	}
	if data, err = gzipped(data); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(platform{}, "_source.tar.gz")), data, 0o644)
}

// offline writes one file with all that an installation without a network needs: what is
// for Linux and for Salt, with checksums and a signature of its own.
func (r *release) offline() error {
	stage, err := os.MkdirTemp("", "releaser-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	for _, pattern := range []string{"*.deb", "*.rpm", "*_image.tar", "*_job.yaml", "*.whl", "*_linux_*.cdx.json"} {
		found, err := filepath.Glob(filepath.Join(r.Out, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.Link(path, filepath.Join(stage, filepath.Base(path))); err != nil {
				data, err := os.ReadFile(path) // another file system
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(stage, filepath.Base(path)), data, 0o644); err != nil {
					return err
				}
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(r.Root, "scripts", "releaser", "files", "OFFLINE.md"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stage, "README.md"), page, 0o644); err != nil {
		return err
	}
	if err := r.checksums(stage); err != nil {
		return err
	}
	entries, err := folder(stage, "brine-"+r.Version+"-offline")
	if err != nil {
		return err
	}
	data, err := tarred(entries, r.Date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(platform{}, "_offline.tar")), data, 0o644)
}
