package main

import (
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // a format
)

const about = `Make a Kubernetes cluster match a bundle that Salt rendered.
brine applies a whole bundle of Kubernetes objects in dependency order by
server-side apply, tracks it in an inventory, prunes, and waits until all of
it is ready.`

// distroPackage writes a Debian or RPM package. It runs no scripts and needs no
// other package: the binary is static.
func (r *release) distroPackage(p platform, format string) error {
	entries, err := r.installed(p, format)
	if err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "releaser-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	var contents files.Contents
	for _, e := range entries {
		c := &files.Content{Destination: "/" + e.Path, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(e.mode()), MTime: r.Date}}
		if e.Link != "" {
			c.Type, c.Source, c.FileInfo.Mode = files.TypeSymlink, e.Link, 0o777
		} else {
			c.Source = filepath.Join(stage, filepath.FromSlash(e.Path))
			if err := os.MkdirAll(filepath.Dir(c.Source), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(c.Source, e.Data, 0o644); err != nil {
				return err
			}
		}
		contents = append(contents, c)
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "brine", Arch: p.Arch, Platform: p.OS, Version: r.Version, Release: "1", Section: "admin", Priority: "optional",
		Maintainer: "The brine developers <release@brine.dev>", Vendor: "brine", Homepage: "https://brine.dev", Description: about,
		License: "not stated", MTime: r.Date, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents, Suggests: []string{"salt-minion"}, RPM: nfpm.RPM{BuildHost: "brine.dev", Group: "System/Management", Compression: "gzip"}},
	})
	if r.Key != "" {
		info.RPM.Signature.SignFn = r.sign
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.Out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	if err := packager.Package(info, out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// installed are the files of a package, where its distributions have them.
func (r *release) installed(p platform, format string) ([]entry, error) {
	binary, err := os.ReadFile(r.binary(p))
	if err != nil {
		return nil, err
	}
	zsh := "usr/share/zsh/vendor-completions/_brine"
	if format == "rpm" {
		zsh = "usr/share/zsh/site-functions/_brine"
	}
	all := []entry{
		{Path: "usr/bin/brine", Data: binary, Executable: true},
		{Path: "usr/bin/kubectl-brine", Link: "brine"},
		{Path: "usr/bin/kubectl_complete-brine", Data: []byte(kubectlCompletes), Executable: true},
	}
	for from, to := range map[string]string{
		"brine.bash": "usr/share/bash-completion/completions/brine", "brine.fish": "usr/share/fish/vendor_completions.d/brine.fish", "_brine": zsh,
	} {
		data, err := os.ReadFile(filepath.Join(r.In, "completions", from))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{Path: to, Data: data})
	}
	pages, err := folder(filepath.Join(r.In, "man"), "usr/share/man/man1")
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		if page.Data, err = gzipped(page.Data); err != nil {
			return nil, err
		}
		page.Path += ".gz"
		all = append(all, page)
	}
	documents, err := r.documents("usr/share/doc/brine")
	if err != nil {
		return nil, err
	}
	salt, err := r.salt("usr/share/salt-brine")
	return append(append(all, documents...), salt...), err
}
