package clustertest_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"brine/bundle/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// through gives a client of ConfigMaps behind a proxy, and one past it.
func through(t *testing.T) (p *clustertest.Proxy, proxied, direct dynamic.ResourceInterface) {
	t.Helper()
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	p = c.Proxy(t, clustertest.ProxyOptions{})
	client, err := dynamic.NewForConfig(p.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return p, client.Resource(maps).Namespace(ns), c.Dynamic(t).Resource(maps).Namespace(ns)
}

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
}

func TestProxyRecordsRequests(t *testing.T) {
	p, client, _ := through(t)
	if _, err := client.Create(t.Context(), configMap("dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), configMap("wet"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(t.Context(), "wet", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, r := range p.Requests() {
		methods = append(methods, r.Method)
		if r.UserAgent == "" || r.Path == "" {
			t.Errorf("recorded without user agent or path: %+v", r)
		}
	}
	if want := []string{"POST", "POST", "GET"}; !slices.Equal(methods, want) {
		t.Errorf("got methods %v, want %v", methods, want)
	}
	if writes := p.Writes(); len(writes) != 1 || writes[0].DryRun {
		t.Errorf("got writes %+v, want the one that was no dry run", writes)
	}
	p.Forget()
	if left := p.Requests(); len(left) != 0 {
		t.Errorf("remembers %+v", left)
	}
}

func TestProxyAnswersInTheServersPlace(t *testing.T) {
	p, client, direct := through(t)
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() {
			return clustertest.Action{Status: http.StatusForbidden, Message: "not today"}
		}
		return clustertest.Action{}
	})
	if _, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want forbidden", err)
	}
	if _, err := direct.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the server got the request: %v", err)
	}
}

func TestProxyCutsConnections(t *testing.T) {
	for name, tc := range map[string]struct {
		action clustertest.Action
		done   bool
	}{
		"before the server acts": {clustertest.Action{CutBefore: true}, false},
		"after the server acted": {clustertest.Action{CutAfter: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, client, direct := through(t)
			p.Intercept(func(clustertest.Request) clustertest.Action { return tc.action })
			_, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
			// Which of them depends on who reads first.
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want a connection that was lost", err)
			}
			_, err = direct.Get(t.Context(), "a", metav1.GetOptions{})
			if done := err == nil; done != tc.done {
				t.Errorf("got done %v (%v), want %v", done, err, tc.done)
			}
		})
	}
}

// A second actor's place is before the server sees a request, or between its
// answer and the client's sight of it.
func TestProxyHoldsRequestsForASecondActor(t *testing.T) {
	p, client, direct := through(t)
	var seen []bool
	look := func() {
		_, err := direct.Get(t.Context(), "a", metav1.GetOptions{})
		seen = append(seen, err == nil)
	}
	p.Intercept(func(clustertest.Request) clustertest.Action { return clustertest.Action{Before: look, After: look} })
	created, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil || created.GetUID() == "" {
		t.Fatalf("got %v, %v", created, err)
	}
	if want := []bool{false, true}; !slices.Equal(seen, want) {
		t.Errorf("the object was there %v, want %v", seen, want)
	}
	_, err = client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v, want the server's own answer", err)
	}
	p.Forget()
	var cut sync.Once
	p.Intercept(func(clustertest.Request) (a clustertest.Action) {
		cut.Do(func() { a.CutAfter = true })
		return a
	})
	watch, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch.Stop()
	if n := len(p.Requests()); n != 2 {
		t.Errorf("%d requests, want a watch that was cut as it began, and another", n)
	}
}

func TestProxyUser(t *testing.T) {
	c := clustertest.Shared(t)
	client, err := dynamic.NewForConfig(c.Proxy(t, clustertest.ProxyOptions{User: "nobody"}).Config(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("got %v, want what the server says to somebody without rights", err)
	}
}

func TestProxyDelays(t *testing.T) {
	p, client, _ := through(t)
	const delay = 300 * time.Millisecond
	var delayed atomic.Int32
	p.Intercept(func(clustertest.Request) clustertest.Action {
		delayed.Add(1)
		return clustertest.Action{Delay: delay}
	})
	start := time.Now()
	if _, err := client.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < delay || delayed.Load() != 1 {
		t.Errorf("took %v for %d requests, want at least %v for one", took, delayed.Load(), delay)
	}
}

func TestProxyCarriesWatches(t *testing.T) {
	_, client, direct := through(t)
	watch, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if _, err := direct.Create(t.Context(), configMap("seen"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	timeout := time.After(10 * time.Second)
	for {
		select {
		case event, open := <-watch.ResultChan():
			if !open {
				t.Fatal("the watch ended")
			}
			if o, ok := event.Object.(*unstructured.Unstructured); ok && o.GetName() == "seen" {
				return
			}
		case <-timeout:
			t.Fatal("no event came through")
		}
	}
}

func TestNewClusterIsApartAndCanBeReset(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two clusters")
	}
	a, b := clustertest.Shared(t), clustertest.New(t)
	if a.Kubeconfig == b.Kubeconfig || a.Config(t).Host == b.Config(t).Host {
		t.Fatalf("got the shared cluster, %s", b.Kubeconfig)
	}
	host := b.Config(t).Host
	maps := b.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Reset(t)
	if _, err := os.Stat(b.Kubeconfig); err != nil || b.Config(t).Host != host {
		t.Errorf("the reset moved the cluster from %s to %s: %v", host, b.Config(t).Host, err)
	}
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want what was there to be gone", err)
	}
}
