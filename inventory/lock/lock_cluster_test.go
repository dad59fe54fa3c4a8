package lock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
	"brine/inventory/lock"
)

func client(t *testing.T, config *rest.Config) *cluster.Client {
	t.Helper()
	c, err := cluster.New(config, cluster.Options{RetryFor: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const shortLease = 3 * time.Second

// stalled is a taken lock with a short lease, behind a proxy.
type stalled struct {
	*testing.T
	proxy   *clustertest.Proxy
	client  *cluster.Client
	lock    *lock.Lock
	held    context.Context //nolint:containedctx // it ends when the lock is lost
	ns      string
	direct  *cluster.Client
	leases  dynamic.ResourceInterface
	release chan struct{}
}

func newStalled(t *testing.T) *stalled {
	t.Helper()
	t.Parallel()
	c := clustertest.Shared(t)
	s := &stalled{T: t, ns: c.Namespace(t), proxy: c.Proxy(t, clustertest.ProxyOptions{}), direct: client(t, c.Config(t))}
	s.client = client(t, s.proxy.Config(t))
	s.leases = c.Dynamic(t).Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(s.ns)
	var err error
	if s.lock, err = lock.AwaitShort(t.Context(), s.client, s.ns, "inv", lock.Wait{}, shortLease); err != nil {
		t.Fatal(err)
	}
	if s.held, err = s.lock.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.lock.Release(context.WithoutCancel(t.Context()), false); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stall holds all requests until release is closed.
func (s *stalled) stall() {
	s.release = make(chan struct{})
	s.proxy.Intercept(func(clustertest.Request) clustertest.Action {
		<-s.release
		return clustertest.Action{}
	})
}

// write sends a ConfigMap.
func (s *stalled) write(name string) <-chan error {
	done := make(chan error, 1)
	go func() {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(bundle.ConfigMapKind.WithVersion("v1"))
		u.SetNamespace(s.ns)
		u.SetName(name)
		_, err := s.client.Create(s.held, cluster.ConfigMaps, u, cluster.Write{})
		done <- err
	}()
	return done
}

// arrived counts the requests of a method to a resource.
func (s *stalled) arrived(method, resource string) int {
	n := 0
	for _, r := range s.proxy.Requests() {
		if r.Method == method && strings.Contains(r.Path, "/"+resource) {
			n++
		}
	}
	return n
}

// expire stalls the server until the lease has run out, and been asked for some
// times more.
func (s *stalled) expire() *lock.Lock {
	s.Helper()
	s.stall()
	other, err := lock.AwaitShort(s.Context(), s.direct, s.ns, "inv", lock.Wait{}, shortLease)
	if err != nil {
		s.Fatal(err)
	}
	return other
}

func TestLockOutlivesAStalledServer(t *testing.T) {
	s := newStalled(t)
	s.stall()
	first := s.write("sent-before") // under way when the lease runs out
	clustertest.Eventually(s, "the first write arrives", func() bool { return s.arrived(http.MethodPost, "configmaps") == 1 })
	if _, err := lock.AwaitShort(t.Context(), s.direct, s.ns, "inv", lock.Wait{}, shortLease); err != nil {
		t.Fatal(err)
	}
	second := s.write("begun-after")
	renewals := s.arrived(http.MethodPut, "leases")
	clustertest.Eventually(s, "it goes on renewing", func() bool { return s.arrived(http.MethodPut, "leases") >= renewals+4 })
	if n := s.arrived(http.MethodPost, "configmaps"); n != 1 {
		t.Errorf("%d writes were sent, want 1: the lease may have run out", n)
	}
	select {
	case err := <-first:
		t.Errorf("the write under way was ended: %v", err)
	default:
	}
	close(s.release)
	for _, done := range []<-chan error{first, second} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := context.Cause(s.held); err != nil {
		t.Errorf("the lock was lost: %v", err)
	}
	if s.lock.Paused() == 0 {
		t.Error("it does not say that writes were held back")
	}
}

func TestLockTakenWhileTheServerStalls(t *testing.T) {
	s := newStalled(t)
	other := s.expire()
	if _, err := other.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	write := s.write("too-late")
	close(s.release)
	<-s.held.Done()
	if err := context.Cause(s.held); !errors.Is(err, lock.ErrLost) || !strings.Contains(err.Error(), "process ") {
		t.Errorf("the run ends with %v", err)
	}
	if err := <-write; err == nil {
		t.Error("the write went through")
	}
	if n := s.arrived(http.MethodPost, "configmaps"); n != 0 {
		t.Errorf("%d writes were sent", n)
	}
	if err := other.Release(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// Somebody's annotation is a conflict, but no other run.
func TestLockSurvivesAnEditOfItsLease(t *testing.T) {
	s := newStalled(t)
	edited, err := s.leases.Patch(t.Context(), "brine-inv", types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/seen":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	renewTime := func(u *unstructured.Unstructured) string {
		text, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
		return text
	}
	clustertest.Eventually(s, "it is renewed after the edit", func() bool {
		live, err := s.leases.Get(t.Context(), "brine-inv", metav1.GetOptions{})
		return err == nil && renewTime(live) != renewTime(edited) && live.GetAnnotations()["example.com/seen"] == "yes"
	})
	if err := context.Cause(s.held); err != nil {
		t.Errorf("the lock was lost: %v", err)
	}
}

// A clone of this machine, process and all, renews the Lease under the same name.
func TestLockRenewedByACloneIsLost(t *testing.T) {
	s := newStalled(t)
	if _, err := s.leases.Patch(t.Context(), "brine-inv", types.MergePatchType, []byte(`{"spec":{"renewTime":"2026-01-01T00:00:00.000001Z"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	<-s.held.Done()
	if err := context.Cause(s.held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("the run ends with %v", err)
	}
}

func TestLeaseThatLastsTenYearsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "brine-inv"},
		"spec": map[string]any{"holderIdentity": "far-away/pid-12/0/A", "leaseDurationSeconds": int64(315360000), "acquireTime": "2026-01-01T00:00:00.000000Z"},
	}}
	leases := c.Dynamic(t).Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(ns)
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reported := ""
	_, err := lock.AwaitShort(t.Context(), client(t, c.Config(t)), ns, "inv",
		lock.Wait{Until: time.Now().Add(time.Second), Report: func(message string) { reported = message }}, shortLease)
	if !errors.Is(err, lock.ErrLocked) {
		t.Fatalf("the error is %v", err)
	}
	for _, words := range []string{"process 12 on host far-away", "2026-01-01", "87600h", "--lock-timeout", "kubectl delete lease.coordination.k8s.io brine-inv --namespace " + ns} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q: %v", words, err)
		}
	}
	if !strings.Contains(reported, "process 12 on host far-away") {
		t.Errorf("reported was %q", reported)
	}
}
