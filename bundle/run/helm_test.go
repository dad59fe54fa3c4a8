package run_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/takeover"
	"brine/cmd/brine/clitest"
)

// installed are ConfigMaps as "helm install web" leaves them, and its release.
func installed(s *clitest.Fixture, names ...string) {
	s.Helper()
	var manifest []string
	for _, name := range names {
		manifest = append(manifest, "# Source: web/templates/"+name+".yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "+name+"\ndata: {key: value, extra: theirs}\n")
		u := s.Parsed(clitest.ConfigMapOf(name, "{key: value, extra: theirs}", "labels: {app.kubernetes.io/managed-by: Helm}",
			"annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: \"{ns}\"}"))
		if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(s.Context(), u, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
			s.Fatal(err)
		}
	}
	for version, text := range []string{"", strings.Join(manifest[:1], "---\n"), strings.Join(manifest, "---\n")} {
		if version == 0 {
			continue
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "web", "namespace": s.NS, "version": version, "manifest": "---\n" + text})
		_ = w.Close()
		release := base64.StdEncoding.EncodeToString(b.Bytes())
		v := string(rune('0' + version))
		s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: sh.helm.release.v1.web.v"+v+"\n  namespace: '{ns}'\n  labels: {owner: helm, name: web, version: '"+v+"', status: deployed}\ntype: helm.sh/release.v1\nstringData: {release: "+release+"}\n")
	}
}

// known are the releases that Helm finds.
func known(s *clitest.Fixture) int {
	s.Helper()
	list, err := s.Resources("v1/secrets").Namespace(s.NS).List(s.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=web"})
	if err != nil {
		s.Fatal(err)
	}
	return len(list.Items)
}

func TestTakeOverFromHelm(t *testing.T) {
	s := clitest.New(t)
	installed(s, "a", "b")
	release := func() string {
		text, _ := json.Marshal(s.Live("v1/secrets", s.NS, "sh.helm.release.v1.web.v2").Object["data"])
		return string(text)
	}
	before := release()
	both := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))
	const flag = "--take-over-from=helm:web"

	// "helm uninstall" would delete b.
	p := s.Proxied()
	s.Apply(clitest.ConfigMap("a"), flag).Want(t, 3).Prints(t, "Helm release web in namespace "+s.NS+" has 1 object that the bundle does not contain", "ConfigMap "+s.NS+"/b")
	s.Preview(clitest.ConfigMap("a"), flag).Want(t, 3)
	s.Preview(both, flag).Want(t, 0).Prints(t, "Helm forgets it").Did(t, "ConfigMap", "b", plan.Configured)
	for _, w := range p.Writes() {
		if !w.DryRun {
			t.Errorf("it wrote %s %s", w.Method, w.Path)
		}
	}

	s.Apply(both, flag, "--rollback-on-failure").Want(t, 3).Prints(t, "cannot be taken over with --rollback-on-failure")

	// As long as an object is not applied, Helm keeps the release.
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.RefusedService("c")), flag).Want(t, 1).Prints(t, "is not forgotten by Helm")
	if n := known(s); n != 2 {
		t.Errorf("Helm knows %d revisions, want 2", n)
	}
	// With the rights that brine rbac writes.
	clitest.Grant(t, s.Cluster, clitest.RBAC(t, "-f", s.File(both), "--inventory", s.Inventory, "-n", s.NS, "--role", s.NS, "--user", s.NS, flag))
	s.Apply(both, flag, "--as", s.NS).Want(t, 0)
	if n := known(s); n != 0 {
		t.Errorf("Helm knows %d revisions of the release", n)
	}
	if now := release(); now != before {
		t.Error("the release was changed")
	}
	for _, name := range []string{"a", "b"} {
		u := s.ConfigMap(name)
		if tool := takeover.ToolOf(u); tool.Text != "" || u.GetLabels()["app.kubernetes.io/managed-by"] != "" || strings.Contains(clitestData(u.Object), "extra") || takeover.Manages(u, []string{"helm"}) {
			t.Errorf("%s is left as %v", name, u.Object)
		}
	}
	s.Apply(both, flag).Want(t, 0).Did(t, "ConfigMap", "a", plan.Unchanged) // again

	// A release that Helm keeps elsewhere is refused, one that is not there is none.
	s.Merge("v1/configmaps", s.NS, "a", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"else","meta.helm.sh/release-namespace":"`+s.NS+`"}}}`)
	s.Apply(both, "--take-over-from=helm:else").Want(t, 3).Prints(t, "HELM_DRIVER")
	s.Merge("v1/configmaps", s.NS, "a", `{"metadata":{"labels":{"helm.toolkit.fluxcd.io/name":"web","helm.toolkit.fluxcd.io/namespace":"flux"},"annotations":{"meta.helm.sh/release-name":"web"}}}`)
	s.Merge("v1/secrets", s.NS, "sh.helm.release.v1.web.v2", `{"metadata":{"labels":{"owner":"helm"}}}`)
	s.Apply(both, flag).Want(t, 3).Prints(t, "belongs to Flux HelmRelease flux/web", "install")
}

func clitestData(object map[string]any) string {
	text, _ := json.Marshal(object["data"])
	return string(text)
}

// Killed at a write, Helm keeps a release until brine has all its objects, and the
// next run ends the take-over.
func TestTakeOverKilledAtWrites(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += clitest.Every(3) {
		s := clitest.On(t, clustertest.Shared(t))
		installed(s, "a", "b")
		both, before := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b")), s.ConfigMap("b").GetUID()
		write, more := s.Killed(n, n/3%2 == 0, "apply", "-f", s.File(both), "--inventory", s.Inventory, "-n", s.NS, "--take-over-from=helm:web")
		if !more {
			if n < 6 {
				t.Errorf("it has only %d writes", n-1)
			}
			return
		}
		for _, name := range []string{"a", "b"} {
			live := s.ConfigMap(name)
			if live == nil {
				t.Fatalf("killed at write %d, %s: %s is gone", n, write, name)
			}
			if known(s) == 0 && live.GetAnnotations()["config.k8s.io/owning-inventory"] == "" {
				t.Errorf("killed at write %d, %s: Helm has forgotten %s, which is not brine's", n, write, name)
			}
		}
		s.Apply(both, "--take-over-from=helm:web").Want(t, 0)
		if live := s.ConfigMap("b"); known(s) != 0 || live.GetUID() != before || takeover.ToolOf(live).Text != "" {
			t.Fatalf("killed at write %d, %s: Helm knows %d revisions, and b is %v", n, write, known(s), live.Object)
		}
	}
}

// Argo CD, Flux and kapp do not delete what does not carry their metadata.
func TestTakeOverFromOtherTools(t *testing.T) {
	for token, c := range map[string]struct{ manager, metadata string }{
		"argocd:shop":    {"argocd-controller", "annotations: {argocd.argoproj.io/tracking-id: 'shop:/ConfigMap:{ns}/a'}"},
		"argocd:old":     {"argocd-controller", "labels: {argocd.argoproj.io/instance: old}"},
		"flux:flux/apps": {"kustomize-controller", "labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux}"},
		"kapp:1700":      {"kapp", "labels: {kapp.k14s.io/app: '1700', kapp.k14s.io/association: v1.x}"},
	} {
		t.Run(strings.ReplaceAll(token, "/", " "), func(t *testing.T) {
			s := clitest.New(t)
			u := s.Parsed(clitest.ConfigMapOf("a", "{key: value, extra: theirs}", c.metadata))
			if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(t.Context(), u, metav1.CreateOptions{FieldManager: c.manager}); err != nil {
				t.Fatal(err)
			}
			s.Apply(clitest.ConfigMap("a"), "--take-over-from="+token).Want(t, 0).Did(t, "ConfigMap", "a", plan.Configured)
			live := s.ConfigMap("a")
			if tool := takeover.ToolOf(live); tool.Text != "" || strings.Contains(clitestData(live.Object), "extra") || takeover.Manages(live, []string{c.manager}) {
				t.Errorf("it is left as %v", live.Object)
			}
			s.Apply(clitest.ConfigMap("a"), "--take-over-from="+token).Want(t, 0).Did(t, "ConfigMap", "a", plan.Unchanged)
		})
	}
}
