package rights_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// generated are the rules of the roles that brine rbac writes, by the namespace
// of their role; "" is the ClusterRole.
type generated map[string][]rbacv1.PolicyRule

// right is one verb of one resource in one of the roles.
type right struct{ namespace, group, resource, verb string }

func (r right) String() string {
	where := r.namespace
	if where == "" {
		where = "cluster"
	}
	return fmt.Sprintf("%s %s (%s)", r.verb, strings.Trim(r.resource+"."+r.group, "."), where)
}

func rulesOf(t *testing.T, text, namespace string) generated {
	t.Helper()
	rules := generated{}
	for doc := range strings.SplitSeq(text, "---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "Role" || role.Kind == "ClusterRole" {
			rules[role.Namespace] = role.Rules
		}
	}
	if len(rules[namespace]) == 0 {
		t.Fatalf("no role in namespace %s:\n%s", namespace, text)
	}
	return rules
}

// rights are all of the rules, one by one; {ns} stands for the namespace.
func (g generated) rights(ns string) (all []right) {
	for namespace, rules := range g {
		for _, r := range rules {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, right{strings.ReplaceAll(namespace, ns, "{ns}"), r.APIGroups[0], resource, verb})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b right) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// grantedTo writes roles with all rights but one, bound to a ServiceAccount.
func grantedTo(t *testing.T, s *clitest.Fixture, all []right, but right) {
	t.Helper()
	roles := map[string]string{}
	for _, r := range all {
		if r != but {
			roles[r.namespace] += fmt.Sprintf("- {apiGroups: [%q], resources: [%q], verbs: [%s]}\n", r.group, r.resource, r.verb)
		}
	}
	for namespace, rules := range roles {
		kind, meta := "ClusterRole", "{name: "+s.NS+"-deployer}"
		if namespace != "" {
			kind, meta = "Role", "{name: "+s.NS+"-deployer, namespace: "+s.NS+"}"
		}
		clitest.Grant(t, s.Cluster, "apiVersion: rbac.authorization.k8s.io/v1\nkind: "+kind+"\nmetadata: "+meta+"\nrules:\n"+rules+
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: "+kind+"Binding\nmetadata: "+meta+
			"\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: "+kind+", name: "+s.NS+"-deployer}\nsubjects: [{kind: ServiceAccount, namespace: "+s.NS+", name: deployer}]\n")
		if namespace == "" {
			s.GoneAfter("rbac.authorization.k8s.io/v1/clusterroles", s.NS+"-deployer")
			s.GoneAfter("rbac.authorization.k8s.io/v1/clusterrolebindings", s.NS+"-deployer")
		}
	}
	inForce(s, all, but)
}

// inForce waits until the server's cache has the roles.
func inForce(s *clitest.Fixture, all []right, but right) {
	s.Helper()
	for _, r := range all {
		resource, subresource, _ := strings.Cut(r.resource, "/")
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": "system:serviceaccount:" + s.NS + ":deployer", "resourceAttributes": map[string]any{
				"verb": r.verb, "group": r.group, "resource": resource, "subresource": subresource,
				"namespace": strings.ReplaceAll(r.namespace, "{ns}", s.NS),
			}},
		}}
		s.Everywhere(r.String()+" is granted", func() bool {
			if r == but {
				return true
			}
			answer, err := s.Resources("authorization.k8s.io/v1/subjectaccessreviews").Create(s.Context(), review, metav1.CreateOptions{})
			if err != nil {
				s.Fatal(err)
			}
			allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
			return allowed
		})
	}
}

// Of each kind there are two, so that they are listed and not read one by one.
func roleBundles() (first, then, never string) {
	others := clitest.Documents(clitest.ServiceAccount("who"), clitest.ServiceAccount("whose"), clitest.Deployment("api", 1, "1m"))
	first = clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("old"), others, clitest.Deployment("web", 1, "1m"))
	then = clitest.Documents(strings.Replace(clitest.ConfigMap("a"), "value", "other", 1), others, clitest.Deployment("web", 2, "1m"))
	never = clitest.Documents(then, clitest.Deployment("never", 1, "1000", "annotations: {brine.dev/timeout: 3s}"))
	return first, then, never
}

type stage struct {
	run  func() clitest.Outcome
	exit int
}

// life is what happens to an inventory, as the ServiceAccount sees it.
func life(s *clitest.Fixture) []stage {
	as := []string{"--as", "system:serviceaccount:" + s.NS + ":deployer", "--timeout=60s", "--history-limit=2"}
	applies := func(text string, exit int) stage {
		return stage{func() clitest.Outcome { return s.Apply(text, as...) }, exit}
	}
	reads := func(command string) stage {
		return stage{func() clitest.Outcome {
			return clitest.Run(s.TB, s.Kubeconfig, command, "--inventory", s.Inventory, "--as", as[1])
		}, 0}
	}
	first, then, never := roleBundles()
	return []stage{
		applies(first, 0), applies(first, 0), applies(then, 0), reads("status"), reads("history"),
		{func() clitest.Outcome { return s.Rollback(as...) }, 0},
		applies(never, 4), applies(then, 0),
		{func() clitest.Outcome { return s.Destroy(as[:3]...) }, 0},
	}
}

// The roles are enough to rewrite the objects of a CRD, too.
func TestGeneratedRoleForStoredVersions(t *testing.T) {
	s := clitest.New(t)
	crd := func(version string) string {
		return strings.NewReplacer("name: v1\n", "name: "+version+"\n", "{name: pumps.{ns}.example.com}", "{name: pumps.{ns}.example.com, annotations: {brine.dev/on-stored-version: migrate}}").Replace(clitest.PumpCRD)
	}
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.NS+".example.com")
	s.Apply(crd("v1")).Want(t, 0)
	s.Create(s.NS+".example.com/v1/pumps", clitest.Pump("theirs", "  rate: 3"))
	text := clitest.RBAC(t, "-f", s.File(crd("v2")), "--inventory", s.Inventory)
	grantedTo(t, s, rulesOf(t, text, s.NS).rights(s.NS), right{})
	as := []string{"--as", "system:serviceaccount:" + s.NS + ":deployer"}
	s.Preview(crd("v2"), as...).Want(t, 0).Prints(t, "v1 goes; 1 object to be rewritten in v2")
	s.Apply(crd("v2"), as...).Want(t, 0).Prints(t, "1 object rewritten in v2")
	s.Exists(s.NS+".example.com/v2/pumps", "theirs")
}

// What brine rbac writes is enough for all that happens to an inventory, and
// nothing is warned of on the way.
func TestGeneratedRole(t *testing.T) {
	s := clitest.New(t)
	_, _, never := roleBundles()
	text := clitest.RBAC(t, "-f", s.File(clitest.Documents(never, clitest.ConfigMap("old"))), "--inventory", s.Inventory)
	grantedTo(t, s, rulesOf(t, text, s.NS).rights(s.NS), right{})
	for i, step := range life(s) {
		got := step.run().Want(t, step.exit)
		if got.Result != nil && len(got.Result.Warnings) > 0 {
			t.Errorf("step %d warns: %q", i+1, got.Result.Warnings)
		}
		if i == 2 {
			got.Did(t, "ConfigMap", "old", plan.Pruned)
		}
	}
	left, err := s.Resources("v1/secrets").Namespace(s.NS).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range left.Items {
		t.Errorf("Secret %s is left", u.GetName())
	}
	s.Missing("v1/configmaps", "inv", "inv-fingerprints-1")
}

// needless are the rights without which all of life is the same, and what they
// are for nevertheless.
var needless = map[string]string{
	"watch configmaps ({ns})":      "nothing waits for one",
	"watch serviceaccounts ({ns})": "nothing waits for one",

	"list poddisruptionbudgets.policy ({ns})": "only previews ask whether one forbids a restart",

	"get pods/log ({ns})":         "the last lines of a container that fails; none does",
	"get namespaces (cluster)":    "the inventory's namespace is there; saved plans read kube-system",
	"create namespaces (cluster)": "the inventory's namespace is there",
	"patch namespaces (cluster)":  "the inventory's namespace is there",
}

// naming are the lines that say that a right is missing.
func naming(s clitest.Outcome, r right) (lines []string) {
	for line := range strings.SplitSeq(s.Stdout+s.Stderr, "\n") {
		resource, _, _ := strings.Cut(r.resource, "/")
		if strings.Contains(line, r.verb) && strings.Contains(line, resource) &&
			(strings.Contains(line, "cannot") || strings.Contains(line, "missing right")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// With one right less a command refuses, and names the right; or it warns of
// what it could not do. It never does less without a word.
func TestGeneratedRoleWithOneRightLess(t *testing.T) {
	outer := clitest.New(t)
	_, _, never := roleBundles()
	all := rulesOf(t, clitest.RBAC(t, "-f", outer.File(clitest.Documents(never, clitest.ConfigMap("old"))), "--inventory", outer.Inventory), outer.NS).rights(outer.NS)
	for _, missing := range all {
		t.Run(missing.String(), func(t *testing.T) {
			s := clitest.New(t)
			grantedTo(t, s, all, missing)
			var exits []int
			var named []string
			refused := false
			for _, step := range life(s) {
				got := step.run()
				exits = append(exits, got.Exit)
				named = append(named, naming(got, missing)...)
				if refused = got.Exit != step.exit; refused {
					break
				}
			}
			why, isNeedless := needless[missing.String()]
			switch {
			case isNeedless && (refused || len(named) > 0):
				t.Errorf("it is needed (%s): exit codes %v, %q", why, exits, named)
			case !isNeedless && len(named) == 0:
				t.Errorf("nothing names it: exit codes %v", exits)
			}
			t.Logf("exit codes %v: %.300q", exits, named)
		})
	}
}
