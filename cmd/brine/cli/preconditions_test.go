package cli_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// unbound says what a write that changes or deletes an object does not insist on; "" if
// it is about one version of the object only.
func unbound(r clustertest.Request) string {
	var body map[string]any
	has := func(path ...string) bool {
		value, _, _ := unstructured.NestedString(body, path...)
		return value != ""
	}
	switch {
	case !r.IsWrite() || len(r.Body) == 0:
		return ""
	case r.Type == "application/json-patch+json":
		if !strings.Contains(string(r.Body), `"path":"/metadata/resourceVersion"`) {
			return "resourceVersion"
		}
		return ""
	case json.Unmarshal(r.Body, &body) != nil:
		return "a body that can be read"
	case r.Method == http.MethodDelete && !has("preconditions", "uid"):
		return "uid"
	case r.Method == http.MethodDelete && !has("preconditions", "resourceVersion"), r.Method != http.MethodDelete && !has("metadata", "resourceVersion"):
		return "resourceVersion"
	}
	return ""
}

// Whatever brine changes or deletes is the very version that it has read: also its own
// objects, and those of single patches.
func TestEveryWriteIsBoundToAVersion(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	long := strings.Repeat("n", 253)
	s.Apply(clitest.Documents(clitest.ConfigMap(long), clitest.ConfigMap("a"), secret("one"))).Want(t, 0)
	for _, value := range []string{"two", "three"} { // without the overflow; then the history is trimmed
		s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{k: "+value+"}"), secret(value)), "--history-limit=1").Want(t, 0)
	}
	s.Create("v1/configmaps", clitest.ConfigMap("kept"))
	s.Apply(clitest.Documents(clitest.ConfigMap("a", clitest.Annotations("brine.dev/on-remove: keep")), clitest.ConfigMapOf("frozen", "{k: v}\nimmutable: true"))).Want(t, 0)
	s.Apply(clitest.ConfigMapOf("frozen", "{k: w}\nimmutable: true", clitest.Annotations("brine.dev/on-immutable: recreate"))).Want(t, 0)
	file := s.File("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: single}\ndata: {k: v}\n")
	for _, flag := range []string{"--create", "--remove", "--delete"} {
		clitest.Run(t, s.Kubeconfig, "patch", "--namespace", s.NS, "-f", file, flag).Want(t, 0)
	}
	clitest.Run(t, s.Kubeconfig, "inventory", "rename", s.Inventory, s.NS+"/new").Want(t, 0)
	s.Other("new").Destroy().Want(t, 0)

	kinds := map[string]int{}
	for _, r := range p.Requests() {
		if what := unbound(r); what != "" {
			t.Errorf("%s %s does not insist on its %s", r.Method, r.Path, what)
		}
		if r.IsWrite() && len(r.Body) > 0 {
			kinds[r.Method+" "+r.Type]++
		}
	}
	for _, kind := range []string{"DELETE application/json", "PATCH application/apply-patch+yaml", "PATCH application/merge-patch+json", "PUT application/json"} {
		if kinds[kind] == 0 {
			t.Errorf("the test has seen no %s: %v", kind, kinds)
		}
	}
}

func secret(value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: '{ns}'}\nstringData: {password: value-" + value + "}\n"
}

// An object that comes to belong to an inventory between the read and the DELETE of a
// patch is kept.
func TestPatchDeletesOnlyWhatItRead(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/configmaps", clitest.ConfigMap("single"))
	s.Before(http.MethodDelete, "/configmaps/single", func() {
		s.PatchConfigMap("single", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"another"}}}`)
	})
	file := s.File("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: single}\n")
	clitest.Run(t, s.Kubeconfig, "patch", "--namespace", s.NS, "-f", file, "--delete").Want(t, 1).Prints(t, `belongs to inventory \"another\"`)
	s.Exists("v1/configmaps", "single")
}

// A Secret that has the name of the next revision, and is not the inventory's, is not
// overwritten.
func TestRevisionOverwritesNothingElse(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: inv-revision-1-0, namespace: '{ns}'}\ntype: brine.dev/revision\nstringData: {theirs: kept-as-it-is}\n")
	s.Apply(clitest.ConfigMap("a")).Want(t, 0).Prints(t, "inv-revision-1-0 is there, and does not belong to the inventory").Did(t, "ConfigMap", "a", plan.Created)
	if data, _, _ := unstructured.NestedStringMap(s.Live("v1/secrets", s.NS, "inv-revision-1-0").Object, "data"); data["theirs"] == "" || len(data) != 1 {
		t.Errorf("it was overwritten: %d keys", len(data))
	}
}
