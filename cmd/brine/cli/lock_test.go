package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// A run that finds, when it takes the lock, that another one had it since it
// read the cluster, reads again: the last to take the lock decides what is there.
func TestAnotherRunBetweenReadingAndLocking(t *testing.T) {
	for name, before := range map[string]string{"a new inventory": "", "one that is there": configMap("a")} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			if before != "" {
				s.apply(before).want(t, 0)
			}
			direct := *s
			p := s.proxied()
			var once sync.Once
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.IsWrite() && strings.Contains(r.Path, "/leases") {
					once.Do(func() {
						other := documents(strings.Replace(configMap("a"), "value", "theirs", 1), configMap("b"))
						if got := direct.apply(other); got.exit != 0 {
							t.Errorf("the other run exits %d: %s", got.exit, got.stderr)
						}
					})
				}
				return clustertest.Action{}
			})
			got := s.apply(configMap("a")).want(t, 0)
			got.did(t, "ConfigMap", "a", plan.Configured)
			got.did(t, "ConfigMap", "b", plan.Pruned)
			s.missing("v1/configmaps", "b")
		})
	}
}

// lease writes the Lease of the fixture's inventory, as held by another run.
func (s *fixture) lease(holder string, seconds int) {
	s.Helper()
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	s.create("coordination.k8s.io/v1/leases", fmt.Sprintf(`apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: brine-inv, namespace: "{ns}"}
spec: {holderIdentity: "%s", leaseDurationSeconds: %d, acquireTime: "%s", renewTime: "%s"}
`, holder, seconds, now, now))
}

// renewed renews that Lease until the test is over.
func (s *fixture) renewed() {
	s.Helper()
	leases := s.resources("coordination.k8s.io/v1/leases").Namespace(s.ns)
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
			s := newFixture(t)
			s.lease(holder, 60)
			s.renewed()
			got := s.apply(configMap("a")).want(t, report.ExitLocked)
			got.prints(t, "locked by another run", "--lock-timeout", "kubectl delete lease -n "+s.ns+" brine-inv")
			if strings.Contains(holder, "4194999") {
				got.prints(t, "process 4194999 on host "+host)
			}
			s.missing("v1/configmaps", "a")
		})
	}
}

// --timeout bounds the waiting for a lock, too.
func TestTimeoutWhileWaitingForTheLock(t *testing.T) {
	s := newFixture(t)
	s.lease("web1/pid-7/0000/AAAAAAAAAAAAAAAAAAAAAAAAAA", 315360000)
	got := s.apply(configMap("a"), "--timeout=3s", "--lock-timeout=10m").want(t, report.ExitLocked)
	got.prints(t, "time ran out after 3s", "process 7 on host web1")
	s.missing("v1/configmaps", "a")
}

// Once its Lease is deleted, as the message says, the lock is free.
func TestBrokenLockIsFree(t *testing.T) {
	s := newFixture(t)
	s.lease("web1/pid-7/0000/AAAAAAAAAAAAAAAAAAAAAAAAAA", 315360000)
	s.apply(configMap("a"), "--timeout=2s").want(t, report.ExitLocked)
	if err := s.resources("coordination.k8s.io/v1/leases").Namespace(s.ns).Delete(t.Context(), "brine-inv", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.apply(configMap("a")).want(t, 0)
}

// A server that does not answer for a while, as in an election of etcd, ends
// no run. Nobody else takes the lock, so all goes on.
func TestStalledServer(t *testing.T) {
	for _, seconds := range []int{5, 20, 60, 120} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			if seconds > 20 && os.Getenv(stressEnv) != "1" {
				t.Skipf("it stalls for %d seconds: %s=1 runs it", seconds, stressEnv)
			}
			s := newFixture(t)
			p := s.proxied()
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
			got := s.apply(documents(configMap("a"), configMap("b"), configMap("c", dependsOn("/namespaces/{ns}/ConfigMap/a")), deployment("web", 1, "1m")), "--timeout=5m").want(t, 0)
			if got.result.Summary.Created != 4 {
				t.Errorf("%d were created, want 4", got.result.Summary.Created)
			}
		})
	}
}
