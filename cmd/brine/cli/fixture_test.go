package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/report"
)

func TestMain(m *testing.M) { runTests(m) }

// runTests runs the tests of a package, and exits: what TestMain of each
// package with end-to-end tests calls.
func runTests(m *testing.M) {
	klog.SetLogger(logr.Discard())
	cache, err := os.MkdirTemp("", "brine-test-cache-*") // and not in the home of whoever tests
	if err == nil {
		err = os.Setenv("BRINE_CACHE_DIR", cache)
	}
	if err != nil {
		panic(err)
	}
	clustertest.Main(m, func() error {
		err := os.RemoveAll(cache)
		if builtIn != "" {
			err = errors.Join(err, os.RemoveAll(builtIn))
		}
		return err
	})
}

// outcome is what a command line did: its exit code, what it printed, and the
// document on stdout where there is one.
type outcome struct {
	exit           int
	stdout, stderr string
	result         *report.Result
}

// brine runs a command line against the cluster of a kubeconfig. Without -o it
// asks for JSON and parses that.
func brine(t testing.TB, kubeconfig string, args ...string) outcome {
	t.Helper()
	return brineWith(t.Context(), t, kubeconfig, args...)
}

// brineWith is brine with a context, which a test ends as a signal does.
func brineWith(ctx context.Context, t testing.TB, kubeconfig string, args ...string) outcome {
	t.Helper()
	args = append(slices.Clone(args), "--kubeconfig", kubeconfig)
	if !slices.ContainsFunc(args, func(a string) bool { return a == "-o" || strings.HasPrefix(a, "--output") }) {
		args = append(args, "-o", "json")
	}
	return runLine(ctx, nil, args...)
}

// runLine runs a command line as it is, with a standard input. The result is
// parsed where there is one.
func runLine(ctx context.Context, in io.Reader, args ...string) outcome {
	if in == nil {
		in = strings.NewReader("")
	}
	var out, err bytes.Buffer
	code := Run(ctx, Streams{In: in, Out: &out, Err: &err}, args)
	s := outcome{exit: code, stdout: out.String(), stderr: err.String()}
	var result report.Result
	if json.Unmarshal(out.Bytes(), &result) == nil && result.Kind == "Result" {
		s.result = &result
	}
	return s
}

// want fails the test when the exit code is another one.
func (s outcome) want(t testing.TB, exit int) outcome {
	t.Helper()
	if s.exit != exit {
		t.Fatalf("exit code %d, want %d:\n%s\n%s", s.exit, exit, s.stderr, clip(s.stdout))
	}
	return s
}

// prints fails the test when the words are not in what was printed.
func (s outcome) prints(t testing.TB, words ...string) outcome {
	t.Helper()
	for _, w := range words {
		quoted, _ := json.Marshal(w)
		if !strings.Contains(s.stdout+s.stderr, w) && !strings.Contains(s.stdout, strings.Trim(string(quoted), `"`)) {
			t.Errorf("it does not say %q:\n%s\n%s", w, s.stderr, clip(s.stdout))
		}
	}
	return s
}

// clip is the beginning of a long text.
func clip(text string) string { return text[:min(len(text), 8000)] }

// object is the result of one object, named "Kind name", whatever its
// namespace; the test fails if there is none.
func (s outcome) object(t testing.TB, kind, name string) *report.ObjectResult {
	t.Helper()
	if s.result != nil {
		for _, o := range s.result.Objects {
			if o.Kind == kind && o.Name == name {
				return o
			}
		}
	}
	t.Fatalf("%s %s is not in the result:\n%s\n%s", kind, name, s.stderr, clip(s.stdout))
	return nil
}

// did fails the test unless just that was done to the object.
func (s outcome) did(t testing.TB, kind, name string, action plan.Action) *report.ObjectResult {
	t.Helper()
	o := s.object(t, kind, name)
	if o.Action != action {
		t.Errorf("%s %s was %s (%s%s), want %s", kind, name, o.Action, o.Reason, o.Error, action)
	}
	return o
}

// fixture is a namespace of the test's own on the shared cluster, and an
// inventory in it.
type fixture struct {
	testing.TB
	cluster    *clustertest.Cluster
	kubeconfig string // the cluster's, or a proxy's
	ns         string // also good as a prefix of cluster-scoped names
	inventory  string // NAMESPACE/NAME
	api        dynamic.Interface
}

// newFixture sets a fixture on the shared cluster; the test runs beside others.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return fixtureOn(t, clustertest.Shared(t))
}

// newOwnFixture sets a fixture on a cluster of its own, for tests of APIServices:
// while one of them is not available, no namespace of the cluster can be
// deleted.
func newOwnFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureOn(t, clustertest.New(t))
}

func fixtureOn(t *testing.T, c *clustertest.Cluster) *fixture {
	t.Helper()
	s := &fixture{TB: t, cluster: c, kubeconfig: c.Kubeconfig, ns: c.Namespace(t), api: c.Dynamic(t)}
	s.inventory = s.ns + "/inv"
	return s
}

// other is the same fixture with another inventory.
func (s *fixture) other(name string) *fixture {
	o := *s
	o.inventory = s.ns + "/" + name
	return &o
}

// proxied puts a proxy between brine and the server.
func (s *fixture) proxied() *clustertest.Proxy {
	s.Helper()
	p := s.cluster.Proxy(s.TB, clustertest.ProxyOptions{})
	s.kubeconfig = p.Kubeconfig
	return p
}

// file writes a bundle, with {ns} replaced by the fixture's namespace.
func (s *fixture) file(text string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "{ns}", s.ns)), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// apply runs brine apply on the fixture's inventory, for a minute at most unless
// the flags say another time.
func (s *fixture) apply(text string, flags ...string) outcome {
	s.Helper()
	return s.run("apply", append([]string{"-f", s.file(text)}, flags...))
}

// preview runs brine preview, as apply does.
func (s *fixture) preview(text string, flags ...string) outcome {
	s.Helper()
	return s.run("preview", append([]string{"-f", s.file(text)}, flags...))
}

// destroy runs brine destroy, as apply does.
func (s *fixture) destroy(flags ...string) outcome {
	s.Helper()
	return s.run("destroy", flags)
}

// run runs a command on the fixture's inventory.
func (s *fixture) run(command string, flags []string) outcome {
	s.Helper()
	args := append([]string{command, "--inventory", s.inventory, "--timeout=60s", "--namespace", s.ns}, flags...)
	return brine(s.TB, s.kubeconfig, args...)
}

// status reads the inventory.
func (s *fixture) status() outcome {
	s.Helper()
	return brine(s.TB, s.kubeconfig, "status", "--inventory", s.inventory)
}

// members are what the inventory holds, as messages name them, sorted.
func (s *fixture) members() []string {
	s.Helper()
	var names []string
	st := s.status()
	if st.result == nil {
		return nil
	}
	for _, o := range st.result.Objects {
		names = append(names, bundle.Name(o.ID()))
	}
	slices.Sort(names)
	return names
}

// resources gives the objects of "v1/configmaps", "apps/v1/deployments".
func (s *fixture) resources(resource string) dynamic.NamespaceableResourceInterface {
	s.Helper()
	at := strings.LastIndex(resource, "/")
	gv, err := schema.ParseGroupVersion(resource[:at])
	if err != nil {
		s.Fatal(err)
	}
	return s.api.Resource(gv.WithResource(resource[at+1:]))
}

// live reads an object; nil if it is not there. namespace is "" for
// cluster-scoped ones.
func (s *fixture) live(resource, namespace, name string) *unstructured.Unstructured {
	s.Helper()
	var r dynamic.ResourceInterface = s.resources(resource)
	if namespace != "" {
		r = s.resources(resource).Namespace(namespace)
	}
	u, err := r.Get(s.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// exists fails the test unless these objects of the fixture's namespace exist.
func (s *fixture) exists(resource string, names ...string) {
	s.Helper()
	for _, name := range names {
		if u := s.live(resource, s.ns, name); u == nil || u.GetDeletionTimestamp() != nil {
			s.Errorf("%s %s is not there", resource, name)
		}
	}
}

// missing fails the test if one of these objects of the fixture's namespace exists.
func (s *fixture) missing(resource string, names ...string) {
	s.Helper()
	for _, name := range names {
		if u := s.live(resource, s.ns, name); u != nil && u.GetDeletionTimestamp() == nil {
			s.Errorf("%s %s is there", resource, name)
		}
	}
}

// parsed is an object that is written as YAML or JSON.
func (s *fixture) parsed(text string) *unstructured.Unstructured {
	s.Helper()
	b, err := read.Bundle(s.Context(), read.Options{Files: []string{s.file(text)}})
	if err != nil {
		s.Fatal(err)
	}
	return b.Objects[0].Content
}

// create makes an object, written as YAML or JSON, past brine.
func (s *fixture) create(resource, text string) *unstructured.Unstructured {
	s.Helper()
	u := s.parsed(text)
	var r dynamic.ResourceInterface = s.resources(resource)
	if namespace := u.GetNamespace(); namespace != "" {
		r = s.resources(resource).Namespace(namespace)
	}
	created, err := r.Create(s.Context(), u, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return created
}

// goneAfter deletes a cluster-scoped object when the test is over.
func (s *fixture) goneAfter(resource, name string) {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := s.resources(resource).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.Logf("delete %s %s: %v", resource, name, err)
		}
	})
}

// eventually waits, for as long as a slow machine may take.
func (s *fixture) eventually(what string, ok func() bool) {
	s.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Fatalf("never happened: %s", what)
}

func TestApplyAndDestroy(t *testing.T) {
	s := newFixture(t)
	text := documents(configMap("settings"), deployment("web", 2, "1m"))
	s.apply(text).want(t, 0).did(t, "Deployment", "web", plan.Created)
	if got, want := s.members(), []string{"ConfigMap " + s.ns + "/settings", "Deployment.apps " + s.ns + "/web"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.apply(text).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
	s.destroy().want(t, 0).did(t, "Deployment", "web", plan.Pruned)
	s.missing("v1/configmaps", "settings", "inv")
	s.missing("apps/v1/deployments", "web")
}
