package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // a format
)

// What every package, image and document says of the project.
const (
	maintainer = "The brine developers"
	homepage   = "https://brine.dev"
	spdx       = "Apache-2.0"
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
	for _, dir := range folders(entries) {
		contents = append(contents, &files.Content{Destination: "/" + dir, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: r.Date}})
	}
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
		Maintainer: maintainer + " <release@brine.dev>", Vendor: maintainer, Homepage: homepage, Description: about,
		License: spdx, MTime: r.Date, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents, Suggests: []string{"salt-minion"}, RPM: nfpm.RPM{BuildHost: "brine.dev", Group: "System/Management", Compression: "gzip"}},
	})
	if r.Key != "" && !r.openSSH() {
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

// folders are those that only this package has: it removes them with itself.
func folders(entries []entry) []string {
	own := map[string]bool{}
	for _, e := range entries {
		for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
			if strings.HasPrefix(dir, "usr/share/doc/brine") || strings.HasPrefix(dir, "usr/share/salt-brine") {
				own[dir] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(own))
}

// debianCopyright is what Debian's policy wants instead of a file LICENSE.
func (r *release) debianCopyright() []byte {
	return fmt.Appendf(nil, `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: brine
Source: https://brine.dev

Files: *
Copyright: The brine developers
License: %s
Comment: THIRD-PARTY-LICENSES.txt beside this file names the modules that are
 linked in, and has their licences.

License: %s
 On Debian systems the full text is in /usr/share/common-licenses/%s.
`, spdx, spdx, spdx)
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
	for _, completion := range []struct{ from, to string }{
		{"brine.bash", "usr/share/bash-completion/completions/brine"}, {"brine.fish", "usr/share/fish/vendor_completions.d/brine.fish"}, {"_brine", zsh},
	} {
		data, err := os.ReadFile(filepath.Join(r.In, "completions", completion.from))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{Path: completion.to, Data: data})
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
	if format == "deb" {
		documents[0] = entry{Path: "usr/share/doc/brine/copyright", Data: r.debianCopyright()}
	}
	salt, err := r.salt("usr/share/salt-brine")
	return append(append(all, documents...), salt...), err
}
