package cluster_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
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
	s := clitest.New(t)
	fields := []string{"a"}
	s.Apply(clitest.Documents(gadgets(fields...), gadget(fields...))).Want(t, 0)
	for f := range strings.SplitSeq("b c d e f g h i j k l m", " ") {
		fields = append(fields, f)
		s.Apply(clitest.Documents(gadgets(fields...), gadget(fields...))).Want(t, 0).Did(t, "Gadget", "one", plan.Configured)
	}
	s.Destroy().Want(t, 0)
}

// A proxy answers as an API server does that has not heard of a change yet.
func TestRefusalByAStaleServerIsRetried(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		kind, path    string
		answer        clustertest.Action
	}{
		"schema": {
			clitest.Documents(gadgets("a"), gadget("a")), clitest.Documents(gadgets("a", "b"), gadget("a", "b")), "Gadget", "/gadgets/one",
			clustertest.Action{Status: http.StatusInternalServerError, Message: `failed to create typed patch object (x/one; example.com/v1, Kind=Gadget): .spec.b: field not declared in schema`},
		},
		"quota": {
			"", clitest.Documents("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: \"{ns}\"}\nspec: {hard: {count/configmaps: 100}}\n",
				clitest.ConfigMap("late", clitest.DependsOn("/namespaces/{ns}/ResourceQuota/q"))), "ConfigMap", "/configmaps/late",
			clustertest.Action{Status: http.StatusForbidden, Message: `configmaps "late" is forbidden: status unknown for quota: q, resources: count/configmaps`},
		},
		"role": {
			"", clitest.Documents(clitest.Role("Role", "{ns}"), strings.ReplaceAll(clitest.Role("RoleBinding", "b"), "kind: ClusterRole, name: view", "kind: Role, name: \"{ns}\"")), "RoleBinding", "/rolebindings/b",
			clustertest.Action{Status: http.StatusNotFound, Message: `roles.rbac.authorization.k8s.io "r" not found`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			if test.before != "" {
				s.Apply(test.before).Want(t, 0)
			}
			p := s.Proxied()
			var refused atomic.Int32
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, test.path) && refused.Add(1) <= 5 {
					return test.answer
				}
				return clustertest.Action{}
			})
			result := s.Apply(test.after, "--wait=applied").Want(t, 0)
			if refused.Load() < 6 {
				t.Errorf("%d requests were refused: %s", refused.Load(), result.Stdout)
			}
		})
	}
}

// What no change of the run explains counts at once.
func TestOtherRefusalsAreNotRetried(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(gadgets("a"), gadget("a"))).Want(t, 0)
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/gadgets/one") {
			return clustertest.Action{Status: http.StatusInternalServerError, Message: ".spec.b: field not declared in schema"}
		}
		return clustertest.Action{}
	})
	text := strings.Replace(gadget("a"), "a: x", "a: y", 1)
	s.Apply(clitest.Documents(gadgets("a"), text)).Want(t, 1).Did(t, "Gadget", "one", plan.Failed)
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
	s := clitest.New(t)
	s.Apply(clitest.Documents(gadgets("a"), gadget("a"))).Want(t, 0)
	p := s.Proxied()
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
	s.Apply(clitest.Documents(gadgets("a", "b"), gadget("a", "b")), "--field-validation=Ignore", "--wait=applied").Want(t, 0)
	if refused.Load() < 6 || lenient.Load() > 0 {
		t.Errorf("%d requests were strict, %d were not", refused.Load(), lenient.Load())
	}
	if got, _, _ := unstructured.NestedString(s.Live(s.NS+".example.com/v1/gadgets", s.NS, "one").Object, "spec", "b"); got != "x" {
		t.Errorf("the new field is %q", got)
	}
}
