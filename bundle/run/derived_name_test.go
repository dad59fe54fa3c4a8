package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"brine/cmd/brine/clitest"
)

// The inventory of `-f deploy.yaml` is named deploy. Two applications that both have such a
// file do not prune each other's objects, even where they share some.
func TestNamesDerivedFromFilesOfTwoApplications(t *testing.T) {
	s := clitest.New(t)
	write := func(path string, objects ...string) string {
		t.Helper()
		text, err := os.ReadFile(s.File(clitest.Documents(objects...)))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	brine := func(args ...string) clitest.Outcome {
		t.Helper()
		return clitest.Run(t, s.Kubeconfig, append(args, "--namespace", s.NS, "--timeout=60s")...)
	}
	dir := t.TempDir()
	shared, a, b, c := clitest.ConfigMap("shared"), clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ConfigMap("c")
	shop := write(filepath.Join(dir, "shop", "deploy.yaml"), shared, a, b)
	blog := write(filepath.Join(dir, "blog", "deploy.yaml"), shared, c)
	brine("apply", "-f", shop).Want(t, 0)
	for _, command := range []string{"apply", "preview"} {
		for _, more := range [][]string{nil, {"--no-prune"}} {
			brine(append([]string{command, "-f", blog}, more...)...).Want(t, 3).Prints(t, "inventory "+s.NS+"/deploy, named after the bundle's file, was made from shop/deploy.yaml",
				"this bundle has 1 of its 3 objects", "--name=deploy")
		}
	}
	s.Missing("v1/configmaps", "c")
	s.Exists("v1/configmaps", "a")
	// The same file, wherever the working folder is, may become another bundle; so may
	// another file that has half of the members, and one whose inventory is named.
	write(shop, shared, c)
	brine("apply", "-f", filepath.Dir(shop)+"/../shop/deploy.yaml").Want(t, 0)
	s.Missing("v1/configmaps", "a")
	brine("apply", "-f", write(filepath.Join(dir, "moved", "deploy.yaml"), shared, a)).Want(t, 0)
	s.Missing("v1/configmaps", "c")
	brine("apply", "-f", write(blog, b), "--name=deploy").Want(t, 0)
	s.Missing("v1/configmaps", "a")
	// A rollback, and a run after it.
	brine("rollback", "--name=deploy").Want(t, 0)
	s.Exists("v1/configmaps", "a")
	brine("apply", "-f", write(filepath.Join(dir, "moved", "deploy.yaml"), shared, c)).Want(t, 0)
	brine("apply", "-f", write(filepath.Join(dir, "elsewhere", "moved", "deploy.yaml"), b)).Want(t, 3)
}

// A Namespace that both name is no sign that they are one.
func TestNameDerivedFromAFileSharesMoreThanANamespace(t *testing.T) {
	s := clitest.New(t)
	dir := t.TempDir()
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}}\n"
	deploy := func(folder string, want int, objects ...string) {
		t.Helper()
		path := filepath.Join(dir, folder, "deploy.yaml")
		text, err := os.ReadFile(s.File(clitest.Documents(append(objects, namespace)...)))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		clitest.Run(t, s.Kubeconfig, "apply", "-f", path, "--namespace", s.NS, "--inventory-policy=adopt-all", "--timeout=60s").Want(t, want)
	}
	deploy("shop", 0, clitest.ConfigMap("a"))
	deploy("blog", 3, clitest.ConfigMap("b"))
	s.Exists("v1/configmaps", "a")
	deploy("shop", 0, clitest.ConfigMap("b"))
	s.Missing("v1/configmaps", "a")
}
