package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/cmd/brine/clitest"
)

// What Salt still has and this bundle lacks was most likely forgotten: nothing is pruned.
func TestSLSThatIsNotIncludedAnyMore(t *testing.T) {
	s := clitest.New(t)
	tree := []string{"p/web.yaml", "p/db.yaml", "p/log.yaml"}
	part := func(file, name string) string {
		return "\n---\n# brine.dev/source: 1 salt://p/" + file + " (rendered)\n" + strings.ReplaceAll(clitest.ConfigMap(name), "{ns}", s.NS)
	}
	salt := func(command string, parts []string, flags ...string) clitest.Outcome {
		t.Helper()
		header, err := json.Marshal(bundle.Rendering{Saltenv: "prod", Files: []string{"salt://p/web.yaml"}, Pillar: map[string]string{"inventory": "a/b"}, Tree: tree})
		if err != nil {
			t.Fatal(err)
		}
		args := append([]string{command, "--inventory", s.Inventory, "--timeout=60s", "--namespace", s.NS, "--kubeconfig", s.Kubeconfig, "-o", "json", "-f", "-"}, flags...)
		return clitest.Command(t.Context(), strings.NewReader("# brine.dev/rendering: "+string(header)+strings.Join(parts, "")), args...)
	}
	web, db, log := part("web.yaml", "web"), part("db.yaml", "db"), part("log.yaml", "log")
	salt("apply", []string{web, db, log}).Want(t, 0)

	// The revision keeps what it was rendered from, and not the tree.
	var revision report.Revision
	if err := json.Unmarshal([]byte(clitest.Run(t, s.Kubeconfig, "history", "show", "1", "--inventory", s.Inventory).Want(t, 0).Stdout), &revision); err != nil {
		t.Fatal(err)
	}
	if r := revision.Rendering; r == nil || r.Saltenv != "prod" || r.Pillar["inventory"] != "a/b" || len(r.Files) != 1 || r.Tree != nil {
		t.Errorf("the revision was rendered from %+v", r)
	}

	for _, command := range []string{"preview", "apply"} {
		salt(command, []string{web, log}).Want(t, 3).Prints(t,
			`salt://p/db.yaml, from which revision 1 was made, is still in saltenv \"prod\", and is not part of this run: 1 object would be pruned, and nothing was changed: ConfigMap `+s.NS+"/db. If this is intended, give --removed=salt://p/db.yaml")
	}
	s.Exists("v1/configmaps", "web", "db", "log")
	// A partial run and one that prunes nothing go on. What the latter left counts later.
	salt("apply", []string{web, log}, "--only=ConfigMap/web").Want(t, 0)
	salt("apply", []string{web, log}, "--no-prune").Want(t, 0)
	salt("apply", []string{web, log}).Want(t, 3)
	// A plan that was made with the word needs none when it is carried out.
	saved := filepath.Join(t.TempDir(), "plan.json")
	salt("preview", []string{web, log}, "--removed=salt://p/db.yaml", "--plan-out", saved).Want(t, 0)
	salt("apply", []string{web, log}, "--plan", saved).Want(t, 0)
	s.Missing("v1/configmaps", "db")

	// Gone from the tree as well: dangerous, and refused where that is asked for.
	tree = []string{"p/web.yaml", "p/db.yaml"}
	salt("apply", []string{web}, "--refuse-removed").Want(t, 3).Prints(t, "salt://p/log.yaml", `is no longer in saltenv \"prod\"`)
	dangerous := salt("preview", []string{web}).Want(t, 0).Prints(t, "pruned with it: 1 object: ConfigMap "+s.NS+"/log") // Salt shows the warnings
	risks := dangerous.Result.Review.Risks
	if !slices.ContainsFunc(risks, func(r review.Risk) bool {
		return r.Type == review.Removed && len(r.Objects) == 1 && r.Objects[0].Name == "log"
	}) {
		t.Errorf("risks: %+v", risks)
	}
	salt("apply", []string{web}).Want(t, 0).Prints(t, "pruned with it: 1 object: ConfigMap "+s.NS+"/log")

	// A rollback prunes what it has to. The same objects from other files are a revision of
	// its own, so that the new names count.
	number := salt("apply", []string{web, db}).Want(t, 0).Result.Revision
	back := s.Rollback().Want(t, 0).Result.Revision
	s.Missing("v1/configmaps", "db")
	if again := salt("apply", []string{web}).Want(t, 0).Result.Revision; again != back {
		t.Errorf("what the rollback applied, rendered from the same files, is revision %d after %d", again, back)
	}
	salt("apply", []string{web, db}).Want(t, 0)
	tree = []string{"p/web.yaml", "p/site.yaml"}
	renamed := salt("apply", []string{web, part("site.yaml", "db")}).Want(t, 0).Result
	if renamed.Revision <= number || renamed.Summary.Unchanged != 2 {
		t.Errorf("renamed: revision %d, %+v", renamed.Revision, renamed.Summary)
	}
	salt("apply", []string{web}).Want(t, 3).Prints(t, "--removed=salt://p/site.yaml")
	salt("apply", []string{web, part("site.yaml", "db")}).Want(t, 0)
	if again := salt("apply", []string{web, part("site.yaml", "db")}).Want(t, 0).Result; again.Revision != renamed.Revision {
		t.Errorf("the same once more is revision %d", again.Revision)
	}
}

// The command line has no saltenv: it names the file, and stops where that is asked for.
func TestFileThatIsNotInTheBundleAnyMore(t *testing.T) {
	s := clitest.New(t)
	dir := filepath.Join(t.TempDir(), "shop")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "db"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(strings.ReplaceAll(clitest.ConfigMap(name), "{ns}", s.NS)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Run("apply", []string{"-f", dir}).Want(t, 0)
	if err := os.Rename(filepath.Join(dir, "db.yaml"), filepath.Join(dir, "data.yaml")); err != nil {
		t.Fatal(err)
	}
	if renamed := s.Run("preview", []string{"-f", dir}).Want(t, 0); strings.Contains(renamed.Stdout, "db.yaml") {
		t.Errorf("a file that was renamed is called removed: %s", renamed.Stdout)
	}
	if err := os.Remove(filepath.Join(dir, "data.yaml")); err != nil {
		t.Fatal(err)
	}
	s.Run("preview", []string{"-f", dir, "--refuse-removed"}).Want(t, 3).Prints(t, "shop/db.yaml, from which revision 1 was made, is no longer in the bundle")
	s.Run("apply", []string{"-f", dir, "--refuse-removed", "--removed=*db.yaml"}).Want(t, 0).Prints(t, "shop/db.yaml", "pruned with it: 1 object: ConfigMap "+s.NS+"/db")
}
