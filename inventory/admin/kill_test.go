package admin_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// forgetKilled removes the lock's files of runs that were killed before they had
// written the lock: nobody else would.
func forgetKilled() {
	files, _ := filepath.Glob(filepath.Join(os.TempDir(), "brine-run-*"))
	for _, name := range files {
		if file, err := os.Open(name); err == nil {
			if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				_ = os.Remove(name)
			}
			_ = file.Close()
		}
	}
}

// killed runs a command in a process of its own, which is killed at its n-th write,
// before or after the server acts. It returns the write; false if there are fewer.
func killed(s *clitest.Fixture, n int, after bool, args ...string) (string, bool) {
	s.Helper()
	s.Cleanup(forgetKilled)
	p := s.Cluster.Proxy(s.TB, clustertest.ProxyOptions{})
	var cmd *exec.Cmd
	started := make(chan struct{})
	kill := func() { <-started; _ = cmd.Process.Kill() }
	var mu sync.Mutex
	var writes []clustertest.Request
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		mu.Lock()
		defer mu.Unlock()
		if r.IsWrite() && !r.DryRun {
			writes = append(writes, r)
		}
		switch {
		case len(writes) < n:
			return clustertest.Action{}
		case after && len(writes) == n:
			return clustertest.Action{After: kill, CutAfter: true}
		}
		return clustertest.Action{Before: kill, CutBefore: true}
	})
	cmd = exec.Command(clitest.Binary(s.TB), append([]string{"inventory"}, append(args, "--kubeconfig", p.Kubeconfig)...)...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	close(started)
	_ = cmd.Wait()
	p.Intercept(nil)
	mu.Lock()
	defer mu.Unlock()
	if len(writes) < n {
		return "", false
	}
	return clitest.Describe(writes[n-1 : n])[0], true
}

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
						before, owner := uids(s, all...), fmt.Sprint(s.Live("v1/configmaps", s.NS, "m1").GetAnnotations())
						where, more := killed(s, n, after, c.args(s, b)...)
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
						began := fmt.Sprint(s.Live("v1/configmaps", s.NS, "m1").GetAnnotations()) != owner
						source := s.Live("v1/configmaps", s.NS, "inv")
						if source != nil {
							began = began || strings.Contains(fmt.Sprint(source.Object["data"]), "movingTo")
						}
						switch {
						case !began && between == "the source without it":
						case name == "rename" && between == "the target without it" && s.Live("v1/configmaps", s.NS, "b") == nil:
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
						} else if between != "the source without it" && s.Live("v1/configmaps", s.NS, "inv") != nil {
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
