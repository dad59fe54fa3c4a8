package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// The fault matrix: every command is disturbed at every request, in every way,
// and in the end the cluster and the inventory must be what the bundle says.
// Nothing that was not ours when it was acted on may have changed.
//
// BRINE_TEST_CHAOS is how many requests of each command and disturbance are
// tried, or "all"; BRINE_TEST_SEED chooses them; after BRINE_TEST_CHAOS_FOR no
// other is begun; BRINE_TEST_CHAOS_TABLE is a file for the table. scripts/chaos
// sets them.

// chaosCommand is a command that is disturbed, and what comes before it.
type chaosCommand struct {
	name  string
	given []string // bundles that were applied before
	args  []string // with {file} for the file of the bundle
	text  string   // that bundle
	want  string   // the bundle that the cluster matches in the end
}

func chaosCommands() []chaosCommand {
	return []chaosCommand{
		{name: "apply", args: []string{"apply", "-f", "{file}"}, text: platformBefore, want: platformBefore},
		{name: "upgrade", given: []string{platformBefore}, args: []string{"apply", "-f", "{file}"}, text: platformAfter, want: platformAfter},
		{name: "rollback", given: []string{platformBefore, platformAfter}, args: []string{"rollback", "1"}, want: platformBefore},
		{name: "destroy", given: []string{platformBefore}, args: []string{"destroy"}},
	}
}

// chaosSeed is BRINE_TEST_SEED, or always the same: no test fails by chance in
// somebody's clone. scripts/chaos, scripts/soak and scripts/test explore give others.
func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("BRINE_TEST_SEED")
	if text == "" {
		return 20261123
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

func TestChaos(t *testing.T) {
	text := os.Getenv("BRINE_TEST_CHAOS")
	if text == "" {
		t.Skip("scripts/chaos, or scripts/test chaos, runs this")
	}
	every, samples := text == "all", 0
	if !every {
		var err error
		if samples, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	enough := time.Now().Add(24 * 365 * time.Hour)
	if text := os.Getenv("BRINE_TEST_CHAOS_FOR"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		enough = time.Now().Add(d)
	}
	seed := chaosSeed(t)
	t.Logf("BRINE_TEST_SEED=%d", seed)
	commands, hows := chaosCommands(), slices.Concat(faults(), actors())
	tally := &chaosTally{commands: commands, hows: hows, cells: map[[2]string][2]int{}}
	t.Cleanup(func() { t.Logf("BRINE_TEST_SEED=%d\n%s", seed, tally.table()) })
	// A disturbance that others would notice has the cluster to itself, until
	// everything of it is cleaned up.
	var turns sync.RWMutex
	turn := func(t *testing.T, alone bool) {
		t.Helper()
		if alone {
			turns.Lock()
			t.Cleanup(turns.Unlock)
			return
		}
		turns.RLock()
		t.Cleanup(turns.RUnlock)
	}
	for i := range commands {
		command := &commands[i]
		t.Run(command.name, func(t *testing.T) {
			t.Parallel()
			requests := func(t *testing.T, how *disturbance) []clustertest.Request {
				t.Helper()
				turns.RLock()
				defer turns.RUnlock()
				tr := chaosTrial(t, command, how, rand.New(rand.NewPCG(seed, 0)))
				tr.disturbed(0).Want(t, 0)
				tr.ends(t, "undisturbed")
				return tr.proxy.Requests()
			}
			undisturbed := requests(t, &disturbance{})
			// In another order each time, as there may not be time for all.
			for _, j := range rand.New(rand.NewPCG(seed, uint64(i))).Perm(len(hows)) {
				how := &hows[j]
				t.Run(how.name, func(t *testing.T) {
					total, all := 0, undisturbed
					if how.pages > 0 { // there are more of them then
						all = requests(t, &disturbance{pages: how.pages})
					}
					for _, r := range all {
						if how.fits == nil || how.fits(r) {
							total++
						}
					}
					h := fnv.New64a()
					fmt.Fprintf(h, "%s/%s", command.name, how.name)
					random := rand.New(rand.NewPCG(seed, h.Sum64()))
					places := random.Perm(total)
					if !every {
						places = places[:min(samples, total)]
					}
					slices.Sort(places)
					for _, place := range places {
						if time.Now().After(enough) {
							t.SkipNow()
						}
						hit, complaint := false, ""
						// Each place has its own numbers: it can be run alone.
						random := rand.New(rand.NewPCG(seed, h.Sum64()+uint64(place)))
						ok := t.Run(strconv.Itoa(place+1), func(t *testing.T) {
							turn(t, how.alone)
							first := &firstError{T: t}
							t.Cleanup(func() { complaint = first.text })
							tr := chaosTrial(t, command, how, random)
							tr.TB = first
							hit = tr.run(first, place+1, total)
						})
						if hit || !ok {
							if err := tally.add(command.name, how.name, place+1, ok, complaint); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
		})
	}
}

// Two runs at once on one inventory: one of them does the work, the other says
// that it is locked out, and by whom.
func TestChaosTwoAtOnce(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	inside, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.Contains(r.Path, "/configmaps/") {
			once.Do(func() { close(inside); <-leave })
		}
		return clustertest.Action{}
	})
	first := make(chan clitest.Outcome)
	go func() { first <- s.Apply(clitest.ConfigMap("one")) }()
	<-inside
	direct := *s
	direct.Kubeconfig = s.Cluster.Kubeconfig
	locked := direct.Apply(clitest.ConfigMap("two"))
	close(leave)
	if locked.Exit != report.ExitLocked {
		t.Errorf("the second run exits %d, want %d:\n%s", locked.Exit, report.ExitLocked, locked.Stderr)
	}
	locked.Prints(t, "locked by another run")
	(<-first).Want(t, 0)
	s.Exists("v1/configmaps", "one")
	s.Missing("v1/configmaps", "two")
	direct.Apply(clitest.ConfigMap("two")).Want(t, 0)
	s.Missing("v1/configmaps", "one")
}

// Interrupted in the middle, a run stops writing, leaves a true inventory,
// prints its result and says so with its exit code.
func TestChaosSignals(t *testing.T) {
	for signal, exit := range map[os.Signal]int{os.Interrupt: report.ExitInterrupted, syscall.SIGTERM: report.ExitTerminated} {
		t.Run(signal.String(), func(t *testing.T) {
			s := clitest.New(t)
			p := s.Proxied()
			path := clitest.Binary(t)
			cmd := exec.Command(path, "apply", "-f", s.File(clitest.Documents(clitest.Deployment("stuck", 1, "1000000"), clitest.ConfigMap("fine"))),
				"--inventory", s.Inventory, "--kubeconfig", p.Kubeconfig, "-o", "json")
			var out bytes.Buffer
			cmd.Stdout = &out
			var once sync.Once
			started := make(chan struct{})
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Query.Has("watch") {
					once.Do(func() { <-started; _ = cmd.Process.Signal(signal) })
				}
				return clustertest.Action{}
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exit {
				t.Errorf("exit code %d, want %d", code, exit)
			}
			var result report.Result
			if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Interrupted == "" {
				t.Fatalf("stdout is not a result that says it was interrupted (%v):\n%s", err, &out)
			}
			if names := orphans(s); len(names) > 0 {
				t.Errorf("not in the inventory: %v", names)
			}
			s.Destroy().Want(t, 0)
		})
	}
}
