package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

// These tests start from what scripts/release made, and from nothing else:
// BRINE_TEST_DIST names the folder.

// dist is the one file of the release with such a name.
func dist(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("BRINE_TEST_DIST")
	if dir == "" {
		t.Skip("SKIPPED: BRINE_TEST_DIST names no release; scripts/test release makes one")
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s has not one file %s: %v", dir, pattern, found)
	}
	return found[0]
}

func here() platform { return platform{runtime.GOOS, runtime.GOARCH} }

// run gives what a program prints; the test fails when it fails.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", cmd, err, out, &stderr)
	}
	return string(out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// says fails the test when a text has not all of the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q:\n%s", w, text[:min(len(text), 2000)])
		}
	}
}

// untar unpacks a tar file, through gzip if it is.
func untar(t *testing.T, data []byte, to string) {
	t.Helper()
	var r io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	}
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, content, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// unpacked is the archive for this machine, unpacked: its folder.
func unpacked(t *testing.T) string {
	t.Helper()
	archive := dist(t, "brine_*_"+here().String()+".tar.gz")
	dir := t.TempDir()
	untar(t, read(t, archive), dir)
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"))
}

// released is the version in the name of a file of the release.
func released(t *testing.T) string {
	t.Helper()
	return strings.Split(filepath.Base(dist(t, "brine_*_krew.yaml")), "_")[1]
}

func TestChecksumsAreThoseOfAllFiles(t *testing.T) {
	sums := dist(t, "SHA256SUMS")
	var listed []string
	for line := range strings.Lines(string(read(t, sums))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed = append(listed, name)
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, filepath.Join(filepath.Dir(sums), name)))); got != sum {
			t.Errorf("%s has the sum %s, listed is %s", name, got, sum)
		}
	}
	files, err := os.ReadDir(filepath.Dir(sums))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "SHA256SUMS") && !slices.Contains(listed, f.Name()) {
			t.Errorf("%s is not listed", f.Name())
		}
	}
}

func TestArchive(t *testing.T) {
	dir := unpacked(t)
	var v struct{ Version, Revision, Date string }
	if err := json.Unmarshal([]byte(run(t, exec.Command(filepath.Join(dir, "brine"), "version", "-o", "json"))), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != "v"+released(t) || len(v.Revision) != 40 || !strings.HasSuffix(v.Date, "Z") {
		t.Errorf("it says of itself %+v", v)
	}
	says(t, run(t, exec.Command(filepath.Join(dir, "brine"), "version")), "v"+released(t), v.Revision[:12], v.Date)
	says(t, run(t, exec.Command(filepath.Join(dir, "kubectl-brine"), "apply", "--help")), "kubectl brine apply -f BUNDLE")
	says(t, string(read(t, filepath.Join(dir, "man", "brine-apply.1"))), `.TH "BRINE-APPLY" "1"`, "v"+released(t), "force-conflicts")
	says(t, string(read(t, filepath.Join(dir, "THIRD-PARTY-LICENSES.txt"))), "k8s.io/client-go ", "std 1.", "Apache License", "Permission is hereby granted")
	says(t, run(t, exec.Command("bash", "-c", `source "$0" && complete -p brine`, filepath.Join(dir, "completions", "brine.bash"))), "__start_brine")
	for _, file := range []string{"completions/_brine", "completions/brine.fish", "completions/brine.ps1", "LICENSE", "CHANGELOG.md", "examples/job.yaml", "examples/pillar.sls", "salt/_beacons/brine_drift.py", "salt/_modules/brine.py", "salt/_modules/brine_object.py", "salt/_modules/_brine_parts.py", "salt/_states/brine.py", "salt/_states/brine_object.py", "salt/_runners/brine.py"} {
		if len(read(t, filepath.Join(dir, file))) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
}

// Every manual page there has to be one of a command, and the other way round.
func TestManualPagesAreThoseOfTheCommands(t *testing.T) {
	dir := unpacked(t)
	pages, err := os.ReadDir(filepath.Join(dir, "man"))
	if err != nil {
		t.Fatal(err)
	}
	// What completion offers is each command, with what it is for.
	offered := run(t, exec.Command(filepath.Join(dir, "brine"), "__complete", ""))
	var got []string
	for _, p := range pages {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(p.Name(), ".1"), "brine-"); ok {
			got = append(got, name)
		}
	}
	var want []string
	for line := range strings.Lines(offered) {
		if name, _, ok := strings.Cut(line, "\t"); ok && name != "help" && name != "completion" {
			want = append(want, name)
		}
	}
	// Commands of commands have pages, too: brine-inventory-repair.
	got = slices.DeleteFunc(got, func(name string) bool {
		parent, _, ok := strings.Cut(name, "-")
		return ok && slices.Contains(want, parent)
	})
	if slices.Sort(want); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("there are pages of %v, and commands %v", got, want)
	}
}

// A new dependency is some megabyte, and seen here; a function more is not.
func TestBinaryIsSmall(t *testing.T) {
	const most = 45_500_000
	info, err := os.Stat(filepath.Join(unpacked(t), "brine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the binary has %d bytes", info.Size())
	if info.Size() > most {
		t.Errorf("the binary has %d bytes, at most %d are wanted: scripts/release --sizes shows of what", info.Size(), most)
	}
}

// What packages allocate before main is the same on every machine; the memory and the
// time of a start are not.
func TestStartAllocatesLittle(t *testing.T) {
	const most = 4_500
	table := run(t, exec.Command("go", "run", "./start", filepath.Join(unpacked(t), "brine")))
	t.Logf("brine version:\n%s", table)
	row := strings.Split(strings.Split(table, "\n")[2], "|")
	allocated, err := strconv.Atoi(strings.TrimSpace(row[7]))
	if err != nil || allocated < 500 || allocated > most {
		t.Errorf("packages allocate %d kB before main (%v), at most %d are wanted", allocated, err, most)
	}
}

func TestSBOMIsWhatTheBinarySays(t *testing.T) {
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(read(t, dist(t, "brine_*_"+here().String()+".cdx.json"))), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(unpacked(t), "brine")
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.Name+" "+c.Version)
		if c.Licenses == nil || len(*c.Licenses) == 0 {
			t.Errorf("%s has no licence", c.Name)
		}
	}
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the SBOM has %v\nthe binary %v", got, want)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(read(t, binary))); (*bom.Metadata.Component.Hashes)[0].Value != sum {
		t.Errorf("the SBOM is of another binary than %s", sum)
	}
}

// The schema is the one that CycloneDX publishes, from the module that writes the SBOM.
func TestSBOMIsValid(t *testing.T) {
	module := strings.TrimSpace(run(t, exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")))
	text := read(t, dist(t, "brine_*_"+here().String()+".cdx.json"))
	var bom cdx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	schemas := gojsonschema.NewSchemaLoader()
	for _, name := range []string{"spdx.schema.json", "jsf-0.82.schemax.json"} {
		if err := schemas.AddSchemas(gojsonschema.NewBytesLoader(read(t, filepath.Join(module, "schema", name)))); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := schemas.Compile(gojsonschema.NewBytesLoader(read(t, filepath.Join(module, "schema", "bom-"+bom.SpecVersion.String()+".schema.json"))))
	if err != nil {
		t.Fatal(err)
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range result.Errors() {
		t.Error(wrong)
	}
	main := bom.Metadata.Component
	if main.Supplier == nil || main.Supplier.Name != maintainer || main.Licenses == nil || (*main.Licenses)[0].License.ID != spdx || main.Version != released(t) {
		t.Errorf("the SBOM says of brine %+v", main)
	}
}

// The statement names every other file by its sum, and the commit.
func TestProvenance(t *testing.T) {
	path := dist(t, "brine_*_provenance.intoto.json")
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest struct{ Sha256 string }
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   struct{ Version string }
				InternalParameters   struct{ Go string }
				ResolvedDependencies []struct {
					URI    string
					Digest map[string]string
				}
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal(read(t, path), &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" || statement.Predicate.RunDetails.Builder.ID == "" {
		t.Errorf("it is %+v", statement)
	}
	build := statement.Predicate.BuildDefinition
	if build.ExternalParameters.Version != released(t) || len(build.ResolvedDependencies[0].Digest["gitCommit"]) != 40 {
		t.Errorf("it was built from %+v", build)
	}
	info, err := buildinfo.ReadFile(filepath.Join(unpacked(t), "brine"))
	if err != nil {
		t.Fatal(err)
	}
	// Another Go makes other bytes.
	if pinned := "toolchain " + info.GoVersion + "\n"; build.InternalParameters.Go != strings.TrimPrefix(info.GoVersion, "go") || !strings.Contains(string(read(t, filepath.Join("..", "..", "go.mod"))), pinned) {
		t.Errorf("the statement says Go %s, the binary %s, and go.mod another one", build.InternalParameters.Go, info.GoVersion)
	}
	sums, err := sumsOf(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, s := range statement.Subject {
		named[s.Name] = s.Digest.Sha256
	}
	for _, s := range sums {
		if s.Name != filepath.Base(path) && !strings.HasPrefix(s.Name, "SHA256SUMS") && named[s.Name] != s.Hex {
			t.Errorf("%s has the sum %s, the statement says %q", s.Name, s.Hex, named[s.Name])
		}
	}
}

// unshared says whether a program can be run where there is no network: in a namespace of its
// own, without a route.
func unshared() bool {
	return os.Getuid() == 0 && exec.Command("unshare", "--net", "true").Run() == nil
}

// Without a network: modules come from vendor/, and there is no proxy to ask.
func TestSourceBuildsWithoutNetwork(t *testing.T) {
	dir := t.TempDir()
	untar(t, read(t, dist(t, "brine_*_source.tar.gz")), dir)
	top := filepath.Join(dir, "brine-"+released(t))
	if len(read(t, filepath.Join(top, "scripts", "releaser", "files", "LICENSE"))) == 0 {
		t.Error("the sources have no licence")
	}
	var statement struct {
		Predicate struct {
			BuildDefinition struct{ InternalParameters struct{ Flags []string } }
		}
	}
	if err := json.Unmarshal(read(t, dist(t, "brine_*_provenance.intoto.json")), &statement); err != nil {
		t.Fatal(err)
	}
	// With the flags of the release Go's cache has the packages.
	args := append([]string{"go", "build", "-mod=vendor", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", filepath.Join(dir, "brine")}, statement.Predicate.BuildDefinition.InternalParameters.Flags...)
	args = append(args, "./cmd/brine")
	if unshared() {
		args = append([]string{"unshare", "--net"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOMODCACHE="+filepath.Join(dir, "none"), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	run(t, cmd)
	says(t, run(t, exec.Command(filepath.Join(dir, "brine"), "version")), "brine v")
}

// offline is the archive for machines without a network, unpacked: its folder.
func offline(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	untar(t, read(t, dist(t, "brine_*_offline.tar")), dir)
	return filepath.Join(dir, "brine-"+released(t)+"-offline")
}

// command is a line of a page, as its reader copies it: the first that begins so.
func command(t *testing.T, page []byte, begin string) string {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(string(page), "\\\n", "")) {
		if code, ok := strings.CutPrefix(line, "    "); ok && strings.HasPrefix(code, begin) {
			return code
		}
	}
	t.Fatalf("no command begins with %q:\n%s", begin, page)
	return ""
}

// One archive has all that an installation without a network needs, the same files as the
// release, and its own sums.
func TestOfflineArchive(t *testing.T) {
	top := offline(t)
	check := exec.Command("bash", "-c", command(t, read(t, filepath.Join(top, "README.md")), "sha256sum "))
	check.Dir = top
	says(t, run(t, check), ".deb: OK", ".rpm: OK", "_image.tar: OK", ".whl: OK", "_job.yaml: OK", ".cdx.json: OK", "README.md: OK")
	files, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "SHA256SUMS") || f.Name() == "README.md" {
			continue
		}
		if !bytes.Equal(read(t, filepath.Join(top, f.Name())), read(t, dist(t, f.Name()))) {
			t.Errorf("%s is another file than that of the release", f.Name())
		}
	}
}

// The lines of both pages verify the signatures, of the release and of the archive, with
// nothing but the public key: scripts/test release signs, and names it in BRINE_TEST_SIGNERS.
func TestPagesVerifyTheSignature(t *testing.T) {
	signers := os.Getenv("BRINE_TEST_SIGNERS")
	if _, err := os.Stat(signers); err != nil {
		t.Skip("SKIPPED: the release is not signed; scripts/test release signs one where there is ssh-keygen")
	}
	for dir, page := range map[string]string{filepath.Dir(dist(t, "SHA256SUMS")): "README.md", offline(t): filepath.Join("files", "OFFLINE.md")} {
		line := strings.NewReplacer("allowed_signers", signers, "NAME", "release@example.com").Replace(command(t, read(t, page), "ssh-keygen "))
		verify := func(line string) *exec.Cmd {
			cmd := exec.Command("bash", "-c", line)
			cmd.Dir = dir
			return cmd
		}
		says(t, run(t, verify(line)), `Good "brine-release" signature for release@example.com`)
		if verify(strings.Replace(line, "< SHA256SUMS", "< SHA256SUMS.sig", 1)).Run() == nil {
			t.Errorf("%s: another text verifies, too", line)
		}
		run(t, verify(command(t, read(t, page), "sha256sum ")))
	}
}

// What was built with changes that are not committed says so everywhere. At its end,
// scripts/release prints what is left to do, and what changes for users.
func TestUncommittedChangesAreMarked(t *testing.T) {
	version, dir := released(t), t.TempDir()
	clone, out := filepath.Join(dir, "brine"), filepath.Join(dir, "out")
	run(t, exec.Command("git", "clone", "--quiet", filepath.Join("..", ".."), clone))
	if err := os.WriteFile(filepath.Join(clone, "README.md"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	release := func(flags ...string) *exec.Cmd {
		return exec.Command(filepath.Join(clone, "scripts", "release"), append([]string{version, "--platforms", here().OS + "/" + here().Arch, "--no-source", "--out", out}, flags...)...)
	}
	refused := release()
	if text, _ := refused.CombinedOutput(); refused.ProcessState.ExitCode() != 2 || !strings.Contains(string(text), "changes that are not committed") {
		t.Errorf("without --allow-dirty: %s\n%s", refused.ProcessState, text)
	}
	text, err := release("--allow-dirty").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	_, changes, _ := strings.Cut(string(read(t, filepath.Join(clone, "scripts", "CHANGELOG.md"))), "\n## "+version+"\n")
	changes, _, _ = strings.Cut(changes, "\n## ")
	var notes []string
	for line := range strings.Lines(changes) {
		if strings.HasPrefix(line, "- ") && len(notes) < 10 {
			notes = append(notes, line)
		}
	}
	says(t, string(text), "For the users of "+version+"+dirty, from scripts/CHANGELOG.md:\n"+strings.Join(notes, "")+"\nBefore it is published, by hand:\n",
		"- built again on another machine", "- installed and removed: ", "- signed: this one is not", "- NOT to be published", "- tagged: git tag v"+version+"+dirty ")

	t.Setenv("BRINE_TEST_DIST", out)
	files, err := os.ReadDir(out)
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if f.Name() != "SHA256SUMS" && !strings.Contains(f.Name(), version+"+dirty") {
			t.Errorf("%s does not say that it is not what was committed", f.Name())
		}
	}
	t.Run("archive", TestArchive)
	t.Run("SBOM", TestSBOMIsValid)
	t.Run("provenance", TestProvenance)
	t.Run("wheel", TestWheel)
}

// The wheel is one that Python's installers take: every file with its sum.
func TestWheel(t *testing.T) {
	data := read(t, dist(t, "saltext_brine-*-py3-none-any.whl"))
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, f := range files.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content[f.Name] = string(text)
	}
	info := "saltext_brine-" + released(t) + ".dist-info/"
	says(t, content[info+"METADATA"], "Name: saltext-brine\n", "Version: "+released(t)+"\n", "Requires-Python: >=3.6\n", "License-Expression: Apache-2.0\n")
	says(t, content[info+"licenses/LICENSE"], "Apache License")
	says(t, content[info+"entry_points.txt"], "[salt.loader]\nsaltext.brine = saltext.brine\n")
	says(t, content["saltext/brine/__init__.py"], `__version__ = "`+released(t)+`"`)
	for _, name := range []string{"saltext/brine/beacons/brine_drift.py", "saltext/brine/modules/brine.py", "saltext/brine/modules/brine_object.py", "saltext/brine/states/brine.py", "saltext/brine/states/brine_object.py", "saltext/brine/runners/brine.py"} {
		says(t, content[name], `__virtualname__ = "brine`)
	}
	if strings.Count(content[info+"RECORD"], "\n") != len(content) {
		t.Errorf("RECORD lists other files than there are:\n%s", content[info+"RECORD"])
	}
}

// What krew does: the archive by its sum, the files it names, the link.
func TestKrewManifestInstallsThePlugin(t *testing.T) {
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, Sha256, Bin string
				Selector         struct{ MatchLabels map[string]string }
				Files            []struct{ From, To string }
			}
		}
	}
	if err := yaml.UnmarshalStrict(read(t, dist(t, "brine_*_krew.yaml")), &struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       any            `json:"spec"`
	}{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(read(t, dist(t, "brine_*_krew.yaml")), &plugin); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, p := range plugin.Spec.Platforms {
		if p.Selector.MatchLabels["os"] != runtime.GOOS || p.Selector.MatchLabels["arch"] != runtime.GOARCH {
			continue
		}
		archive := dist(t, filepath.Base(p.URI))
		if sum := fmt.Sprintf("%x", sha256.Sum256(read(t, archive))); sum != p.Sha256 {
			t.Errorf("%s has the sum %s, the manifest says %s", archive, sum, p.Sha256)
		}
		dir := t.TempDir()
		untar(t, read(t, archive), dir)
		for _, f := range p.Files {
			to := filepath.Join(bin, f.To)
			if f.To == "." {
				to = filepath.Join(bin, filepath.Base(f.From))
			}
			if err := os.Rename(filepath.Join(dir, f.From), to); err != nil {
				t.Fatal(err)
			}
		}
		// kubectl finds it by its name on PATH.
		cmd := kubectl(t, "brine", "version")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		says(t, run(t, cmd), "brine "+plugin.Spec.Version+" (commit ")
		return
	}
	t.Errorf("the manifest has no platform %s", here())
}

func kubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(filepath.Join("..", "cluster"), append([]string{"kubectl"}, args...)...)
}
