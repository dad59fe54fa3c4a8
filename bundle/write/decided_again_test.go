package write_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// What a namespace holds counts when its DELETE goes out, also when that is repeated.
func TestNamespaceThatFillsBeforeItsDeletionIsRepeated(t *testing.T) {
	s := clitest.New(t)
	more := s.NS + "-more"
	s.GoneAfter("v1/namespaces", more)
	s.Apply(clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+more+"}\n", clitest.ConfigMap("a"))).Want(t, 0)
	var tries atomic.Int32
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != http.MethodDelete || r.DryRun || !strings.HasSuffix(r.Path, "/namespaces/"+more) || tries.Add(1) > 1 {
			return clustertest.Action{}
		}
		return clustertest.Action{Status: http.StatusServiceUnavailable, Before: func() {
			s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: "+more+"}\n")
		}}
	})
	s.Apply(clitest.ConfigMap("a")).Want(t, 1).Prints(t, "not deleted: contains objects outside this inventory: Secret "+more+"/theirs")
	if live := s.Live("v1/namespaces", "", more); live == nil || live.GetDeletionTimestamp() != nil || tries.Load() != 1 {
		t.Errorf("the namespace is deleted, in %d tries", tries.Load())
	}
}

// An owner and what names it leave the bundle together. By then a person keeps the second, or what names that:
// the garbage collector would delete it with the first.
func TestOwnerOfWhatIsKeptMeanwhile(t *testing.T) {
	for _, kept := range []string{"owned", "deep"} {
		t.Run(kept, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.Documents(clitest.ConfigMap("owner"), clitest.ConfigMap("owned"), clitest.ConfigMap("deep"), clitest.ConfigMap("a"))).Want(t, 0)
			for name, owner := range map[string]string{"owned": "owner", "deep": "owned"} {
				s.Merge("v1/configmaps", s.NS, name, `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "`+owner+`", "uid": "`+string(s.ConfigMap(owner).GetUID())+`"}]}}`)
			}
			s.Before(http.MethodPatch, "/configmaps/a", func() {
				s.Merge("v1/configmaps", s.NS, kept, `{"metadata": {"annotations": {"cli-utils.sigs.k8s.io/on-remove": "keep"}}}`)
			})
			s.Apply(strings.Replace(clitest.ConfigMap("a"), "key: value", "key: other", 1)).Want(t, 1).Prints(t, "it stays a member, as ConfigMap "+s.NS+"/")
			s.Exists("v1/configmaps", "owner", "owned", kept)
		})
	}
}

// A policy that says of a change that something is immutable guards the object: it is no reason to delete it.
func TestPolicyThatGuardsAnObject(t *testing.T) {
	s := clitest.New(t)
	s.Cluster.Needs(t, 30, "ValidatingAdmissionPolicy v1")
	policy := strings.ReplaceAll(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: "{ns}-freeze"}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [UPDATE], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'a' || object.data == oldObject.data", message: "the data of a is immutable"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: "{ns}-freeze"}
spec: {policyName: "{ns}-freeze", validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}}}
`, "{ns}", s.NS)
	a := clitest.ConfigMap("a", clitest.Annotations("brine.dev/on-immutable: recreate"))
	s.Apply(clitest.Documents(policy, a)).Want(t, 0)
	uid, changed := s.ConfigMap("a").GetUID(), clitest.Documents(policy, strings.Replace(a, "key: value", "key: other", 1))
	s.Everywhere("the policy denies", func() bool { return s.Preview(changed).Exit == 1 })
	s.Preview(changed).Want(t, 1).Prints(t, "the data of a is immutable").Did(t, "ConfigMap", "a", plan.Failed)
	s.Apply(changed).Want(t, 1).Prints(t, "the data of a is immutable").Did(t, "ConfigMap", "a", plan.Failed)
	if s.ConfigMap("a").GetUID() != uid {
		t.Error("it was deleted, and created again")
	}
}

// The Deployment controller copies annotations to its ReplicaSets, and never removes them: one that forbade to
// delete the Deployment does not keep its namespace.
func TestAnnotationThatAControllerCopied(t *testing.T) {
	s := clitest.New(t)
	more := s.NS + "-more"
	s.GoneAfter("v1/namespaces", more)
	bundle := func(metadata string) string {
		web := strings.Replace(clitest.Deployment("web", 1, "1m", metadata), "{ns}", more, 1)
		return clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+more+"}\n", web, clitest.ConfigMap("a"))
	}
	s.Apply(bundle(clitest.Annotations("cli-utils.sigs.k8s.io/on-remove: keep"))).Want(t, 0)
	s.Apply(bundle(clitest.Annotations("x: y"))).Want(t, 0)
	sets, err := s.Resources("apps/v1/replicasets").Namespace(more).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 1 || sets.Items[0].GetAnnotations()["cli-utils.sigs.k8s.io/on-remove"] != "keep" {
		t.Fatalf("the controller has copied nothing: %v %v", sets, err)
	}
	s.Apply(clitest.ConfigMap("a")).Want(t, 0).Did(t, "Namespace", more, plan.Pruned)
}

// The answer to a DELETE is lost, and the next one is a refusal: it is found out that the object is gone, and
// the new one is created.
func TestRecreationWhoseDeletionHasNoAnswer(t *testing.T) {
	s := clitest.New(t)
	fixed := strings.Replace(clitest.ConfigMap("a", clitest.Annotations("brine.dev/on-immutable: recreate")), "\ndata:", "\nimmutable: true\ndata:", 1)
	s.Apply(fixed).Want(t, 0)
	var tries atomic.Int32
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != http.MethodDelete || r.DryRun || !strings.HasSuffix(r.Path, "/configmaps/a") {
			return clustertest.Action{}
		}
		if tries.Add(1) == 1 {
			return clustertest.Action{CutAfter: true}
		}
		return clustertest.Action{Status: http.StatusForbidden, Message: "configmaps \"a\" is forbidden: not yet"}
	})
	s.Apply(strings.Replace(fixed, "key: value", "key: other", 1)).Want(t, 0).Did(t, "ConfigMap", "a", plan.Recreated)
	if s.Data("a")["key"] != "other" || tries.Load() != 2 {
		t.Errorf("%v after %d tries", s.Data("a"), tries.Load())
	}
}

// A run that is interrupted while an old object is put back ends in time, with its result.
func TestRestoringEndsWithTheRun(t *testing.T) {
	s := clitest.New(t)
	fixed := strings.Replace(clitest.ConfigMap("a", clitest.Annotations("brine.dev/on-immutable: recreate")), "\ndata:", "\nimmutable: true\ndata:", 1)
	s.Apply(fixed).Want(t, 0)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var deleted atomic.Bool
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodDelete && !r.DryRun && strings.HasSuffix(r.Path, "/configmaps/a") {
			deleted.Store(true)
			return clustertest.Action{}
		}
		switch {
		case deleted.Load() && r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a"):
			return clustertest.Action{Status: http.StatusUnprocessableEntity, Message: "no"}
		case deleted.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/configmaps"):
			interrupt()
			return clustertest.Action{Status: http.StatusServiceUnavailable}
		}
		return clustertest.Action{}
	})
	text := strings.Replace(fixed, "key: value", "key: other", 1)
	out := clitest.RunContext(ctx, t, s.Kubeconfig, "apply", "-f", s.File(text), "--inventory", s.Inventory, "--namespace", s.NS, "-o", "json").Prints(t, "the object is lost")
	if out.Result == nil || len(out.Result.Objects) != 1 {
		t.Errorf("it ends with %d: %s", out.Exit, clitest.Clip(out.Stdout+out.Stderr))
	}
}
