package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
)

// states are three ConfigMaps in Salt's high data, each of which requires the
// next, and a fourth that is to be absent.
func states(value string) string {
	state := func(id, name, requires string) string {
		text := fmt.Sprintf("%s:\n  k.object_present:\n  - manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: %s}}\n", id, name, value)
		if requires != "" {
			text += "  - require: [{k: " + requires + "}]\n"
		}
		return text + "  __sls__: shop.settings\n"
	}
	return state("Make c", "c", "Make b") + state("Make b", "b", "Make a") + state("Make a", "a", "") +
		"Remove old:\n  k.object_absent:\n  - name: old\n  - namespace: {ns}\n  - kind: ConfigMap\n  - apiVersion: v1\n"
}

func (s *fixture) rollback(flags ...string) outcome {
	s.Helper()
	return s.run("rollback", flags)
}

// needs are what each object of the result waited for.
func (s outcome) needs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range s.result.Objects {
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
	s := newFixture(t)
	first := s.apply(states("one")).want(t, 0)
	s.apply(states("two")).want(t, 0)
	s.create("v1/configmaps", configMap("old"))
	back := s.rollback().want(t, 0)
	if got, want := back.needs(t), first.needs(t); got["c"] != want["c"] || got["b"] != want["b"] || !strings.Contains(want["c"], "require: Make b") {
		t.Errorf("the rollback waited for %v, the apply for %v", got, want)
	}
	back.did(t, "ConfigMap", "old", plan.Pruned)
	if o := back.did(t, "ConfigMap", "b", plan.Configured); o.Source.State != "Make b" || o.Source.SLS != "shop.settings" || o.Source.Line != 8 || !strings.HasPrefix(o.Source.File, "revision-1:") {
		t.Errorf("its source is %+v", o.Source)
	}
	data := s.live("v1/configmaps", s.ns, "a").Object["data"]
	if fmt.Sprint(data) != "map[key:one]" {
		t.Errorf("a holds %v", data)
	}
	// It is the first bundle again, also after it was rolled back to.
	s.apply(states("one")).want(t, 0).did(t, "ConfigMap", "b", plan.Unchanged)
	s.destroy().want(t, 0)
}

// Objects that name no namespace stay where the revision had them, and options
// that decided what was done are not silently others.
func TestRollbackKeepsNamespaceAndReportsOptions(t *testing.T) {
	s := newFixture(t)
	text := strings.ReplaceAll(configMap("a"), "  namespace: {ns}\n", "")
	s.apply(text, "--force-conflicts", "--recreate=Job").want(t, 0)
	s.apply(strings.ReplaceAll(text, "value", "other")).want(t, 0)
	back := brine(t, s.kubeconfig, "rollback", "--inventory", s.inventory, "--namespace", "default").want(t, 0)
	if o := back.did(t, "ConfigMap", "a", plan.Configured); o.Namespace != s.ns {
		t.Errorf("it is in namespace %s", o.Namespace)
	}
	for _, want := range []string{"the revision was applied with --force-conflicts=true, this run has --force-conflicts=false", "the revision was applied with --recreate=Job, this run has --recreate="} {
		if !slices.Contains(back.result.Warnings, want) {
			t.Errorf("no warning %q in %q", want, back.result.Warnings)
		}
	}
	s.destroy().want(t, 0)
}

// A revision of a run that left invalid objects out does not prune them.
func TestRollbackToASkippedInvalidObject(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	bad := configMap("b", dependsOn("/namespaces/{ns}/ConfigMap/nobody"))
	s.apply(documents(configMap("a"), bad), "--validation=skip-invalid").want(t, 1)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	s.rollback("2").want(t, 1).prints(t, "nobody")
	s.exists("v1/configmaps", "a", "b")
}

func TestRollbackToADamagedRevision(t *testing.T) {
	random := make([]byte, 1<<20) // so that it has two parts
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[x>>26]
	}
	big := func(value string) string {
		return documents(configMap("a"), strings.Replace(configMap("b"), "value", value+string(random[:700_000]), 1), strings.Replace(configMap("c"), "value", string(random[400_000:]), 1))
	}
	for name, test := range map[string]struct {
		patch, secret, want string
	}{
		"content of another bundle": {`{"data":{"bundle.json.zst":"` + packed(t, `[]`) + `"}}`, "inv-revision-1-0", "checksum"},
		"no checksum":               {`{"data":{"sha256":null}}`, "inv-revision-1-0", "checksum"},
		"no content":                {`{"data":{"bundle.json.zst":null}}`, "inv-revision-1-1", "bundle.json.zst cannot be read"},
		"a part of another bundle":  {`{"data":{"bundle.json.zst":"` + packed(t, `[]`) + `"}}`, "inv-revision-1-1", "checksum"},
		"a missing part":            {"", "inv-revision-1-1", "it is missing"},
		"no description":            {`{"metadata":{"annotations":null}}`, "inv-revision-1-0", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(big("one")).want(t, 0)
			s.apply(configMap("a")).want(t, 0)
			secrets := s.resources("v1/secrets").Namespace(s.ns)
			var err error
			if test.patch == "" {
				err = secrets.Delete(t.Context(), test.secret, metav1.DeleteOptions{})
			} else {
				_, err = secrets.Patch(t.Context(), test.secret, types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			p := s.proxied()
			s.rollback("1").want(t, 1).prints(t, "read revision 1 of inventory "+s.inventory, "the revision is damaged, nothing was changed", test.want)
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", describe(w))
			}
		})
	}
}

func packed(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(w.EncodeAll([]byte(text), nil))
}

// Revisions of older versions are a list of objects, without a checksum.
func TestRollbackToARevisionOfAnOlderVersion(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("a")).want(t, 0)
	s.apply(configMap("b")).want(t, 0)
	old := `{"data":{"sha256":null,"bundle.json.zst":"` + packed(t, `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"older","namespace":"`+s.ns+`"}}]`) + `"}}`
	if _, err := s.resources("v1/secrets").Namespace(s.ns).Patch(t.Context(), "inv-revision-1-0", types.MergePatchType, []byte(old), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	o := s.rollback("1").want(t, 0).did(t, "ConfigMap", "older", plan.Created)
	if o.Source.File != "revision-1" || o.Source.Line != 1 {
		t.Errorf("its source is %+v", o.Source)
	}
}

// Whatever an interrupted run, another tool or a hand left of an inventory, a
// destroy removes its history.
func TestDestroyLeavesNoRevision(t *testing.T) {
	for name, meddle := range map[string]func(*fixture){
		"the head does not name them": func(s *fixture) {
			s.patchMap("inv", `{"metadata":{"annotations":{"brine.dev/last-revision":null}}}`)
		},
		"more than the head knows": func(s *fixture) {
			u := s.live("v1/secrets", s.ns, "inv-revision-1-0")
			u.SetName("inv-revision-7-0")
			u.SetLabels(map[string]string{"brine.dev/inventory": u.GetLabels()["brine.dev/inventory"], "brine.dev/revision": "7"})
			u.SetResourceVersion("")
			u.SetUID("")
			if _, err := s.resources("v1/secrets").Namespace(s.ns).Create(s.Context(), u, metav1.CreateOptions{}); err != nil {
				s.Fatal(err)
			}
		},
		"another tool destroyed it": func(s *fixture) {
			s.deleteMap("inv")
			s.deleteMap("a")
		},
		"only they are left": func(s *fixture) {
			s.deleteMap("inv")
			s.deleteMap("a")
			s.deleteMap("inv-fingerprints-1")
		},
		"history-limit": func(s *fixture) { s.apply(configMap("a"), "--history-limit=0").want(s.TB, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(configMap("a")).want(t, 0)
			meddle(s)
			s.destroy().want(t, 0)
			left, err := s.resources("v1/secrets").Namespace(s.ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range left.Items {
				t.Errorf("Secret %s is left", u.GetName())
			}
			s.missing("v1/configmaps", "inv", "inv-fingerprints-1")
			s.missing("coordination.k8s.io/v1/leases", "brine-inv")
			s.destroy().want(t, 0).prints(t, "nothing to destroy")
		})
	}
}
