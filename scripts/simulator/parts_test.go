package simulator

import (
	"fmt"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/report"
	"brine/bundle/run"
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
