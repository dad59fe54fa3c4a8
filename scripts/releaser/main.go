// Command releaser packs binaries of brine into what is published: archives,
// Debian and RPM packages, a container image, a wheel for Salt, a krew
// manifest, SBOMs, checksums and signatures. scripts/release builds the
// binaries, and calls it. Its output depends on its input alone: every time in
// it is that of the commit.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// release is one version on its way to dist/.
type release struct {
	Version   string // without the v
	Commit    string
	Date      time.Time // of the commit
	Root      string    // the repository
	In        string    // OS_ARCH/brine[.exe], man/, completions/
	Out       string    // dist/
	URL       string    // where the files will be found; for krew
	Key       string    // file of a secret key, OpenPGP's or OpenSSH's; "" signs nothing
	Source    string    // folder of the sources with vendor/; "" packs none
	Tags      string    // build tags of the binaries
	Flags     string    // of the compiler, one a line
	Platforms []platform
	Licenses  licenses
}

type platform struct{ OS, Arch string }

func (p platform) String() string { return p.OS + "_" + p.Arch }

// name is that of a file of a platform, or of all where it has none.
func (r *release) name(p platform, ending string) string {
	if p == (platform{}) {
		return "brine_" + r.Version + ending
	}
	return "brine_" + r.Version + "_" + p.String() + ending
}

func (r *release) binary(p platform) string {
	name := "brine"
	if p.OS == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.In, p.String(), name)
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "sizes" {
		end(sizes(os.Stdout, os.Args[2]))
		return
	}
	var platforms, date string
	r := &release{}
	flag.StringVar(&r.Version, "version", "", "semantic version, without the v")
	flag.StringVar(&r.Commit, "commit", "", "commit that was built")
	flag.StringVar(&date, "date", "", "its time, in RFC 3339")
	flag.StringVar(&r.Root, "root", "", "the repository")
	flag.StringVar(&r.In, "in", "", "folder of the binaries, manual pages and completions")
	flag.StringVar(&r.Out, "out", "", "folder to write to")
	flag.StringVar(&r.URL, "url", "", "address of the folder that the files will be published in")
	flag.StringVar(&r.Key, "sign-key", "", "secret key of OpenPGP, armored, or of OpenSSH; its passphrase is BRINE_SIGNING_PASSPHRASE")
	flag.StringVar(&r.Source, "source", "", "folder of the sources, with vendor/")
	flag.StringVar(&r.Tags, "tags", "", "build tags of the binaries")
	flag.StringVar(&r.Flags, "flags", "", "flags of go build that the binaries were made with, one a line")
	flag.StringVar(&platforms, "platforms", "", "OS/ARCH,...")
	flag.Parse()
	for _, p := range strings.Split(platforms, ",") {
		system, arch, _ := strings.Cut(p, "/")
		r.Platforms = append(r.Platforms, platform{system, arch})
	}
	var err error
	if r.Date, err = time.Parse(time.RFC3339, date); err == nil {
		r.Date = r.Date.UTC()
		err = r.pack()
	}
	end(err)
}

func end(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "releaser: %v\n", err)
		os.Exit(1)
	}
}

// pack writes everything.
func (r *release) pack() error {
	var err error
	if r.Licenses, err = collectLicenses(r); err != nil {
		return fmt.Errorf("collect the licences: %w", err)
	}
	var linux []platform
	for _, p := range r.Platforms {
		if err := r.archive(p); err != nil {
			return fmt.Errorf("archive of %s: %w", p, err)
		}
		if err := r.sbom(p); err != nil {
			return fmt.Errorf("SBOM of %s: %w", p, err)
		}
		if p.OS != "linux" {
			continue
		}
		linux = append(linux, p)
		for _, format := range []string{"deb", "rpm"} {
			if err := r.distroPackage(p, format); err != nil {
				return fmt.Errorf("%s of %s: %w", format, p, err)
			}
		}
	}
	if len(linux) > 0 {
		err = r.image(linux)
	}
	return cmp.Or(err, errors.Join(r.wheel(), r.job(), r.krew(), r.source()), r.offline(), r.provenance(), r.checksums(r.Out))
}

// tag is that of the image: a tag has no +.
func (r *release) tag() string { return strings.ReplaceAll(r.Version, "+", "-") }

// job writes the example of a Job that applies a bundle from inside the cluster.
func (r *release) job() error {
	text, err := r.jobManifest()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(platform{}, "_job.yaml")), text, 0o644)
}

func (r *release) jobManifest() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.Root, "scripts", "releaser", "files", "job.yaml"))
	if err != nil {
		return nil, err
	}
	return []byte(strings.ReplaceAll(string(text), "brine:VERSION", "brine:"+r.tag())), nil
}
