package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"time"
)

// archive writes a platform's tar.gz, or zip for Windows.
func (r *release) archive(p platform) error {
	entries, err := r.archiveEntries(p)
	if err != nil {
		return err
	}
	if p.OS == "windows" {
		data, err := zipped(entries, r.Date)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(r.Out, r.name(p, ".zip")), data, 0o644)
	}
	data, err := tarred(entries, r.Date)
	if err != nil {
		return err
	}
	if data, err = gzipped(data); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(p, ".tar.gz")), data, 0o644)
}

func tarred(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.Path, Size: int64(len(e.Data)), Mode: e.mode(), ModTime: at, Format: tar.FormatUSTAR}
		if e.Link != "" {
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func zipped(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.Path, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(e.mode()))
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
