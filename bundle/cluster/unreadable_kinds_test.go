package cluster_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What cannot be read is never taken for nothing there.

// serve makes a CRD's only version served, or not, and waits until it is so.
func serve(s *clitest.Fixture, crd, resource string, served bool) {
	s.Helper()
	text := "false"
	if served {
		text = "true"
	}
	patch := `[{"op": "replace", "path": "/spec/versions/0/served", "value": ` + text + `}]`
	if _, err := s.Resources("apiextensions.k8s.io/v1/customresourcedefinitions").Patch(context.Background(), crd, "application/json-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	group, _, _ := strings.Cut(resource, "/")
	s.Everywhere(crd+" is served: "+text, func() bool {
		_, err := s.Resources(resource).Namespace(s.NS).List(context.Background(), metav1.ListOptions{})
		return (err == nil) == served && s.Discovered(group) == served
	})
}

// withWidgets has the CRD of widgets made by somebody else.
func withWidgets(t *testing.T) (s *clitest.Fixture, crd, resource string) {
	t.Helper()
	s = clitest.New(t)
	crd, resource = "widgets."+s.NS+".example.com", s.NS+".example.com/v1/widgets"
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
	s.Create("apiextensions.k8s.io/v1/customresourcedefinitions", clitest.Widgets)
	s.Everywhere("widgets are served", func() bool {
		_, err := s.Resources(resource).Namespace(s.NS).List(context.Background(), metav1.ListOptions{})
		return err == nil && s.Discovered(s.NS+".example.com")
	})
	return s, crd, resource
}

func TestUnservedKindIsUnknown(t *testing.T) {
	t.Run("a member", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.Widget)).Want(t, 0)
		serve(s, crd, resource, false)
		got := s.Apply(clitest.ConfigMap("stays")).Want(t, report.ExitFailed).Prints(t, "serves no version", crd)
		got.Did(t, "Widget", "one", plan.Skipped)
		if got := s.Members(); len(got) != 2 {
			t.Errorf("the inventory holds %v", got)
		}
		s.Destroy().Want(t, report.ExitFailed).Did(t, "Widget", "one", plan.Skipped)
		serve(s, crd, resource, true)
		s.Exists(resource, "one")
		s.Destroy().Want(t, 0).Did(t, "Widget", "one", plan.Pruned)
		s.Missing(resource, "one")
	})
	t.Run("wanted absent", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.Create(resource, clitest.Widget)
		serve(s, crd, resource, false)
		absent := clitest.Documents(`x: {k8s: [object_absent, {kind: Widget}, {apiVersion: {ns}.example.com/v1}, {name: one}, {namespace: "{ns}"}]}` + "\n")
		s.Apply(absent, "--input-format=high").Want(t, report.ExitFailed).Did(t, "Widget", "one", plan.Skipped)
		serve(s, crd, resource, true)
		s.Apply(absent, "--input-format=high").Want(t, 0).Did(t, "Widget", "one", plan.Pruned)
		s.Missing(resource, "one")
	})
	t.Run("what a CRD holds", func(t *testing.T) {
		s := clitest.New(t)
		crd, resource := "widgets."+s.NS+".example.com", s.NS+".example.com/v1/widgets"
		s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
		s.Apply(clitest.Widgets).Want(t, 0)
		s.Create(resource, clitest.Widget)
		serve(s, crd, resource, false)
		s.Destroy().Want(t, report.ExitFailed).Prints(t, "may contain objects outside this inventory", "serves no version", "--force-namespaces").
			Did(t, "CustomResourceDefinition", crd, plan.Skipped)
		serve(s, crd, resource, true)
		s.Exists(resource, "one")
		s.Destroy("--force-namespaces").Want(t, 0)
	})
	t.Run("unserved before the delete", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.Widget)).Want(t, 0)
		s.Before(http.MethodDelete, "/widgets/one", func() { serve(s, crd, resource, false) })
		s.Apply(clitest.ConfigMap("stays")).Want(t, report.ExitFailed).Did(t, "Widget", "one", plan.Failed)
		if got := s.Members(); len(got) != 2 {
			t.Errorf("the inventory holds %v", got)
		}
		serve(s, crd, resource, true)
		s.Exists(resource, "one")
	})
	t.Run("its CRD is gone", func(t *testing.T) {
		s, crd, _ := withWidgets(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.Widget)).Want(t, 0)
		if err := s.Resources("apiextensions.k8s.io/v1/customresourcedefinitions").Delete(t.Context(), crd, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the CRD is gone", func() bool {
			return s.Live("apiextensions.k8s.io/v1/customresourcedefinitions", "", crd) == nil && !s.Discovered(s.NS+".example.com")
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Prints(t, "was in the inventory but does not exist")
		s.Holds("ConfigMap stays")
	})
	t.Run("a kind that Kubernetes has no longer", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"))).Want(t, 0)
		s.Merge("v1/configmaps", s.NS, "inv", `{"data":{"_restricted_policy_PodSecurityPolicy":""}}`)
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Prints(t, "PodSecurityPolicy.policy restricted", "was in the inventory but does not exist")
		s.Holds("ConfigMap stays")
	})
	t.Run("no right to know", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.Widget)).Want(t, 0)
		serve(s, crd, resource, false)
		p := s.Proxied()
		p.Intercept(func(r clustertest.Request) clustertest.Action {
			if strings.Contains(r.Path, "/customresourcedefinitions") {
				return clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}
			}
			return clustertest.Action{}
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, report.ExitFailed).Prints(t, "there is no right to read CRDs").Did(t, "Widget", "one", plan.Skipped)
		if got := s.Members(); len(got) != 2 {
			t.Errorf("the inventory holds %v", got)
		}
	})
}

// An APIService whose server is away: its objects cannot be read, and no
// namespace can be looked into. What may own one of them stays.
func TestFailedGroupIsUnknown(t *testing.T) {
	s := clitest.NewAlone(t)
	group := s.NS + ".example.com"
	service := "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: \"v1.{ns}.example.com\"}\n" +
		"spec: {group: \"{ns}.example.com\", version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: absent, namespace: \"{ns}\"}}\n"
	s.Apply(clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", clitest.ConfigMap("stays"))).Want(t, 0)
	s.Merge("v1/configmaps", s.NS, "inv", `{"data":{"`+s.NS+`_one_`+group+`_Thing":""}}`)
	s.Create("apiregistration.k8s.io/v1/apiservices", service)
	s.Eventually("the group fails", func() bool { return strings.Contains(s.Status().Stdout, "cannot be read") })
	got := s.Destroy().Want(t, report.ExitFailed).Prints(t, "may contain objects outside this inventory")
	got.Did(t, "Thing", "one", plan.Skipped)
	got.Did(t, "Namespace", s.NS+"-held", plan.Skipped)
	got.Did(t, "ConfigMap", "stays", plan.Skipped) // it may own the Thing
	if got := s.Members(); len(got) != 3 {
		t.Errorf("the inventory holds %v", got)
	}
	if err := s.Resources("apiregistration.k8s.io/v1/apiservices").Delete(t.Context(), "v1."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the group is gone", func() bool { return !strings.Contains(s.Status().Stdout, "cannot be read") })
	s.Destroy().Want(t, 0)
}

// Who may not look into a namespace does not delete it.
func TestUnreadableContentsKeepTheirNamespace(t *testing.T) {
	text := clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", strings.ReplaceAll(clitest.ConfigMap("ours"), "{ns}", "{ns}-held"), clitest.Widgets)
	start := func(t *testing.T) (s *clitest.Fixture, as string) {
		s = clitest.New(t)
		s.GoneAfter("v1/namespaces", s.NS+"-held")
		s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+s.NS+".example.com")
		for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
			s.GoneAfter("rbac.authorization.k8s.io/v1/"+kind, "r-"+s.NS)
		}
		return s, "--as=system:serviceaccount:" + s.NS + ":deployer"
	}
	roles := func(s *clitest.Fixture) string {
		return clitest.RBAC(t, "-f", s.File(text), "--inventory", s.Inventory, "--role", "r-"+s.NS, "--service-account", s.NS+"/deployer")
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: {ns}-held}\n"
	t.Run("the role that brine rbac writes sees all", func(t *testing.T) {
		s, as := start(t)
		clitest.Grant(t, s.Cluster, roles(s))
		s.Apply(text, as).Want(t, 0)
		s.Create("v1/secrets", secret)
		s.Destroy(as).Want(t, report.ExitFailed).Prints(t, "outside this inventory: Secret "+s.NS+"-held/theirs").Did(t, "Namespace", s.NS+"-held", plan.Skipped)
		if err := s.Resources("v1/secrets").Namespace(s.NS+"-held").Delete(t.Context(), "theirs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.Destroy(as).Want(t, 0).Did(t, "Namespace", s.NS+"-held", plan.Pruned)
	})
	t.Run("a role with less", func(t *testing.T) {
		s, as := start(t)
		blind := strings.Replace(roles(s), "- apiGroups:\n  - '*'\n  resources:\n  - '*'\n  verbs:\n  - list\n", "", 1)
		if strings.Contains(blind, "'*'") {
			t.Fatalf("there is another wildcard:\n%s", blind)
		}
		clitest.Grant(t, s.Cluster, blind)
		s.Apply(text, as).Want(t, 0)
		s.Create("v1/secrets", secret)
		s.Destroy(as).Want(t, report.ExitFailed).Prints(t, "may contain objects outside this inventory", "no right to list them", "--force-namespaces").
			Did(t, "Namespace", s.NS+"-held", plan.Skipped)
		if s.Live("v1/secrets", s.NS+"-held", "theirs") == nil {
			t.Error("the Secret was lost")
		}
		s.Destroy(as, "--force-namespaces").Want(t, 0).Did(t, "Namespace", s.NS+"-held", plan.Pruned)
	})
	t.Run("a kind that gives no answer", func(t *testing.T) {
		s, _ := start(t)
		s.Apply(text).Want(t, 0)
		s.Create("v1/secrets", secret)
		p := s.Proxied()
		p.Intercept(func(r clustertest.Request) clustertest.Action {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "-held/secrets") {
				return clustertest.Action{Status: http.StatusServiceUnavailable, Message: "come back later"}
			}
			return clustertest.Action{}
		})
		s.Destroy("--retry-timeout=200ms").Want(t, report.ExitFailed).Prints(t, "cannot read secrets (come back later)").Did(t, "Namespace", s.NS+"-held", plan.Skipped)
		if s.Live("v1/secrets", s.NS+"-held", "theirs") == nil {
			t.Error("the Secret was lost")
		}
		if !slices.Contains(s.Members(), "Namespace "+s.NS+"-held") {
			t.Errorf("the inventory holds %v", s.Members())
		}
	})
}
