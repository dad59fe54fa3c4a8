package cli

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

// gadgets is a CRD whose resources may have the given fields in their spec.
func gadgets(fields ...string) string {
	text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.{ns}.example.com}
spec:
  group: "{ns}.example.com"
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {`
	for _, f := range fields {
		text += f + ": {type: string}, "
	}
	return strings.TrimSuffix(text, ", ") + "}}}}}\n"
}

func gadget(fields ...string) string {
	return "apiVersion: \"{ns}.example.com/v1\"\nkind: Gadget\nmetadata: {name: one, namespace: \"{ns}\"}\nspec: {" + strings.Join(fields, ": x, ") + ": x}\n"
}

func TestCRDGainsAField(t *testing.T) {
	s := newFixture(t)
	fields := []string{"a"}
	s.apply(documents(gadgets(fields...), gadget(fields...))).want(t, 0)
	for f := range strings.SplitSeq("b c d e f g h i j k l m", " ") {
		fields = append(fields, f)
		s.apply(documents(gadgets(fields...), gadget(fields...))).want(t, 0).did(t, "Gadget", "one", plan.Configured)
	}
	s.destroy().want(t, 0)
}

// A proxy answers as an API server does that has not heard of a change yet.
func TestRefusalByAStaleServerIsRetried(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		kind, path    string
		answer        clustertest.Action
	}{
		"schema": {
			documents(gadgets("a"), gadget("a")), documents(gadgets("a", "b"), gadget("a", "b")), "Gadget", "/gadgets/one",
			clustertest.Action{Status: http.StatusInternalServerError, Message: `failed to create typed patch object (x/one; example.com/v1, Kind=Gadget): .spec.b: field not declared in schema`},
		},
		"quota": {
			"", documents("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: \"{ns}\"}\nspec: {hard: {count/configmaps: 100}}\n",
				configMap("late", dependsOn("/namespaces/{ns}/ResourceQuota/q"))), "ConfigMap", "/configmaps/late",
			clustertest.Action{Status: http.StatusForbidden, Message: `configmaps "late" is forbidden: status unknown for quota: q, resources: count/configmaps`},
		},
		"role": {
			"", documents(role("Role", "{ns}"), strings.ReplaceAll(role("RoleBinding", "b"), "kind: ClusterRole, name: view", "kind: Role, name: \"{ns}\"")), "RoleBinding", "/rolebindings/b",
			clustertest.Action{Status: http.StatusNotFound, Message: `roles.rbac.authorization.k8s.io "r" not found`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			if test.before != "" {
				s.apply(test.before).want(t, 0)
			}
			p := s.proxied()
			var refused atomic.Int32
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, test.path) && refused.Add(1) <= 5 {
					return test.answer
				}
				return clustertest.Action{}
			})
			result := s.apply(test.after, "--wait=applied").want(t, 0)
			if refused.Load() < 6 {
				t.Errorf("%d requests were refused: %s", refused.Load(), result.stdout)
			}
		})
	}
}

// What no change of the run explains counts at once.
func TestOtherRefusalsAreNotRetried(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(gadgets("a"), gadget("a"))).want(t, 0)
	p := s.proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/gadgets/one") {
			return clustertest.Action{Status: http.StatusInternalServerError, Message: ".spec.b: field not declared in schema"}
		}
		return clustertest.Action{}
	})
	text := strings.Replace(gadget("a"), "a: x", "a: y", 1)
	s.apply(documents(gadgets("a"), text)).want(t, 1).did(t, "Gadget", "one", plan.Failed)
	tries := 0
	for _, r := range p.Writes() {
		if strings.HasSuffix(r.Path, "/gadgets/one") {
			tries++
		}
	}
	if tries != 1 {
		t.Errorf("%d requests were sent, want 1", tries)
	}
}

// With --field-validation=Ignore a server that is behind would drop the new field.
func TestNewFieldIsNotDroppedByAStaleServer(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(gadgets("a"), gadget("a"))).want(t, 0)
	p := s.proxied()
	var refused, lenient atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case r.Method != http.MethodPatch || !strings.HasSuffix(r.Path, "/gadgets/one"):
		case r.Query.Get("fieldValidation") != "Strict":
			lenient.Add(1)
		case refused.Add(1) <= 5:
			return clustertest.Action{Status: http.StatusBadRequest, Message: `strict decoding error: unknown field "spec.b"`}
		}
		return clustertest.Action{}
	})
	s.apply(documents(gadgets("a", "b"), gadget("a", "b")), "--field-validation=Ignore", "--wait=applied").want(t, 0)
	if refused.Load() < 6 || lenient.Load() > 0 {
		t.Errorf("%d requests were strict, %d were not", refused.Load(), lenient.Load())
	}
	if got, _, _ := unstructured.NestedString(s.live(s.ns+".example.com/v1/gadgets", s.ns, "one").Object, "spec", "b"); got != "x" {
		t.Errorf("the new field is %q", got)
	}
}
