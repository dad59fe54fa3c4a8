package admin_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// A move that is killed at any write deletes nothing, whichever bundle is applied
// next, and can be repeated: it ends the same. Which bundle is next takes turns;
// the stress test tries all of them at every write.
func TestMoveKilledAtEveryWrite(t *testing.T) {
	for name, c := range map[string]struct {
		args func(s, b *clitest.Fixture) []string
		// sources and targets without and with what moves.
		keep []string
		// ends is the inventory that the source's bundle is for afterwards.
		gone bool
	}{
		"split": {args: func(s, b *clitest.Fixture) []string {
			return []string{"split", s.Inventory, "--to", b.Inventory, "--only", "ConfigMap/*/m*"}
		}, keep: []string{"keep"}},
		"merge":  {args: func(s, b *clitest.Fixture) []string { return []string{"merge", s.Inventory, "--into", b.Inventory} }, gone: true},
		"rename": {args: func(s, b *clitest.Fixture) []string { return []string{"rename", s.Inventory, b.Inventory} }, gone: true},
		"adopt": {args: func(s, b *clitest.Fixture) []string {
			return []string{"adopt", "ConfigMap/" + s.NS + "/m1", "ConfigMap/" + s.NS + "/m2", "--into", b.Inventory, "--take-over-from", s.Inventory}
		}, keep: []string{"keep"}},
	} {
		for _, after := range []bool{false, true} {
			next := []string{"nothing", "the source without it", "the target without it"}
			for turn := range next {
				if turn > 0 && os.Getenv(clitest.StressEnv) != "1" {
					break
				}
				t.Run(fmt.Sprintf("%s after %t turn %d", name, after, turn), func(t *testing.T) {
					t.Parallel()
					for n := 1; ; n++ {
						between := next[(n+turn)%len(next)]
						s := clitest.On(t, clustertest.Shared(t))
						b := s.Other("b")
						all := slices.Concat(c.keep, []string{"m1", "m2"})
						s.Apply(configMapsOf(all...)).Want(t, 0)
						if name != "rename" {
							b.Apply(configMapsOf("old")).Want(t, 0)
						}
						before, owner := uids(s, all...), fmt.Sprint(s.ConfigMap("m1").GetAnnotations())
						where, more := s.Killed(n, after, append([]string{"inventory"}, c.args(s, b)...)...)
						if !more {
							if n < 5 {
								t.Errorf("it has only %d writes", n-1)
							}
							return
						}
						check := func(when string) {
							t.Helper()
							same(t, before, uids(s, all...), fmt.Sprintf("killed at write %d, %s, %s", n, where, when))
						}
						check("then")
						// Before the source's inventory knows of the move, it has not begun.
						began := fmt.Sprint(s.ConfigMap("m1").GetAnnotations()) != owner
						source := s.ConfigMap("inv")
						if source != nil {
							began = began || strings.Contains(fmt.Sprint(source.Object["data"]), "movingTo")
						}
						switch {
						case !began && between == "the source without it":
						case name == "rename" && between == "the target without it" && s.ConfigMap("b") == nil:
							// The new name is free.
						case name == "rename" && between == "the source without it" && source == nil:
							// The old name is free.
						case between == "the source without it":
							s.Apply(configMapsOf(slices.Concat(c.keep, []string{"new"})...))
							check("then the source's bundle")
						case between == "the target without it":
							b.Apply(configMapsOf("old"))
							check("then the target's bundle")
						}
						command(s, c.args(s, b)...).Want(t, 0)
						check("repeated")
						if !c.gone {
							s.Apply(configMapsOf(c.keep...)).Want(t, 0)
						} else if between != "the source without it" && s.ConfigMap("inv") != nil {
							t.Errorf("killed at write %d, %s: the source is still there", n, where)
						}
						b.Apply(configMapsOf("m1", "m2")).Want(t, 0)
						check("then both bundles")
						if t.Failed() {
							return
						}
					}
				})
			}
		}
	}
}
