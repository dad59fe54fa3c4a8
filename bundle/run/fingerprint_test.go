package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// printed is an object with every kind of field that fieldsV1 knows: maps,
// lists by one key and by several, sets, atomic lists, defaulted and
// normalised values.
type printed struct {
	kind, resource, name, text string
	// fields are those that the bundle sets, as JSON pointers into the live
	// object, with another value that the server takes.
	fields map[string]any
}

var printedObjects = []printed{
	{"ConfigMap", "v1/configmaps", "settings", `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: {ns}
  labels: {app: web}
  annotations: {example.com/note: ours}
  finalizers: [example.com/held]
data: {mode: fast, level: info, "a.b-c_d": odd}
binaryData: {raw: AAEC}
`, map[string]any{
		"/metadata/labels/app": "other", "/metadata/annotations/example.com~1note": "theirs",
		"/data/mode": "slow", "/data/level": "debug", "/data/a.b-c_d": "even", "/binaryData/raw": "AAED",
		"/metadata/finalizers": []any{"example.com/other"},
	}},
	{"Deployment", "apps/v1/deployments", "web", `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: {ns}, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      tolerations: [{key: a, operator: Exists}]
      containers:
      - name: web
        image: registry.k8s.io/pause:3.10
        args: [one, two]
        env: [{name: LEVEL, value: info}, {name: MODE, value: fast}]
        ports: [{containerPort: 80, protocol: UDP, name: udp}, {containerPort: 80, protocol: TCP}]
        resources: {requests: {cpu: 1000m, memory: 1024Ki}, limits: {cpu: "1.0"}}
`, map[string]any{
		"/spec/replicas": int64(2), "/spec/strategy/rollingUpdate/maxSurge": "50%", "/spec/strategy/rollingUpdate/maxUnavailable": int64(1),
		"/spec/template/spec/terminationGracePeriodSeconds": int64(6), "/spec/template/spec/tolerations/0/key": "b",
		"/spec/template/spec/containers/0/image": "registry.k8s.io/pause:3.9", "/spec/template/spec/containers/0/args": []any{"two", "one"},
		"/spec/template/spec/containers/0/env/0/value": "debug", "/spec/template/spec/containers/0/env/1/value": "slow",
		"/spec/template/spec/containers/0/ports/0/name":              "other",
		"/spec/template/spec/containers/0/resources/requests/cpu":    "500m",
		"/spec/template/spec/containers/0/resources/requests/memory": "2Mi",
		"/spec/template/spec/containers/0/resources/limits/cpu":      "2",
		"/metadata/labels/app":                                       "other",
		"/spec/template/spec/containers/0/env":                       []any{map[string]any{"name": "MODE", "value": "fast"}},
		"/spec/template/spec/containers/0/ports/1":                   map[string]any{"containerPort": int64(81), "protocol": "TCP"},
	}},
	{"Service", "v1/services", "web", `apiVersion: v1
kind: Service
metadata: {name: web, namespace: {ns}}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: dns, port: 53, protocol: UDP}]
  externalIPs: [192.0.2.1, 192.0.2.2]
`, map[string]any{
		"/spec/selector/app": "other", "/spec/ports/0/targetPort": int64(8081),
		"/spec/ports/1/name": "domain", "/spec/externalIPs": []any{"192.0.2.2"},
	}},
	{"Role", "rbac.authorization.k8s.io/v1/roles", "web", `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web, namespace: {ns}}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
`, map[string]any{"/rules/0/verbs": []any{"list", "get"}}},
	{"ServiceAccount", "v1/serviceaccounts", "web", `apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: {ns}}
automountServiceAccountToken: false
imagePullSecrets: [{name: a}, {name: b}]
`, map[string]any{"/automountServiceAccountToken": true, "/imagePullSecrets/1/name": "c"}},
}

func printedBundle() string {
	var texts []string
	for _, o := range printedObjects {
		texts = append(texts, o.text)
	}
	return clitest.Documents(texts...)
}

func clientOf(s *clitest.Fixture, o printed) dynamic.ResourceInterface {
	return s.Resources(o.resource).Namespace(s.NS)
}

// setField changes one field of a live object as another manager's update.
func setField(s *clitest.Fixture, o printed, pointer string, value any, manager string) {
	s.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": pointer, "value": value}})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := clientOf(s, o).Patch(s.Context(), o.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager}); err != nil {
		s.Fatalf("set %s of %s: %v", pointer, o.kind, err)
	}
}

// unhold lets go of what a finalizer of the bundle holds.
func unhold(s *clitest.Fixture) {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for _, o := range printedObjects {
			_, err := clientOf(s, o).Patch(ctx, o.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				s.Logf("%s: %v", o.name, err)
			}
		}
	})
}

// writesTo are those that were sent for the one object.
func writesTo(p *clustertest.Proxy, o printed) []string {
	var found []string
	for _, r := range p.Writes() {
		plural := o.resource[strings.LastIndex(o.resource, "/")+1:]
		if strings.Contains(r.Path, "/"+plural+"/"+o.name) {
			found = append(found, r.Method+" "+r.Path)
		}
	}
	return found
}

// Every field that the bundle sets is looked at: whoever changes one, brine
// sees it and puts it back; with nothing changed it sends no request for any.
func TestFingerprintsFindAChangeOfEachField(t *testing.T) {
	s := clitest.New(t)
	unhold(s)
	p := s.Proxied()
	text := printedBundle()
	s.Apply(text).Want(t, 0)
	for _, o := range printedObjects {
		for _, pointer := range slices.Sorted(maps.Keys(o.fields)) {
			before := at(s.Live(o.resource, s.NS, o.name).Object, pointer)
			setField(s, o, pointer, o.fields[pointer], "somebody")
			p.Forget()
			got := s.Apply(text, "--force-conflicts", "--wait=applied")
			if got.Want(t, 0).Object(t, o.kind, o.name).Action != plan.Configured {
				t.Errorf("%s %s was changed, and it was %s", o.kind, pointer, got.Object(t, o.kind, o.name).Action)
			}
			for _, other := range printedObjects {
				if writes := writesTo(p, other); other.kind != o.kind && len(writes) > 0 {
					t.Errorf("%s %s was changed, and it sent %v", o.kind, pointer, writes)
				}
			}
			if _, scalar := before.(string); scalar {
				if after := at(s.Live(o.resource, s.NS, o.name).Object, pointer); after != before {
					t.Errorf("%s %s was not put back: %v, want %v", o.kind, pointer, after, before)
				}
			}
		}
	}
	p.Forget()
	s.Apply(text, "--wait=applied").Want(t, 0)
	for _, o := range printedObjects {
		if writes := writesTo(p, o); len(writes) > 0 {
			t.Errorf("nothing was changed, and it sent %v", writes)
		}
	}
}

// at is the value at a JSON pointer; nil if there is none.
func at(value any, pointer string) any {
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// What else can happen to a live object, and whether it has to be asked for.
func TestFingerprintsAndOtherChangesOfAnObject(t *testing.T) {
	object := printedObjects[0]
	marks := `"config.k8s.io/owning-inventory":null`
	ssa := func(s *clitest.Fixture, manager, body string, force bool) {
		_, err := clientOf(s, object).Patch(s.Context(), object.name, types.ApplyPatchType,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap",`+body+`}`), metav1.PatchOptions{FieldManager: manager, Force: &force})
		if err != nil {
			s.Fatal(err)
		}
	}
	merge := func(s *clitest.Fixture, body string) {
		if _, err := clientOf(s, object).Patch(s.Context(), object.name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
			s.Fatal(err)
		}
	}
	cases := map[string]struct {
		change func(s *clitest.Fixture)
		asks   bool
		action plan.Action
	}{
		"nothing":         {func(*clitest.Fixture) {}, false, plan.Unchanged},
		"another's label": {func(s *clitest.Fixture) { merge(s, `{"metadata":{"labels":{"theirs":"x"}}}`) }, false, plan.Unchanged},
		"another's field": {func(s *clitest.Fixture) { merge(s, `{"data":{"theirs":"x"}}`) }, false, plan.Unchanged},
		"shared with the same value": {func(s *clitest.Fixture) {
			ssa(s, "other", `"metadata":{"name":"settings"},"data":{"mode":"fast"}`, false)
		}, true, plan.Unchanged},
		"taken and given its old value": {func(s *clitest.Fixture) {
			ssa(s, "other", `"metadata":{"name":"settings"},"data":{"mode":"x"}`, true)
			ssa(s, "other", `"metadata":{"name":"settings"},"data":{"mode":"fast"}`, true)
		}, true, plan.Configured},
		"taken":                 {func(s *clitest.Fixture) { ssa(s, "other", `"metadata":{"name":"settings"},"data":{"mode":"x"}`, true) }, true, plan.Configured},
		"removed":               {func(s *clitest.Fixture) { merge(s, `{"data":{"mode":null}}`) }, true, plan.Configured},
		"our mark removed":      {func(s *clitest.Fixture) { merge(s, `{"metadata":{"annotations":{`+marks+`}}}`) }, true, plan.Configured},
		"managedFields cleared": {func(s *clitest.Fixture) { merge(s, `{"metadata":{"managedFields":[{}]}}`) }, true, plan.Configured},
		"our entry renamed": {func(s *clitest.Fixture) {
			u := s.Live(object.resource, s.NS, object.name)
			entries := u.GetManagedFields()
			for i := range entries {
				entries[i].Manager = "renamed"
			}
			u.SetManagedFields(entries)
			if _, err := clientOf(s, object).Update(s.Context(), u, metav1.UpdateOptions{}); err != nil {
				s.Fatal(err)
			}
		}, true, plan.Configured},
		"applied by another brine with less": {func(s *clitest.Fixture) {
			ssa(s, "brine", `"metadata":{"name":"settings","finalizers":["example.com/held"]},"data":{"mode":"fast"}`, true)
		}, true, plan.Configured},
		"recreated the very same": {func(s *clitest.Fixture) {
			u := s.Live(object.resource, s.NS, object.name)
			merge(s, `{"metadata":{"finalizers":null}}`)
			if err := clientOf(s, object).Delete(s.Context(), object.name, metav1.DeleteOptions{}); err != nil {
				s.Fatal(err)
			}
			u.SetResourceVersion("")
			u.SetUID("")
			if _, err := clientOf(s, object).Create(s.Context(), u, metav1.CreateOptions{FieldManager: "brine"}); err != nil {
				s.Fatal(err)
			}
		}, true, plan.Configured},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			unhold(s)
			s.Apply(object.text).Want(t, 0)
			c.change(s)
			p := s.Proxied()
			got := s.Apply(object.text, "--force-conflicts").Want(t, 0)
			if asked := len(memberPatches(p)) > 0; asked != c.asks {
				t.Errorf("it sent %v; want a request: %v", memberPatches(p), c.asks)
			}
			if got := got.Object(t, "ConfigMap", "settings").Action; got != c.action {
				t.Errorf("it was %s, want %s", got, c.action)
			}
			s.Apply(object.text).Want(t, 0).Did(t, "ConfigMap", "settings", plan.Unchanged)
		})
	}
	t.Run("status", func(t *testing.T) {
		s := clitest.New(t)
		unhold(s)
		deployment := printedObjects[1]
		s.Apply(deployment.text).Want(t, 0)
		status := []byte(`{"status":{"conditions":[{"type":"Odd","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","lastUpdateTime":"2026-01-01T00:00:00Z","reason":"Test","message":"m"}]}}`)
		if _, err := clientOf(s, deployment).Patch(t.Context(), "web", types.MergePatchType, status, metav1.PatchOptions{FieldManager: "somebody"}, "status"); err != nil {
			t.Fatal(err)
		}
		p := s.Proxied()
		s.Apply(deployment.text).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
		if patches := memberPatches(p); len(patches) > 0 {
			t.Errorf("only its status changed, and it sent %v", patches)
		}
	})
}

func memberPatches(p *clustertest.Proxy) []string {
	var patches []string
	for _, r := range p.Requests() {
		if r.Method == http.MethodPatch {
			patches = append(patches, r.Path)
		}
	}
	return patches
}

// A mutating webhook changes what the bundle sets, every time it is applied.
// What it makes of an object is what brine saw stored: unchanged as long as it
// stays that.
func TestFingerprintsOfObjectsThatAWebhookMutates(t *testing.T) {
	s := clitest.New(t)
	s.Cluster.Needs(t, 36, "MutatingAdmissionPolicies")
	policy := s.NS + ".example.com"
	policies := "admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
	s.GoneAfter(policies, policy)
	s.GoneAfter("admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings", policy)
	s.Create(policies, `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: `+policy+`}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  matchConditions: [{name: named, expression: 'object.metadata.name == "settings"'}]
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{labels: {"injected": "yes"}}, data: {"mode": "mutated"}}'
`)
	s.Create("admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
		"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: "+policy+"}\nspec: {policyName: "+policy+"}\n")
	object := printedObjects[0]
	unhold(s)
	s.Everywhere("the policy is in force", func() bool {
		probe := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": s.NS}}}
		got, err := clientOf(s, object).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.GetLabels()["injected"] == "yes"
	})
	s.Apply(object.text).Want(t, 0)
	if mode, _, _ := unstructured.NestedString(s.Live(object.resource, s.NS, "settings").Object, "data", "mode"); mode != "mutated" {
		t.Fatalf("data.mode is %q: the policy did nothing", mode)
	}
	p := s.Proxied()
	s.Apply(object.text).Want(t, 0).Did(t, "ConfigMap", "settings", plan.Unchanged)
	if patches := memberPatches(p); len(patches) > 0 {
		t.Errorf("nothing changed since, and it sent %v", patches)
	}
	setField(s, object, "/data/level", "debug", "somebody")
	s.Apply(object.text, "--force-conflicts").Want(t, 0).Did(t, "ConfigMap", "settings", plan.Configured)
}

// meddle does something random to a random object, and says what.
func meddle(s *clitest.Fixture, random *rand.Rand) string {
	s.Helper()
	o := printedObjects[random.IntN(len(printedObjects))]
	live := s.Live(o.resource, s.NS, o.name)
	if live == nil {
		u := s.Create(o.resource, o.text)
		return "created " + u.GetKind()
	}
	pointers := slices.Sorted(maps.Keys(o.fields))
	pointer := pointers[random.IntN(len(pointers))]
	manager := []string{"somebody", "brine", "other"}[random.IntN(3)]
	var kind types.PatchType
	var body string
	value, _ := json.Marshal(o.fields[pointer])
	force := true
	options := metav1.PatchOptions{FieldManager: manager}
	switch random.IntN(10) {
	case 0, 1:
		kind, body = types.JSONPatchType, fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, pointer, value)
	case 2:
		kind, body = types.JSONPatchType, fmt.Sprintf(`[{"op":"remove","path":%q}]`, pointer)
	case 3:
		kind, body = types.MergePatchType, fmt.Sprintf(`{"metadata":{"labels":{"l%d":"%d"}}}`, random.IntN(3), random.IntN(3))
	case 4:
		kind, body = types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`
	case 5: // the bundle's own content, as another manager
		u := live.DeepCopy()
		delete(u.Object, "status")
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		text, _ := json.Marshal(u.Object)
		kind, body, options.Force = types.ApplyPatchType, string(text), &force
	case 6: // less of it
		kind, options.Force = types.ApplyPatchType, &force
		body = fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"labels":{"app":"web"}}}`, live.GetAPIVersion(), o.kind, o.name)
	case 7:
		_, _ = clientOf(s, o).Patch(s.Context(), o.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err := clientOf(s, o).Delete(s.Context(), o.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			s.Fatal(err)
		}
		return "deleted " + o.kind
	case 8:
		u := live.DeepCopy()
		entries := u.GetManagedFields()
		if len(entries) > 1 {
			at := random.IntN(len(entries))
			u.SetManagedFields(slices.Delete(entries, at, at+1))
		}
		_, err := clientOf(s, o).Update(s.Context(), u, metav1.UpdateOptions{FieldManager: manager})
		return fmt.Sprintf("removed a managedFields entry of %s: %v", o.kind, err)
	case 9:
		return "nothing to " + o.kind
	}
	// The server may refuse, or have nothing at the pointer any more.
	_, err := clientOf(s, o).Patch(s.Context(), o.name, kind, []byte(body), options)
	if err != nil {
		return fmt.Sprintf("%s refused: %s %s", o.kind, body, apierrors.ReasonForError(err))
	}
	return fmt.Sprintf("%s by %s: %s %s", o.kind, manager, kind, body)
}

// Whatever happened to the live objects, the fingerprints say of each just what
// the server says that is asked about all of them.
func TestFingerprintsAgreeWithTheServer(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := clitest.New(t)
			unhold(s)
			random := rand.New(rand.NewPCG(seed, 6))
			text := printedBundle()
			s.Apply(text).Want(t, 0)
			for round := range rounds {
				var done []string
				for range random.IntN(4) {
					done = append(done, meddle(s, random))
				}
				flags := [][]string{nil, {"--force-conflicts"}}[random.IntN(2)]
				quick := s.Preview(text, flags...)
				full := s.Preview(text, append(flags, "--verify=full")...)
				for _, o := range printedObjects {
					if a, b := quick.Object(t, o.kind, o.name), full.Object(t, o.kind, o.name); a.Action != b.Action {
						t.Errorf("round %d, %v: %s is %s by its fingerprint, %s by the server (%s)\n%s", round, done, o.kind, a.Action, b.Action, b.Error, strings.Join(done, "\n"))
					}
				}
				if t.Failed() {
					return
				}
				if random.IntN(3) > 0 { // otherwise more is done to it first
					s.Apply(text, "--force-conflicts", "--wait=applied").Want(t, 0)
				}
			}
		})
	}
}
