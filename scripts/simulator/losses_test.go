package simulator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/patch"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/admin"
)

// Stories about what could be lost: members that are forgotten, inventories that stay.

// members are the names of an inventory's members.
func (l *lab) members(name string) string {
	l.t.Helper()
	ids := bundle.SortedIDs(l.load(name).Members)
	return strings.Join(bundle.Each(ids, func(id bundle.ID) string { return id.Name }), " ")
}

// Somebody puts an older state of the inventory back while a run creates objects, as a restored
// backup does, or a tool that knows no lock. What the run created stays a member.
func TestInventoryThatIsPutBackDuringARun(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b, c := configMap("default", "a", "1"), configMap("default", "b", "1"), configMap("default", "c", "1")
		l.ends(report.ExitOK, "apply", "shop", a+c, nil)
		old := l.get("ConfigMap", "default", "shop").DeepCopy()
		var r *report.Result
		p := l.start(func(ctx context.Context, client *cluster.Client) {
			r, _ = l.carryOut(ctx, client, "apply", "shop", a+b, nil)
		})
		l.until(func() bool { return l.get("ConfigMap", "default", "b") != nil })
		l.edit("ConfigMap", "default", "shop", func(u *unstructured.Unstructured) { u.Object["data"] = old.Object["data"] })
		l.w.run(p)
		<-p.ended
		if got := l.members("shop"); got != "a b" || r.ExitCode != report.ExitOK {
			l.t.Errorf("members %s, exit code %d: %v", got, r.ExitCode, r.Errors)
		}
		if r := l.ends(report.ExitOK, "apply", "shop", a+b, nil); len(r.Warnings) > 0 || r.Summary.Unchanged != 2 {
			l.t.Errorf("the next apply: %+v, %v", r.Summary, r.Warnings)
		}
		if l.ends(report.ExitOK, "destroy", "shop", "", nil); l.get("ConfigMap", "default", "b") != nil {
			l.t.Error("b is left")
		}
	})
}

// An inventory is destroyed whose namespace is a member that stays: the inventory itself goes.
func TestDestroyWhereTheHomeStays(t *testing.T) {
	for name, keep := range map[string]func(annotations map[string]string){
		"kept":    func(annotations map[string]string) { annotations[bundle.OnRemove] = "keep" },
		"removed": func(annotations map[string]string) { delete(annotations, inventory.OwningInventory) },
		"another": func(annotations map[string]string) { annotations[inventory.OwningInventory] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop/shop", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"+configMap("shop", "a", "1"), nil)
				l.edit("Namespace", "", "shop", func(u *unstructured.Unstructured) {
					annotations := u.GetAnnotations()
					keep(annotations)
					u.SetAnnotations(annotations)
				})
				l.ends(report.ExitOK, "destroy", "shop/shop", "", nil)
				l.stays("Namespace", "", "shop")
				for _, p := range l.w.server.Places() {
					if p.Namespace == "shop" && p.Name != "kube-root-ca.crt" && p.Name != "default" {
						l.t.Errorf("%s is left", p)
					}
				}
			})
		})
	}
}

// So it does where the namespace stays because a member in it is kept.
func TestDestroyWhereSomethingInTheHomeStays(t *testing.T) {
	inLab(t, func(l *lab) {
		kept := configMap("shop", "data", "1", ", annotations: {helm.sh/resource-policy: keep}")
		l.ends(report.ExitOK, "apply", "shop/shop", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"+configMap("shop", "a", "1")+kept, nil)
		l.ends(report.ExitOK, "destroy", "shop/shop", "", nil)
		l.stays("ConfigMap", "shop", "data")
		if l.get("ConfigMap", "shop", "shop") != nil || l.get("ConfigMap", "shop", "a") != nil {
			l.t.Error("the inventory or a member is left")
		}
	})
}

// A member goes back where its move was interrupted: nothing of the first move is left.
func TestMoveBackOfAnInterruptedMove(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b := configMap("default", "a", "1"), configMap("default", "b", "1")
		l.ends(report.ExitOK, "apply", "shop", a+b, nil)
		p := l.start(func(ctx context.Context, c *cluster.Client) {
			isA := func(id bundle.ID) bool { return id.Name == "a" }
			_, _ = admin.MoveMembers(ctx, c, admin.MoveOptions{From: []report.Inventory{at("shop")}, To: at("other"), Select: isA, Version: "simulated", Report: func(string) {}})
		})
		l.until(func() bool { return l.get("ConfigMap", "default", "other") != nil })
		l.w.killNow(p)
		<-p.ended
		l.move("split", "other", "shop", "a")
		for id, status := range l.load("shop").Members {
			if status.MovingTo != "" {
				l.t.Errorf("%s is still moving to %s", bundle.Name(id), status.MovingTo)
			}
		}
		if got := l.members("shop") + ", " + l.members("other"); got != "a b, " {
			l.t.Errorf("members %s", got)
		}
		l.ends(report.ExitOK, "destroy", "shop", "", nil)
		if l.get("ConfigMap", "default", "a") != nil {
			l.t.Error("a is left")
		}
	})
}

// The namespace that holds the inventory goes last, whatever it needs.
func TestDestroyWhereTheHomeNeedsAMember(t *testing.T) {
	inLab(t, func(l *lab) {
		home := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {" + bundle.DependsOn + ": /namespaces/default/ConfigMap/needed}}\n"
		l.ends(report.ExitOK, "apply", "shop/shop", home+configMap("default", "needed", "1")+configMap("shop", "a", "1"), nil)
		l.ends(report.ExitOK, "destroy", "shop/shop", "", nil)
		if l.get("Namespace", "", "shop") != nil || l.get("ConfigMap", "default", "needed") != nil {
			l.t.Error("something is left")
		}
	})
}

// The first bundle that has something of what was merged decides about all of it, also where
// something keeps it from pruning then.
func TestMergedMembersThatAreNotPrunedAtOnce(t *testing.T) {
	inLab(t, func(l *lab) {
		a, x, y := configMap("default", "a", "1"), configMap("default", "x", "1"), configMap("default", "y", "1")
		l.ends(report.ExitOK, "apply", "shop", a, nil)
		l.ends(report.ExitOK, "apply", "other", x+y, nil)
		l.move("merge", "other", "shop")
		l.ends(report.ExitOK, "apply", "shop", a, nil)
		l.stays("ConfigMap", "default", "x", "y")
		l.ends(report.ExitOK, "apply", "shop", a+x, func(o *run.Options, _ *bundle.Bundle) { o.Planning.NoPrune = true })
		l.stays("ConfigMap", "default", "x", "y")
		r := l.ends(report.ExitOK, "apply", "shop", a+x, nil)
		if l.get("ConfigMap", "default", "y") != nil {
			l.t.Errorf("y is left: %v", reasonsOf(r))
		}
	})
}

// What comes with a namespace does not go with it where it is a member of another inventory. What
// controllers make of a member has its annotation too, and is none.
func TestMembersOfOthersThatComeWithANamespace(t *testing.T) {
	inLab(t, func(l *lab) {
		home := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: db}\n"
		account := "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: db}\nautomountServiceAccountToken: false\n"
		l.ends(report.ExitOK, "apply", "shop", home+configMap("db", "a", "1"), nil)
		l.ends(report.ExitOK, "apply", "other", account, adoptFree)
		r := l.ends(report.ExitFailed, "destroy", "shop", "", nil)
		if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, "ServiceAccount db/default") {
			l.t.Error(said)
		}
		l.stays("ServiceAccount", "db", "default")
		l.ends(report.ExitOK, "destroy", "other", "", nil)
		l.ends(report.ExitOK, "destroy", "shop", "", nil)
	})
}

// A patch deletes no namespace that holds a member, also of a kind that comes with a namespace.
func TestPatchDeletesNoMemberThatComesWithANamespace(t *testing.T) {
	inLab(t, func(l *lab) {
		l.create(namespaceNamed("db"))
		l.ends(report.ExitOK, "apply", "shop", "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: db}\nautomountServiceAccountToken: false\n", adoptFree)
		l.do(func(ctx context.Context, c *cluster.Client) {
			b, err := read.Bundle(ctx, read.Options{Files: []string{"-"}, Stdin: strings.NewReader("apiVersion: v1\nkind: Namespace\nmetadata: {name: db}\n")})
			if err != nil {
				l.t.Fatal(err)
			}
			r := patch.Run(ctx, c, b, patch.Options{Header: report.Header{Command: "patch", DryRun: report.None}, Delete: true}, func(report.Event) {})
			if said := strings.Join(errorsOf(r), " "); r.ExitCode != report.ExitFailed || !strings.Contains(said, "ServiceAccount db/default") {
				l.t.Errorf("exit code %d: %s", r.ExitCode, said)
			}
		})
		l.stays("ServiceAccount", "db", "default")
		l.stays("Namespace", "", "db")
	})
}

// An inventory whose object is lost is not destroyed while its members are there: what is left of
// it names them. Where another tool has destroyed them, it goes.
func TestDestroyWithoutTheInventoryObject(t *testing.T) {
	for _, left := range []string{"all", "revisions"} {
		t.Run(left, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1")+configMap("default", "b", "1"), nil)
				l.remove("ConfigMap", "default", "shop")
				if left == "revisions" {
					l.remove("ConfigMap", "default", "shop-fingerprints-1")
					l.remove("ConfigMap", "default", "shop-origins-1")
				}
				r := l.ends(report.ExitFailed, "destroy", "shop", "", nil)
				if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, "ConfigMap default/a, ConfigMap default/b; no object was changed") {
					l.t.Error(said)
				}
				l.stays("Secret", "default", "shop-revision-1-0")
				l.remove("ConfigMap", "default", "a")
				l.remove("ConfigMap", "default", "b")
				l.ends(report.ExitOK, "destroy", "shop", "", nil)
				if l.get("Secret", "default", "shop-revision-1-0") != nil {
					l.t.Error("the history is left")
				}
			})
		})
	}
}

// An inventory adopts nothing from itself: it would forget what it has.
func TestAdoptFromItself(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1")+configMap("default", "b", "1"), nil)
		l.do(func(ctx context.Context, c *cluster.Client) {
			_, err := admin.Adopt(ctx, c, admin.AdoptOptions{
				MoveOptions: admin.MoveOptions{From: []report.Inventory{at("shop")}, To: at("shop"), Version: "simulated", Report: func(string) {}},
				Objects:     []bundle.ID{{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "a"}},
			})
			if err == nil || !strings.Contains(err.Error(), "cannot be moved to itself") {
				l.t.Errorf("it is not refused: %v", err)
			}
		})
		if got := l.members("shop"); got != "a b" {
			l.t.Errorf("members %s", got)
		}
	})
}

// Members that have lost their label, or that a controller owns by now, are found by what is left of
// the inventory: a run names them as forgotten, so a repair has to add them.
func TestRepairFindsWhatIsLeftOfTheInventory(t *testing.T) {
	for name, edit := range map[string]func(l *lab, u *unstructured.Unstructured){
		"it has no label": func(_ *lab, u *unstructured.Unstructured) { u.SetLabels(nil) },
		"a controller owns it": func(l *lab, u *unstructured.Unstructured) {
			owner := l.get("ConfigMap", "default", "a")
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				text := configMap("default", "a", "1") + configMap("default", "b", "1")
				l.ends(report.ExitOK, "apply", "shop", text, nil)
				l.edit("ConfigMap", "default", "b", func(u *unstructured.Unstructured) { edit(l, u) })
				l.remove("ConfigMap", "default", "shop")
				l.do(func(ctx context.Context, c *cluster.Client) {
					r, err := admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: at("shop"), Version: "simulated", Report: func(string) {}})
					if err != nil || len(r.Added) != 2 || len(r.NotAdded)+len(r.NotSearched) > 0 {
						l.t.Errorf("%+v: %v", r, err)
					}
				})
				if got := l.members("shop"); got != "a b" {
					l.t.Errorf("members %s", got)
				}
				l.ends(report.ExitOK, "apply", "shop", text, nil)
			})
		})
	}
}

// What is left of an inventory names members that its object does not list, since it was deleted, or
// a backup of it put back: no run writes a new list, which would be the end of that trace.
func TestMembersThatTheInventoryForgot(t *testing.T) {
	a, b, c := configMap("default", "a", "1"), configMap("apart", "b", "1"), configMap("default", "c", "1")
	partial := func(o *run.Options, _ *bundle.Bundle) { o.Only = []string{"ConfigMap/a"} }
	caches := []string{"shop-fingerprints-1", "shop-origins-1"}
	for name, test := range map[string]struct {
		lose   func(l *lab, old *unstructured.Unstructured)
		change func(*run.Options, *bundle.Bundle)
	}{
		"it was deleted":                {lose: func(l *lab, _ *unstructured.Unstructured) { l.remove("ConfigMap", "default", "shop") }},
		"it was deleted, a partial run": {lose: func(l *lab, _ *unstructured.Unstructured) { l.remove("ConfigMap", "default", "shop") }, change: partial},
		"it and the caches were deleted": {lose: func(l *lab, _ *unstructured.Unstructured) {
			for _, name := range append(caches, "shop") {
				l.remove("ConfigMap", "default", name)
			}
		}},
		"an older one was put back": {lose: func(l *lab, old *unstructured.Unstructured) { l.putBack(old) }},
		"all of it was put back": {lose: func(l *lab, old *unstructured.Unstructured) {
			for _, name := range caches {
				l.remove("ConfigMap", "default", name)
			}
			l.putBack(old)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.create(namespaceNamed("apart"))
				l.ends(report.ExitOK, "apply", "shop", a, nil)
				old := l.get("ConfigMap", "default", "shop").DeepCopy()
				l.ends(report.ExitOK, "apply", "shop", a+b, nil)
				test.lose(l, old)
				for _, command := range []string{"apply", "preview", "destroy"} {
					change := func(o *run.Options, b *bundle.Bundle) {
						if command == "preview" {
							o.DryRun = report.Server
						}
						if test.change != nil && o.Mode != run.Destroy {
							test.change(o, b)
						}
					}
					text := a + c
					if test.change != nil {
						text = a + b
					}
					command = strings.Replace(command, "preview", "apply", 1)
					r := l.ends(report.ExitFailed, command, "shop", text, change)
					if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, "ConfigMap apart/b") || !strings.Contains(said, "brine inventory repair") {
						l.t.Errorf("%s: %s", command, said)
					}
				}
				if l.get("ConfigMap", "default", "c") != nil {
					l.t.Error("it applied c")
				}
				l.stays("ConfigMap", "default", "a")
				l.stays("ConfigMap", "apart", "b")
				l.do(func(ctx context.Context, c *cluster.Client) {
					if _, err := admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: at("shop"), Version: "simulated", Report: func(string) {}}); err != nil {
						l.t.Error(err)
					}
				})
				if got := l.members("shop"); !strings.HasPrefix(got, "b a") {
					l.t.Errorf("members %s", got)
				}
				l.ends(report.ExitOK, "apply", "shop", a+c, nil)
				if got := l.members("shop"); got != "a c" || l.get("ConfigMap", "apart", "b") != nil {
					l.t.Errorf("members %s, or b is left", got)
				}
			})
		})
	}
}

// Where the bundle has all that still belongs to an inventory that was lost, an apply makes it again.
func TestApplyOfAllThatALostInventoryHad(t *testing.T) {
	inLab(t, func(l *lab) {
		a, b, c := configMap("default", "a", "1"), configMap("default", "b", "1"), configMap("default", "c", "1")
		l.ends(report.ExitOK, "apply", "shop", a+b+c, nil)
		l.remove("ConfigMap", "default", "shop")
		l.remove("ConfigMap", "default", "c")
		l.ends(report.ExitOK, "apply", "shop", a+b, nil)
		if got := l.members("shop"); got != "a b" {
			l.t.Errorf("members %s", got)
		}
		l.ends(report.ExitOK, "apply", "shop", a, nil)
		if l.get("ConfigMap", "default", "b") != nil {
			l.t.Error("b is left")
		}
	})
}

// putBack replaces an inventory's ConfigMap by an older state of it.
func (l *lab) putBack(old *unstructured.Unstructured) {
	l.edit(old.GetKind(), old.GetNamespace(), old.GetName(), func(u *unstructured.Unstructured) {
		u.Object["data"] = old.Object["data"]
		u.SetAnnotations(old.GetAnnotations())
	})
}

// What takes the members of inventories is there: a typo would take them, and their histories would go.
func TestMergeIntoWhatIsNotThere(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1"), nil)
		l.ends(report.ExitOK, "apply", "other", configMap("default", "b", "1"), nil)
		merge := admin.MoveOptions{From: []report.Inventory{at("shop")}, To: at("typo"), Remove: true, Version: "simulated", Report: func(string) {}}
		l.refuses(merge, "there is no inventory default/typo", "brine inventory rename default/shop default/typo")
		if got := l.members("shop"); got != "a" || l.get("ConfigMap", "default", "typo") != nil {
			l.t.Errorf("members %s", got)
		}
		// Nor is it one of which only parts are left: they would name its members no more.
		l.remove("ConfigMap", "default", "other")
		merge.To, merge.Remove = at("other"), false
		l.refuses(merge, "ConfigMap default/b", "brine inventory repair")
		merge.From, merge.To = []report.Inventory{at("other")}, at("shop")
		l.refuses(merge, "there is no inventory default/other")
	})
}

// refuses has a move be refused with words.
func (l *lab) refuses(move admin.MoveOptions, words ...string) {
	l.t.Helper()
	l.do(func(ctx context.Context, c *cluster.Client) {
		_, err := admin.MoveMembers(ctx, c, move)
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				l.t.Errorf("want %q: %v", word, err)
			}
		}
	})
}

// What has the name of a part of an inventory, and is somebody else's, is not written over; the run
// says what is in the way, not that another run is. Fingerprints are a cache, and the history is for
// people: their run goes on, the next one tries again, and the first that can writes it.
func TestNameOfAPartIsTaken(t *testing.T) {
	for name, exit := range map[string]int{"shop-fingerprints-1": report.ExitOK, "shop-origins-1": report.ExitFailed, "shop-revision-1-0": report.ExitOK} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				part := bundle.ConfigMapKind
				if strings.Contains(name, "revision") {
					part = bundle.SecretKind
				}
				kind := part.Kind
				l.create(bundle.V1(bundle.ID{GroupKind: part, Namespace: "default", Name: name}, map[string]any{}))
				l.create(bundle.V1(bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "a"}, map[string]any{}))
				apply := func(exit int) (said string, writes int) {
					from := len(l.w.server.Log)
					r := l.ends(exit, "apply", "shop", configMap("default", "a", "1"), func(o *run.Options, _ *bundle.Bundle) {
						o.Planning.Policy = plan.AdoptIfNoInventory
					})
					return strings.Join(append(errorsOf(r), r.Warnings...), " "), len(l.w.server.Log) - from
				}
				for range 2 {
					if said, _ := apply(exit); !strings.Contains(said, kind+" default/"+name+" is there, and does not belong to the inventory") {
						l.t.Error(said)
					}
				}
				if labels := l.get(kind, "default", name).GetLabels(); len(labels) > 0 {
					l.t.Error(labels)
				}
				l.remove(kind, "default", name)
				apply(report.ExitOK)
				if l.get(kind, "default", name) == nil {
					l.t.Error("it is not written, and could be")
				}
				if said, writes := apply(report.ExitOK); said != "" || writes > 0 {
					l.t.Errorf("%d writes, %s", writes, said)
				}
			})
		})
	}
}

// An inventory object that does not say any more how far the history goes: the next revision is the one
// after the newest, and a rollback goes to that, also where the apply between was killed.
func TestHistoryOfWhichTheInventoryLostTheNumber(t *testing.T) {
	for _, lost := range []string{"the annotation", "the object"} {
		for i, killed := range []bool{false, true, false, true} {
			revisions := 2 + i/2
			t.Run(fmt.Sprintf("%s, of %d revisions, killed %t", lost, revisions, killed), func(t *testing.T) {
				inLab(t, func(l *lab) {
					for value := range revisions {
						l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", fmt.Sprint(value+1)), nil)
					}
					if lost == "the object" {
						l.remove("ConfigMap", "default", "shop")
					} else {
						l.edit("ConfigMap", "default", "shop", func(u *unstructured.Unstructured) {
							annotations := u.GetAnnotations()
							delete(annotations, "brine.dev/last-revision")
							u.SetAnnotations(annotations)
						})
					}
					if killed {
						p := l.start(func(ctx context.Context, c *cluster.Client) {
							_, _ = l.carryOut(ctx, c, "apply", "shop", configMap("default", "a", "4"), nil)
						})
						l.until(func() bool { return l.value("a") == "4" })
						l.w.killNow(p)
						<-p.ended
						l.wait()
					} else {
						l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "4"), nil)
					}
					for range 2 {
						l.ends(report.ExitOK, "rollback", "shop", "", nil)
						if got := l.value("a"); got != fmt.Sprint(revisions) {
							l.t.Errorf("after a rollback it holds %s", got)
						}
					}
				})
			})
		}
	}
}

// A damaged revision is in the way of a rollback to it, and of no other.
func TestDamagedRevisionBeforeTheTarget(t *testing.T) {
	for damaged, value := range map[int]string{1: "2", 2: "3"} {
		inLab(t, func(l *lab) {
			for value := range 3 {
				l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", fmt.Sprint(value+1)), nil)
			}
			l.edit("Secret", "default", fmt.Sprintf("shop-revision-%d-0", damaged), func(u *unstructured.Unstructured) {
				u.Object["data"] = map[string]any{"bundle": "AAAA"}
			})
			if _, err := l.command("rollback", "shop", "", nil); l.value("a") != value || (err != nil) != (damaged == 2) {
				l.t.Errorf("revision %d is damaged, and it holds %s: %v", damaged, l.value("a"), err)
			}
		})
	}
}
