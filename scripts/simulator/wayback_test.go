package simulator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/fields"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/inventory/store"
	"brine/scripts/simulator/apiserver"
)

// Stories of the history: where a rollback goes, and what it finds there.

// values are the ConfigMaps a and b, with a value.
func values(value string) string {
	return configMap("default", "a", value) + configMap("default", "b", value)
}

func (l *lab) have(value string) {
	l.t.Helper()
	if l.value("a") != value || l.value("b") != value {
		l.t.Errorf("a is %s and b %s, want %s", l.value("a"), l.value("b"), value)
	}
}

func onlyA(o *run.Options, _ *bundle.Bundle) { o.Only = []string{"ConfigMap/a"} }

// An inventory object that a backup put back may list the right members, and still not know what was
// applied since: a rollback would go too far back, and the next revisions overwrite those that are
// there. Repair has it name the newest.
func TestHistoryThatTheInventoryForgot(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		old := l.get("ConfigMap", "default", "shop").DeepCopy()
		time.Sleep(time.Minute)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("3"), nil)
		time.Sleep(time.Minute)
		l.putBack(old)
		refused := func(command, said string) {
			l.t.Helper()
			if !strings.Contains(said, "its last revision is 1, that of the history is 3") || !strings.Contains(said, "brine inventory repair") {
				l.t.Errorf("%s: %s", command, said)
			}
		}
		preview := func(o *run.Options, _ *bundle.Bundle) { o.DryRun = report.Server }
		for _, run := range []struct {
			command, bundle string
			change          func(*run.Options, *bundle.Bundle)
		}{{"apply", values("4"), preview}, {"apply", values("4"), nil}, {"apply", values("5"), nil}, {"apply", values("5"), preview}, {"destroy", "", nil}, {"rollback", "1", nil}} {
			refused(run.command, strings.Join(errorsOf(l.ends(report.ExitFailed, run.command, "shop", run.bundle, run.change)), " "))
		}
		_, err := l.command("rollback", "shop", "", nil)
		refused("rollback", errors.Join(err).Error())
		l.have("3")
		l.repair("shop")
		l.ends(report.ExitOK, "rollback", "shop", "", nil)
		l.have("2")
	})
}

func (l *lab) repair(name string) {
	l.t.Helper()
	l.do(func(ctx context.Context, c *cluster.Client) {
		if r, err := admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: at(name), Version: "simulated", Report: func(string) {}}); err != nil || len(r.Damage) != 1 {
			l.t.Error(err, r)
		}
	})
}

// An inventory whose namespace is gone is repaired in none: a person makes it first.
func TestRepairWithoutItsNamespace(t *testing.T) {
	inLab(t, func(l *lab) {
		l.create(namespaceNamed("apart"))
		l.ends(report.ExitOK, "apply", "apart/shop", configMap("default", "a", "1"), nil)
		l.remove("Namespace", "", "apart")
		l.wait()
		l.do(func(ctx context.Context, c *cluster.Client) {
			_, err := admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: at("apart/shop"), Version: "simulated", AllKinds: true, Report: func(string) {}})
			if err == nil || run.ExitCode(err) != report.ExitBadBundle || !strings.Contains(err.Error(), `namespaces "apart" not found: create the namespace first`) {
				l.t.Error(err)
			}
		})
		l.create(namespaceNamed("apart"))
		l.repair("apart/shop")
		if got := l.members("apart/shop"); !strings.HasPrefix(got, "a") {
			l.t.Errorf("the members are %s", got)
		}
	})
}

// Secrets that a backup restores may be of an earlier inventory of the name: they are no damage.
func TestHistoryOfAnEarlierInventory(t *testing.T) {
	inLab(t, func(l *lab) {
		var backup []*unstructured.Unstructured
		for _, value := range []string{"1", "2", "3", "4", "5"} {
			l.ends(report.ExitOK, "apply", "shop", values("old "+value), nil)
			backup = append(backup, l.get("Secret", "default", inventory.RevisionName("shop", len(backup)+1, 0)).DeepCopy())
		}
		l.ends(report.ExitOK, "destroy", "shop", "", nil)
		time.Sleep(time.Minute)
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		for _, u := range backup[2:] {
			u.SetUID("")
			u.SetResourceVersion("")
			l.create(u)
		}
		l.ends(report.ExitOK, "rollback", "shop", "", nil)
		l.have("1")
	})
}

// Some of the last bundle, after another one was killed: most of that is still there, and a rollback
// undoes it, whatever became of the partial run.
func TestPartialRunAfterAKilledOne(t *testing.T) {
	for _, exit := range []int{report.ExitOK, report.ExitFailed} {
		inLab(t, func(l *lab) {
			l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
			l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
			l.kill(func() bool { return l.value("a") == "3" && l.value("b") == "3" }, "shop", values("3"))
			if exit != report.ExitOK {
				l.w.server.Admit = func(actor string, _ apiserver.Kind, u, _ *unstructured.Unstructured) error {
					return admit(map[bool]string{true: "refuse"}[actor != person && u != nil && u.GetName() == "a"], u, u, new(int))
				}
			}
			l.ends(exit, "apply", "shop", values("2"), onlyA)
			l.w.server.Admit = nil
			l.ends(report.ExitOK, "rollback", "shop", "", nil)
			l.have("2")
		})
	}
}

// A first apply that was killed before the inventory named its revision: a partial run keeps what that has.
func TestPartialRunOfWhatTheInventoryDoesNotName(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.edit("ConfigMap", "default", "shop", func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", lastRevision)
		})
		l.ends(report.ExitOK, "apply", "shop", values("2"), onlyA)
		l.ends(report.ExitOK, "rollback", "shop", "2", nil)
		if l.value("a") != "2" || l.value("b") != "1" {
			l.t.Errorf("a is %s and b %s", l.value("a"), l.value("b"))
		}
	})
}

// A person decides to undo the last apply. Another one, of which no history is kept, comes before the
// rollback: no person has decided about that.
func TestRollbackUndoesNoApplyWithoutAHistoryThatCameMeanwhile(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		read := l.load("shop").Latest()
		l.ends(report.ExitOK, "apply", "shop", values("3"), func(o *run.Options, _ *bundle.Bundle) { o.HistoryLimit = 0 })
		r := l.ends(report.ExitLocked, "rollback", "shop", "1", func(o *run.Options, _ *bundle.Bundle) { o.Undoes = read })
		if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, store.ErrNotLast.Error()) {
			l.t.Error(said)
		}
		l.have("3")
	})
}

// A rename that was interrupted is repeated. What was applied under the new name meanwhile stays in its
// history.
func TestRepeatedRenameKeepsTheNewHistory(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		rename := admin.MoveOptions{From: []report.Inventory{at("shop")}, To: at("web"), Remove: true, Rename: true, Version: "simulated", Report: func(string) {}}
		p := l.start(func(ctx context.Context, c *cluster.Client) { _, _ = admin.MoveMembers(ctx, c, rename) })
		l.until(func() bool {
			return ours(l.get("ConfigMap", "default", "a"), "web") && ours(l.get("ConfigMap", "default", "b"), "web")
		})
		l.w.killNow(p)
		<-p.ended
		l.ends(report.ExitOK, "apply", "web", values("3"), nil)
		if l.get("ConfigMap", "default", "shop") == nil {
			l.t.Fatal("the rename had ended")
		}
		l.ends(report.ExitFailed, "apply", "shop", values("4"), nil)
		l.move("rename", "shop", "web")
		l.have("3")
		l.ends(report.ExitOK, "apply", "web", values("5"), nil)
		l.ends(report.ExitOK, "rollback", "web", "", nil)
		l.have("3")
	})
}

// What a run adopts is given back as it was, also where an earlier run of the same bundle was refused it.
func TestReleaseAfterARefusal(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1"), nil)
		l.create(bundle.V1(bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "b"}, map[string]any{"data": map[string]any{"value": "theirs"}}))
		l.ends(report.ExitFailed, "apply", "shop", values("2"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), func(o *run.Options, b *bundle.Bundle) {
			adoptFree(o, b)
			o.Planning.Conflicts, _ = fields.ParseConflictRules([]string{"*=take"})
		})
		l.ends(report.ExitOK, "rollback", "shop", "1", nil)
		if l.value("b") != "theirs" {
			l.t.Errorf("b is %s", l.value("b"))
		}
	})
}

// A rollback of which the inventory object could not be written: what it undid is passed over, though the
// next apply overwrites its revision, or is killed.
func TestRollbackThatTheInventoryDoesNotName(t *testing.T) {
	for name, test := range map[string]struct {
		killed      bool
		again, text string // what brings 2 back before the last apply
		want        string
	}{
		"an apply": {want: "1"}, "a killed apply": {killed: true, want: "1"},
		"an apply of what was undone": {again: "apply", text: values("2"), want: "2"}, "a rollback to it": {again: "rollback", text: "2", want: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
				l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
				l.w.server.Admit = func(actor string, _ apiserver.Kind, u, _ *unstructured.Unstructured) error {
					return admit(map[bool]string{true: "refuse"}[actor != person && u != nil && u.GetName() == "shop"], u, u, new(int))
				}
				l.ends(report.ExitUnreachable, "rollback", "shop", "1", nil)
				l.w.server.Admit = nil
				l.have("1")
				if last := l.load("shop").Last().Number; last != 2 {
					t.Fatalf("the inventory says %d", last)
				}
				if test.again != "" {
					l.ends(report.ExitOK, test.again, "shop", test.text, nil)
				}
				if test.killed {
					l.kill(func() bool { return l.value("a") == "3" && l.value("b") == "3" }, "shop", values("3"))
				} else {
					l.ends(report.ExitOK, "apply", "shop", values("3"), nil)
				}
				l.ends(report.ExitOK, "rollback", "shop", "", nil)
				l.have(test.want)
			})
		})
	}
}

// A run that fails after such a rollback goes back to where that went.
func TestRollbackOnFailureAfterOneThatTheInventoryDoesNotName(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		refuse := func(is func(u *unstructured.Unstructured) bool) {
			l.w.server.Admit = func(actor string, _ apiserver.Kind, u, _ *unstructured.Unstructured) error {
				return admit(map[bool]string{true: "refuse"}[actor != person && u != nil && is(u)], u, u, new(int))
			}
		}
		refuse(func(u *unstructured.Unstructured) bool { return u.GetName() == "shop" })
		l.ends(report.ExitUnreachable, "rollback", "shop", "1", nil)
		refuse(func(u *unstructured.Unstructured) bool {
			return bundle.At[string](u.Object, "data", "value") == "3" && u.GetName() == "b"
		})
		l.ends(report.ExitRolledBack, "apply", "shop", values("3"), func(o *run.Options, _ *bundle.Bundle) { o.RollbackOnFailure = true })
		l.have("1")
	})
}

// A destroy that could not delete a revision leaves the history as it was, but for older ones: what is applied
// again is no older state. A revision that somebody deleted is saved again.
func TestHistoryOfADestroyThatWasCutShort(t *testing.T) {
	for name, cut := range map[string]func(l *lab){
		"a revision stays": func(l *lab) {
			l.w.server.Admit = func(_ string, _ apiserver.Kind, u, live *unstructured.Unstructured) error {
				return admit(map[bool]string{true: "refuse-delete"}[live != nil && live.GetName() == inventory.RevisionName("shop", 1, 0)], u, live, new(int))
			}
			l.ends(report.ExitUnreachable, "destroy", "shop", "", nil)
			l.w.server.Admit = nil
		},
		"somebody deletes two": func(l *lab) {
			l.remove("Secret", "default", inventory.RevisionName("shop", 2, 0))
			l.remove("Secret", "default", inventory.RevisionName("shop", 3, 0))
			l.remove("ConfigMap", "default", "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				for _, value := range []string{"1", "2", "3"} {
					l.ends(report.ExitOK, "apply", "shop", values(value), nil)
				}
				cut(l)
				l.ends(report.ExitOK, "apply", "shop", values("3"), nil)
				l.ends(report.ExitOK, "apply", "shop", values("4"), nil)
				l.ends(report.ExitOK, "rollback", "shop", "", nil)
				l.have("3")
			})
		})
	}
}

// A rollback of which no revision could be saved says so, and does not succeed.
func TestRollbackWithoutARevision(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		l.ends(report.ExitOK, "apply", "shop", values("2"), nil)
		l.w.server.Admit = func(_ string, k apiserver.Kind, u, live *unstructured.Unstructured) error {
			return admit(map[bool]string{true: "refuse"}[k.Kind == "Secret"], u, live, new(int))
		}
		if r, _ := l.command("rollback", "shop", "1", nil); r.ExitCode == report.ExitOK || !strings.Contains(strings.Join(errorsOf(r), " "), "Repeat the rollback") {
			l.t.Error(r.ExitCode, errorsOf(r))
		}
		l.w.server.Admit = nil
		l.have("1")
		l.ends(report.ExitOK, "rollback", "shop", "1", nil)
		l.ends(report.ExitOK, "apply", "shop", values("3"), nil)
		l.ends(report.ExitOK, "rollback", "shop", "", nil)
		l.have("1")
	})
}
