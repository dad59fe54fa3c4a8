package simulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory/admin"
)

// Stories about the parts of an inventory: whose they are, and what they say where it is gone, or is
// written meanwhile.

func withID(o *run.Options, _ *bundle.Bundle) { o.Inventory.ID = "one" }

// Two inventories in one namespace have one ID. Each has its own history, key and plan: what becomes of
// one leaves the other's as they are.
func TestTwoInventoriesWithOneIDHaveTheirOwnHistories(t *testing.T) {
	inLab(t, func(l *lab) {
		secret := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {key: value}\n"
		long := strings.Repeat("x", 253) // too long for a key: it is in an overflow ConfigMap
		for i := range 3 {
			l.ends(report.ExitOK, "apply", "shop", values(fmt.Sprint(i+1))+secret, withID)
			l.ends(report.ExitOK, "apply", "shop-b", configMap("default", long, fmt.Sprint(i+1)), withID)
		}
		parts := []string{"shop-revision-1-0", "shop-revision-2-0", "shop-revision-3-0", "shop-brine-key"}
		l.ends(report.ExitOK, "apply", "shop-b", configMap("default", long, "4"), func(o *run.Options, b *bundle.Bundle) {
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
