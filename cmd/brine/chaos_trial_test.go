package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// trial is one command, disturbed once.
type trial struct {
	*clitest.Fixture
	command *chaosCommand
	how     *disturbance
	proxy   *clustertest.Proxy
	random  *rand.Rand
	file    string
	objects []*target // all that the two bundles hold

	at atomic.Int64 // requests that had come when it was disturbed
	// acted is the same when the actor was done: other requests do not wait for it.
	acted atomic.Int64
	deed  *deed
	err   error // of the actor
}

// chaosTrial sets a fixture of its own.
func chaosTrial(t *testing.T, command *chaosCommand, how *disturbance, random *rand.Rand) *trial {
	t.Helper()
	s := clitest.On(t, clustertest.Shared(t))
	objects := objectsOf(s, platformBefore, platformAfter)
	for _, o := range objects {
		if o.namespace() == "" {
			s.GoneAfter(o.resource, o.name())
		}
	}
	for _, text := range command.given {
		s.Apply(text).Want(t, 0)
	}
	return newTrial(s, objects, command, how, random)
}

// newTrial is of a fixture that is as the command should find it.
func newTrial(s *clitest.Fixture, objects []*target, command *chaosCommand, how *disturbance, random *rand.Rand) *trial {
	s.Helper()
	tr := &trial{Fixture: s, objects: objects, command: command, how: how, random: random}
	if command.text != "" {
		tr.file = s.File(command.text)
	}
	options := clustertest.ProxyOptions{PageSize: how.pages}
	if how.user {
		options.User = s.NS + "-user"
		grantAll(s, options.User)
	}
	tr.proxy = s.Cluster.Proxy(s.TB, options)
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
	args = append(args, tr.how.bound...)
	return append(args, "--inventory", tr.Inventory, "--namespace", tr.NS, "--timeout=3m", "--kubeconfig", kubeconfig, "-o", "json")
}

// next runs the command again, undisturbed.
func (tr *trial) next(flags ...string) clitest.Outcome {
	return clitest.Run(tr.TB, tr.Kubeconfig, tr.args(tr.Kubeconfig, flags...)...)
}

// disturbed runs the command, which is disturbed at the n-th request that fits.
func (tr *trial) disturbed(n int64) clitest.Outcome {
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
		return clitest.Run(tr.TB, tr.proxy.Kubeconfig, tr.args(tr.proxy.Kubeconfig)...)
	}
	cmd = exec.Command(clitest.Binary(tr.TB), tr.args(tr.proxy.Kubeconfig)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		tr.Fatal(err)
	}
	close(started)
	_ = cmd.Wait()
	return clitest.Outcome{Exit: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}
}

func (tr *trial) act() {
	tr.deed, tr.err = tr.how.actor(tr)
	if d := tr.deed; d != nil && d.theirs != nil && d.theirs.content.GetDeletionTimestamp() != nil {
		// The command's other requests do not wait: one of them was first.
		tr.deed, tr.err = nil, fmt.Errorf("%s is already being deleted", d.theirs)
	}
	tr.acted.Store(int64(len(tr.proxy.Requests())))
}

// run disturbs the command at one place, and looks at its outcome; false
// if the command did not get there, or there was nothing to do for the actor.
func (tr *trial) run(t testing.TB, place, total int) bool {
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
			t.Logf("%s, disturbed at request %d of %d (%s); exit code %d:\nbrine %s\n%s\nrequests:\n%s", tr.what(), place, total, tr.requestAt(), did.Exit,
				strings.Join(tr.args(tr.proxy.Kubeconfig), " "), did.Stderr, tr.writes())
		}
	})
	if did.Exit != 0 && !tr.how.kill && !slices.Contains(tr.how.exits, did.Exit) {
		t.Errorf("exit code %d", did.Exit)
	}
	tr.unharmed(t, "after the disturbed run")
	if tr.deed == nil || !tr.deed.lostInventory {
		for _, name := range orphans(tr.Fixture) {
			t.Errorf("%s is ours but not in the inventory: it would never be pruned", name)
		}
	}
	again := tr.next()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the next run; exit code %d:\n%s", again.Exit, again.Stderr)
		}
	})
	if tr.deed == nil {
		if again.Want(t, 0); !t.Failed() {
			tr.ends(t, "after the next run")
		}
		return true
	}
	tr.unharmed(t, "after the next run")
	if again.Exit == 0 {
		tr.ends(t, "after the next run")
		return true
	}
	if again.Stderr == "" && again.Stdout == "" {
		t.Errorf("the next run ends with exit code %d and says nothing", again.Exit)
	}
	if err := tr.deed.undoOnce(); err != nil {
		t.Fatal(err)
	}
	tr.next("--force-conflicts", "--inventory-policy=adopt-all").Want(t, 0)
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
		return clitest.Describe(requests[at-1 : at])[0]
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

// firstError is a test that remembers the first line of its first error, for the
// table: of thousands of places, that says which failures have one cause.
type firstError struct {
	*testing.T
	text string
}

func (f *firstError) Errorf(format string, args ...any) {
	f.Helper()
	f.note(fmt.Sprintf(format, args...))
	f.T.Errorf(format, args...)
}

func (f *firstError) Fatalf(format string, args ...any) {
	f.Helper()
	f.note(fmt.Sprintf(format, args...))
	f.T.Fatalf(format, args...)
}

func (f *firstError) Fatal(args ...any) {
	f.Helper()
	f.note(fmt.Sprint(args...))
	f.T.Fatal(args...)
}

func (f *firstError) note(text string) {
	if f.text == "" {
		f.text = strings.Join(strings.Fields(text[:min(len(text), 300)]), " ")
	}
}
