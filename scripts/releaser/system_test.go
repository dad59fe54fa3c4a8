//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
		"usr/share/salt-brine/_beacons/brine_drift.py", "usr/share/salt-brine/_modules/brine.py", "usr/share/salt-brine/_modules/_brine_parts.py", "usr/share/salt-brine/_states/brine.py", "usr/share/salt-brine/_runners/brine.py", "usr/share/doc/brine/examples/pillar.sls", "usr/share/doc/brine/THIRD-PARTY-LICENSES.txt", "usr/share/doc/brine/CHANGELOG.md",
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

// debian is a root that dpkg can install to.
func debian(t *testing.T) string {
	t.Helper()
	needRoot(t)
	if _, err := exec.LookPath("dpkg"); err != nil {
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
	return root
}

// The package is installed by dpkg into a root of its own, used there, and
// removed: the machine stays as it is.
func TestDeb(t *testing.T) {
	deb := dist(t, "brine_*_"+runtime.GOARCH+".deb")
	root := debian(t)
	run(t, exec.Command("dpkg", "--root="+root, "--install", deb))
	says(t, run(t, exec.Command("dpkg-query", "--admindir="+filepath.Join(root, "var/lib/dpkg"), "--show", "--showformat=${Status} ${Version}", "brine")), "install ok installed "+strings.ReplaceAll(released(t), "-", "~"))
	installed(t, root, "usr/share/zsh/vendor-completions/_brine")
	says(t, string(read(t, filepath.Join(root, "usr/share/doc/brine/copyright"))), "License: Apache-2.0")
	if got := run(t, exec.Command("dpkg", "--root="+root, "--verify", "brine")); got != "" {
		t.Errorf("dpkg --verify says %s", got)
	}
	run(t, exec.Command("dpkg", "--root="+root, "--purge", "brine"))
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
	says(t, string(read(t, filepath.Join(root, "usr/share/doc/brine/LICENSE"))), "Apache License")
}

// earlier is a folder with a package and a wheel of an earlier version: what they install is
// another program, and a manual page that later versions do not have.
func earlier(t *testing.T) string {
	t.Helper()
	in, out := t.TempDir(), t.TempDir()
	for _, name := range []string{here().String() + "/brine", "man/brine-gone.1", "completions/brine.bash", "completions/_brine", "completions/brine.fish"} {
		path := filepath.Join(in, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho brine v0.0.1\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	r := &release{Version: "0.0.1", Root: filepath.Join("..", ".."), In: in, Out: out}
	if err := errors.Join(r.distroPackage(here(), "deb"), r.distroPackage(here(), "rpm"), r.wheel()); err != nil {
		t.Fatal(err)
	}
	return out
}

// The lines of the page in the archive, where there is no route to anywhere: they install, and
// upgrade an earlier version, and what they installed works there.
func TestInstallWithoutNetwork(t *testing.T) {
	top, before := offline(t), earlier(t)
	if !unshared() {
		t.Skip("SKIPPED: only root may run a program in a network namespace, with unshare")
	}
	alone := func(dir, line string) string {
		t.Helper()
		cmd := exec.Command("unshare", "--net", "bash", "-c", line)
		cmd.Dir = dir
		return run(t, cmd)
	}
	if routes := alone(top, `tail -n +2 /proc/net/route; grep -v ' lo$' /proc/net/ipv6_route || true`); routes != "" {
		t.Fatalf("there is a network:\n%s", routes)
	}
	page := read(t, filepath.Join(top, "README.md"))
	bundle := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(bundle, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, folders := range map[string][]string{"install": {top}, "upgrade": {before, top}} {
		t.Run("deb "+what, func(t *testing.T) {
			root := debian(t)
			here := strings.NewReplacer("dpkg ", "dpkg --root="+root+" ", "amd64", runtime.GOARCH)
			for _, dir := range folders {
				alone(dir, here.Replace(command(t, page, "dpkg --install")))
				says(t, alone(dir, root+"/usr/bin/brine version"), "brine v"+map[bool]string{true: released(t), false: "0.0.1"}[dir == top])
			}
			if _, err := os.Stat(filepath.Join(root, "usr/share/man/man1/brine-gone.1.gz")); err == nil {
				t.Error("a file of the earlier version is left")
			}
			installed(t, root, "usr/share/zsh/vendor-completions/_brine")
			says(t, alone(top, root+"/usr/bin/brine check -v -f "+bundle), "ConfigMap")
			purge := "dpkg --root=" + root + " --purge brine"
			says(t, string(page), "`dpkg --purge brine`")
			alone(top, purge)
			if _, err := os.Stat(filepath.Join(root, "usr/bin/brine")); err == nil {
				t.Error("the program is left")
			}
		})
		t.Run("rpm "+what, func(t *testing.T) {
			if _, err := exec.LookPath("rpm"); err != nil {
				t.Skip("SKIPPED: there is no rpm here; TestRPM unpacks the package as rpm would")
			}
			root := t.TempDir()
			run(t, exec.Command("rpm", "--root="+root, "--initdb"))
			for _, dir := range folders {
				alone(dir, strings.NewReplacer("rpm ", "rpm --nosignature --root="+root+" ", "x86_64", map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]).Replace(command(t, page, "rpm --upgrade")))
			}
			installed(t, root, "usr/share/zsh/site-functions/_brine")
		})
		t.Run("wheel "+what, func(t *testing.T) {
			env := t.TempDir()
			if out, err := exec.Command("python3", "-m", "venv", env).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED: Python makes no environment here: %s", out)
			}
			for _, dir := range folders {
				alone(dir, strings.Replace(command(t, page, "salt-pip install"), "salt-pip", env+"/bin/python -m pip --disable-pip-version-check", 1))
			}
			says(t, alone(env, "bin/python -m pip --disable-pip-version-check list; cat lib/python*/site-packages/saltext/brine/__init__.py; ls -d lib/python*/site-packages/saltext_brine-*"),
				"saltext-brine", `"`+released(t)+`"`, "site-packages/saltext_brine-"+released(t)+".dist-info")
			if found, _ := filepath.Glob(filepath.Join(env, "lib/python*/site-packages/saltext_brine-0.0.1*")); len(found) > 0 {
				t.Errorf("the earlier version is left: %v", found)
			}
		})
	}
}

// Debian packages of the last two versions take turns on a machine, and on the inventories
// that each wrote: what CHANGELOG.md promises. scripts/test compat makes the older release,
// as its own commit does.
func TestPackagesTakeTurns(t *testing.T) {
	before := os.Getenv("BRINE_TEST_DIST_OLDER")
	if before == "" {
		t.Skip("SKIPPED: BRINE_TEST_DIST_OLDER names no older release; scripts/test compat makes one")
	}
	root, kubeconfig, dir := debian(t), running(t), t.TempDir()
	present := dist(t, "brine_*_"+runtime.GOARCH+".deb")
	found, err := filepath.Glob(filepath.Join(before, "brine_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(found) != 1 {
		t.Fatal(before, found, err)
	}
	version := func(deb string) string { return strings.Split(strings.Split(filepath.Base(deb), "_")[1], "-")[0] }
	install := func(deb string) {
		t.Helper()
		run(t, exec.Command("dpkg", "--root="+root, "--install", deb))
		if got := run(t, exec.Command("dpkg", "--root="+root, "--verify", "brine")); got != "" {
			t.Errorf("dpkg --verify says %s", got)
		}
		says(t, run(t, exec.Command(filepath.Join(root, "usr/bin/brine"), "version")), "brine v"+version(deb))
	}
	kube := func(args ...string) string {
		cmd := kubectl(t, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		return run(t, cmd)
	}
	brine := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, "usr/bin/brine"), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "BRINE_CACHE_DIR="+filepath.Join(dir, "cache"))
		return run(t, cmd)
	}
	apply := func(inventory string, names ...string) string {
		t.Helper()
		var text strings.Builder
		for _, name := range names {
			text.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + inventory + "-" + name + ", namespace: shop}\n")
		}
		file := filepath.Join(dir, inventory+".yaml")
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return brine("apply", "-f", file, "--inventory", "shop/"+inventory)
	}
	are := func(want ...string) {
		t.Helper()
		got := strings.Fields(kube("--namespace", "shop", "get", "configmaps", "-o", `jsonpath={range .items[?(@.metadata.annotations.config\.k8s\.io/owning-inventory)]}{.metadata.name} {end}`))
		if !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
	}
	kube("create", "namespace", "shop")

	install(found[0])
	apply("first", "a", "b")
	install(present) // an upgrade
	says(t, brine("status", "--inventory", "shop/first"), "first-a", "first-b")
	says(t, apply("first", "a", "c"), "first-b", "first-c")
	apply("second", "a", "b")
	are("first-a", "first-c", "second-a", "second-b")
	install(found[0]) // a downgrade
	says(t, brine("status", "--inventory", "shop/second"), "second-a", "second-b")
	brine("drift", "--inventory", "shop/second")
	says(t, apply("second", "a", "c"), "second-b", "second-c")
	brine("rollback", "1", "--inventory", "shop/second")
	apply("first", "a", "d")
	are("first-a", "first-d", "second-a", "second-b")
	install(present)
	says(t, brine("history", "--inventory", "shop/first"), "\n3 ", "\n2 ", "\n1 ")
	brine("rollback", "1", "--inventory", "shop/first")
	are("first-a", "first-b", "first-d", "second-a", "second-b") // the older one does not say who created d
	brine("destroy", "--inventory", "shop/second")
	install(found[0])
	brine("destroy", "--inventory", "shop/first")
	are()
}
