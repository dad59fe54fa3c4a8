package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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

// stages of a run, by the first request of each.
var stages = map[string]func(clustertest.Request) bool{
	"discovery": func(r clustertest.Request) bool { return r.Path == "/apis" },
	"reading the lock": func(r clustertest.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.Path, "/leases")
	},
	"looking": func(r clustertest.Request) bool {
		return r.Method == http.MethodGet && (strings.HasSuffix(r.Path, "/configmaps/a") || strings.HasSuffix(r.Path, "/configmaps")) // of one, of many
	},
	"taking the lock":    func(r clustertest.Request) bool { return r.IsWrite() && strings.Contains(r.Path, "/leases") },
	"noting the members": func(r clustertest.Request) bool { return r.IsWrite() && strings.HasSuffix(r.Path, "/configmaps") },
	"applying": func(r clustertest.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a")
	},
	"writing the history": func(r clustertest.Request) bool { return r.IsWrite() && strings.Contains(r.Path, "/secrets") },
}

// hang makes the server answer nothing from the first request of a stage on,
// and calls then once.
func hang(p *clustertest.Proxy, stage func(clustertest.Request) bool, then func()) (over func()) {
	var once sync.Once
	hung, released := make(chan struct{}), make(chan struct{})
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if stage(r) {
			once.Do(func() {
				close(hung)
				then()
			})
		}
		select {
		case <-hung:
			<-released
		default:
		}
		return clustertest.Action{}
	})
	return func() { close(released) }
}

// Sent SIGTERM while the server answers nothing, wherever that begins, a run prints
// its result and ends without an answer to any request, and begins no further object.
// How long that takes, TestARunEndsWithinTenSecondsOfASignal of bundle/run has.
func TestSignalWhileTheServerHangs(t *testing.T) {
	const parallel = 2
	objects := []string{clitest.ConfigMap("a")}
	for i := range 20 {
		objects = append(objects, clitest.ConfigMap(fmt.Sprintf("a-%d", i)))
	}
	for name, stage := range stages {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			p := s.Proxied()
			cmd := exec.Command(clitest.Binary(t), "apply", "-f", s.File(strings.Join(objects, "---\n")), "--parallel", strconv.Itoa(parallel), "--inventory", s.Inventory, "--kubeconfig", p.Kubeconfig, "-o", "json", "--cache-dir", t.TempDir())
			var out bytes.Buffer
			cmd.Stdout = &out
			started := make(chan struct{})
			var sent time.Time
			defer hang(p, stage, func() {
				<-started
				p.Forget()
				sent = time.Now()
				_ = cmd.Process.Signal(syscall.SIGTERM)
			})()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			_ = cmd.Wait()
			t.Logf("it took %s", time.Since(sent))
			if code := cmd.ProcessState.ExitCode(); code != report.ExitTerminated {
				t.Errorf("exit code %d", code)
			}
			begun := map[string]bool{}
			for _, r := range p.Writes() {
				if strings.Contains(r.Path, "/configmaps/a") {
					begun[r.Path] = true
				}
			}
			if len(begun) > parallel { // those whose requests were under way
				t.Errorf("objects were begun after the signal: %v", begun)
			}
			var result report.Result
			if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Interrupted != "SIGTERM" {
				t.Errorf("stdout is not a result that says SIGTERM (%v):\n%s", err, &out)
			}
		})
	}
}

// GNU timeout sends SIGTERM to its child, and then to the group that both are
// in: that is one signal. A SIGINT a second later, or a SIGTERM five seconds later,
// ends the run at once.
func TestTwoSignalsWithinASecondAreOne(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	cmd := exec.Command(clitest.Binary(t), "apply", "-f", s.File(clitest.Deployment("stuck", 1, "1000000")), "--inventory", s.Inventory, "--kubeconfig", p.Kubeconfig, "-o", "json")
	var out bytes.Buffer
	cmd.Stdout = &out
	var once sync.Once
	started := make(chan struct{})
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Query.Has("watch") {
			once.Do(func() {
				<-started
				_ = cmd.Process.Signal(syscall.SIGTERM)
				time.Sleep(10 * time.Millisecond) // or the kernel makes one of them
				_ = cmd.Process.Signal(syscall.SIGTERM)
				_ = cmd.Process.Signal(syscall.SIGINT)
			})
		}
		return clustertest.Action{}
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	_ = cmd.Wait()
	var result report.Result
	// On a slow machine brine may see the two in the other order.
	if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Interrupted == "" {
		t.Fatalf("stdout is not a result that says that it was interrupted (%v):\n%s", err, &out)
	}
	if got, want := s.Members(), []string{"Deployment.apps " + s.NS + "/stuck"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	if code := cmd.ProcessState.ExitCode(); code != report.ExitTerminated && code != report.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// --timeout bounds every stage of a run: a server that answers nothing is
// unreachable, before the first object was written.
func TestTimeoutBoundsEveryStage(t *testing.T) {
	previewing := map[string]bool{"discovery": true, "looking": true}
	for name, stage := range stages {
		for _, command := range []string{"apply", "preview", "destroy"} {
			if command != "apply" && !previewing[name] && (command != "destroy" || name != "taking the lock") {
				continue
			}
			t.Run(name+"/"+command, func(t *testing.T) {
				s := clitest.New(t)
				if command == "destroy" {
					s.Apply(clitest.ConfigMap("a")).Want(t, 0)
				}
				p := s.Proxied()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer hang(p, stage, func() {})()
				args := []string{command, "--inventory", s.Inventory, "--timeout=3s", "--cache-dir", t.TempDir()}
				if command != "destroy" {
					args = append(args, "-f", s.File(clitest.ConfigMap("a")))
				}
				got := clitest.RunContext(ctx, t, s.Kubeconfig, args...)
				switch name {
				case "writing the history": // all is done by then
				case "applying":
					if got.Exit != report.ExitFailed && got.Exit != report.ExitNotReady && got.Exit != report.ExitUnreachable {
						t.Errorf("exit code %d: %s", got.Exit, got.Stderr)
					}
				default:
					got.Want(t, report.ExitUnreachable).Prints(t, "time ran out after 3s")
				}
				if got.Result == nil {
					t.Fatalf("there is no result: %s", got.Stdout)
				}
				t.Logf("exit code %d after %v s: %q", got.Exit, got.Result.Summary.Seconds, got.Result.Errors)
			})
		}
	}
}
