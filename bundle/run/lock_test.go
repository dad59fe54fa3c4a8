package run_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A run that finds, when it takes the lock, that another one had it since it
// read the cluster, reads again: the last to take the lock decides what is there.
func TestRunStartsAgainAfterAnotherRunBetweenReadingAndLocking(t *testing.T) {
	for name, before := range map[string]string{"a new inventory": "", "one that is there": clitest.ConfigMap("a")} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			if before != "" {
				s.Apply(before).Want(t, 0)
			}
			direct := *s
			p := s.Proxied()
			var once sync.Once
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.IsWrite() && strings.Contains(r.Path, "/leases") {
					once.Do(func() {
						other := clitest.Documents(strings.Replace(clitest.ConfigMap("a"), "value", "theirs", 1), clitest.ConfigMap("b"))
						if got := direct.Apply(other); got.Exit != 0 {
							t.Errorf("the other run exits %d: %s", got.Exit, got.Stderr)
						}
					})
				}
				return clustertest.Action{}
			})
			got := s.Apply(strings.Replace(clitest.ConfigMap("a"), "value", "ours", 1)).Want(t, 0)
			got.Did(t, "ConfigMap", "a", plan.Configured)
			got.Did(t, "ConfigMap", "b", plan.Pruned)
			s.Missing("v1/configmaps", "b")
		})
	}
}

// makeLease writes the Lease of the fixture's inventory, as held by another run.
func makeLease(s *clitest.Fixture, holder string, seconds int) {
	s.Helper()
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	s.Create("coordination.k8s.io/v1/leases", fmt.Sprintf(`apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: brine-inv, namespace: "{ns}"}
spec: {holderIdentity: "%s", leaseDurationSeconds: %d, acquireTime: "%s", renewTime: "%s"}
`, holder, seconds, now, now))
}

// renewed renews that Lease until the test is over.
func renewed(s *clitest.Fixture) {
	s.Helper()
	leases := s.Resources("coordination.k8s.io/v1/leases").Namespace(s.NS)
	go func() {
		for s.Context().Err() == nil {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
			_, _ = leases.Patch(s.Context(), "brine-inv", types.MergePatchType, []byte(`{"spec":{"renewTime":"`+now+`"}}`), metav1.PatchOptions{})
			time.Sleep(300 * time.Millisecond)
		}
	}()
}

// here are this machine's boot ID and PID namespace, as a clone of it has them.
func here(t *testing.T) (host, boot, namespace string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil {
		namespace, err = os.Readlink("/proc/self/ns/pid")
	}
	if err == nil {
		host, err = os.Hostname()
	}
	if err != nil {
		t.Skip(err)
	}
	return host, strings.TrimSpace(string(text)), namespace
}

// A run that lives on a clone of this machine, or whose process /proc does not
// show to us, keeps its lock.
func TestHolderOnAnotherMachineKeepsItsLock(t *testing.T) {
	host, boot, namespace := here(t)
	for name, holder := range map[string]string{
		"by process":           fmt.Sprintf("%s/4194999/%s.%s.12345", host, boot, namespace),
		"by mark":              fmt.Sprintf("%s/pid-4194999/%s/AAAAAAAAAAAAAAAAAAAAAAAAAA", host, boot),
		"on another machine":   "web1/pid-7/0000/AAAAAAAAAAAAAAAAAAAAAAAAAA",
		"of some other client": "me",
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			makeLease(s, holder, 60)
			renewed(s)
			got := s.Apply(clitest.ConfigMap("a")).Want(t, report.ExitLocked)
			got.Prints(t, "locked by another run", "--lock-timeout", "kubectl delete lease.coordination.k8s.io brine-inv --namespace "+s.NS)
			if strings.Contains(holder, "4194999") {
				got.Prints(t, "process 4194999 on host "+host)
			}
			s.Missing("v1/configmaps", "a")
		})
	}
}

// --timeout bounds the waiting for a lock, too.
func TestTimeoutWhileWaitingForTheLock(t *testing.T) {
	s := clitest.New(t)
	makeLease(s, "web1/pid-7/0000/AAAAAAAAAAAAAAAAAAAAAAAAAA", 315360000)
	got := s.Apply(clitest.ConfigMap("a"), "--timeout=3s", "--lock-timeout=10m").Want(t, report.ExitLocked)
	got.Prints(t, "time ran out after 3s", "process 7 on host web1")
	s.Missing("v1/configmaps", "a")
}

// The time may run out in the middle of a request for the lease.
func TestTimeoutWhileTheLockIsRead(t *testing.T) {
	s := clitest.New(t)
	makeLease(s, "web1/pid-7/0000/AAAAAAAAAAAAAAAAAAAAAAAAAA", 315360000)
	p, over := s.Proxied(), make(chan struct{})
	var reads atomic.Int64
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/leases/brine-inv") && reads.Add(1) > 1 {
			return clustertest.Action{Before: func() { <-over }}
		}
		return clustertest.Action{}
	})
	got := s.Apply(clitest.ConfigMap("a"), "--timeout=5s", "--lock-timeout=10m")
	close(over)
	got.Want(t, report.ExitLocked).Prints(t, "time ran out after 5s", "process 7 on host web1")
}

// Once its Lease is deleted, as the message says, the lock is free.
func TestBrokenLockIsFree(t *testing.T) {
	s := clitest.New(t)
	makeLease(s, "web1/pid-7/0000/AAAAAAAAAAAAAAAAAAAAAAAAAA", 315360000)
	s.Apply(clitest.ConfigMap("a"), "--timeout=2s").Want(t, report.ExitLocked)
	if err := s.Resources("coordination.k8s.io/v1/leases").Namespace(s.NS).Delete(t.Context(), "brine-inv", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
}

// A server that does not answer for a while, as in an election of etcd, ends
// no run. Nobody else takes the lock, so all goes on.
func TestServerThatStallsEndsNoRun(t *testing.T) {
	for _, seconds := range []int{5, 20, 60, 120} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			if seconds > 20 && os.Getenv(clitest.StressEnv) != "1" {
				t.Skipf("it stalls for %d seconds: %s=1 runs it", seconds, clitest.StressEnv)
			}
			s := clitest.New(t)
			p := s.Proxied()
			var once sync.Once
			stalled, over := make(chan struct{}), make(chan struct{})
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a") {
					once.Do(func() {
						close(stalled)
						time.AfterFunc(time.Duration(seconds)*time.Second, func() { close(over) })
					})
				}
				select {
				case <-stalled:
					<-over
				default:
				}
				return clustertest.Action{}
			})
			got := s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ConfigMap("c", clitest.DependsOn("/namespaces/{ns}/ConfigMap/a")), clitest.Deployment("web", 1, "1m")), "--timeout=5m").Want(t, 0)
			if got.Result.Summary.Created != 4 {
				t.Errorf("%d were created, want 4", got.Result.Summary.Created)
			}
		})
	}
}
