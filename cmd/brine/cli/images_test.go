package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

func TestImages(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec:\n  containers:\n  - name: c\n    image: quay.io/web:2\n    args: [--sidecar=quay.io/sidecar:1]\n"
	now, before := file("now.yaml", pod), file("before.yaml", strings.Replace(pod, "web:2", "web:1", 1))
	clitest.Offline(t, "images", "-f", now).Want(t, 0).Prints(t, "quay.io/web:2\n    Pod shop/a  spec.containers[name=\"c\"].image  ("+now+":7)\n", "quay.io/sidecar:1  (a guess)\n")
	since := clitest.Offline(t, "images", "-f", now, "--since", before).Want(t, 0).Prints(t, "+ quay.io/web:2\n", "- quay.io/web:1\n")
	if strings.Contains(since.Stdout, "sidecar") {
		t.Errorf("it lists what did not change:\n%s", since.Stdout)
	}
	clitest.Offline(t, "images", "-f", now, "--since", before, "-o", "json").Want(t, 0).Prints(t, `"kind": "Images"`, `"image": "quay.io/web:2"`, `"gone": [`, `"line": 7`)

	list := file("list.txt", "quay.io/web:1\n")
	clitest.Offline(t, "check", "-f", now, "--images-in", list).Want(t, report.ExitBadBundle).Prints(t,
		now+":7: Pod shop/a: spec.containers[name=\"c\"].image: image quay.io/web:2 is not in "+list, "quay.io/sidecar:1, perhaps an image, is not in "+list)
	clitest.Offline(t, "check", "-f", now, "--images-in", file("all.txt", "quay.io/web:2 # new\nquay.io/sidecar:1\n")).Want(t, 0)
	clitest.Offline(t, "check", "-f", now, "--images-in", filepath.Join(folder, "none")).Want(t, report.ExitBadBundle).Prints(t, "--images-in: open")
}

// Several reports of one run: each in the format of its name, and the time of the last
// success outlives a run that fails.
func TestReports(t *testing.T) {
	folder := t.TempDir()
	bundle, metrics := filepath.Join(folder, "b.yaml"), filepath.Join(folder, "brine.prom")
	write := func(text string) {
		if err := os.WriteFile(bundle, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")
	clitest.Offline(t, "apply", "-f", bundle, "--dry-run=client", "--report", filepath.Join(folder, "r.md")+","+filepath.Join(folder, "r.xml"),
		"--report", filepath.Join(folder, "r.html"), "--report", filepath.Join(folder, "r.json"), "--report", metrics).Want(t, 0)
	for name, want := range map[string]string{"r.md": "## Preview of", "r.xml": `<testcase classname="ConfigMap" name="shop/a"`, "r.html": "<!DOCTYPE html>", "r.json": `"kind": "Result"`} {
		if text := read(name); !strings.Contains(text, want) {
			t.Errorf("no %q in %s:\n%s", want, name, text)
		}
	}
	success := func() string {
		_, line, _ := strings.Cut(read("brine.prom"), "# TYPE brine_last_success_timestamp_seconds gauge\n")
		return line
	}
	last := success()
	if last == "" || !strings.Contains(read("brine.prom"), `brine_exit_code{command="apply",inventory="default/b"} 0`) {
		t.Errorf("%s", read("brine.prom"))
	}
	if info, err := os.Stat(metrics); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("node_exporter may not read the metrics: %v %v", info.Mode(), err)
	}
	write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: 7\n")
	clitest.Offline(t, "apply", "-f", bundle, "--dry-run=client", "--report", metrics)
	if success() != last || strings.Contains(read("brine.prom"), `inventory="default/b"} 0`+"\n# HELP brine_seconds") {
		t.Errorf("after a failure:\n%s", read("brine.prom"))
	}
	clitest.Offline(t, "apply", "-f", bundle, "--report", filepath.Join(folder, "r.json"), "--report", filepath.Join(folder, "r.pdf")).
		Want(t, report.ExitBadBundle).Prints(t, "r.pdf must end in .html, .json, .md, .xml, .prom")
}
