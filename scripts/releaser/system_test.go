//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/sassoftware/go-rpmutils"
)

// in runs a program of another root, as a user.
func in(root string, user uint32, program string, args ...string) *exec.Cmd {
	cmd := &exec.Cmd{Path: program, Args: append([]string{program}, args...), Dir: "/", Env: []string{"PATH=/usr/bin"}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	return cmd
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root may install a package, or change the root folder")
	}
}

// installed checks what a package put below a root.
func installed(t *testing.T, root, zsh string) {
	t.Helper()
	open(t, root)
	says(t, run(t, in(root, 0, "/usr/bin/brine", "version")), "brine v"+released(t)+" (commit ")
	says(t, run(t, in(root, 65534, "/usr/bin/kubectl-brine", "--help")), "kubectl brine [command]")
	for _, path := range []string{
		"usr/share/man/man1/brine.1.gz", "usr/share/man/man1/brine-apply.1.gz", "usr/share/bash-completion/completions/brine", zsh,
		"usr/share/salt-brine/_beacons/brine_drift.py", "usr/share/salt-brine/_modules/brine.py", "usr/share/salt-brine/_states/brine.py", "usr/share/salt-brine/_runners/brine.py", "usr/share/doc/brine/examples/pillar.sls", "usr/share/doc/brine/THIRD-PARTY-LICENSES.txt", "usr/share/doc/brine/CHANGELOG.md",
	} {
		if len(read(t, filepath.Join(root, path))) == 0 {
			t.Errorf("/%s is empty", path)
		}
	}
	if _, err := exec.LookPath("man"); err == nil {
		page := run(t, exec.Command("man", "--local-file", filepath.Join(root, "usr/share/man/man1/brine-apply.1.gz")))
		says(t, page, "SYNOPSIS", "--force-conflicts")
	}
}

// The package is installed by dpkg into a root of its own, used there, and
// removed: the machine stays as it is.
func TestDeb(t *testing.T) {
	needRoot(t)
	deb := dist(t, "brine_*_"+runtime.GOARCH+".deb")
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("SKIPPED: there is no dpkg here")
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command(dpkg, "--root="+root, "--install", deb))
	says(t, run(t, exec.Command("dpkg-query", "--admindir="+filepath.Join(root, "var/lib/dpkg"), "--show", "--showformat=${Status} ${Version}", "brine")), "install ok installed "+strings.ReplaceAll(released(t), "-", "~"))
	installed(t, root, "usr/share/zsh/vendor-completions/_brine")
	says(t, string(read(t, filepath.Join(root, "usr/share/doc/brine/copyright"))), "License: Apache-2.0")
	if got := run(t, exec.Command(dpkg, "--root="+root, "--verify", "brine")); got != "" {
		t.Errorf("dpkg --verify says %s", got)
	}
	run(t, exec.Command(dpkg, "--root="+root, "--purge", "brine"))
	for _, path := range []string{"usr/bin/brine", "usr/bin/kubectl-brine", "usr/share/salt-brine", "usr/share/doc/brine", "usr/share/man/man1/brine.1.gz"} {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
			t.Errorf("/%s is there after the package was removed", path)
		}
	}
}

// Where there is no rpm, its files are unpacked as rpm would.
func TestRPM(t *testing.T) {
	needRoot(t)
	path := dist(t, "brine-*."+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]+".rpm")
	root := t.TempDir()
	if rpm, err := exec.LookPath("rpm"); err == nil {
		run(t, exec.Command(rpm, "--root="+root, "--initdb"))
		run(t, exec.Command(rpm, "--root="+root, "--nosignature", "--install", path))
		installed(t, root, "usr/share/zsh/site-functions/_brine")
		run(t, exec.Command(rpm, "--root="+root, "--erase", "brine"))
		if _, err := os.Lstat(filepath.Join(root, "usr/bin/brine")); err == nil {
			t.Error("/usr/bin/brine is there after the package was removed")
		}
		return
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rpm, err := rpmutils.ReadRpm(file)
	if err != nil {
		t.Fatal(err)
	}
	if nevra, err := rpm.Header.GetNEVRA(); err != nil || nevra.Name != "brine" || nevra.Version != strings.ReplaceAll(released(t), "-", "~") {
		t.Errorf("the package is %v (%v)", nevra, err)
	}
	if license, err := rpm.Header.GetString(rpmutils.LICENSE); err != nil || license != spdx {
		t.Errorf("the package has the licence %q (%v)", license, err)
	}
	if err := rpm.ExpandPayload(root); err != nil {
		t.Fatal(err)
	}
	files, err := rpm.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string]bool{}
	for _, f := range files {
		owned[f.Name()] = true
	}
	for _, dir := range []string{"/usr/share/doc/brine", "/usr/share/doc/brine/examples", "/usr/share/salt-brine", "/usr/share/salt-brine/_modules"} {
		if !owned[dir] {
			t.Errorf("%s would stay when the package is removed", dir)
		}
	}
	for _, f := range files { // ExpandPayload leaves this out
		if f.Linkname() == "" {
			if err := os.Chmod(filepath.Join(root, f.Name()), os.FileMode(f.Mode()).Perm()); err != nil {
				t.Fatal(err)
			}
		}
	}
	installed(t, root, "usr/share/zsh/site-functions/_brine")
}
