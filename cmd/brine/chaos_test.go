package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/report"
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

// disturbance is what happens at one request.
type disturbance struct {
	name string
	fits func(clustertest.Request) bool // nil: every request
	// fault is what the proxy does with the request.
	fault clustertest.Action
	kill  bool // kill -9, as the request arrives, or with CutAfter when it is done
	// actor does what somebody else does, before or after the request.
	actor func(*trial) (*deed, error)
	flags []string // of the commands that have them: apply and rollback
	pages int      // the server's page size
	user  bool     // brine runs as a user whose rights can be taken away
	exits []int    // that the disturbed run may end with, beside 0
}

// trial is one command, disturbed once.
type trial struct {
	*fixture
	command *chaosCommand
	how     *disturbance
	proxy   *clustertest.Proxy
	random  *rand.Rand
	file    string
	objects []*target // all that the two bundles hold

	at   atomic.Int64 // requests that had come when it was disturbed
	deed *deed
	err  error // of the actor
}

// chaosTally counts what was tried and what survived.
type chaosTally struct {
	commands []chaosCommand
	hows     []disturbance

	mu    sync.Mutex
	cells map[[2]string][2]int
}

// add counts, and writes the table: whoever interrupts hours of it has that.
func (c *chaosTally) add(command, how string, survived bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	cell := c.cells[[2]string{command, how}]
	cell[0]++
	if survived {
		cell[1]++
	}
	c.cells[[2]string{command, how}] = cell
	if path := os.Getenv("BRINE_TEST_CHAOS_TABLE"); path != "" {
		return os.WriteFile(path, []byte(c.table()), 0o600)
	}
	return nil
}

// table is Markdown: "survived of tried".
func (c *chaosTally) table() string {
	commands, hows := c.commands, c.hows
	var b strings.Builder
	b.WriteString("| at one request |")
	for i := range commands {
		fmt.Fprintf(&b, " %s |", commands[i].name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(commands)) + "\n")
	tried, survived := 0, 0
	for i := range hows {
		row, some := "| "+hows[i].name+" |", false
		for j := range commands {
			cell, ok := c.cells[[2]string{commands[j].name, hows[i].name}]
			if !ok {
				row += " |"
				continue
			}
			some = true
			tried, survived = tried+cell[0], survived+cell[1]
			row += fmt.Sprintf(" %d of %d |", cell[1], cell[0])
		}
		if some {
			b.WriteString(row + "\n")
		}
	}
	fmt.Fprintf(&b, "\n%d places tried, %d survived.\n", tried, survived)
	return b.String()
}

// chaosSeed is BRINE_TEST_SEED, or the time.
func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("BRINE_TEST_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano()) % 1e6
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
	all, samples := text == "all", 0
	if !all {
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
	for i := range commands {
		command := &commands[i]
		t.Run(command.name, func(t *testing.T) {
			t.Parallel()
			undisturbed := chaosTrial(t, command, &disturbance{}, rand.New(rand.NewPCG(seed, 0)))
			undisturbed.disturbed(0).want(t, 0)
			undisturbed.ends(t, "undisturbed")
			requests := undisturbed.proxy.Requests()
			// In another order each time, as there may not be time for all.
			for _, j := range rand.New(rand.NewPCG(seed, uint64(i))).Perm(len(hows)) {
				how := &hows[j]
				t.Run(how.name, func(t *testing.T) {
					total, requests := 0, requests
					if how.pages > 0 { // there are more of them then
						paged := chaosTrial(t, command, &disturbance{pages: how.pages}, rand.New(rand.NewPCG(seed, 0)))
						paged.disturbed(0).want(t, 0)
						requests = paged.proxy.Requests()
					}
					for _, r := range requests {
						if how.fits == nil || how.fits(r) {
							total++
						}
					}
					h := fnv.New64a()
					fmt.Fprintf(h, "%s/%s", command.name, how.name)
					random := rand.New(rand.NewPCG(seed, h.Sum64()))
					places := random.Perm(total)
					if !all {
						places = places[:min(samples, total)]
					}
					slices.Sort(places)
					for _, place := range places {
						if time.Now().After(enough) {
							t.SkipNow()
						}
						hit := false
						// Each place has its own numbers: it can be run alone.
						random := rand.New(rand.NewPCG(seed, h.Sum64()+uint64(place)))
						ok := t.Run(strconv.Itoa(place+1), func(t *testing.T) {
							tr := chaosTrial(t, command, how, random)
							hit = tr.run(t, place+1, total)
						})
						if hit || !ok {
							if err := tally.add(command.name, how.name, ok); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
		})
	}
}

// chaosTrial sets a fixture of its own.
func chaosTrial(t *testing.T, command *chaosCommand, how *disturbance, random *rand.Rand) *trial {
	t.Helper()
	s := fixtureOn(t, clustertest.Shared(t))
	objects := s.objectsOf(platformBefore, platformAfter)
	for _, o := range objects {
		if o.namespace() == "" {
			s.goneAfter(o.resource, o.name())
		}
	}
	for _, text := range command.given {
		s.apply(text).want(t, 0)
	}
	return newTrial(s, objects, command, how, random)
}

// newTrial is of a fixture that is as the command should find it.
func newTrial(s *fixture, objects []*target, command *chaosCommand, how *disturbance, random *rand.Rand) *trial {
	s.Helper()
	tr := &trial{fixture: s, objects: objects, command: command, how: how, random: random}
	if command.text != "" {
		tr.file = s.file(command.text)
	}
	options := clustertest.ProxyOptions{PageSize: how.pages}
	if how.user {
		options.User = s.ns + "-user"
		s.grantAll(options.User)
	}
	tr.proxy = s.cluster.Proxy(s.TB, options)
	return tr
}

func (tr *trial) args(kubeconfig string, flags ...string) []string {
	args := slices.Clone(tr.command.args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{file}", tr.file)
	}
	if args[0] != "destroy" {
		args = append(args, slices.Concat(tr.how.flags, flags)...)
	}
	return append(args, "--inventory", tr.inventory, "--namespace", tr.ns, "--timeout=3m", "--kubeconfig", kubeconfig, "-o", "json")
}

// next runs the command again, undisturbed.
func (tr *trial) next(flags ...string) outcome {
	return brine(tr.TB, tr.kubeconfig, tr.args(tr.kubeconfig, flags...)...)
}

// disturbed runs the command, which is disturbed at the n-th request that fits.
func (tr *trial) disturbed(n int64) outcome {
	tr.Helper()
	var seen atomic.Int64
	var cmd *exec.Cmd
	started := make(chan struct{})
	tr.proxy.Intercept(func(r clustertest.Request) clustertest.Action {
		if tr.how.fits != nil && !tr.how.fits(r) || seen.Add(1) != n {
			return clustertest.Action{}
		}
		tr.at.Store(int64(len(tr.proxy.Requests())))
		action := tr.how.fault
		switch {
		case tr.how.kill && action.CutAfter:
			action.After = func() { <-started; _ = cmd.Process.Kill() }
		case tr.how.kill:
			action.Before = func() { <-started; _ = cmd.Process.Kill() }
		case tr.how.actor != nil && tr.random.IntN(2) == 0:
			action.Before = tr.act
		case tr.how.actor != nil:
			action.After = tr.act
		}
		return action
	})
	defer tr.proxy.Intercept(nil)
	if !tr.how.kill {
		return brine(tr.TB, tr.proxy.Kubeconfig, tr.args(tr.proxy.Kubeconfig)...)
	}
	cmd = exec.Command(binary(tr.TB), tr.args(tr.proxy.Kubeconfig)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		tr.Fatal(err)
	}
	close(started)
	_ = cmd.Wait()
	return outcome{exit: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
}

func (tr *trial) act() { tr.deed, tr.err = tr.how.actor(tr) }

// run disturbs the command at one place, and looks at what came of it; false
// if the command did not get there, or there was nothing to do for the actor.
func (tr *trial) run(t *testing.T, place, total int) bool {
	t.Helper()
	did := tr.disturbed(int64(place))
	if tr.at.Load() == 0 || tr.how.actor != nil && tr.deed == nil {
		if tr.err != nil {
			t.Logf("the actor did nothing: %v", tr.err)
		}
		return false
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s, disturbed at request %d of %d (%s); exit code %d:\nbrine %s\n%s\nrequests:\n%s", tr.what(), place, total, tr.requestAt(), did.exit,
				strings.Join(tr.args(tr.proxy.Kubeconfig), " "), did.stderr, tr.writes())
		}
	})
	if did.exit != 0 && !tr.how.kill && !slices.Contains(tr.how.exits, did.exit) {
		t.Errorf("exit code %d", did.exit)
	}
	tr.unharmed(t, "after the disturbed run")
	if tr.deed == nil || !tr.deed.lostInventory {
		for _, name := range tr.orphans() {
			t.Errorf("%s is ours but not in the inventory: it would never be pruned", name)
		}
	}
	again := tr.next()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the next run; exit code %d:\n%s", again.exit, again.stderr)
		}
	})
	if tr.deed == nil {
		if again.want(t, 0); !t.Failed() {
			tr.ends(t, "after the next run")
		}
		return true
	}
	tr.unharmed(t, "after the next run")
	if again.exit == 0 {
		tr.ends(t, "after the next run")
		return true
	}
	if again.stderr == "" && again.stdout == "" {
		t.Errorf("the next run ends with exit code %d and says nothing", again.exit)
	}
	if err := tr.deed.undoOnce(); err != nil {
		t.Fatal(err)
	}
	tr.next("--force-conflicts", "--inventory-policy=adopt-all").want(t, 0)
	tr.ends(t, "after its cause was removed")
	return true
}

func (tr *trial) what() string {
	if tr.deed == nil {
		return tr.command.name + ": " + tr.how.name
	}
	return tr.command.name + ": " + tr.how.name + ": " + tr.deed.what
}

func (tr *trial) requestAt() string {
	requests := tr.proxy.Requests()
	if at := int(tr.at.Load()); at > 0 && at <= len(requests) {
		return describe(requests[at-1 : at])[0]
	}
	return "?"
}

// writes are the requests that could change something, and the one at which
// the command was disturbed.
func (tr *trial) writes() string {
	var b strings.Builder
	for i, r := range tr.proxy.Requests() {
		mark := " "
		if i+1 == int(tr.at.Load()) {
			mark = ">"
		} else if !r.IsWrite() {
			continue
		}
		fmt.Fprintf(&b, "%s %3d %s %s\n", mark, i+1, r.Method, r.Path)
	}
	return b.String()
}

func faults() []disturbance {
	watch := func(r clustertest.Request) bool { return r.Query.Has("watch") }
	ask := func(r clustertest.Request) bool { return !watch(r) }
	page := func(r clustertest.Request) bool { return r.Query.Has("continue") }
	status := func(code int, message string) clustertest.Action {
		return clustertest.Action{Status: code, Message: message}
	}
	busy := status(http.StatusTooManyRequests, "too many requests")
	busy.RetryAfter = 1
	late := status(http.StatusGatewayTimeout, "the request did not finish in time")
	late.Acted = true
	return []disturbance{
		{name: "kill -9 before the server acts", kill: true, fault: clustertest.Action{CutBefore: true}},
		{name: "kill -9 after the server acted", kill: true, fault: clustertest.Action{CutAfter: true}},
		{name: "connection cut before the server acts", fits: ask, fault: clustertest.Action{CutBefore: true}},
		{name: "connection cut after the server acted", fits: ask, fault: clustertest.Action{CutAfter: true}},
		{name: "429 with Retry-After", fits: ask, fault: busy},
		{name: "409", fits: ask, fault: status(http.StatusConflict, "the object has been modified; please apply your changes to the latest version and try again")},
		{name: "500", fits: ask, fault: status(http.StatusInternalServerError, "failed calling webhook: connection refused")},
		{name: "503", fits: ask, fault: status(http.StatusServiceUnavailable, "the server is currently unable to handle the request")},
		{name: "504 before the server acts", fits: ask, fault: status(http.StatusGatewayTimeout, "the request did not finish in time")},
		{name: "504 after the server acted", fits: ask, fault: late},
		{name: "watch refused", fits: watch, fault: status(http.StatusServiceUnavailable, "the server is currently unable to handle the request")},
		{name: "watch cut", fits: watch, fault: clustertest.Action{CutAfter: true}},
		{name: "watch too old (410)", fits: watch, fault: status(http.StatusGone, "too old resource version")},
		{name: "page expired (410)", fits: page, pages: 1, fault: status(http.StatusGone, "the provided continue parameter is too old")},
	}
}

// builtIn is the folder of that binary, for TestMain to remove.
var builtIn string

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "brine-test")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "brine")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build brine: %w\n%s", err, out)
	}
	return path, nil
})

// binary is brine itself, for tests that kill it.
func binary(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Two runs at once on one inventory: one of them does the work, the other says
// that it is locked out, and by whom.
func TestChaosTwoAtOnce(t *testing.T) {
	s := newFixture(t)
	p := s.proxied()
	inside, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.Contains(r.Path, "/configmaps/") {
			once.Do(func() { close(inside); <-leave })
		}
		return clustertest.Action{}
	})
	first := make(chan outcome)
	go func() { first <- s.apply(configMap("one")) }()
	<-inside
	direct := *s
	direct.kubeconfig = s.cluster.Kubeconfig
	locked := direct.apply(configMap("two"))
	close(leave)
	if locked.exit != report.ExitLocked {
		t.Errorf("the second run exits %d, want %d:\n%s", locked.exit, report.ExitLocked, locked.stderr)
	}
	locked.prints(t, "locked by another run")
	(<-first).want(t, 0)
	s.exists("v1/configmaps", "one")
	s.missing("v1/configmaps", "two")
	direct.apply(configMap("two")).want(t, 0)
	s.missing("v1/configmaps", "one")
}

// Interrupted in the middle, a run stops writing, leaves a true inventory,
// prints its result and says so with its exit code.
func TestChaosSignals(t *testing.T) {
	for signal, exit := range map[os.Signal]int{os.Interrupt: report.ExitInterrupted, syscall.SIGTERM: report.ExitTerminated} {
		t.Run(signal.String(), func(t *testing.T) {
			s := newFixture(t)
			p := s.proxied()
			path := binary(t)
			cmd := exec.Command(path, "apply", "-f", s.file(documents(deployment("stuck", 1, "1000000"), configMap("fine"))),
				"--inventory", s.inventory, "--kubeconfig", p.Kubeconfig, "-o", "json")
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
			if names := s.orphans(); len(names) > 0 {
				t.Errorf("not in the inventory: %v", names)
			}
			s.destroy().want(t, 0)
		})
	}
}
