package preview_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// An object that nobody can verify is reported as such, with the reason, and is no error.
func TestPreviewReportsUnverifiedObjects(t *testing.T) {
	hook := func(s *clitest.Fixture, name string) {
		s.Helper()
		s.GoneAfter("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", name)
		s.Create("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: `+name+`}
webhooks:
- name: no.`+name+`.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {ns}}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
`)
	}
	t.Run("a webhook that cannot be reached", func(t *testing.T) {
		s := clitest.New(t)
		hook(s, s.NS)
		s.Everywhere("the webhook is asked", func() bool {
			_, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(s.Context(), s.Parsed(clitest.ConfigMap("probe")), metav1.CreateOptions{DryRun: []string{"All"}})
			return err != nil
		})
		p := s.Preview(clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"))).Want(t, 0)
		if n := p.Result.Summary.Requests["patch"]; n > 4 {
			t.Errorf("%d patches for two objects", n)
		}
		if o := p.Did(t, "ConfigMap", "a", plan.Created); !strings.HasPrefix(o.Verified, "not verified: a webhook cannot be asked now") || !strings.Contains(o.Diff, "key: value") {
			t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
		}
		if o := p.Did(t, "Deployment", "web", plan.Created); o.Verified != "server" {
			t.Errorf("verified by %q", o.Verified)
		}
	})
	t.Run("a new APIService", func(t *testing.T) {
		s := clitest.New(t)
		p := s.Preview(clitest.Documents(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.{ns}.example.com}
spec: {group: {ns}.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, service: {namespace: {ns}, name: api}}
`, "apiVersion: {ns}.example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: {ns}}\n")).Want(t, 0)
		if o := p.Did(t, "Thing", "t", plan.Created); o.Verified != "not verified: APIService.apiregistration.k8s.io v1."+s.NS+".example.com, which serves it, is new" {
			t.Errorf("verified by %q", o.Verified)
		}
	})
	t.Run("no namespace", func(t *testing.T) {
		s := clitest.New(t)
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {ns}-nowhere}\n"
		p := s.Preview(text).Want(t, 1).Prints(t, "not found", "bundle.yaml:1")
		clitest.SameActions(t, p, s.Apply(text).Want(t, 1))
	})
	t.Run("a pod's account that is yet to be made", func(t *testing.T) {
		s := clitest.New(t)
		text := clitest.Documents("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker, namespace: {ns}}\n",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: {ns}}\nspec: {serviceAccountName: worker, containers: [{name: c, image: pause}]}\n")
		p := s.Preview(text).Want(t, 0)
		if o := p.Did(t, "Pod", "one", plan.Created); o.Verified != "server (surrogate service account)" || !strings.Contains(o.Diff, "serviceAccountName: worker") {
			t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
		}
		clitest.SameActions(t, p, s.Apply(text).Want(t, 0))
	})
	t.Run("another's fields are taken over: an update verifies that", func(t *testing.T) {
		s := clitest.New(t)
		if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(s.Context(), s.Parsed(clitest.ConfigMap("a")), metav1.CreateOptions{FieldManager: "old-tool"}); err != nil {
			t.Fatal(err)
		}
		p := s.Preview(clitest.ConfigMap("a"), "--take-over-from=old-tool").Want(t, 0)
		if o := p.Did(t, "ConfigMap", "a", plan.Configured); o.Verified != "server (as an update, with the fields taken over)" || !strings.Contains(o.Reason, "old-tool") {
			t.Errorf("verified by %q, %q", o.Verified, o.Reason)
		}
		clitest.SameActions(t, p, s.Apply(clitest.ConfigMap("a"), "--take-over-from=old-tool").Want(t, 0))
	})
}
