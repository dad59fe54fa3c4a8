package cli

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
func grantedTo(t *testing.T, s *fixture, all []right, but right) {
	t.Helper()
	roles := map[string]string{}
	for _, r := range all {
		if r != but {
			roles[r.namespace] += fmt.Sprintf("- {apiGroups: [%q], resources: [%q], verbs: [%s]}\n", r.group, r.resource, r.verb)
		}
	}
	for namespace, rules := range roles {
		kind, meta := "ClusterRole", "{name: "+s.ns+"-deployer}"
		if namespace != "" {
			kind, meta = "Role", "{name: "+s.ns+"-deployer, namespace: "+s.ns+"}"
		}
		grant(t, s.cluster, "apiVersion: rbac.authorization.k8s.io/v1\nkind: "+kind+"\nmetadata: "+meta+"\nrules:\n"+rules+
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: "+kind+"Binding\nmetadata: "+meta+
			"\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: "+kind+", name: "+s.ns+"-deployer}\nsubjects: [{kind: ServiceAccount, namespace: "+s.ns+", name: deployer}]\n")
		if namespace == "" {
			s.goneAfter("rbac.authorization.k8s.io/v1/clusterroles", s.ns+"-deployer")
			s.goneAfter("rbac.authorization.k8s.io/v1/clusterrolebindings", s.ns+"-deployer")
		}
	}
	inForce(s, all, but)
}

// inForce waits until the server's cache has the roles.
func inForce(s *fixture, all []right, but right) {
	s.Helper()
	for _, r := range all {
		resource, subresource, _ := strings.Cut(r.resource, "/")
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": "system:serviceaccount:" + s.ns + ":deployer", "resourceAttributes": map[string]any{
				"verb": r.verb, "group": r.group, "resource": resource, "subresource": subresource,
				"namespace": strings.ReplaceAll(r.namespace, "{ns}", s.ns),
			}},
		}}
		s.eventually(r.String()+" is granted", func() bool {
			if r == but {
				return true
			}
			answer, err := s.resources("authorization.k8s.io/v1/subjectaccessreviews").Create(s.Context(), review, metav1.CreateOptions{})
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
	others := documents(serviceAccount("who"), serviceAccount("whose"), deployment("api", 1, "1m"))
	first = documents(configMap("a"), configMap("old"), others, deployment("web", 1, "1m"))
	then = documents(strings.Replace(configMap("a"), "value", "other", 1), others, deployment("web", 2, "1m"))
	never = documents(then, deployment("never", 1, "1000", "annotations: {brine.dev/timeout: 3s}"))
	return first, then, never
}

type stage struct {
	run  func() outcome
	exit int
}

// life is what happens to an inventory, as the ServiceAccount sees it.
func life(s *fixture) []stage {
	as := []string{"--as", "system:serviceaccount:" + s.ns + ":deployer", "--timeout=60s", "--history-limit=2"}
	applies := func(text string, exit int) stage {
		return stage{func() outcome { return s.apply(text, as...) }, exit}
	}
	reads := func(command string) stage {
		return stage{func() outcome { return brine(s.TB, s.kubeconfig, command, "--inventory", s.inventory, "--as", as[1]) }, 0}
	}
	first, then, never := roleBundles()
	return []stage{
		applies(first, 0), applies(first, 0), applies(then, 0), reads("status"), reads("history"),
		{func() outcome { return s.rollback(as...) }, 0},
		applies(never, 4), applies(then, 0),
		{func() outcome { return s.destroy(as[:3]...) }, 0},
	}
}

// What brine rbac writes is enough for all that happens to an inventory, and
// nothing is warned of on the way.
func TestGeneratedRole(t *testing.T) {
	s := newFixture(t)
	_, _, never := roleBundles()
	text := rbacOf(t, "-f", s.file(documents(never, configMap("old"))), "--inventory", s.inventory)
	grantedTo(t, s, rulesOf(t, text, s.ns).rights(s.ns), right{})
	for i, step := range life(s) {
		got := step.run().want(t, step.exit)
		if got.result != nil && len(got.result.Warnings) > 0 {
			t.Errorf("step %d warns: %q", i+1, got.result.Warnings)
		}
		if i == 2 {
			got.did(t, "ConfigMap", "old", plan.Pruned)
		}
	}
	left, err := s.resources("v1/secrets").Namespace(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range left.Items {
		t.Errorf("Secret %s is left", u.GetName())
	}
	s.missing("v1/configmaps", "inv", "inv-fingerprints-1")
}

// needless are the rights without which all of life is the same, and what they
// are for nevertheless.
var needless = map[string]string{
	"watch configmaps ({ns})":      "nothing waits for one",
	"watch serviceaccounts ({ns})": "nothing waits for one",
	"get pods/log ({ns})":          "the last lines of a container that fails; none does",
	"get namespaces (cluster)":     "the inventory's namespace is there; saved plans read kube-system",
	"create namespaces (cluster)":  "the inventory's namespace is there",
	"patch namespaces (cluster)":   "the inventory's namespace is there",
}

// naming are the lines that say that a right is missing.
func naming(s outcome, r right) (lines []string) {
	for line := range strings.SplitSeq(s.stdout+s.stderr, "\n") {
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
	outer := newFixture(t)
	_, _, never := roleBundles()
	all := rulesOf(t, rbacOf(t, "-f", outer.file(documents(never, configMap("old"))), "--inventory", outer.inventory), outer.ns).rights(outer.ns)
	for _, missing := range all {
		t.Run(missing.String(), func(t *testing.T) {
			s := newFixture(t)
			grantedTo(t, s, all, missing)
			var exits []int
			var named []string
			refused := false
			for _, step := range life(s) {
				got := step.run()
				exits = append(exits, got.exit)
				named = append(named, naming(got, missing)...)
				if refused = got.exit != step.exit; refused {
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
