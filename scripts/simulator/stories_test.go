package simulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/plan/saved"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/inventory/store"
	"brine/scripts/simulator/apiserver"
)

// Stories are histories told step by step: what careful readers found, and no chance finds soon.

// A copied inventory lists what the original owns: nothing is done with it.
func TestCopiedInventory(t *testing.T) {
	bundleOf := func(namespace string) string {
		return configMap(namespace, "a", "1") + configMap(namespace, "b", "1")
	}
	for _, command := range []string{"apply", "destroy", "rollback"} {
		t.Run(command, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop/shop", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"+bundleOf("shop"), nil)
				l.copyNamespace("shop", "copy")
				from := len(l.w.server.Log)
				r, err := l.command(command, "copy/shop", bundleOf("copy"), nil)
				if err == nil {
					err = errors.New(strings.Join(r.Errors, " "))
				}
				if r != nil && r.ExitCode == report.ExitOK || !strings.Contains(err.Error(), "is a copy of another inventory") {
					l.t.Errorf("it is not refused: %v", err)
				}
				for _, w := range l.w.server.Log[from:] {
					if strings.HasPrefix(w.Actor, "brine") {
						l.t.Errorf("it wrote %s", w)
					}
				}
				l.stays("ConfigMap", "shop", "a", "b")
				l.ends(report.ExitOK, "apply", "shop/shop", bundleOf("shop")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", nil)
				l.stays("ConfigMap", "copy", "a", "b")
			})
		})
	}
}

// A repair does not take the copies of members for members.
func TestRepairBesideCopies(t *testing.T) {
	inLab(t, func(l *lab) {
		text := configMap("default", "a", "1") + configMap("default", "b", "1")
		l.ends(report.ExitOK, "apply", "shop", text, nil)
		l.copyNamespace("default", "copy")
		l.remove("ConfigMap", "default", "shop")
		l.do(func(ctx context.Context, c *cluster.Client) {
			r, err := admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: at("shop"), Version: "simulated", Report: func(string) {}})
			if err != nil || len(r.Added) != 2 || len(r.NotAdded) != 2 {
				l.t.Errorf("it added %v, and not %v: %v", r.Added, r.NotAdded, err)
			}
		})
		l.ends(report.ExitOK, "apply", "shop", text, nil)
		l.stays("ConfigMap", "copy", "a", "b")
		l.stays("ConfigMap", "default", "a", "b")
	})
}

// What an inventory consists of is no member of another one, and is not deleted by it.
func TestPartsOfOtherInventories(t *testing.T) {
	parts := map[string]bundle.ID{
		"the inventory": {GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "other"},
		"a revision":    {GroupKind: bundle.SecretKind, Namespace: "default", Name: "other-revision-1-0"},
		"the lock":      {GroupKind: bundle.LeaseKind, Namespace: "default", Name: "brine-other"},
	}
	for what, id := range parts {
		text := fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: default}\n",
			map[string]string{"": "v1", "coordination.k8s.io": "coordination.k8s.io/v1"}[id.GroupKind.Group], id.GroupKind.Kind, id.Name)
		t.Run(what, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "other", configMap("default", "x", "1"), nil)
				l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1"), func(_ *run.Options, b *bundle.Bundle) {
					b.Absent = []*bundle.Absent{{ID: id, GVK: id.GroupKind.WithVersion("v1"), Source: bundle.Source{File: "-", Line: 1}}}
				})
				for _, policy := range []plan.Policy{plan.MustMatch, plan.AdoptIfNoInventory, plan.AdoptAll} {
					r := l.ends(report.ExitFailed, "apply", "shop", configMap("default", "a", "1")+text, func(o *run.Options, _ *bundle.Bundle) { o.Planning.Policy = policy })
					if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, "can be no member") {
						l.t.Errorf("%s: %s", policy, said)
					}
				}
				l.do(func(ctx context.Context, c *cluster.Client) {
					if _, err := admin.Adopt(ctx, c, admin.AdoptOptions{MoveOptions: admin.MoveOptions{To: at("shop"), Version: "simulated", Report: func(string) {}}, Objects: []bundle.ID{id}}); err == nil {
						l.t.Error("it was adopted")
					}
				})
				l.ends(report.ExitOK, "destroy", "shop", "", nil)
				for _, id := range parts {
					l.stays(id.GroupKind.String(), id.Namespace, id.Name)
				}
				l.load("other")
			})
		})
	}
}

// What is owned by an object that goes is deleted by the garbage collector: so the owner stays
// where the bundle has the dependent, or an annotation keeps it.
func TestOwnersOfWhatStays(t *testing.T) {
	owned := func(owner *unstructured.Unstructured, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &controller}}
	}
	makes := func(l *lab, owner string, controller bool) { // as a controller does that makes a Secret of a SealedSecret
		made := bundle.V1(bundle.ID{Namespace: "default", Name: "made", GroupKind: bundle.ConfigMapKind}, map[string]any{"data": map[string]any{"value": "1"}})
		made.SetOwnerReferences(owned(l.get("ConfigMap", "default", owner), controller))
		l.create(made)
	}
	orphan := func(o *run.Options, _ *bundle.Bundle) {
		o.Planning.Policy, o.Cascade = plan.AdoptIfNoInventory, metav1.DeletePropagationOrphan
	}
	for _, controller := range []bool{true, false} {
		t.Run(fmt.Sprintf("the bundle has it, controller %t", controller), func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop", configMap("default", "sealed", "1"), nil)
				makes(l, "sealed", controller)
				r := l.ends(report.ExitFailed, "apply", "shop", configMap("default", "made", "1"), adoptFree)
				l.wait()
				l.stays("ConfigMap", "default", "made", "sealed")
				if said := strings.Join(append(errorsOf(r), reasonsOf(r)...), " "); !strings.Contains(said, "the garbage collector would delete ConfigMap default/made with it") {
					l.t.Error(said)
				}
				l.ends(report.ExitOK, "apply", "shop", configMap("default", "made", "1"), orphan)
				l.wait()
				l.stays("ConfigMap", "default", "made")
				if l.get("ConfigMap", "default", "sealed") != nil {
					l.t.Error("the owner is still there")
				}
			})
		})
	}
	t.Run("an annotation keeps it", func(t *testing.T) {
		inLab(t, func(l *lab) {
			keep := configMap("default", "kept", "1", ", annotations: {cli-utils.sigs.k8s.io/on-remove: keep}")
			l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1")+configMap("default", "owner", "1")+keep, nil)
			l.edit("ConfigMap", "default", "kept", func(u *unstructured.Unstructured) {
				u.SetOwnerReferences(owned(l.get("ConfigMap", "default", "owner"), true))
			})
			l.ends(report.ExitFailed, "apply", "shop", configMap("default", "a", "1"), nil)
			l.ends(report.ExitFailed, "destroy", "shop", "", nil)
			l.wait()
			l.stays("ConfigMap", "default", "kept", "owner")
		})
	})
	t.Run("an annotation keeps it, and its owner goes later", func(t *testing.T) {
		inLab(t, func(l *lab) {
			keep := configMap("default", "kept", "1", ", annotations: {cli-utils.sigs.k8s.io/on-remove: keep}")
			l.ends(report.ExitOK, "apply", "shop", configMap("default", "owner", "1")+keep, nil)
			l.edit("ConfigMap", "default", "kept", func(u *unstructured.Unstructured) {
				u.SetOwnerReferences(owned(l.get("ConfigMap", "default", "owner"), false))
			})
			l.ends(report.ExitOK, "apply", "shop", configMap("default", "owner", "1"), nil)
			l.ends(report.ExitFailed, "apply", "shop", configMap("default", "a", "1"), nil)
			l.wait()
			l.stays("ConfigMap", "default", "kept", "owner")
		})
	})
	t.Run("its owner is recreated", func(t *testing.T) {
		inLab(t, func(l *lab) {
			fixed := func(value string) string {
				return configMap("default", "fixed", value, ", annotations: {brine.dev/on-immutable: recreate}") + "immutable: true\n"
			}
			l.ends(report.ExitOK, "apply", "shop", fixed("1")+configMap("default", "a", "1"), nil)
			l.edit("ConfigMap", "default", "a", func(u *unstructured.Unstructured) {
				u.SetOwnerReferences(owned(l.get("ConfigMap", "default", "fixed"), false))
			})
			for _, change := range []func(*run.Options, *bundle.Bundle){
				nil, orphan,
				func(o *run.Options, _ *bundle.Bundle) { o.Only = []string{"ConfigMap/fixed"} },
				func(o *run.Options, b *bundle.Bundle) { // a is invalid
					o.SkipInvalid = true
					b.Objects[1].Content.SetAnnotations(map[string]string{bundle.DependsOn: "nothing"})
				},
			} {
				l.ends(report.ExitFailed, "apply", "shop", fixed("2")+configMap("default", "a", "1"), change)
				l.wait()
				l.stays("ConfigMap", "default", "a", "fixed")
			}
		})
	})
	t.Run("it is left to its controller", func(t *testing.T) { // which goes, too
		inLab(t, func(l *lab) {
			l.ends(report.ExitOK, "apply", "shop", configMap("default", "sealed", "1")+configMap("default", "made", "1")+configMap("default", "a", "1"), nil)
			l.edit("ConfigMap", "default", "made", func(u *unstructured.Unstructured) {
				u.SetOwnerReferences(owned(l.get("ConfigMap", "default", "sealed"), true))
			})
			l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", "1"), nil)
			l.wait()
			if l.get("ConfigMap", "default", "sealed") != nil {
				l.t.Error("the owner is still there")
			}
		})
	})
}

func reasonsOf(r *report.Result) (all []string) {
	for _, o := range r.Objects {
		all = append(all, o.Reason)
	}
	return all
}

// A rollback undoes an apply that was killed, or of which no history was kept, and nothing more.
func TestRollbackOfWhatNoRevisionSays(t *testing.T) {
	a := func(value string) string { return configMap("default", "a", value) }
	killed := func(l *lab) { l.kill(func() bool { return l.value("a") == "C" }, "shop", a("C")) }
	for name, apply := range map[string]struct {
		c      func(*lab)
		result string
	}{
		"killed": {killed, inventory.Interrupted},
		"no history": {func(l *lab) {
			l.ends(report.ExitOK, "apply", "shop", a("C"), func(o *run.Options, _ *bundle.Bundle) { o.HistoryLimit = 0 })
		}, inventory.NotKept},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop", a("A"), nil)
				l.ends(report.ExitOK, "apply", "shop", a("B"), nil)
				apply.c(l)
				if begun := l.load("shop").Begun(); begun.Number != 3 || begun.Result != apply.result {
					l.t.Errorf("the inventory says %+v", begun)
				}
				for range 3 { // repeated, it goes nowhere else
					if r := l.ends(report.ExitOK, "rollback", "shop", "", nil); l.value("a") != "B" || r.Revision != 4 {
						l.t.Errorf("a is %s, revision %d", l.value("a"), r.Revision)
					}
				}
				l.ends(report.ExitOK, "apply", "shop", a("D"), nil)
				if begun := l.load("shop").Begun(); begun.Number != 0 {
					l.t.Errorf("it still says %+v", begun)
				}
				if l.ends(report.ExitOK, "rollback", "shop", "", nil); l.value("a") != "B" {
					l.t.Errorf("a is %s after the next apply", l.value("a"))
				}
			})
		})
	}
	t.Run("the earlier bundle once more", func(t *testing.T) {
		inLab(t, func(l *lab) {
			l.ends(report.ExitOK, "apply", "shop", a("A"), nil)
			l.ends(report.ExitOK, "apply", "shop", a("B"), nil)
			killed(l)
			l.ends(report.ExitOK, "apply", "shop", a("B"), nil)
			if l.ends(report.ExitOK, "rollback", "shop", "", nil); l.value("a") != "A" {
				l.t.Errorf("a is %s", l.value("a"))
			}
		})
	})
}

// An apply of which no history is kept is the last one, also if an earlier one of the same bundle
// was, before a rollback.
func TestRollbackOfTheSameAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		a := func(value string) string { return configMap("default", "a", value) }
		noHistory := func(o *run.Options, _ *bundle.Bundle) { o.HistoryLimit = 0 }
		l.ends(report.ExitOK, "apply", "shop", a("A"), nil)
		l.ends(report.ExitOK, "apply", "shop", a("B"), nil)
		l.ends(report.ExitOK, "apply", "shop", a("C"), noHistory)
		l.ends(report.ExitOK, "rollback", "shop", "1", nil)
		l.ends(report.ExitOK, "apply", "shop", a("C"), noHistory)
		if l.ends(report.ExitOK, "rollback", "shop", "", nil); l.value("a") != "A" {
			l.t.Errorf("a is %s", l.value("a"))
		}
	})
}

// Where only the inventory object is lost, the history goes on, and each revision is kept.
func TestHistoryAfterTheInventoryObjectIsLost(t *testing.T) {
	inLab(t, func(l *lab) {
		two := func(o *run.Options, _ *bundle.Bundle) { o.HistoryLimit = 2 }
		for i := range 5 {
			l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", fmt.Sprint(i)), two)
		}
		l.remove("ConfigMap", "default", "shop")
		for i := range 3 {
			r := l.ends(report.ExitOK, "apply", "shop", configMap("default", "a", fmt.Sprint("new", i)), two)
			if r.Revision != 6+i {
				l.t.Errorf("revision %d, want %d", r.Revision, 6+i)
			}
			l.stays("Secret", "default", fmt.Sprintf("shop-revision-%d-0", r.Revision))
		}
		if l.ends(report.ExitOK, "rollback", "shop", "", nil); l.value("a") != "new1" {
			l.t.Errorf("a is %s", l.value("a"))
		}
	})
}

// What a Job did that its TTL removed is gone with its namespace, also where that is not of the bundle.
func TestJobInANamespaceThatWasMadeAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		job := "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: schema, namespace: db}\nspec:\n  ttlSecondsAfterFinished: 5\n  template:\n    spec: {restartPolicy: Never, containers: [{name: c, image: good}]}\n"
		action := func(r *report.Result) plan.Action { return r.Objects[0].Action }
		l.create(namespaceNamed("db"))
		l.ends(report.ExitOK, "apply", "shop", job, nil)
		l.wait()
		if got := action(l.ends(report.ExitOK, "apply", "shop", job, nil)); got != plan.Unchanged {
			l.t.Errorf("in the same namespace it is %s", got)
		}
		l.remove("Namespace", "", "db")
		l.wait()
		l.create(namespaceNamed("db"))
		if got := action(l.ends(report.ExitOK, "apply", "shop", job, nil)); got != plan.Created {
			l.t.Errorf("in the new namespace it is %s", got)
		}
	})
}

// Objects whose names the server makes have none in a plan: it holds for several of them.
func TestPlanWithGeneratedNames(t *testing.T) {
	inLab(t, func(l *lab) {
		named := func(prefix string) string {
			return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: " + prefix + "-, namespace: default}\ndata: {value: \"1\"}\n"
		}
		text := named("one") + named("two") + configMap("default", "a", "1")
		var made *saved.Plan
		l.ends(report.ExitOK, "apply", "shop", text, func(o *run.Options, _ *bundle.Bundle) {
			o.DryRun = report.Server
			o.PlanOut = &run.PlanPlace{
				Read: func(context.Context, *store.Inventory) ([]byte, error) { return nil, nil },
				Write: func(_ context.Context, _ *store.Inventory, text []byte) (err error) {
					made, err = saved.ReadPlan("plan", text, "simulated")
					return err
				},
			}
		})
		l.ends(report.ExitBadBundle, "apply", "shop", named("one")+configMap("default", "a", "1"), func(o *run.Options, _ *bundle.Bundle) { o.SavedPlan = made })
		l.ends(report.ExitOK, "apply", "shop", text, func(o *run.Options, _ *bundle.Bundle) { o.SavedPlan = made })
	})
}

// The namespace that brine made for an inventory stays where a person keeps it.
func TestNamespaceThatAPersonKeeps(t *testing.T) {
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop/shop", configMap("shop", "a", "1"), nil)
		l.edit("Namespace", "", "shop", func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			annotations[bundle.OnRemove] = "keep"
			u.SetAnnotations(annotations)
		})
		r := l.ends(report.ExitOK, "destroy", "shop/shop", "", nil)
		if l.stays("Namespace", "", "shop"); !strings.Contains(strings.Join(r.Warnings, " "), "on-remove: keep keeps it") {
			l.t.Error(r.Warnings)
		}
	})
}

// What a bundle wants absent is found in whatever version is served. Of a kind that is not served,
// it counts as absent only where that is proven, with a warning.
func TestAbsentInAnotherVersion(t *testing.T) {
	crd := func(served string) string {
		return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n" +
			"  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  versions:\n" +
			"  - {name: v1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n  - {name: v2, served: " + served + ", storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
	}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	for _, c := range []struct {
		name, crd, namespace string
		kind                 schema.GroupVersionKind
		code                 int
		gone                 bool
		warning              string
	}{
		{"in no namespace", crd("true"), "", widget, report.ExitOK, true, ""},
		{"in its namespace", crd("true"), "default", widget, report.ExitOK, true, ""},
		{"a kind that nobody serves", crd("true"), "", schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, report.ExitOK, false,
			"-:3: Widget.example.org w: the bundle wants it absent: the server serves no Widget.example.org; it serves Widget of example.com/v2: write that apiVersion if it is meant"},
		{"a kind whose CRD serves no version now", crd("false"), "default", widget, report.ExitFailed, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "kinds", crd("true"), nil)
				l.create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"}}})
				if c.crd != crd("true") {
					l.ends(report.ExitOK, "apply", "kinds", c.crd, nil)
				}
				r := l.ends(c.code, "apply", "shop", configMap("default", "a", "1"), func(_ *run.Options, b *bundle.Bundle) {
					b.Absent = []*bundle.Absent{{ID: bundle.ID{GroupKind: c.kind.GroupKind(), Namespace: c.namespace, Name: "w"}, GVK: c.kind, Source: bundle.Source{File: "-", Line: 3}}}
				})
				if gone := l.w.server.Objects[apiserver.Place{Group: "example.com", Resource: "widgets", Namespace: "default", Name: "w"}] == nil; gone != c.gone {
					l.t.Errorf("gone: %t, want %t", gone, c.gone)
				}
				if warnings := strings.Join(r.Warnings, "\n"); warnings != c.warning {
					l.t.Errorf("warnings %q, want %q", warnings, c.warning)
				}
			})
		})
	}
}

// What is pruned first goes also in a run that fails, which puts it back: a rule against deletions
// stops that run before.
func TestDeniedIsWhatIsPrunedFirst(t *testing.T) {
	inLab(t, func(l *lab) {
		l.w.server.ServeAdmission()
		l.ends(report.ExitOK, "apply", "shop", gateText+configMap("default", "a", "1"), nil)
		l.create(bundle.V1(bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "default", Name: "b"}, map[string]any{}))
		uid := l.get(gate.GroupKind.String(), "", gate.Name).GetUID()
		r := l.ends(report.ExitBadBundle, "apply", "shop", configMap("default", "a", "2")+configMap("default", "b", "2"), func(o *run.Options, _ *bundle.Bundle) {
			o.Planning.PruneFirst, o.Deny = []string{gate.GroupKind.Kind + "/" + gate.Name}, denials()
		})
		if said := strings.Join(errorsOf(r), " "); !strings.Contains(said, "nothing goes") {
			l.t.Error(said)
		}
		if l.get(gate.GroupKind.String(), "", gate.Name).GetUID() != uid {
			l.t.Error("the gate went, and was put back")
		}
	})
}

// Everybody may ask what is served: a refusal is of a server that starts, and is asked again for a while.
func TestRefusalOfDiscoveryIsRetried(t *testing.T) {
	for _, exit := range []int{report.ExitOK, report.ExitUnreachable} {
		inLab(t, func(l *lab) {
			l.w.mood = mood{faults: []fault{forbidden}, rate: 1, aim: discoveries}
			var r *report.Result
			p := l.start(func(ctx context.Context, c *cluster.Client) {
				r, _ = l.carryOut(ctx, c, "apply", "shop", configMap("default", "a", "1"), nil)
			})
			l.until(func() bool { return len(l.w.script) >= 4 || p.over })
			if exit == report.ExitOK {
				l.w.mood = mood{}
			}
			began := time.Now()
			l.w.run(p)
			said, took := strings.Join(errorsOf(r), " "), time.Since(began)
			if r.ExitCode != exit || exit != report.ExitOK && !strings.Contains(said, "the user may not get /api and /apis") || took > 10*time.Second {
				l.t.Errorf("exit code %d in %s: %s", r.ExitCode, took, said)
			}
		})
	}
}

// What was ready, and is deleted while others are waited for: nothing is pruned, and the run does
// not end well, unless it is there again.
func TestDeletedWhileOthersAreWaitedFor(t *testing.T) {
	web := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: good}]}\n"
	slow := configMap("default", "slow", "busy", `, annotations: {brine.dev/ready-when: "self.data.value == 'done'"}`)
	for name, c := range map[string]struct {
		exit int
		act  func(*lab)
	}{
		"deleted": {report.ExitNotReady, func(l *lab) { l.remove("Deployment", "default", "web") }},
		"created again": {report.ExitOK, func(l *lab) {
			u := l.get("Deployment.apps", "default", "web").DeepCopy()
			l.remove("Deployment", "default", "web")
			u.SetUID("")
			u.SetResourceVersion("")
			u.SetManagedFields(nil)
			l.create(u)
		}},
		"without its label": {report.ExitOK, func(l *lab) {
			l.edit("Deployment.apps", "default", "web", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop", configMap("default", "old", "1"), nil)
				var r *report.Result
				p := l.start(func(ctx context.Context, client *cluster.Client) {
					r, _ = l.carryOut(ctx, client, "apply", "shop", web+slow, nil)
				})
				after := func(pause time.Duration) {
					begin := time.Now()
					l.until(func() bool {
						l.w.server.Step()
						l.w.server.Release()
						return time.Since(begin) > pause
					})
				}
				after(20 * time.Second)
				c.act(l)
				after(20 * time.Second)
				l.edit("ConfigMap", "default", "slow", func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, "done", "data", "value")
				})
				if !l.w.run(p) {
					l.t.Fatal("it did not end")
				}
				if r.ExitCode != c.exit {
					l.t.Errorf("exit code %d, want %d: %s", r.ExitCode, c.exit, strings.Join(append(errorsOf(r), reasonsOf(r)...), "; "))
				}
				if pruned := l.get("ConfigMap", "default", "old") == nil; pruned != (c.exit == report.ExitOK) {
					l.t.Errorf("the old one is pruned: %t", pruned)
				}
			})
		})
	}
}

// A CRD that is established, and whose kind is not served: what is said of it says why.
func TestDefinedAndNotServed(t *testing.T) {
	inLab(t, func(l *lab) {
		l.w.outage = &outage{mood: unserved, resource: "widgets", to: 1000000}
		crd := "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n" +
			"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n"
		r := l.ends(report.ExitNotReady, "apply", "shop", crd+"---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: default}\n", nil)
		if said := strings.Join(reasonsOf(r), " "); !strings.Contains(said, "is not served: context deadline exceeded") {
			l.t.Error(said)
		}
	})
}

// A webhook says of a custom resource that a field is immutable: the preview says "recreated", also where the CRD
// changes in the same bundle.
func TestRecreatedWhereItsCRDChanges(t *testing.T) {
	inLab(t, func(l *lab) {
		text := func(description, size string) string {
			return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n" +
				"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: " + description + ", x-kubernetes-preserve-unknown-fields: true}}}]\n" +
				"---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: default, annotations: {brine.dev/on-immutable: recreate}}\nspec: {size: " + size + "}\n"
		}
		l.ends(report.ExitOK, "apply", "shop", text("one", "1"), nil)
		uid := l.get("Widget.example.com", "default", "w").GetUID()
		l.w.server.Admit = func(_ string, k apiserver.Kind, u, live *unstructured.Unstructured) error {
			if k.Kind != "Widget" || u == nil || live == nil || apiserver.Same(u.Object["spec"], live.Object["spec"]) {
				return nil
			}
			return apierrors.NewInvalid(k.GroupKind(), "w", field.ErrorList{field.InternalError(field.NewPath("spec"), errors.New(`admission webhook "widgets.example.com" denied the request: spec.size: field is immutable`))})
		}
		for _, run := range []func(*run.Options, *bundle.Bundle){func(o *run.Options, _ *bundle.Bundle) { o.DryRun = report.Server }, nil} {
			r := l.ends(report.ExitOK, "apply", "shop", text("two", "2"), run)
			if i := slices.IndexFunc(r.Objects, func(o *report.ObjectResult) bool { return o.Kind == "Widget" }); i < 0 || r.Objects[i].Action != plan.Recreated {
				l.t.Errorf("%s: %v", r.DryRun, r.Objects)
			}
		}
		if l.get("Widget.example.com", "default", "w").GetUID() == uid {
			l.t.Error("it was not recreated")
		}
	})
}
