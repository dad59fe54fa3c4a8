package store_test

import (
	"fmt"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// What a later version wrote in a format that this one does not know stops every command that
// needs it, with the version that is needed, and without a change.
func TestNewerFormatNamesItsVersion(t *testing.T) {
	s := clitest.New(t)
	one, two := clitest.ConfigMap("a"), clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))
	s.Apply(one).Want(t, 0)
	s.Apply(two).Want(t, 0)

	secret := inventory.RevisionName("inv", 1, 0)
	info := s.Live("v1/secrets", s.NS, secret).GetAnnotations()["brine.dev/revision-info"]
	newer := strings.Replace(info, fmt.Sprintf(`"format":%d,"since":%q`, inventory.Format, inventory.KnownSince), `"format":7,"since":"v0.9.0"`, 1)
	if newer == info {
		t.Fatalf("the revision has no number of its format: %s", info)
	}
	s.Merge("v1/secrets", s.NS, secret, fmt.Sprintf(`{"metadata":{"annotations":{"brine.dev/revision-info":%q}}}`, newer))
	const sentence = "it is in format 7, which brine reads from version v0.9.0 on"
	for _, args := range [][]string{{"rollback", "1"}, {"rollback"}, {"history", "show", "1"}} {
		r := clitest.Run(t, s.Kubeconfig, append(args, "--inventory", s.Inventory)...).Want(t, report.ExitFailed)
		if printed := r.Stdout + r.Stderr; !strings.Contains(printed, sentence) || !strings.Contains(printed, "read revision 1 of inventory") || !strings.Contains(printed, "use v0.9.0 or later") {
			t.Errorf("%q says %s", args, printed)
		}
	}
	s.Exists("v1/configmaps", "a", "b")
	clitest.Run(t, s.Kubeconfig, "history", "--inventory", s.Inventory).Want(t, 0)
	s.Apply(one).Want(t, 0) // it needs none of them

	s.PatchConfigMap("inv", `{"metadata":{"annotations":{"brine.dev/inventory-format":"7 v0.9.0"}}}`)
	before := s.ConfigMap("inv").GetResourceVersion()
	file := s.File(two)
	for _, args := range [][]string{{"status"}, {"history"}, {"drift"}, {"apply", "-f", file}, {"preview", "-f", file}, {"rollback"}, {"destroy"}, {"inventory", "repair"}} {
		r := clitest.Run(t, s.Kubeconfig, append(args, "--inventory", s.Inventory)...).Want(t, report.ExitFailed)
		if printed := r.Stdout + r.Stderr; !strings.Contains(printed, sentence) || !strings.Contains(printed, "use v0.9.0 or later; nothing was changed") {
			t.Errorf("%q says %s", args, printed)
		}
	}
	if after := s.ConfigMap("inv").GetResourceVersion(); after != before {
		t.Error("the inventory was written")
	}
	s.Missing("v1/configmaps", "b")
	if r := clitest.Run(t, s.Kubeconfig, "inventory", "list", "--namespace", s.NS).Want(t, report.ExitFailed); !strings.Contains(r.Stdout, sentence) {
		t.Errorf("the list says %s", r.Stdout)
	}
}
