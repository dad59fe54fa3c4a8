package rights_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func TestRightsOfARealBundle(t *testing.T) {
	files := clitest.RealBundle(t, "metalk8s-new")
	c := clustertest.New(t)
	as := func(who, command string, flags ...string) clitest.Outcome {
		return clitest.Run(t, c.Kubeconfig, append([]string{command, "--inventory", "kube-system/metalk8s", "--as", "system:serviceaccount:kube-system:" + who}, flags...)...)
	}
	clitest.Grant(t, c, clitest.RBAC(t, "-f", files, "--inventory", "kube-system/metalk8s", "--role", "deployer", "--service-account", "kube-system/deployer"))
	clitest.Grant(t, c, clitest.RBAC(t, "-f", files, "--inventory", "kube-system/metalk8s", "--role", "reader", "--service-account", "kube-system/reader", "--read-only"))

	// Who may read only gets a preview, and is told what is missing.
	first := as("reader", "preview", "-f", files).Want(t, 0)
	if s := first.Result.Summary; s.Failed != 0 || s.Created+s.Configured+s.Unchanged != 101 {
		t.Errorf("summary %+v", s)
	}
	if !slices.Contains(first.Result.MissingRights, "create deployments.apps in namespace metalk8s-auth") {
		t.Errorf("missing rights: %q", first.Result.MissingRights)
	}
	if o := first.Object(t, "Deployment", "dex"); o.Verified != "not verified: no right to patch deployments.apps in namespace metalk8s-auth" || !strings.Contains(o.Diff, "image:") {
		t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
	}

	preview := as("deployer", "preview", "-f", files).Want(t, 0).AllVerified(t)
	clitest.SameActions(t, preview, as("deployer", "apply", "-f", files).Want(t, 0))

	again := as("reader", "preview", "-f", files, "--detailed-exitcode").Want(t, 0)
	for name, action := range again.Actions(t) {
		if action != plan.Unchanged {
			t.Errorf("%s: %s", name, action)
		}
	}
	if len(again.Result.MissingRights) != 0 {
		t.Errorf("nothing is to be written, but rights are missing: %q", again.Result.MissingRights)
	}

	var fewer []string
	for _, name := range []string{"namespaces.yaml", "monitoring-crds.yaml", "storage.yaml", "dex-chart.yaml", "cert-manager-chart.yaml", "logging-loki-chart.yaml", "logging-fluent-bit-chart.yaml"} {
		fewer = append(fewer, "-f", filepath.Join(files, name))
	}
	prune := as("deployer", "preview", fewer...).Want(t, 0).AllVerified(t)
	if prune.Result.Summary.Pruned == 0 {
		t.Error("nothing is pruned")
	}
	clitest.SameActions(t, prune, as("deployer", "apply", fewer...).Want(t, 0))
	as("deployer", "destroy").Want(t, 0)
}

func TestMissingRightsAreReportedAtOnce(t *testing.T) {
	s := clitest.New(t)
	clitest.Grant(t, s.Cluster, clitest.RBAC(t, "-f", s.File(clitest.Documents(clitest.ConfigMap("a"), "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: {ns}}\n")),
		"--inventory", s.Inventory, "--role", "r-"+s.NS, "--service-account", s.NS+"/some"))
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"),
		"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: {ns}}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: {ns}}\nspec: {schedule: \"* * * * *\", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: pause}]}}}}}\n")
	p := s.Preview(text, "--as", "system:serviceaccount:"+s.NS+":some").Want(t, 6)
	for _, right := range []string{"get deployments.apps", "patch deployments.apps", "create deployments.apps", "get cronjobs.batch", "patch cronjobs.batch", "patch poddisruptionbudgets.policy"} {
		if !slices.Contains(p.Result.MissingRights, right+" in namespace "+s.NS) || !slices.Contains(p.Result.Errors, "missing right: "+right+" in namespace "+s.NS) {
			t.Errorf("%q is not among the missing rights: %q\n%q", right, p.Result.MissingRights, p.Result.Errors)
		}
	}
	if slices.ContainsFunc(p.Result.MissingRights, func(r string) bool { return strings.Contains(r, "configmaps") }) {
		t.Errorf("a right is missing that is there: %q", p.Result.MissingRights)
	}
}

// The roles of two inventories are beside each other, in one namespace too, and with those
// that a version before 0.3 wrote: each account applies its own bundle, and not the other's.
func TestRolesOfTwoInventories(t *testing.T) {
	s := clitest.New(t)
	one, two := clitest.Documents(clitest.Pod("a"), clitest.Role("ClusterRole", "{ns}-one")), clitest.Documents(clitest.ServiceAccount("b"), clitest.Role("ClusterRole", "{ns}-two"))
	other := s.Other("second")
	roles := func(s *clitest.Fixture, text, account string, flags ...string) string {
		text = clitest.RBAC(t, append([]string{"-f", s.File(text), "--inventory", s.Inventory, "--service-account", s.NS + "/" + account}, flags...)...)
		clitest.Grant(t, s.Cluster, text)
		return text
	}
	old := roles(s, one, "old", "--role", "brine")
	roles(s, one, "one")
	roles(other, two, "two")
	if strings.Count(old, "name: brine\n") < 4 {
		t.Errorf("the old names are not kept:\n%s", old)
	}
	as := func(account string) string { return "--as=system:serviceaccount:" + s.NS + ":" + account }
	apply := func(s *clitest.Fixture, text, account string, want int) clitest.Outcome {
		r := s.Apply(text, as(account)).Want(t, want)
		if want == 0 && len(r.Result.Warnings) > 0 {
			t.Errorf("%s: %q", account, r.Result.Warnings)
		}
		return r
	}
	apply(s, one, "one", 0)
	apply(other, two, "two", 0)
	apply(other, clitest.Documents(two, clitest.ServiceAccount("c")), "one", 6)
	apply(s, clitest.Documents(one, clitest.ServiceAccount("d")), "two", 6)

	// What CHANGELOG says about the old roles takes these, and no others.
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		api := s.Resources("rbac.authorization.k8s.io/v1/" + resource)
		selected := metav1.ListOptions{LabelSelector: cluster.RoleLabel, FieldSelector: "metadata.name=brine"}
		list, err := api.List(t.Context(), selected)
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %d, %v", resource, len(list.Items), err)
		}
		if err := api.Namespace(list.Items[0].GetNamespace()).Delete(t.Context(), "brine", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.Destroy(as("one")).Want(t, 0)
	other.Destroy(as("two")).Want(t, 0)
}

// Without an inventory all roles have one name, and that is said.
func TestRolesWithoutAnInventory(t *testing.T) {
	file := clitest.BundleFile(t, clitest.ConfigMap("a"))
	for _, test := range []struct {
		flags []string
		name  string
		warns bool
	}{
		{nil, "brine", true},
		{[]string{"--read-only"}, "brine", true},
		{[]string{"--role", "mine"}, "mine", false},
		{[]string{"--inventory", "deploy/shop"}, "brine:deploy:shop", false},
		{[]string{"--inventory", "deploy/shop", "--read-only"}, "brine:deploy:shop:read-only", false},
		{[]string{"--inventory", "deploy/shop", "--role", "brine"}, "brine", false},
	} {
		r := clitest.Command(t.Context(), nil, append([]string{"rbac", "-f", file}, test.flags...)...).Want(t, 0)
		if !strings.Contains(r.Stdout, "  name: "+test.name+"\n") {
			t.Errorf("%q: no role is called %s:\n%s", test.flags, test.name, r.Stdout)
		}
		if strings.Contains(r.Stderr, "overwrites") != test.warns {
			t.Errorf("%q: it says %q", test.flags, r.Stderr)
		}
	}
}

// An object that does not change is only read: the right to write it is not missing.
func TestUnchangedObjectNeedsNoRightToWrite(t *testing.T) {
	s := clitest.New(t)
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, namespace: {ns}}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"
	text := clitest.Documents(clitest.ConfigMap("a"), budget, clitest.Deployment("web", 1, "1m"))
	grant := func(role, text string, flags ...string) {
		clitest.Grant(t, s.Cluster, clitest.RBAC(t, append([]string{"-f", s.File(text), "--inventory", s.Inventory, "--role", role + "-" + s.NS, "--service-account", s.NS + "/some"}, flags...)...))
	}
	grant("writes", clitest.ConfigMap("a"))
	grant("reads", text, "--read-only")
	s.Apply(budget).Want(t, 0)
	p := s.Preview(text, "--as", "system:serviceaccount:"+s.NS+":some").Want(t, 6)
	if missing := strings.Join(p.Result.MissingRights, "\n"); !strings.Contains(missing, "create deployments.apps") || strings.Contains(missing, "poddisruptionbudgets") {
		t.Errorf("missing rights:\n%s", missing)
	}
}

// What the bundle depends on outside of it is read, also in a namespace of others.
func TestRoleForADependencyOutsideTheBundle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop, annotations: {config.kubernetes.io/depends-on: apps/namespaces/db/StatefulSet/base}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := clitest.RBAC(t, "-f", path, "--inventory", "shop/inv")
	_, inDB, _ := strings.Cut(got, "namespace: db\n")
	inDB, _, _ = strings.Cut(inDB, "\n---")
	if !strings.Contains(inDB, "- apiGroups:\n  - apps\n  resources:\n  - statefulsets\n  verbs:\n  - get") || strings.Contains(inDB, "patch") {
		t.Errorf("%s", got)
	}
}

func TestRolesAreTheSmallest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(clitest.Documents("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: shop}\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := clitest.RBAC(t, "-f", path, "--inventory", "shop/inv", "--read-only"), `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  labels:
    brine.dev/rbac: role
  name: brine:shop:inv:read-only
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
	full := clitest.RBAC(t, "-f", path, "--inventory", "shop/inv", "--user", "jane")
	for _, words := range []string{"resourceNames:\n  - r\n  resources:\n  - roles\n  verbs:\n  - escalate\n", "kind: ClusterRoleBinding", "kind: User\n  name: jane", "- leases\n"} {
		if !strings.Contains(full, words) {
			t.Errorf("%q is not in\n%s", words, full)
		}
	}
}
