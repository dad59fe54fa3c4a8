package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/read"
)

// grant makes the namespaces, roles and bindings that brine rbac wrote.
func grant(t *testing.T, c *clustertest.Cluster, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rbac.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := read.Bundle(t.Context(), read.Options{Files: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	api := c.Dynamic(t)
	for _, o := range b.Objects {
		gvr := schema.GroupVersionResource{Group: o.GVK.Group, Version: o.GVK.Version, Resource: strings.ToLower(o.GVK.Kind) + "s"}
		var r dynamic.ResourceInterface = api.Resource(gvr)
		if namespace := o.Content.GetNamespace(); namespace != "" {
			r = api.Resource(gvr).Namespace(namespace)
		}
		if _, err := r.Create(t.Context(), o.Content, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s: %v", bundle.Name(o.ID), err)
		}
	}
}

// rbacOf is what brine rbac writes.
func rbacOf(t *testing.T, args ...string) string {
	t.Helper()
	return runLine(t.Context(), nil, append([]string{"rbac"}, args...)...).want(t, 0).stdout
}

func TestRightsOfARealBundle(t *testing.T) {
	files := realBundle(t, "metalk8s-new")
	c := clustertest.New(t)
	as := func(who, command string, flags ...string) outcome {
		return brine(t, c.Kubeconfig, append([]string{command, "--inventory", "kube-system/metalk8s", "--as", "system:serviceaccount:kube-system:" + who}, flags...)...)
	}
	grant(t, c, rbacOf(t, "-f", files, "--inventory", "kube-system/metalk8s", "--role", "deployer", "--service-account", "kube-system/deployer"))
	grant(t, c, rbacOf(t, "-f", files, "--inventory", "kube-system/metalk8s", "--role", "reader", "--service-account", "kube-system/reader", "--read-only"))

	// Who may read only gets a preview, and is told what is missing.
	first := as("reader", "preview", "-f", files).want(t, 0)
	if s := first.result.Summary; s.Failed != 0 || s.Created+s.Configured+s.Unchanged != 101 {
		t.Errorf("summary %+v", s)
	}
	if !slices.Contains(first.result.MissingRights, "create deployments.apps in namespace metalk8s-auth") {
		t.Errorf("missing rights: %q", first.result.MissingRights)
	}
	if o := first.object(t, "Deployment", "dex"); o.Verified != "not verified: no right to patch deployments.apps in namespace metalk8s-auth" || !strings.Contains(o.Diff, "image:") {
		t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
	}

	preview := as("deployer", "preview", "-f", files).want(t, 0).verified(t)
	same(t, preview, as("deployer", "apply", "-f", files).want(t, 0))

	again := as("reader", "preview", "-f", files, "--detailed-exitcode").want(t, 0)
	for name, action := range again.actions(t) {
		if action != plan.Unchanged {
			t.Errorf("%s: %s", name, action)
		}
	}
	if len(again.result.MissingRights) != 0 {
		t.Errorf("nothing is to be written, but rights are missing: %q", again.result.MissingRights)
	}

	var fewer []string
	for _, name := range []string{"namespaces.yaml", "monitoring-crds.yaml", "storage.yaml", "dex-chart.yaml", "cert-manager-chart.yaml", "logging-loki-chart.yaml", "logging-fluent-bit-chart.yaml"} {
		fewer = append(fewer, "-f", filepath.Join(files, name))
	}
	prune := as("deployer", "preview", fewer...).want(t, 0).verified(t)
	if prune.result.Summary.Pruned == 0 {
		t.Error("nothing is pruned")
	}
	same(t, prune, as("deployer", "apply", fewer...).want(t, 0))
	as("deployer", "destroy").want(t, 0)
}

func TestMissingRightsAreReportedAtOnce(t *testing.T) {
	s := newFixture(t)
	grant(t, s.cluster, rbacOf(t, "-f", s.file(documents(configMap("a"), "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: {ns}}\n")),
		"--inventory", s.inventory, "--role", "r-"+s.ns, "--service-account", s.ns+"/some"))
	text := documents(configMap("a"), deployment("web", 1, "1m"), "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: {ns}}\nspec: {schedule: \"* * * * *\", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: pause}]}}}}}\n")
	p := s.preview(text, "--as", "system:serviceaccount:"+s.ns+":some").want(t, 6)
	for _, right := range []string{"get deployments.apps", "patch deployments.apps", "create deployments.apps", "get cronjobs.batch", "patch cronjobs.batch"} {
		if !slices.Contains(p.result.MissingRights, right+" in namespace "+s.ns) || !slices.Contains(p.result.Errors, "missing right: "+right+" in namespace "+s.ns) {
			t.Errorf("%q is not among the missing rights: %q\n%q", right, p.result.MissingRights, p.result.Errors)
		}
	}
	if slices.ContainsFunc(p.result.MissingRights, func(r string) bool { return strings.Contains(r, "configmaps") }) {
		t.Errorf("a right is missing that is there: %q", p.result.MissingRights)
	}
}

func TestRolesAreTheSmallest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(documents("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: shop}\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := rbacOf(t, "-f", path, "--inventory", "shop/inv", "--read-only"), `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  labels:
    brine.dev/rbac: role
  name: brine
  namespace: shop
rules:
- apiGroups:
  - ""
  resources:
  - configmaps
  - secrets
  - services
  verbs:
  - get
  - list
- apiGroups:
  - rbac.authorization.k8s.io
  resources:
  - roles
  verbs:
  - get
  - list
`; got != want {
		t.Errorf("got\n%s", got)
	}
	full := rbacOf(t, "-f", path, "--inventory", "shop/inv", "--user", "jane")
	for _, words := range []string{"resourceNames:\n  - r\n  resources:\n  - roles\n  verbs:\n  - escalate\n", "kind: ClusterRoleBinding", "kind: User\n  name: jane", "- leases\n"} {
		if !strings.Contains(full, words) {
			t.Errorf("%q is not in\n%s", words, full)
		}
	}
}
