package cli

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
)

// What cannot be read is never taken for nothing there.

// serve makes a CRD's only version served, or not, and waits until it is so.
func (s *fixture) serve(crd, resource string, served bool) {
	s.Helper()
	text := "false"
	if served {
		text = "true"
	}
	patch := `[{"op": "replace", "path": "/spec/versions/0/served", "value": ` + text + `}]`
	if _, err := s.resources("apiextensions.k8s.io/v1/customresourcedefinitions").Patch(context.Background(), crd, "application/json-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	group, _, _ := strings.Cut(resource, "/")
	s.eventually(crd+" is served: "+text, func() bool {
		_, err := s.resources(resource).Namespace(s.ns).List(context.Background(), metav1.ListOptions{})
		return (err == nil) == served && s.discovered(group) == served
	})
}

// withWidgets has the CRD of widgets made by somebody else.
func withWidgets(t *testing.T) (s *fixture, crd, resource string) {
	t.Helper()
	s = newFixture(t)
	crd, resource = "widgets."+s.ns+".example.com", s.ns+".example.com/v1/widgets"
	s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
	s.create("apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	s.eventually("widgets are served", func() bool {
		_, err := s.resources(resource).Namespace(s.ns).List(context.Background(), metav1.ListOptions{})
		return err == nil && s.discovered(s.ns+".example.com")
	})
	return s, crd, resource
}

func TestUnservedKindIsUnknown(t *testing.T) {
	t.Run("a member", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.apply(documents(configMap("stays"), widget)).want(t, 0)
		s.serve(crd, resource, false)
		got := s.apply(configMap("stays")).want(t, report.ExitFailed).prints(t, "serves no version", crd)
		got.did(t, "Widget", "one", plan.Skipped)
		if got := s.members(); len(got) != 2 {
			t.Errorf("the inventory holds %v", got)
		}
		s.destroy().want(t, report.ExitFailed).did(t, "Widget", "one", plan.Skipped)
		s.serve(crd, resource, true)
		s.exists(resource, "one")
		s.destroy().want(t, 0).did(t, "Widget", "one", plan.Pruned)
		s.missing(resource, "one")
	})
	t.Run("wanted absent", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.create(resource, widget)
		s.serve(crd, resource, false)
		absent := documents(`x: {k8s: [object_absent, {kind: Widget}, {apiVersion: {ns}.example.com/v1}, {name: one}, {namespace: "{ns}"}]}` + "\n")
		s.apply(absent, "--input-format=high").want(t, report.ExitFailed).did(t, "Widget", "one", plan.Skipped)
		s.serve(crd, resource, true)
		s.apply(absent, "--input-format=high").want(t, 0).did(t, "Widget", "one", plan.Pruned)
		s.missing(resource, "one")
	})
	t.Run("what a CRD holds", func(t *testing.T) {
		s := newFixture(t)
		crd, resource := "widgets."+s.ns+".example.com", s.ns+".example.com/v1/widgets"
		s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
		s.apply(widgets).want(t, 0)
		s.create(resource, widget)
		s.serve(crd, resource, false)
		s.destroy().want(t, report.ExitFailed).prints(t, "may contain objects outside this inventory", "serves no version", "--force-namespaces").
			did(t, "CustomResourceDefinition", crd, plan.Skipped)
		s.serve(crd, resource, true)
		s.exists(resource, "one")
		s.destroy("--force-namespaces").want(t, 0)
	})
	t.Run("unserved before the delete", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.apply(documents(configMap("stays"), widget)).want(t, 0)
		s.before(http.MethodDelete, "/widgets/one", func() { s.serve(crd, resource, false) })
		s.apply(configMap("stays")).want(t, report.ExitFailed).did(t, "Widget", "one", plan.Failed)
		if got := s.members(); len(got) != 2 {
			t.Errorf("the inventory holds %v", got)
		}
		s.serve(crd, resource, true)
		s.exists(resource, "one")
	})
	t.Run("its CRD is gone", func(t *testing.T) {
		s, crd, _ := withWidgets(t)
		s.apply(documents(configMap("stays"), widget)).want(t, 0)
		if err := s.resources("apiextensions.k8s.io/v1/customresourcedefinitions").Delete(t.Context(), crd, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.eventually("the CRD is gone", func() bool {
			return s.live("apiextensions.k8s.io/v1/customresourcedefinitions", "", crd) == nil && !s.discovered(s.ns+".example.com")
		})
		s.apply(configMap("stays")).want(t, 0).prints(t, "was in the inventory but does not exist")
		s.holds("ConfigMap stays")
	})
	t.Run("a kind that Kubernetes has no longer", func(t *testing.T) {
		s := newFixture(t)
		s.apply(documents(configMap("stays"))).want(t, 0)
		s.merge("v1/configmaps", s.ns, "inv", `{"data":{"_restricted_policy_PodSecurityPolicy":""}}`)
		s.apply(configMap("stays")).want(t, 0).prints(t, "PodSecurityPolicy.policy restricted", "was in the inventory but does not exist")
		s.holds("ConfigMap stays")
	})
	t.Run("no right to know", func(t *testing.T) {
		s, crd, resource := withWidgets(t)
		s.apply(documents(configMap("stays"), widget)).want(t, 0)
		s.serve(crd, resource, false)
		p := s.proxied()
		p.Intercept(func(r clustertest.Request) clustertest.Action {
			if strings.Contains(r.Path, "/customresourcedefinitions") {
				return clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}
			}
			return clustertest.Action{}
		})
		s.apply(configMap("stays")).want(t, report.ExitFailed).prints(t, "there is no right to read CRDs").did(t, "Widget", "one", plan.Skipped)
		if got := s.members(); len(got) != 2 {
			t.Errorf("the inventory holds %v", got)
		}
	})
}

// An APIService whose server is away: its objects cannot be read, and no
// namespace can be looked into.
func TestFailedGroupIsUnknown(t *testing.T) {
	s := newOwnFixture(t)
	group := s.ns + ".example.com"
	service := "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: \"v1.{ns}.example.com\"}\n" +
		"spec: {group: \"{ns}.example.com\", version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: absent, namespace: \"{ns}\"}}\n"
	s.apply(documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", configMap("stays"))).want(t, 0)
	s.merge("v1/configmaps", s.ns, "inv", `{"data":{"`+s.ns+`_one_`+group+`_Thing":""}}`)
	s.create("apiregistration.k8s.io/v1/apiservices", service)
	s.eventually("the group fails", func() bool { return strings.Contains(s.status().stdout, "cannot be read") })
	got := s.destroy().want(t, report.ExitFailed).prints(t, "may contain objects outside this inventory")
	got.did(t, "Thing", "one", plan.Skipped)
	got.did(t, "Namespace", s.ns+"-held", plan.Skipped)
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v", got)
	}
	if err := s.resources("apiregistration.k8s.io/v1/apiservices").Delete(t.Context(), "v1."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the group is gone", func() bool { return !strings.Contains(s.status().stdout, "cannot be read") })
	s.destroy().want(t, 0)
}

// Who may not look into a namespace does not delete it.
func TestUnreadableContentsKeepTheirNamespace(t *testing.T) {
	text := documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", strings.ReplaceAll(configMap("ours"), "{ns}", "{ns}-held"), widgets)
	start := func(t *testing.T) (s *fixture, as string) {
		s = newFixture(t)
		s.goneAfter("v1/namespaces", s.ns+"-held")
		s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+s.ns+".example.com")
		for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
			s.goneAfter("rbac.authorization.k8s.io/v1/"+kind, "r-"+s.ns)
		}
		return s, "--as=system:serviceaccount:" + s.ns + ":deployer"
	}
	roles := func(s *fixture) string {
		return rbacOf(t, "-f", s.file(text), "--inventory", s.inventory, "--role", "r-"+s.ns, "--service-account", s.ns+"/deployer")
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: {ns}-held}\n"
	t.Run("the role that brine rbac writes sees all", func(t *testing.T) {
		s, as := start(t)
		grant(t, s.cluster, roles(s))
		s.apply(text, as).want(t, 0)
		s.create("v1/secrets", secret)
		s.destroy(as).want(t, report.ExitFailed).prints(t, "outside this inventory: Secret "+s.ns+"-held/theirs").did(t, "Namespace", s.ns+"-held", plan.Skipped)
		if err := s.resources("v1/secrets").Namespace(s.ns+"-held").Delete(t.Context(), "theirs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.destroy(as).want(t, 0).did(t, "Namespace", s.ns+"-held", plan.Pruned)
	})
	t.Run("a role with less", func(t *testing.T) {
		s, as := start(t)
		blind := strings.Replace(roles(s), "- apiGroups:\n  - '*'\n  resources:\n  - '*'\n  verbs:\n  - list\n", "", 1)
		if strings.Contains(blind, "'*'") {
			t.Fatalf("there is another wildcard:\n%s", blind)
		}
		grant(t, s.cluster, blind)
		s.apply(text, as).want(t, 0)
		s.create("v1/secrets", secret)
		s.destroy(as).want(t, report.ExitFailed).prints(t, "may contain objects outside this inventory", "no right to list them", "--force-namespaces").
			did(t, "Namespace", s.ns+"-held", plan.Skipped)
		if s.live("v1/secrets", s.ns+"-held", "theirs") == nil {
			t.Error("the Secret was lost")
		}
		s.destroy(as, "--force-namespaces").want(t, 0).did(t, "Namespace", s.ns+"-held", plan.Pruned)
	})
	t.Run("a kind that gives no answer", func(t *testing.T) {
		s, _ := start(t)
		s.apply(text).want(t, 0)
		s.create("v1/secrets", secret)
		p := s.proxied()
		p.Intercept(func(r clustertest.Request) clustertest.Action {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "-held/secrets") {
				return clustertest.Action{Status: http.StatusServiceUnavailable, Message: "come back later"}
			}
			return clustertest.Action{}
		})
		s.destroy("--retry-timeout=200ms").want(t, report.ExitFailed).prints(t, "cannot read secrets (come back later)").did(t, "Namespace", s.ns+"-held", plan.Skipped)
		if s.live("v1/secrets", s.ns+"-held", "theirs") == nil {
			t.Error("the Secret was lost")
		}
		if !slices.Contains(s.members(), "Namespace "+s.ns+"-held") {
			t.Errorf("the inventory holds %v", s.members())
		}
	})
}
