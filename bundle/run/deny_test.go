package run_test

import (
	"strings"
	"testing"

	"brine/bundle"
	"brine/cmd/brine/clitest"
)

// The rules of the README stop check, preview and apply before the first write.
func TestDeny(t *testing.T) {
	_, rules, _ := strings.Cut(bundle.Readme(), "<!-- deny rules -->\n```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	s := clitest.New(t)
	file := s.File(rules)
	deny := "--deny=" + file
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: \"{ns}\"}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	admin := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: \"{ns}-admin\"}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: x, namespace: \"{ns}\"}]\n"
	balancer := "apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: \"{ns}\"}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n"
	good := clitest.Documents(clitest.ConfigMap("a"), claim)
	s.Apply(good, deny, "--wait=applied").Want(t, 0)

	for _, test := range []struct{ name, text, says string }{
		{"a claim goes", clitest.ConfigMap("a"), `denied by rule "no claim is deleted": PersistentVolumeClaim ` + s.NS + "/data"},
		{"data goes", clitest.ConfigMap("a"), `denied by rule "no data is lost"`},
		{"a tag", clitest.Documents(good, clitest.Deployment("web", 1, "1m")), `denied by rule "no image by tag": Deployment.apps ` + s.NS + "/web"},
		{"an administrator", clitest.Documents(good, admin), `denied by rule "nobody else becomes cluster-admin": ClusterRoleBinding`},
		{"a load balancer", clitest.Documents(good, balancer), `denied by rule "no new load balancer": Service ` + s.NS + "/front"},
	} {
		p := s.Proxied()
		preview := s.Preview(test.text, deny).Want(t, 3).Prints(t, test.says)
		apply := s.Apply(test.text, deny).Want(t, 3).Prints(t, test.says)
		for _, errors := range [][]string{preview.Result.Errors, apply.Result.Errors} {
			if !strings.HasPrefix(errors[0], file+":") {
				t.Errorf("%s: it does not say where the rule is: %v", test.name, errors)
			}
		}
		if w := p.Writes(); len(w) > 0 {
			t.Errorf("%s: it wrote %v", test.name, clitest.Describe(w))
		}
		if !strings.HasSuffix(test.name, " goes") { // that is for a cluster to say
			clitest.Command(t.Context(), nil, "check", "-f", s.File(test.text), deny).Want(t, 3).Prints(t, test.says)
		}
	}
	s.Holds("ConfigMap a", "PersistentVolumeClaim data")
	// What cannot be evaluated denies; so does what is no rule.
	s.Apply(good, "--deny="+s.File("x: self.nothing.here")).Want(t, 3).Prints(t, `denied by rule "x", because it cannot be evaluated: no such key: nothing`)
	s.Apply(good, "--deny="+s.File("x: 1 + 1")).Want(t, 3).Prints(t, ":1: x: the CEL expression gives int, not bool or a list")
	s.Apply(good, deny, "--wait=applied").Want(t, 0)
}
