// Package clustertest gives tests a real Kubernetes API server: the cluster in
// BRINE_TEST_KUBECONFIG, or one that scripts/cluster runs. A proxy in front of
// it counts what a client asks for and injects faults.
package clustertest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// kubeconfigEnv points tests at a cluster that exists already.
	kubeconfigEnv = "BRINE_TEST_KUBECONFIG"
	// requiredEnv makes a cluster that cannot be had a failure, not a skip.
	requiredEnv = "BRINE_TEST_REQUIRED"
)

// Cluster is a running cluster, with an administrator's access to it.
type Cluster struct {
	// Kubeconfig is the path of a kubeconfig.
	Kubeconfig string

	dev *devcluster // nil if the cluster is not ours
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Shared returns the cluster that all tests of the process use, starting it on
// the first call. The package's TestMain has to call Main, which ends it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		if path := os.Getenv(kubeconfigEnv); path != "" {
			shared.cluster = &Cluster{Kubeconfig: path}
			return
		}
		shared.cluster, shared.err = boot()
	})
	if shared.err != nil {
		missing(t, shared.err)
	}
	return shared.cluster
}

// skipped counts the tests that had no cluster.
var skipped atomic.Int32

// Main runs a package's tests, cleans up, ends the shared cluster, and exits.
func Main(m *testing.M, cleanups ...func() error) {
	code := m.Run()
	for _, cleanup := range cleanups {
		if err := cleanup(); err != nil {
			fmt.Fprintln(os.Stderr, "clustertest:", err)
			code = max(code, 1)
		}
	}
	if c := shared.cluster; c != nil && c.dev != nil {
		if err := c.dev.down(); err != nil {
			fmt.Fprintln(os.Stderr, "clustertest:", err)
			code = max(code, 1)
		}
	}
	if n := skipped.Load(); n > 0 {
		notify(fmt.Sprintf("SKIPPED: %d tests of %s, as there is no cluster. Run scripts/cluster up to see why, or set %s to the kubeconfig of one.\n", n, testedPackage(), kubeconfigEnv))
	}
	os.Exit(code)
}

// testedPackage is the import path that the test binary was built from.
func testedPackage() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "this package"
	}
	return strings.TrimSuffix(info.Path, ".test")
}

// notify prints a line. go test drops the output of a package that passes,
// unless it is given -v: a person at a terminal gets the line there.
func notify(line string) {
	fmt.Fprint(os.Stderr, line)
	if info, err := os.Stderr.Stat(); testing.Verbose() || err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return // nobody watches
	}
	fmt.Fprint(terminal, line)
	_ = terminal.Close()
}

// New starts a cluster for this test alone, whatever BRINE_TEST_KUBECONFIG
// says, and ends it with the test. The arguments are scripts/cluster's, such as
// "--audit".
func New(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c, err := boot(args...)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() {
		if err := c.dev.down(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func boot(args ...string) (*Cluster, error) {
	dev, err := startDevcluster(args...)
	if err != nil {
		return nil, err
	}
	return &Cluster{Kubeconfig: dev.kubeconfig, dev: dev}, nil
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(requiredEnv) == "1" {
		t.Fatalf("no cluster: %v", err)
	}
	skipped.Add(1)
	t.Skipf("NO CLUSTER, NOTHING WAS TESTED (%s=1 makes this a failure): %v", requiredEnv, err)
}

// Reset empties a cluster by starting it again, in a few seconds. Its address
// and kubeconfig stay. A cluster that is not ours is left alone, and the test
// skipped.
func (c *Cluster) Reset(t testing.TB) {
	t.Helper()
	if c.dev == nil {
		t.Skipf("the cluster in %s is not a test's to reset", kubeconfigEnv)
	}
	if _, err := c.dev.run("reset"); err != nil {
		t.Fatal(err)
	}
}

// Upgrade runs another version of Kubernetes on the cluster of New, also an older
// one. Its data stays.
func (c *Cluster) Upgrade(t testing.TB, version string) {
	t.Helper()
	if _, err := c.dev.run("up", "--kubernetes", version); err != nil {
		t.Fatal(err)
	}
}

// RestartServer ends an API server of several of the cluster of New, the first being 1,
// by a signal, starts it again, and waits until it is ready. It may be called from any
// goroutine.
func (c *Cluster) RestartServer(ctx context.Context, number int, signal syscall.Signal) error {
	name := fmt.Sprintf("kube-apiserver-%d", number)
	status, err := c.dev.run("status")
	for err != nil && ctx.Err() == nil { // a slow machine has not got over the last restart
		status, err = c.dev.run("status")
	}
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(status, name+" ")
	var pid int
	if _, err := fmt.Sscanf(after, " pid %d", &pid); err != nil {
		return fmt.Errorf("find the process of %s in %q: %w", name, status, err)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("end %s: %w", name, err)
	}
	for ctx.Err() == nil && syscall.Kill(pid, 0) == nil { // one that is asked to end lets its requests end
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := c.dev.run("start", name); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(c.Kubeconfig), "cluster.json"))
	if err != nil {
		return err
	}
	var of struct {
		Ports struct{ Servers []int }
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // a test's own server
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/readyz", of.Ports.Servers[number-1]), http.NoBody)
		if err != nil {
			return err
		}
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// Config returns a client configuration without a limit of its own on requests.
func (c *Cluster) Config(t testing.TB) *rest.Config {
	t.Helper()
	return loadConfig(t, c.Kubeconfig)
}

func loadConfig(t testing.TB, path string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// Dynamic returns a client for any kind.
func (c *Cluster) Dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a namespace whose name tells the test's, and deletes it after
// the test, without waiting for it to be gone.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client := c.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	prefix := notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-")
	prefix = strings.Trim(prefix[:min(len(prefix), 40)], "-") + "-"
	created, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata":   map[string]any{"generateName": prefix},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.Delete(ctx, created.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Logf("delete namespace: %v", err)
		}
	})
	return created.GetName()
}

// Minor is the minor version of the cluster's Kubernetes: 37 of 1.37.
func (c *Cluster) Minor(t testing.TB) int {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	if err != nil {
		t.Fatalf("the version of the cluster is %s: %v", info, err)
	}
	return minor
}

// Needs skips a test that is about something that came with a minor version of
// Kubernetes. Only tests ask for the version; brine asks for what it needs.
func (c *Cluster) Needs(t testing.TB, minor int, what string) {
	t.Helper()
	if has := c.Minor(t); has < minor {
		t.Skipf("Kubernetes 1.%d does not have %s (1.%d)", has, what, minor)
	}
}

// Eventually waits, for as long as a slow machine may take.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 2400 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}

// Everywhere waits until it is so on each API server: they hear of a policy, a webhook, a right or
// a CRD one by one, and each request goes to the next one, of all tests.
func Everywhere(t testing.TB, what string, ok func() bool) {
	t.Helper()
	servers, _ := strconv.Atoi(os.Getenv("BRINE_TEST_APISERVERS"))
	inARow := max(1, 5*servers)
	Eventually(t, what, func() bool {
		for range inARow {
			if !ok() {
				return false
			}
		}
		return true
	})
}
