package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/apply"
	"brine/bundle/cluster/clustertest"
	"brine/inventory"
)

// The two bundles that the chaos tests go between: some objects change, some
// are new, some go.
func chaosBefore() string {
	return documents(configMap("keeps"), configMap("goes-1"), configMap("goes-2"), chaosSecret("old"), deployment("web", 1, "1m"),
		serviceAccount("goes"), chaosRole("goes"))
}

func chaosAfter() string {
	return documents(strings.Replace(configMap("keeps"), "key: value", "key: other", 1), configMap("comes-1"), configMap("comes-2"), chaosSecret("new"),
		deployment("web", 2, "1m"), serviceAccount("comes"), chaosRole("comes"))
}

func chaosSecret(value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: '{ns}'}\nstringData: {password: " + value + "-hush}\n"
}

func serviceAccount(name string) string {
	return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + ", namespace: '{ns}'}\n"
}

func chaosRole(name string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: " + name + ", namespace: '{ns}'}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n" +
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: " + name + ", namespace: '{ns}'}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + name + "}\nsubjects: [{kind: ServiceAccount, name: " + name + "}]\n"
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

// owned are the names of all live objects that carry the inventory's mark.
func (s *scene) owned() []string {
	s.Helper()
	var names []string
	for _, resource := range []string{"v1/configmaps", "v1/secrets", "v1/serviceaccounts", "apps/v1/deployments",
		"rbac.authorization.k8s.io/v1/roles", "rbac.authorization.k8s.io/v1/rolebindings"} {
		list, err := s.resources(resource).Namespace(s.ns).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.Fatal(err)
		}
		for i := range list.Items {
			if list.Items[i].GetAnnotations()[inventory.OwningInventory] != "" {
				names = append(names, list.Items[i].GetKind()+" "+list.Items[i].GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}

// holdsAllOwned fails the test if a live object of ours is not in the
// inventory: it would never be pruned.
func (s *scene) holdsAllOwned(when string) {
	s.Helper()
	owned := s.owned()
	if len(owned) == 0 {
		return
	}
	st := s.status()
	held := map[string]bool{}
	if st.result != nil {
		for _, o := range st.result.Objects {
			held[o.Kind+" "+o.Name] = true
		}
	}
	for _, name := range owned {
		if !held[name] {
			s.Errorf("%s: %s is ours but not in the inventory", when, name)
		}
	}
}

// count is how many requests a run between the two bundles sends.
func (s *scene) count(p *clustertest.Proxy, command func() said) int {
	s.Helper()
	p.Forget()
	command().want(s, 0)
	return len(p.Requests())
}

// Killed at any request, before or after the server has seen it, the next run
// finds an inventory that holds all that is ours, takes the dead run's lock,
// and finishes the work.
func TestChaosKilledAtEveryRequest(t *testing.T) {
	s := newScene(t)
	path := binary(t)
	direct := s.kubeconfig
	p := s.proxied()
	s.apply(chaosBefore()).want(t, 0)
	total := s.count(p, func() said { return s.apply(chaosAfter()) })
	want := s.owned()
	for n := 1; n <= total; n++ {
		for _, after := range []bool{false, true} {
			s.kubeconfig = direct
			s.apply(chaosBefore()).want(t, 0)

			cmd := exec.Command(path, "apply", "-f", s.file(chaosAfter()), "--inventory", s.inventory, "--kubeconfig", p.Kubeconfig, "--timeout=60s", "-o", "json")
			var seen atomic.Int64
			started := make(chan struct{})
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if !strings.HasPrefix(r.UserAgent, "brine/") || seen.Add(1) < int64(n) {
					return clustertest.Action{}
				}
				<-started
				_ = cmd.Process.Kill()
				// With CutAfter the server still deals with the request.
				return clustertest.Action{CutBefore: !after, CutAfter: after}
			})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			_ = cmd.Wait()
			p.Intercept(nil)

			when := fmt.Sprintf("killed at request %d of %d, after=%v", n, total, after)
			s.holdsAllOwned(when)
			if got := s.apply(chaosAfter()); got.exit != 0 {
				t.Fatalf("%s: the next run exits %d:\n%s", when, got.exit, got.stderr)
			}
			if got := s.owned(); !slices.Equal(got, want) {
				t.Fatalf("%s: the next run leaves %v, want %v", when, got, want)
			}
		}
	}
}

// Any single request may be answered with a transient error, or lost, before
// or after the server has dealt with it: the run does not notice.
func TestChaosTransientAnswers(t *testing.T) {
	faults := map[string]clustertest.Action{
		"429":        {Status: http.StatusTooManyRequests, Message: "too many requests"},
		"500":        {Status: http.StatusInternalServerError, Message: "failed calling webhook: connection refused"},
		"503":        {Status: http.StatusServiceUnavailable, Message: "the server is currently unable to handle the request"},
		"409":        {Status: http.StatusConflict, Message: "the object has been modified; please apply your changes to the latest version and try again"},
		"cut before": {CutBefore: true},
		"cut after":  {CutAfter: true},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			p := s.proxied()
			s.apply(chaosBefore()).want(t, 0)
			total := s.count(p, func() said { return s.apply(chaosAfter()) })
			want := s.owned()
			for n := 1; n <= total; n++ {
				p.Intercept(nil)
				s.apply(chaosBefore()).want(t, 0)
				var seen atomic.Int64
				var hit atomic.Value
				p.Intercept(func(r clustertest.Request) clustertest.Action {
					if seen.Add(1) == int64(n) && !r.Query.Has("watch") { // a watch ends of itself, by and by
						hit.Store(r.Method + " " + r.Path)
						return fault
					}
					return clustertest.Action{}
				})
				got := s.apply(chaosAfter())
				p.Intercept(nil)
				if got.exit != 0 {
					t.Fatalf("%s at request %d (%v): exit %d:\n%s", name, n, hit.Load(), got.exit, got.stderr)
				}
				if live := s.owned(); !slices.Equal(live, want) {
					t.Fatalf("%s at request %d (%v): it leaves %v, want %v", name, n, hit.Load(), live, want)
				}
			}
			s.destroy().want(t, 0)
			if left := s.owned(); len(left) != 0 {
				t.Errorf("destroy leaves %v", left)
			}
		})
	}
}

// Two runs at once on one inventory: one of them does the work, the other says
// that it is locked out, and by whom.
func TestChaosTwoAtOnce(t *testing.T) {
	s := newScene(t)
	p := s.proxied()
	inside, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.Contains(r.Path, "/configmaps/") {
			once.Do(func() { close(inside); <-leave })
		}
		return clustertest.Action{}
	})
	first := make(chan said)
	go func() { first <- s.apply(configMap("one")) }()
	<-inside
	direct := *s
	direct.kubeconfig = s.cluster.Kubeconfig
	locked := direct.apply(configMap("two"))
	close(leave)
	if locked.exit != apply.ExitLocked {
		t.Errorf("the second run exits %d, want %d:\n%s", locked.exit, apply.ExitLocked, locked.stderr)
	}
	locked.tells(t, "locked by another run")
	(<-first).want(t, 0)
	s.exists("v1/configmaps", "one")
	s.missing("v1/configmaps", "two")
	direct.apply(configMap("two")).want(t, 0)
	s.missing("v1/configmaps", "one")
}

// Interrupted in the middle, a run stops writing, leaves a true inventory,
// prints its result and says so with its exit code.
func TestChaosSignals(t *testing.T) {
	for signal, exit := range map[os.Signal]int{os.Interrupt: apply.ExitInterrupted, syscall.SIGTERM: apply.ExitTerminated} {
		t.Run(signal.String(), func(t *testing.T) {
			s := newScene(t)
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
			var result apply.Result
			if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Interrupted == "" {
				t.Fatalf("stdout is not a result that says it was interrupted (%v):\n%s", err, &out)
			}
			s.holdsAllOwned("interrupted")
			s.destroy().want(t, 0)
		})
	}
}
