package admin_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
	"brine/inventory/admin"
)

// moved are the names of the objects that a command moved.
func moved(m *admin.Move) []string {
	var names []string
	for _, o := range m.Moved {
		names = append(names, o.Name)
	}
	return names
}

// uids are those of ConfigMaps: another one, or none, was deleted in between.
func uids(s *clitest.Fixture, names ...string) map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, name := range names {
		if u := s.ConfigMap(name); u != nil {
			all[name] = string(u.GetUID())
		}
	}
	return all
}

func same(t testing.TB, before, after map[string]string, when string) {
	t.Helper()
	if !maps.Equal(before, after) {
		t.Fatalf("%s: objects were deleted: %v, before %v", when, after, before)
	}
}

func configMapsOf(names ...string) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, clitest.ConfigMap(name))
	}
	return clitest.Documents(texts...)
}

func TestSplit(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	all := []string{"keep", "move-1", "move-2"}
	s.Apply(configMapsOf(all...)).Want(t, 0)
	before := uids(s, all...)
	args := []string{"split", s.Inventory, "--to", b.Inventory, "--only", "ConfigMap/*/move-*"}

	p := s.Proxied()
	dry := decoded[admin.Move](t, command(s, append(args, "--dry-run=server")...).Want(t, 0))
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("the dry run wrote %v", clitest.Describe(w))
	}
	done := decoded[admin.Move](t, command(s, args...).Want(t, 0))
	if want := []string{"move-1", "move-2"}; !slices.Equal(moved(done), want) || !slices.Equal(moved(dry), want) {
		t.Errorf("it moved %q, the dry run %q", moved(done), moved(dry))
	}
	s.Holds("ConfigMap keep")
	b.Holds("ConfigMap move-1", "ConfigMap move-2")
	// Whoever applied it before still does, for the next apply of any inventory.
	for _, entry := range s.ConfigMap("move-1").GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("%s has fields by %s", entry.Manager, entry.Operation)
		}
	}
	// Neither the old bundle of the target deletes what it does not know yet, nor the new
	// one of the source what is not its own.
	b.Apply(configMapsOf("fresh")).Want(t, 0).Did(t, "ConfigMap", "move-1", plan.Skipped)
	s.Apply(configMapsOf("keep")).Want(t, 0)
	b.Apply(configMapsOf("fresh", "move-1", "move-2")).Want(t, 0).Did(t, "ConfigMap", "move-1", plan.Unchanged)
	same(t, before, uids(s, all...), "after the split")
	// From now on they are members as all others.
	b.Apply(configMapsOf("fresh", "move-1")).Want(t, 0).Did(t, "ConfigMap", "move-2", plan.Pruned)
	// And back, by another inventory's apply: without a conflict with brine itself.
	s.Apply(configMapsOf("keep", "move-1"), "--inventory-policy=adopt-all").Want(t, 0)
}

func TestSplitRefuses(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	s.Apply(configMapsOf("a", "taken")).Want(t, 0)
	b.Apply(configMapsOf("x")).Want(t, 0)
	split := func(args ...string) clitest.Outcome {
		return command(s, append([]string{"split", s.Inventory}, append(args, "-o", "text")...)...)
	}
	split("--to", b.Inventory).Want(t, 3).Prints(t, "choose the members")
	split("--to", b.Inventory, "--only", "ConfigMap").Want(t, 3).Prints(t, "KIND/NAMESPACE/NAME")
	split("--to", b.Inventory, "--only", "ConfigMap/*/none").Want(t, 3).Prints(t, "no member of inventory "+s.Inventory+" is chosen")
	split("--to", s.Inventory, "--only", "ConfigMap/*/a").Want(t, 3).Prints(t, "to itself")
	split("--only", "ConfigMap/*/a").Want(t, 3).Prints(t, "to")
	command(s, "split", s.NS+"/none", "--to", b.Inventory, "--only", "ConfigMap/*/a").Want(t, 3).Prints(t, "there is no inventory "+s.NS+"/none")
	split("--to", s.NS+"/ta", "--only", "ConfigMap/*/ta*").Want(t, 0)
	s.Merge("v1/configmaps", s.NS, "a", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"other"}}}`)
	split("--to", b.Inventory, "--only", "ConfigMap/*/a").Want(t, 1).Prints(t, `it belongs to inventory "other"`)
	s.Holds("ConfigMap a")
	b.Holds("ConfigMap x")
}

// The bundle says what moves.
func TestSplitByABundle(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"), clitest.ServiceAccount("who"))).Want(t, 0)
	bundle := clitest.Documents(strings.ReplaceAll(clitest.ServiceAccount("who"), ", namespace: '{ns}'", ""), clitest.Deployment("web", 1, "1m"), clitest.ConfigMap("not-there"))
	command(s, "split", s.Inventory, "--to", b.Inventory, "-n", s.NS, "-f", s.File(bundle)).Want(t, 0)
	s.Holds("ConfigMap a")
	b.Holds("Deployment.apps web", "ServiceAccount who")
	b.Apply(bundle).Want(t, 0)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Exists("apps/v1/deployments", "web")
}

func TestMergeAndRename(t *testing.T) {
	s := clitest.New(t)
	a, b := s.Other("one"), s.Other("two")
	s.Apply(configMapsOf("s")).Want(t, 0)
	a.Apply(configMapsOf("a")).Want(t, 0)
	b.Apply(configMapsOf("b", strings.Repeat("n", 250))).Want(t, 0)
	before := uids(s, "s", "a", "b")
	m := decoded[admin.Move](t, command(s, "merge", a.Inventory, b.Inventory, "--into", s.Inventory).Want(t, 0))
	if len(m.Moved) != 3 || len(m.Removed) != 2 {
		t.Errorf("it did %+v", m)
	}
	s.Missing("v1/configmaps", "one-fingerprints-1", "two-fingerprints-1", "two-overflow-1")
	s.Missing("v1/secrets", "one-revision-1-0", "two-revision-1-0")
	s.Missing("coordination.k8s.io/v1/leases", "brine-one", "brine-two")
	l := decoded[admin.List](t, command(s, "list", "-n", s.NS).Want(t, 0))
	if len(l.Inventories) != 1 || l.Inventories[0].Members != 4 {
		t.Errorf("it lists %+v", l.Inventories)
	}
	command(s, "merge", a.Inventory, "--into", s.Inventory).Want(t, 0) // again
	s.Apply(configMapsOf("s", "a", "b", strings.Repeat("n", 250))).Want(t, 0)
	same(t, before, uids(s, "s", "a", "b"), "after the merge")
	command(s, "merge", a.Inventory, "--into", s.Inventory).Want(t, 3).Prints(t, "there is no inventory")

	// A new name, in another namespace, with its history and the key of its Secrets.
	secret := clitest.Documents(configMapsOf("s", "a"), "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: '{ns}'}\nstringData: {password: first}\n")
	s.Apply(secret).Want(t, 0)
	s.Apply(configMapsOf("s", "a")).Want(t, 0)
	other := s.Cluster.Namespace(t)
	next := *s
	next.Inventory = other + "/new"
	history := func(s *clitest.Fixture) string {
		var h struct{ Revisions []map[string]any }
		got := clitest.Run(t, s.Kubeconfig, "history", "--inventory", s.Inventory).Want(t, 0)
		if err := json.Unmarshal([]byte(got.Stdout), &h); err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(h.Revisions)
		return string(text)
	}
	known := history(s)
	command(s, "rename", s.Inventory, next.Inventory).Want(t, 0)
	if now := history(&next); now != known {
		t.Errorf("the history is %s, was %s", now, known)
	}
	if u := s.Live("v1/secrets", other, "new-brine-key"); u == nil {
		t.Error("the key did not move")
	}
	s.Missing("v1/configmaps", "inv", "inv-fingerprints-1")
	s.Missing("v1/secrets", "inv-revision-1-0", "inv-revision-2-0", "inv-brine-key")
	s.Missing("coordination.k8s.io/v1/leases", "brine-inv")
	command(s, "rename", s.Inventory, next.Inventory).Want(t, 0) // again
	next.Apply(configMapsOf("s", "a")).Want(t, 0).Did(t, "ConfigMap", "a", plan.Unchanged)
	next.Rollback().Want(t, 0).Did(t, "Secret", "secret", plan.Created)
	same(t, uids(s, "s", "a"), map[string]string{"s": before["s"], "a": before["a"]}, "after the rename")
	b.Apply(configMapsOf("z")).Want(t, 0)
	command(s, "rename", b.Inventory, next.Inventory).Want(t, 3).Prints(t, "exists: choose another name")

	// What a damaged inventory still has is not overwritten.
	known = history(&next)
	data := next.Live("v1/secrets", other, "new-revision-1-0").Object["data"]
	if err := s.Resources("v1/configmaps").Namespace(other).Delete(t.Context(), "new", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	command(s, "rename", b.Inventory, next.Inventory).Want(t, 3).Prints(t, "other parts of an inventory of this name exist", "inventory repair")
	if now := next.Live("v1/secrets", other, "new-revision-1-0").Object["data"]; !reflect.DeepEqual(now, data) {
		t.Error("the rename overwrote a revision of another inventory")
	}
	b.Holds("ConfigMap z")
	command(s, "repair", "--inventory", next.Inventory).Want(t, 0)
	if now := history(&next); now != known {
		t.Errorf("after the repair the history is %s, was %s", now, known)
	}
	next.Destroy().Want(t, 0)
}

// A Job that completed and was removed by its TTL does not run again in another
// inventory.
func TestCompletedJobMoves(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	text := clitest.Documents(`apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: "{ns}"}
spec:
  ttlSecondsAfterFinished: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
`)
	s.Apply(text).Want(t, 0)
	s.Eventually("its TTL removed the Job", func() bool { return s.Live("batch/v1/jobs", s.NS, "once") == nil })
	command(s, "split", s.Inventory, "--to", b.Inventory, "--only", "Job/*/once").Want(t, 0)
	if o := b.Apply(text).Want(t, 0).Did(t, "Job", "once", plan.Unchanged); o.Reason != "completed" {
		t.Errorf("it is %s", o.Reason)
	}
}

func TestAdopt(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	made := s.Create("v1/configmaps", clitest.ConfigMap("made"))
	s.Create("v1/configmaps", clitest.ConfigMap("lost", "annotations: {config.k8s.io/owning-inventory: gone}"))
	s.Create("v1/configmaps", clitest.ConfigMap("helms", "annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop}"))
	b.Apply(configMapsOf("theirs")).Want(t, 0)
	before := uids(s, "made", "lost", "helms", "theirs")
	adopt := func(args ...string) clitest.Outcome {
		return command(s, append([]string{"adopt", "--into", s.Inventory}, args...)...)
	}
	name := func(n string) string { return "ConfigMap/" + s.NS + "/" + n }
	adopt(name("helms"), name("theirs"), name("none"), name("lost"), "-o", "text").Want(t, 3).Prints(t,
		"helms: it belongs to Helm release web in namespace shop", `theirs: it belongs to inventory "b-`, "none: it does not exist", `lost: it belongs to inventory "gone"`, "--from-inventory")
	adopt("ConfigMap/"+s.NS+"/*").Want(t, 3).Prints(t, "without *")
	adopt("Nothing/x").Want(t, 3).Prints(t, "serves no cluster-scoped kind")
	if s.ConfigMap("inv") != nil {
		t.Error("a refused adoption wrote the inventory")
	}
	p := s.Proxied()
	adopt(name("made"), "--dry-run=server").Want(t, 0)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("the dry run wrote %v", clitest.Describe(w))
	}
	adopt(name("made"), name("lost"), name("theirs"), "--take-over-from", "gone", "--take-over-from", b.Inventory).Want(t, 0)
	s.Holds("ConfigMap lost", "ConfigMap made", "ConfigMap theirs")
	b.Holds()
	b.Apply(configMapsOf("x")).Want(t, 0)
	s.Apply(configMapsOf("y")).Want(t, 0).Did(t, "ConfigMap", "made", plan.Skipped)
	same(t, before, uids(s, "made", "lost", "helms", "theirs"), "after the adoption")
	now := s.ConfigMap("made")
	if data, _ := json.Marshal(now.Object["data"]); string(data) != `{"key":"value"}` || len(now.GetAnnotations()) != len(made.GetAnnotations())+1 || len(now.GetLabels()) != len(made.GetLabels())+1 {
		t.Errorf("it is now %v", now.Object)
	}
	// What of the bundle is there.
	other := s.Other("c")
	s.Create("v1/configmaps", clitest.ConfigMap("one"))
	got := decoded[admin.Move](t, command(s, "adopt", "--into", other.Inventory, "-f", s.File(configMapsOf("one", "two"))).Want(t, 0))
	if !slices.Equal(moved(got), []string{"one"}) || len(got.NotMoved) != 1 || got.NotMoved[0].Reason != "it does not exist" {
		t.Errorf("it did %+v", got)
	}
}

// Without a command, the order of the two runs decides.
func TestObjectGoesToAnotherBundle(t *testing.T) {
	t.Run("which is applied first", func(t *testing.T) {
		s := clitest.New(t)
		b := s.Other("b")
		s.Apply(configMapsOf("keep", "goes")).Want(t, 0)
		before := uids(s, "keep", "goes")
		b.Apply(configMapsOf("goes")).Want(t, 1).Prints(t, "--inventory-policy=adopt-all")
		b.Apply(configMapsOf("goes"), "--inventory-policy=adopt-all").Want(t, 0)
		s.Apply(configMapsOf("keep")).Want(t, 0).Did(t, "ConfigMap", "goes", plan.Detached)
		same(t, before, uids(s, "keep", "goes"), "after both")
		s.Holds("ConfigMap keep")
		b.Holds("ConfigMap goes")
	})
	t.Run("which is applied last", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(configMapsOf("keep", "goes")).Want(t, 0)
		s.Apply(configMapsOf("keep")).Want(t, 0).Did(t, "ConfigMap", "goes", plan.Pruned)
		s.Other("b").Apply(configMapsOf("goes")).Want(t, 0).Did(t, "ConfigMap", "goes", plan.Created)
	})
}

// A change of the owner whose answer was lost may have been stored: it is no member that
// "was not moved", and the command has to be repeated.
func TestMoveWhoseAnswerIsLost(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	s.Apply(configMapsOf("keep", "move")).Want(t, 0)
	args := []string{"split", s.Inventory, "--to", b.Inventory, "--only", "ConfigMap/*/move"}
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/move") {
			return clustertest.Action{Status: http.StatusGatewayTimeout, Acted: true}
		}
		return clustertest.Action{}
	})
	if got := command(s, append(args, "--retry-timeout=0")...); got.Exit == 0 || !strings.Contains(got.Stdout+got.Stderr, "whether it was stored is unknown") {
		t.Errorf("exit code %d: %s%s", got.Exit, got.Stdout, got.Stderr)
	}
	b.Holds("ConfigMap move")
	p.Intercept(nil)
	command(s, args...).Want(t, 0)
	s.Holds("ConfigMap keep")
	b.Holds("ConfigMap move")
}

// What the target had before, it keeps where the change of the owner is refused.
func TestMoveOfWhatTheTargetHas(t *testing.T) {
	s := clitest.New(t)
	s.Apply(configMapsOf("had")).Want(t, 0)
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(s.Context(), "had", types.MergePatchType, []byte(`{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err) // as it is in an inventory of kapply's
	}
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/had") {
			return clustertest.Action{Status: http.StatusForbidden, Message: "refused"}
		}
		return clustertest.Action{}
	})
	command(s, "adopt", "--into", s.Inventory, "ConfigMap/"+s.NS+"/had").Want(t, 1).Prints(t, "refused")
	p.Intercept(nil)
	s.Holds("ConfigMap had")
}

// A change of the owner that may have been stored, and cannot be read again, is unknown: both inventories
// keep the object until the command is repeated.
func TestMoveThatCannotBeReadAgain(t *testing.T) {
	s := clitest.New(t)
	b := s.Other("b")
	s.Apply(configMapsOf("keep", "move")).Want(t, 0)
	args := []string{"split", s.Inventory, "--to", b.Inventory, "--only", "ConfigMap/*/move"}
	p := s.Proxied()
	patched := false
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch at := strings.HasSuffix(r.Path, "/configmaps/move"); {
		case at && r.Method == http.MethodPatch && !patched:
			patched = true
			return clustertest.Action{Status: http.StatusGatewayTimeout, Acted: true}
		case at && patched && r.Method == http.MethodGet:
			return clustertest.Action{Status: http.StatusForbidden, Message: "no right"}
		}
		return clustertest.Action{}
	})
	if got := command(s, args...); got.Exit == 0 || !strings.Contains(got.Stdout+got.Stderr, "whether it was stored is unknown") {
		t.Errorf("exit code %d: %s%s", got.Exit, got.Stdout, got.Stderr)
	}
	b.Holds("ConfigMap move")
	p.Intercept(nil)
	command(s, args...).Want(t, 0)
	s.Holds("ConfigMap keep")
	b.Holds("ConfigMap move")
}

// Once its owner is stored, a member is moved: that the server refuses the request after
// that, or answers it with a conflict again and again, makes neither inventory forget it.
func TestMoveWhoseSecondRequestIsRefused(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusConflict} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			s := clitest.New(t)
			b := s.Other("b")
			s.Apply(configMapsOf("keep", "move")).Want(t, 0)
			p := s.Proxied()
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodPatch && r.Type == string(types.JSONPatchType) && strings.HasSuffix(r.Path, "/configmaps/move") {
					return clustertest.Action{Status: status, Message: "refused"}
				}
				return clustertest.Action{}
			})
			command(s, "split", s.Inventory, "--to", b.Inventory, "--only", "ConfigMap/*/move").Want(t, 0)
			p.Intercept(nil)
			s.Holds("ConfigMap keep")
			b.Holds("ConfigMap move")
			b.Destroy().Want(t, 0)
			s.Missing("v1/configmaps", "move")
		})
	}
}
