package simulator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/inventory/store"
)

// Stories about the parts of an inventory: whose they are, and what they say where it is gone, or is
// written meanwhile.

func withID(o *run.Options, _ *bundle.Bundle) { o.Inventory.ID = "one" }

// made puts the object of an inventory with that ID there, as another tool makes it: brine refuses to where
// another inventory has the ID.
func (l *lab) made(namespace, name string) {
	l.t.Helper()
	u := bundle.V1(bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: namespace, Name: name}, map[string]any{})
	u.SetLabels(map[string]string{inventory.Label: "one"})
	l.create(u)
}

// Two inventories in one namespace have one ID. Each has its own history, key and plan: what becomes of
// one leaves the other's as they are.
func TestTwoInventoriesWithOneIDHaveTheirOwnHistories(t *testing.T) {
	inLab(t, func(l *lab) {
		secret := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {key: value}\n"
		l.ends(report.ExitOK, "apply", "shop", values("1")+secret, withID)
		l.ends(report.ExitBadBundle, "apply", "shop-b", long(0), withID)
		l.made("default", "shop-b")
		for i := range 3 {
			l.ends(report.ExitOK, "apply", "shop", values(fmt.Sprint(i+1))+secret, withID)
			l.ends(report.ExitOK, "apply", "shop-b", long(i), withID)
		}
		parts := []string{"shop-revision-1-0", "shop-revision-2-0", "shop-revision-3-0", "shop-brine-key"}
		l.ends(report.ExitOK, "apply", "shop-b", long(4), func(o *run.Options, b *bundle.Bundle) {
			withID(o, b)
			o.HistoryLimit = 1
		})
		l.stays("Secret", "default", parts...)
		if got := l.members("shop"); got != "a b s" {
			l.t.Errorf("members %s", got)
		}
		l.ends(report.ExitOK, "destroy", "shop-b", "", withID)
		l.stays("Secret", "default", parts...)
		for _, name := range []string{"shop-b-revision-3-0", "shop-b-revision-4-0"} {
			if l.get("Secret", "default", name) != nil {
				l.t.Errorf("%s is left", name)
			}
		}
		l.ends(report.ExitOK, "rollback", "shop", "", withID)
		l.have("2")
		if r := l.ends(report.ExitOK, "destroy", "shop-b", "", withID); len(r.Warnings) != 1 {
			l.t.Errorf("there is something to destroy: %v", r.Warnings)
		}
	})
}

// A namespace stays as long as another inventory is in it, whatever the ID of that is.
func TestNamespaceOfTwoInventoriesWithOneID(t *testing.T) {
	for name, home := range map[string]string{"made by brine": "", "a member": "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				l.ends(report.ExitOK, "apply", "shop/shop", home+configMap("shop", "a", "1"), withID)
				l.ends(report.ExitBadBundle, "apply", "shop/other", configMap("default", "b", "1"), withID)
				l.made("shop", "other")
				l.ends(report.ExitOK, "apply", "shop/other", configMap("default", "b", "1"), withID)
				_, _ = l.command("destroy", "shop/shop", "", withID)
				if l.get("ConfigMap", "shop", "a") != nil {
					l.t.Error("a is left")
				}
				l.stays("Namespace", "", "shop")
				l.stays("ConfigMap", "shop", "other")
			})
		})
	}
}

// An inventory has an ID of its own, and its object is gone. Who does not give the ID is told it: not that
// there is nothing.
func TestLostInventoryWithAnIDOfItsOwn(t *testing.T) {
	inLab(t, func(l *lab) {
		repair := func(id string) (r *admin.Repair, err error) {
			l.do(func(ctx context.Context, c *cluster.Client) {
				where := at("shop")
				where.ID = id
				r, err = admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: where, Version: "simulated", Report: func(string) {}})
			})
			return r, err
		}
		told := func(said string) {
			l.t.Helper()
			if !strings.Contains(said, "with the ID one") || !strings.Contains(said, "brine inventory repair --inventory default/shop --inventory-id=one") {
				l.t.Error(said)
			}
		}
		for _, parts := range [][]string{{"ConfigMap", "Secret"}, {"Secret"}, {"ConfigMap"}} {
			l.ends(report.ExitOK, "apply", "shop", values("1"), withID)
			l.remove("ConfigMap", "default", "shop")
			for _, p := range slices.Clone(l.w.server.Places()) {
				if kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[p.Resource]; strings.HasPrefix(p.Name, "shop-") && !slices.Contains(parts, kind) {
					l.remove(kind, p.Namespace, p.Name)
				}
			}
			told(strings.Join(errorsOf(l.ends(report.ExitFailed, "destroy", "shop", "", nil)), " "))
			_, err := repair("")
			told(errors.Join(err).Error())
			told(strings.Join(errorsOf(l.ends(report.ExitFailed, "destroy", "shop", "", withID)), " ") + " with the ID one")
			l.have("1")
			if r, err := repair("one"); err != nil || len(r.Added) != 2 {
				l.t.Error(err, r)
			}
			l.ends(report.ExitOK, "destroy", "shop", "", nil)
			if l.get("ConfigMap", "default", "a") != nil || l.get("ConfigMap", "default", "b") != nil {
				l.t.Error("a or b is left")
			}
		}
		// Another inventory, of whatever ID, is no part of this one.
		l.ends(report.ExitOK, "apply", "shop-b", values("1"), withID)
		l.ends(report.ExitOK, "destroy", "shop", "", nil)
		if _, err := repair(""); err == nil || !strings.Contains(err.Error(), "there is no inventory") {
			l.t.Error(err)
		}
	})
}

// serve serves the requests of one command only, until it ends, or has none but those that are held: the
// first of them is returned.
func (l *lab) serve(p *Process, holds func(*http.Request) bool) *pending {
	for {
		synctest.Wait()
		l.w.mu.Lock()
		over, own := p.over, bundle.Where(l.w.waiting, func(one *pending) bool { return one.process == p })
		l.w.mu.Unlock()
		next := slices.IndexFunc(own, func(one *pending) bool { return !holds(one.request) })
		switch {
		case over:
			return nil
		case next >= 0:
			l.w.serveOne(own[next])
		case len(own) > 0:
			return own[0]
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// meanwhile has another command run to its end.
func (l *lab) meanwhile(command, name, text string) {
	l.t.Helper()
	time.Sleep(5 * time.Second) // revisions have their times in seconds
	var r *report.Result
	l.serve(l.start(func(ctx context.Context, c *cluster.Client) {
		r, _ = l.carryOut(ctx, c, command, name, text, nil)
	}), func(*http.Request) bool { return false })
	if r.ExitCode != report.ExitOK {
		l.t.Fatalf("meanwhile: exit code %d: %v", r.ExitCode, errorsOf(r))
	}
}

func readsObject(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/configmaps/shop") || strings.Contains(r.URL.Query().Get("labelSelector"), inventory.Label)
}

func readsParts(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/configmaps") && strings.Contains(r.URL.Query().Get("labelSelector"), inventory.AuxiliaryLabel)
}

func readsHistory(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/secrets") }

// long is a ConfigMap whose name is too long for a key: its member is in an overflow ConfigMap.
func long(n int) string { return configMap("default", fmt.Sprintf("n%0252d", n), "1") }

func previews(o *run.Options, _ *bundle.Bundle) { o.DryRun = report.Server }

// An inventory is read by two requests. Where another run writes it between them, what was read is of two
// states: that is no damage.
func TestInventoryThatIsWrittenWhileItIsRead(t *testing.T) {
	for name, read := range map[string]func(*lab, context.Context, *cluster.Client) error{
		"a command that only reads": func(_ *lab, ctx context.Context, c *cluster.Client) error {
			_, err := store.Load(ctx, c, "default", "shop", "", "simulated")
			return err
		},
		"a preview": func(l *lab, ctx context.Context, c *cluster.Client) error {
			r, err := l.carryOut(ctx, c, "apply", "shop", long(1), previews)
			return errors.Join(err, errors.New(strings.Join(errorsOf(r), "; ")))
		},
		"the list": func(_ *lab, ctx context.Context, c *cluster.Client) error {
			list, err := admin.ListInventories(ctx, c, "default", "simulated")
			if err == nil && list.ExitCode != report.ExitOK {
				err = fmt.Errorf("%+v", list.Inventories)
			}
			return err
		},
	} {
		for meanwhile, order := range map[string]struct {
			last func(*http.Request) bool
			text string
		}{"the parts first, and one is written": {readsObject, long(1) + long(2)}, "the object first, and a part is deleted": {readsParts, configMap("default", "a", "1")}} {
			t.Run(name+", "+meanwhile, func(t *testing.T) {
				inLab(t, func(l *lab) {
					l.ends(report.ExitOK, "apply", "shop", long(1), nil)
					var err error
					p := l.start(func(ctx context.Context, c *cluster.Client) { err = read(l, ctx, c) })
					if l.serve(p, order.last) == nil {
						l.t.Fatal("it has not read the inventory")
					}
					l.meanwhile("apply", "shop", order.text)
					l.w.run(p)
					<-p.ended
					if err != nil && err.Error() != "" {
						l.t.Error(err)
					}
				})
			})
		}
	}
}

// It is written again between all requests: nothing is known of it, also no damage.
func TestInventoryThatIsWrittenAllTheTime(t *testing.T) {
	inLab(t, func(l *lab) {
		text := long(0)
		l.ends(report.ExitOK, "apply", "shop", text, nil)
		var err error
		p := l.start(func(ctx context.Context, c *cluster.Client) {
			_, err = store.Load(ctx, c, "default", "shop", "", "simulated")
		})
		for n := 1; ; n++ {
			held := l.serve(p, readsObject)
			if held == nil {
				break
			}
			text += long(n)
			l.meanwhile("apply", "shop", text)
			l.w.serveOne(held)
		}
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrDamaged) {
			l.t.Error(err)
		}
	})
}

// The history, and what is live, are read after the inventory object. Where another run has written that
// since, it is no backup that somebody put back.
func TestInventoryThatIsWrittenBeforeItsHistoryIsRead(t *testing.T) {
	for _, command := range []string{"preview", "destroy", "first preview"} {
		t.Run(command, func(t *testing.T) {
			inLab(t, func(l *lab) {
				if command != "first preview" {
					l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
				}
				var r *report.Result
				p := l.start(func(ctx context.Context, c *cluster.Client) {
					if command == "destroy" {
						r, _ = l.carryOut(ctx, c, "destroy", "shop", "", nil)
						return
					}
					r, _ = l.carryOut(ctx, c, "apply", "shop", configMap("default", "c", "1"), previews)
				})
				if l.serve(p, readsHistory) == nil {
					l.t.Fatal("it has not read the history")
				}
				l.meanwhile("apply", "shop", values("2"))
				l.meanwhile("apply", "shop", values("3"))
				l.w.run(p)
				<-p.ended
				if len(r.Errors) > 0 {
					l.t.Errorf("exit code %d: %v", r.ExitCode, errorsOf(r))
				}
				if gone := l.get("ConfigMap", "default", "a") == nil; gone != (command == "destroy") {
					l.t.Errorf("a is gone: %t", gone)
				}
				if command != "destroy" && r.Summary.Pruned != 2 {
					l.t.Errorf("it does not know the members: %+v", r.Summary)
				}
			})
		})
	}
	inLab(t, func(l *lab) {
		l.ends(report.ExitOK, "apply", "shop", values("1"), nil)
		var err error
		p := l.start(func(ctx context.Context, c *cluster.Client) {
			inv, _ := store.Load(ctx, c, "default", "shop", "", "simulated")
			_, err = inv.RollbackTarget(ctx)
		})
		l.serve(p, readsHistory)
		l.meanwhile("apply", "shop", values("2"))
		l.meanwhile("apply", "shop", values("3"))
		l.w.run(p)
		<-p.ended
		if !errors.Is(err, store.ErrConflict) {
			l.t.Error(err)
		}
	})
}

// An inventory is lost whole, and its members are of a kind that the user may not list. That there are none
// is not known.
func TestRepairThatCannotSearchDoesNotSayNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		repair := func(denied ...string) (r *admin.Repair, err error) {
			l.n++
			p := l.w.start(l.t.Context(), fmt.Sprintf("brine-%d", l.n), "shop", false, denied, func(ctx context.Context, c *cluster.Client) {
				r, err = admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: at("shop"), Version: "simulated", Report: func(string) {}})
				c.Close()
			})
			l.w.run(p)
			<-p.ended
			return r, err
		}
		l.ends(report.ExitOK, "apply", "shop", "apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n", nil)
		for _, p := range slices.Clone(l.w.server.Places()) {
			if p.Namespace == home && (p.Name == "shop" || strings.HasPrefix(p.Name, "shop-")) {
				l.remove(l.w.server.KindAt(p).Kind, p.Namespace, p.Name)
			}
		}
		if _, err := repair("list namespaces"); run.ExitCode(err) != report.ExitFailed || !strings.Contains(err.Error(), "Not searched: Namespace") {
			l.t.Error(err)
		}
		if r, err := repair(); err != nil || len(r.Added) != 1 {
			l.t.Error(err, r)
		}
	})
}
