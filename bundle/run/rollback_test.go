package run_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// needsOf are what each object of the result waited for.
func needsOf(t *testing.T, s clitest.Outcome) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range s.Result.Objects {
		text, err := json.Marshal(o.Needs)
		if err != nil {
			t.Fatal(err)
		}
		all[o.Name] = string(text)
	}
	return all
}

// A rollback applies what was applied, in the order that Salt's requisites ask
// for, absent objects and sources included.
func TestRollbackKeepsSaltRequisites(t *testing.T) {
	s := clitest.New(t)
	first := s.Apply(clitest.States("one")).Want(t, 0)
	s.Apply(clitest.States("two")).Want(t, 0)
	s.Create("v1/configmaps", clitest.ConfigMap("old"))
	back := s.Rollback().Want(t, 0)
	if got, want := needsOf(t, back), needsOf(t, first); got["c"] != want["c"] || got["b"] != want["b"] || !strings.Contains(want["c"], "require: Make b") {
		t.Errorf("the rollback waited for %v, the apply for %v", got, want)
	}
	// What the bundle wants absent, and brine did not create, is not a rollback's to delete.
	back.Did(t, "ConfigMap", "old", plan.Skipped)
	if o := back.Did(t, "ConfigMap", "b", plan.Configured); o.Source.State != "Make b" || o.Source.SLS != "shop.settings" || o.Source.Line != 8 || !strings.HasPrefix(o.Source.File, "revision-1:") {
		t.Errorf("its source is %+v", o.Source)
	}
	data := s.ConfigMap("a").Object["data"]
	if fmt.Sprint(data) != "map[key:one]" {
		t.Errorf("a holds %v", data)
	}
	// It is the first bundle again, also after it was rolled back to.
	again := s.Apply(clitest.States("one")).Want(t, 0)
	again.Did(t, "ConfigMap", "b", plan.Unchanged)
	again.Did(t, "ConfigMap", "old", plan.Pruned)
	s.Destroy().Want(t, 0)
}

// Objects that name no namespace stay where the revision had them, and options
// that decided what was done are not silently others.
// A failed apply is undone; last-good is another word for it.
func TestRollbackToTheLastGoodRevision(t *testing.T) {
	s := clitest.New(t)
	s.Rollback("last-good").Want(t, 3)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Apply(clitest.ConfigMapOf("a", "{key: two}")).Want(t, 0)
	take(s, "a")
	s.Apply(clitest.ConfigMapOf("a", "{key: three}")).Want(t, 1)
	o := s.Rollback("last-good", "--force-conflicts").Want(t, 0).Did(t, "ConfigMap", "a", plan.Configured)
	if c := changeOf(t, o.Changes, "data.key"); c.New != "two" {
		t.Errorf("the change is %+v", c)
	}
}

func TestRollbackKeepsNamespaceAndReportsOptions(t *testing.T) {
	s := clitest.New(t)
	text := strings.ReplaceAll(clitest.ConfigMap("a"), "  namespace: {ns}\n", "")
	s.Apply(text, "--force-conflicts", "--recreate=Job").Want(t, 0)
	s.Apply(strings.ReplaceAll(text, "value", "other")).Want(t, 0)
	back := clitest.Run(t, s.Kubeconfig, "rollback", "--inventory", s.Inventory, "--namespace", "default").Want(t, 0)
	if o := back.Did(t, "ConfigMap", "a", plan.Configured); o.Namespace != s.NS {
		t.Errorf("it is in namespace %s", o.Namespace)
	}
	for _, want := range []string{"the revision was applied with --force-conflicts=true, this run has --force-conflicts=false", "the revision was applied with --recreate=Job, this run has --recreate="} {
		if !slices.Contains(back.Result.Warnings, want) {
			t.Errorf("no warning %q in %q", want, back.Result.Warnings)
		}
	}
	s.Destroy().Want(t, 0)
}

// A revision of a run that left invalid objects out does not prune them.
func TestRollbackToASkippedInvalidObject(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	bad := clitest.ConfigMap("b", clitest.DependsOn("/namespaces/{ns}/ConfigMap/nobody"))
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), bad), "--validation=skip-invalid").Want(t, 1)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	s.Rollback("2").Want(t, 1).Prints(t, "nobody")
	s.Exists("v1/configmaps", "a", "b")
}

func TestRollbackToADamagedRevision(t *testing.T) {
	random := make([]byte, 1<<20) // so that it has two parts
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[x>>26]
	}
	big := func(value string) string {
		return clitest.Documents(clitest.ConfigMap("a"), strings.Replace(clitest.ConfigMap("b"), "value", value+string(random[:700_000]), 1), strings.Replace(clitest.ConfigMap("c"), "value", string(random[400_000:]), 1))
	}
	for name, test := range map[string]struct {
		patch, secret, want string
	}{
		"content of another bundle": {`{"data":{"bundle.json.zst":"` + clitest.Packed(t, `[]`) + `"}}`, "inv-revision-1-0", "checksum"},
		"no checksum":               {`{"data":{"sha256":null}}`, "inv-revision-1-0", "checksum"},
		"no content":                {`{"data":{"bundle.json.zst":null}}`, "inv-revision-1-1", "bundle.json.zst cannot be read"},
		"a part of another bundle":  {`{"data":{"bundle.json.zst":"` + clitest.Packed(t, `[]`) + `"}}`, "inv-revision-1-1", "checksum"},
		"a missing part":            {"", "inv-revision-1-1", "it is missing"},
		"no description":            {`{"metadata":{"annotations":null}}`, "inv-revision-1-0", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(big("one")).Want(t, 0)
			s.Apply(clitest.ConfigMap("a")).Want(t, 0)
			secrets := s.Resources("v1/secrets").Namespace(s.NS)
			var err error
			if test.patch == "" {
				err = secrets.Delete(t.Context(), test.secret, metav1.DeleteOptions{})
			} else {
				_, err = secrets.Patch(t.Context(), test.secret, types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			p := s.Proxied()
			s.Rollback("1").Want(t, 1).Prints(t, "read revision 1 of inventory "+s.Inventory, "the revision is damaged, nothing was changed", test.want)
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", clitest.Describe(w))
			}
		})
	}
}

// Revisions of older versions are a list of objects, without a checksum.
func TestRollbackToARevisionOfAnOlderVersion(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Apply(clitest.ConfigMap("b")).Want(t, 0)
	old := `{"data":{"sha256":null,"bundle.json.zst":"` + clitest.Packed(t, `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"older","namespace":"`+s.NS+`"}}]`) + `"}}`
	if _, err := s.Resources("v1/secrets").Namespace(s.NS).Patch(t.Context(), "inv-revision-1-0", types.MergePatchType, []byte(old), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	o := s.Rollback("1").Want(t, 0).Did(t, "ConfigMap", "older", plan.Created)
	if o.Source.File != "revision-1" || o.Source.Line != 1 {
		t.Errorf("its source is %+v", o.Source)
	}
}

// Whatever an interrupted run, another tool or a hand left of an inventory, a
// destroy removes its history.
func TestDestroyLeavesNoRevision(t *testing.T) {
	for name, meddle := range map[string]func(*clitest.Fixture){
		"the head does not name them": func(s *clitest.Fixture) {
			s.PatchConfigMap("inv", `{"metadata":{"annotations":{"brine.dev/last-revision":null}}}`)
		},
		"more than the head knows": func(s *clitest.Fixture) {
			u := s.Live("v1/secrets", s.NS, "inv-revision-1-0")
			u.SetName("inv-revision-7-0")
			u.SetLabels(map[string]string{"brine.dev/inventory": u.GetLabels()["brine.dev/inventory"], "brine.dev/revision": "7"})
			u.SetResourceVersion("")
			u.SetUID("")
			if _, err := s.Resources("v1/secrets").Namespace(s.NS).Create(s.Context(), u, metav1.CreateOptions{}); err != nil {
				s.Fatal(err)
			}
		},
		"another tool destroyed it": func(s *clitest.Fixture) {
			s.DeleteConfigMap("inv")
			s.DeleteConfigMap("a")
		},
		"only they are left": func(s *clitest.Fixture) {
			s.DeleteConfigMap("inv")
			s.DeleteConfigMap("a")
			s.DeleteConfigMap("inv-fingerprints-1")
		},
		"history-limit": func(s *clitest.Fixture) { s.Apply(clitest.ConfigMap("a"), "--history-limit=0").Want(s.TB, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.ConfigMap("a")).Want(t, 0)
			meddle(s)
			s.Destroy().Want(t, 0)
			left, err := s.Resources("v1/secrets").Namespace(s.NS).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range left.Items {
				t.Errorf("Secret %s is left", u.GetName())
			}
			s.Missing("v1/configmaps", "inv", "inv-fingerprints-1")
			s.Missing("coordination.k8s.io/v1/leases", "brine-inv")
			s.Destroy().Want(t, 0).Prints(t, "nothing to destroy")
		})
	}
}

// A rollback without a number undoes the last apply, however often it is repeated: it
// never goes forward again.
func TestRollbackRepeated(t *testing.T) {
	s := clitest.New(t)
	for _, value := range []string{"one", "two", "three"} {
		s.Apply(clitest.ConfigMapOf("a", "{key: "+value+"}")).Want(t, 0)
	}
	s.Rollback().Want(t, 0).Prints(t, "rolling back to revision 2, the last good one before revision 3")
	for range 3 {
		s.Rollback().Want(t, 0).Prints(t, "already at revision 2", "further back: brine rollback 1 --inventory "+s.Inventory).Did(t, "ConfigMap", "a", plan.Unchanged)
		if s.Data("a")["key"] != "two" {
			t.Fatalf("it is %v", s.Data("a")["key"])
		}
	}
	o := s.Rollback("4").Want(t, 0).Object(t, "ConfigMap", "a")
	if strings.Count(o.Source.File, "revision-") != 1 {
		t.Errorf("its source is %s", o.Source.File)
	}
}

// A rollback that failed goes to the same revision when it is repeated.
func TestRollbackRepeatedAfterAFailure(t *testing.T) {
	s := clitest.New(t)
	for _, value := range []string{"one", "two", "three"} {
		s.Apply(clitest.ConfigMapOf("a", "{key: "+value+"}")).Want(t, 0)
	}
	take(s, "a")
	for range 2 {
		s.Rollback().Want(t, 1).Prints(t, "rolling back to revision 2")
	}
	s.Rollback("--force-conflicts").Want(t, 0)
	if s.Data("a")["key"] != "two" {
		t.Errorf("it is %v", s.Data("a")["key"])
	}
}

// A rollback undoes an apply of which no revision says how it ended, and not the one before.
func TestRollbackOfAnApplyWithoutARevision(t *testing.T) {
	text := func(value string) string { return clitest.ConfigMapOf("a", `{value: "`+value+`"}`) }
	for name, last := range map[string]func(*clitest.Fixture){
		"killed": func(s *clitest.Fixture) {
			about := func(r clustertest.Request) bool {
				return r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a")
			}
			if _, killed := s.KilledAbout(about, 1, true, "apply", "-f", s.File(text("C")), "--inventory", s.Inventory); !killed {
				s.Fatal("it was not killed")
			}
		},
		"not kept": func(s *clitest.Fixture) { s.Apply(text("C"), "--history-limit=0").Want(s, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(text("A")).Want(t, 0)
			s.Apply(text("B")).Want(t, 0)
			last(s)
			if got := s.Data("a")["value"]; got != "C" {
				t.Fatalf("a is %s", got)
			}
			for range 2 {
				if s.Rollback().Want(t, 0); s.Data("a")["value"] != "B" {
					t.Errorf("a is %s", s.Data("a")["value"])
				}
			}
			s.Run("history", nil).Prints(t, map[string]string{"killed": inventory.Interrupted, "not kept": inventory.NotKept}[name])
		})
	}
}
