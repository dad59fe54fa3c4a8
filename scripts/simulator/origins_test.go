package simulator

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/scripts/simulator/apiserver"
)

// Members that go from inventory to inventory.

// another is the third inventory.
const another = "another"

// moveAbout: an object of the shop goes to the other inventory, from there to another one and
// back, and the other one is rolled back.
func moveAbout(*rand.Rand) func(*rand.Rand, *scene) {
	n := -1
	return func(r *rand.Rand, one *scene) {
		const theirs, a = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: theirs}\n", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: app}\n"
		split := func(from, to string) step {
			return step{command: "split", inventory: from, into: to, names: []string{"ConfigMap/app/a"}}
		}
		all := []step{
			{command: "apply", inventory: "shop", text: with(r, "{name: a,")},
			{command: "apply", inventory: "other", text: theirs},
			split("shop", "other"),
			{command: "apply", inventory: "other", text: theirs + a},
			split("other", another),
			split(another, "other"),
			{command: "apply", inventory: "other", text: theirs + a},
			{command: "rollback", inventory: "other", revision: 1},
		}
		if n++; n >= len(all) {
			return
		}
		all[n].around, all[n].patience = one.step.around, 5*time.Minute
		if one.step, one.too = all[n], nil; r.IntN(3) > 0 {
			one.mood = mood{name: undisturbed}
		}
	}
}

// play plays a command: apply INVENTORY CONFIGMAP..., take (apply that takes what others have),
// rollback INVENTORY (to its first revision), destroy INVENTORY, split FROM TO CONFIGMAP, merge FROM TO,
// rename FROM TO, forget INVENTORY (a person deletes its ConfigMap). It returns the warnings.
func (l *lab) play(command string) string {
	l.t.Helper()
	words := strings.Fields(command)
	what, name, more := words[0], words[1], words[2:]
	bundleOf := strings.Join(bundle.Each(more, func(one string) string { return configMap("default", one, "1") }), "")
	var r *report.Result
	switch what {
	case "apply":
		r = l.ends(report.ExitOK, "apply", name, bundleOf, nil)
	case "take":
		r = l.ends(report.ExitOK, "apply", name, bundleOf, func(o *run.Options, _ *bundle.Bundle) { o.Planning.Policy = plan.AdoptAll })
	case "rollback":
		r = l.ends(report.ExitOK, "rollback", name, "1", nil)
	case "destroy":
		r = l.ends(report.ExitOK, "destroy", name, "", nil)
	case "forget":
		l.remove("ConfigMap", "default", name)
		return ""
	default:
		l.move(what, name, more[0], more[1:]...)
		return ""
	}
	return strings.Join(r.Warnings, "\n")
}

// whose is the inventory that has a ConfigMap as its member; "gone" if there is none.
func (l *lab) whose(name string) string {
	u := l.get("ConfigMap", "default", name)
	if u == nil {
		return "gone"
	}
	id := owner(u)
	return id[:strings.LastIndex(id, "-")]
}

// A rollback gives back what came from another inventory to that one, whatever became of both
// meanwhile, or leaves it where it is. It deletes what its own inventory created.
func TestWhereMembersGoBack(t *testing.T) {
	const given = "apply a x a1; apply b y; split a b x; apply b y x; "
	for name, test := range map[string]struct {
		story, warning, x string
	}{
		"given":                          {given + "rollback b", "given back to inventory default/a,", "a"},
		"on a detour":                    {given + "split b c x; split c b x; apply b y x; rollback b", "given back to inventory default/a,", "a"},
		"on a long detour":               {given + "split b c x; split c d x; split d b x; apply b y x; rollback b", "given back to inventory default/a,", "a"},
		"on a detour over where it was":  {given + "split b c x; apply c x; split c a x; apply a x a1; rollback b", "", "a"},
		"from the third":                 {given + "apply c z; split b c x; apply c z x; rollback c", "given back to inventory default/b,", "b"},
		"from the third, and again":      {given + "apply c z; split b c x; apply c z x; rollback c; apply b y x; rollback b", "given back to inventory default/a,", "a"},
		"renamed":                        {given + "rename a a2; rollback b", "given back to inventory default/a2,", "a2"},
		"renamed, and the name taken":    {given + "rename a a2; apply a unrelated; rollback b; destroy a", "given back to inventory default/a2,", "a2"},
		"renamed twice":                  {given + "rename a a2; rename a2 a3; apply a unrelated; apply a2 unrelated2; rollback b", "given back to inventory default/a3,", "a3"},
		"renamed and back":               {given + "rename a a2; rename a2 a; rollback b", "given back to inventory default/a,", "a"},
		"renamed, moved back by hand":    {"apply a a1; apply a x a1; apply b y; split a b x; apply b y x; rename a a2; split b a2 x; apply a2 x a1; rollback a2", "", "gone"},
		"merged back into the renamed":   {"apply a a1; apply a x a1; split a b x; rename a a2; merge b a2; apply a2 x a1; rollback a2", "", "gone"},
		"both were renamed":              {given + "rename b b2; rename a a2; rollback b2", "given back to inventory default/a2,", "a2"},
		"it was destroyed":               {given + "destroy a; rollback b", "which is not there any more: they stay members; brine inventory split default/b --to NAMESPACE/NAME --members ConfigMap/default/x", "b"},
		"destroyed, and the name taken":  {given + "destroy a; apply a unrelated; rollback b; destroy a", "which is not there any more, and another one has its name: they stay members", "b"},
		"merged, and the name taken":     {given + "apply c z; merge a c; apply a unrelated; rollback b; destroy a", "and another one has its name", "b"},
		"taken":                          {"apply a x a1; apply b y; take b y x; rollback b", "given back to inventory default/a,", "a"},
		"taken, and renamed":             {"apply a x a1; apply b y; take b y x; apply a a1; rename a a2; apply a unrelated; rollback b; destroy a", "given back to inventory default/a2,", "a2"},
		"taken, and forgotten":           {"apply a a1; apply a x a1; apply b y; take b y x; apply a a1; rollback b; apply a x a1; rollback a", "", "a"},
		"taken from one that is no more": {"apply a x; forget a; apply b y; take b y x; apply a unrelated; rollback b; destroy a", "not given back to inventory a-", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				warnings := ""
				for command := range strings.SplitSeq(test.story, "; ") {
					if w := l.play(command); strings.HasPrefix(command, "rollback") {
						warnings = w
					}
				}
				if whose := l.whose("x"); whose != test.x || !strings.Contains(warnings, test.warning) || test.warning == "" && strings.Contains(warnings, "given back") {
					t.Errorf("%s: x is %s's, want %s's; the rollback says %q, want %q", test.story, whose, test.x, warnings, test.warning)
				}
			})
		})
	}
}

// What a killed rename recorded of objects that did not come counts for nothing: who takes them from
// their inventory gives them back to it.
func TestOriginsOfAKilledRename(t *testing.T) {
	inLab(t, func(l *lab) {
		l.play("apply a x a1")
		rename := admin.MoveOptions{From: []report.Inventory{at("a")}, To: at("b"), Remove: true, Rename: true, Version: "simulated", Report: func(string) {}}
		p := l.start(func(ctx context.Context, c *cluster.Client) { _, _ = admin.MoveMembers(ctx, c, rename) })
		l.until(func() bool { return l.get("ConfigMap", "default", "b-origins-1") != nil })
		l.w.killNow(p)
		<-p.ended
		l.play("apply b y")
		l.play("take b y x")
		l.ends(report.ExitOK, "rollback", "b", "2", nil) // the first one was copied
		if whose := l.whose("x"); whose != "a" {
			t.Errorf("x is %s's", whose)
		}
	})
}

// What a rollback could not give back, or was killed before, is pruned by no apply, wherever it goes: the
// next rollback gives it back.
func TestGivingBackGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		noPrune   bool
		story, in string
	}{
		"refused": {story: "apply b y", in: "b"}, "nothing was to be pruned": {noPrune: true, story: "apply b y", in: "b"},
		"another one is decided about": {story: "apply b y z", in: "b"}, "renamed": {story: "rename b c; apply c y z", in: "c"},
		"merged": {story: "apply d w; merge b d; apply d w y z", in: "d"}, "moved": {story: "apply d w; split b d x; apply d w; apply b y", in: "d"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				for command := range strings.SplitSeq("apply a x z a1; apply b y; take b y x z", "; ") {
					l.play(command)
				}
				if test.noPrune {
					l.ends(report.ExitOK, "rollback", "b", "1", func(o *run.Options, _ *bundle.Bundle) { o.Planning.NoPrune = true })
				} else {
					l.w.server.Admit = func(actor string, _ apiserver.Kind, u, _ *unstructured.Unstructured) error {
						return admit(map[bool]string{true: "refuse"}[actor != person && u != nil && (u.GetName() == "x" || u.GetName() == "z")], u, u, new(int))
					}
					l.ends(report.ExitFailed, "rollback", "b", "1", nil)
					l.w.server.Admit = nil
				}
				for command := range strings.SplitSeq(test.story, "; ") {
					l.play(command)
				}
				if whose := l.whose("x"); whose != test.in {
					t.Fatalf("x is %s's", whose)
				}
				l.play("rollback " + test.in)
				if whose := l.whose("x"); whose != "a" {
					t.Errorf("x is %s's", whose)
				}
			})
		})
	}
}

// What a rollback gives back it gives back whatever its exit code says of success.
func TestGivingBackWithADetailedExitCode(t *testing.T) {
	inLab(t, func(l *lab) {
		for command := range strings.SplitSeq("apply a x a1; apply b y; take b y x w", "; ") {
			l.play(command)
		}
		l.ends(report.ExitChanges, "rollback", "b", "1", func(o *run.Options, _ *bundle.Bundle) { o.Detailed = true })
		if whose := l.whose("x"); whose != "a" {
			t.Errorf("x is %s's", whose)
		}
	})
}

// A rollback without a history is kept, too: else the next ones go to what a person has undone.
func TestRollbackWithoutAHistory(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		l.ends(report.ExitOK, "rollback", "shop", "1", func(o *run.Options, _ *bundle.Bundle) { o.HistoryLimit = 0 })
		l.ends(report.ExitOK, "apply", "shop", values("3"), nil)
		l.ends(report.ExitOK, "rollback", "shop", "", nil)
		l.have("1")
	})
}

// The bundle names no namespace of what it wants absent. Where the kubeconfig has another one than it had, that
// is another object.
func TestAbsentInAnotherNamespace(t *testing.T) {
	inLab(t, func(l *lab) {
		absent := func(namespace string, named bool) func(*run.Options, *bundle.Bundle) {
			return func(o *run.Options, b *bundle.Bundle) {
				o.Namespace, o.Planning.NamespaceNamed = namespace, named
				b.Absent = []*bundle.Absent{{ID: bundle.ID{GroupKind: bundle.ConfigMapKind, Name: "cache"}, GVK: bundle.ConfigMapKind.WithVersion("v1")}}
			}
		}
		l.create(bundle.V1(bundle.ID{GroupKind: bundle.NamespaceKind, Name: "prod"}, map[string]any{}))
		l.create(bundle.V1(bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "cache"}, map[string]any{}))
		l.create(bundle.V1(bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "prod", Name: "cache"}, map[string]any{}))
		l.ends(report.ExitOK, "apply", "shop", values("1"), absent("default", false))
		if l.get("ConfigMap", "default", "cache") != nil {
			t.Error("it is left")
		}
		r := l.ends(report.ExitBadBundle, "apply", "shop", values("1"), absent("prod", false))
		if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, "--namespace default to go on as before") {
			t.Error(said)
		}
		l.stays("ConfigMap", "prod", "cache")
		l.ends(report.ExitOK, "apply", "shop", values("1"), absent("prod", true))
		if l.get("ConfigMap", "prod", "cache") != nil {
			t.Error("it is left")
		}
	})
}

// A move to an inventory that was found before it waited goes to no other one of its name.
func TestMoveToOneThatWasReplaced(t *testing.T) {
	inLab(t, func(l *lab) {
		l.play("apply b y")
		for _, before := range []string{"", "apply a x"} { // it is not there, or another one is
			if before != "" {
				l.play(before)
			}
			l.do(func(ctx context.Context, c *cluster.Client) {
				_, err := admin.MoveMembers(ctx, c, admin.MoveOptions{
					From: []report.Inventory{at("b")}, To: at("a"), ToUID: "it had another", Version: "simulated", Report: func(string) {},
				})
				if err == nil || !strings.Contains(err.Error(), "inventory default/a was renamed or deleted meanwhile") {
					t.Error(err)
				}
			})
		}
		if l.whose("y") != "b" {
			t.Errorf("y is %s's", l.whose("y"))
		}
	})
}

// Where one of several objects cannot be given back, the others get the fields that their inventory applied last.
func TestGivingBackInPart(t *testing.T) {
	inLab(t, func(l *lab) {
		xz := func(value string) string { return configMap("default", "x", value) + configMap("default", "z", value) }
		l.ends(report.ExitOK, "apply", "a", xz("1")+configMap("default", "a1", "1"), nil)
		l.play("apply b y")
		l.ends(report.ExitOK, "apply", "b", xz("2")+configMap("default", "y", "1"), func(o *run.Options, _ *bundle.Bundle) { o.Planning.Policy = plan.AdoptAll })
		l.w.server.Admit = func(actor string, _ apiserver.Kind, u, live *unstructured.Unstructured) error {
			return admit(map[bool]string{true: "refuse"}[actor != person && u != nil && u.GetName() == "z"], u, live, new(int))
		}
		r := l.ends(report.ExitFailed, "rollback", "b", "1", nil)
		l.w.server.Admit = nil
		if whose := l.whose("x") + l.whose("z"); whose != "ab" || l.value("x") != "1" {
			l.t.Errorf("x and z are of %s, x is %s: %s", whose, l.value("x"), errorsOf(r))
		}
		l.play("rollback b")
		if whose := l.whose("x") + l.whose("z"); whose != "aa" || l.value("z") != "1" {
			l.t.Errorf("x and z are of %s, z is %s", whose, l.value("z"))
		}
	})
}

// What a run has applied since a rollback was to give it back stays.
func TestGivingBackWhatARunHasAppliedSince(t *testing.T) {
	inLab(t, func(l *lab) {
		l.play("apply a x z a1")
		l.play("apply b y")
		l.play("take b y x z")
		known := l.load("b").Origins
		x := bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "x"}
		since := maps.Clone(known)
		since[x] = inventory.Origin{How: inventory.Created}
		l.do(func(ctx context.Context, c *cluster.Client) {
			moved, err := admin.MoveMembers(ctx, c, admin.MoveOptions{From: []report.Inventory{at("b")}, To: at("a"), Select: func(id bundle.ID) bool { return id.Name == "x" || id.Name == "z" }, Origins: since, Version: "simulated", Report: func(string) {}})
			if err != nil || len(moved.Moved) != 1 || l.whose("x")+l.whose("z") != "ba" {
				l.t.Error(err, l.whose("x"), l.whose("z"))
			}
		})
	})
}
