package write_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/cmd/brine/clitest"
)

// everyStorage has one kind for each way in which the API server stores
// objects: the generic store, wrappers with allocators and escalation checks,
// custom resources, and the other servers' own kinds.
var everyStorage = map[string]string{
	"v1/configmaps":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pre, namespace: \"{ns}\"}\n",
	"v1/secrets":                "apiVersion: v1\nkind: Secret\nmetadata: {name: pre, namespace: \"{ns}\"}\n",
	"v1/services":               "apiVersion: v1\nkind: Service\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {ports: [{port: 80}]}\n",
	"v1/serviceaccounts":        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: pre, namespace: \"{ns}\"}\n",
	"v1/namespaces":             "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-pre\"}\n",
	"v1/endpoints":              "apiVersion: v1\nkind: Endpoints\nmetadata: {name: pre, namespace: \"{ns}\", annotations: {control-plane.alpha.kubernetes.io/leader: \"\"}}\n", // else their controller deletes them when it starts: they have no Service
	"v1/resourcequotas":         "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {hard: {pods: 1000}}\n",
	"v1/limitranges":            "apiVersion: v1\nkind: LimitRange\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Ti}}]}\n",
	"v1/persistentvolumeclaims": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
	"v1/persistentvolumes":      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: \"{ns}-pre\"}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/pre}}\n",
	"v1/pods":                   "apiVersion: v1\nkind: Pod\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {containers: [{name: app, image: example.com/app}]}\n",
	"v1/replicationcontrollers": "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {replicas: 0, selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: example.com/app}]}}}\n",
	"v1/nodes":                  "apiVersion: v1\nkind: Node\nmetadata: {name: \"{ns}-pre\"}\nspec: {unschedulable: true}\n",

	"apps/v1/deployments":                  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: example.com/app}]}}}\n",
	"apps/v1/statefulsets":                 "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {replicas: 0, serviceName: pre, selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: app, image: example.com/app}]}}}\n",
	"batch/v1/cronjobs":                    "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {schedule: \"0 0 1 1 *\", suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: example.com/app}]}}}}}\n",
	"batch/v1/jobs":                        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: app, image: example.com/app}]}}}\n",
	"policy/v1/poddisruptionbudgets":       "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {minAvailable: 1, selector: {matchLabels: {a: nobody}}}\n",
	"networking.k8s.io/v1/ingresses":       "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {defaultBackend: {service: {name: a, port: {number: 80}}}}\n",
	"coordination.k8s.io/v1/leases":        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: pre, namespace: \"{ns}\"}\nspec: {}\n",
	"scheduling.k8s.io/v1/priorityclasses": "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: \"{ns}-pre\"}\nvalue: 5\n",
	"storage.k8s.io/v1/storageclasses":     "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: \"{ns}-pre\"}\nprovisioner: example.com/none\n",

	"rbac.authorization.k8s.io/v1/roles":               "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: pre, namespace: \"{ns}\"}\nrules: []\n",
	"rbac.authorization.k8s.io/v1/rolebindings":        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: pre, namespace: \"{ns}\"}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n",
	"rbac.authorization.k8s.io/v1/clusterroles":        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{ns}-pre\"}\nrules: [{apiGroups: [example.com], resources: [nothings], verbs: [get]}]\n",
	"rbac.authorization.k8s.io/v1/clusterrolebindings": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: \"{ns}-pre\"}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n",

	"admissionregistration.k8s.io/v1/validatingadmissionpolicies":     "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: \"{ns}-pre\"}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}, validations: [{expression: \"true\"}]}\n",
	"admissionregistration.k8s.io/v1/validatingwebhookconfigurations": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: \"{ns}-pre\"}\nwebhooks: [{name: a.example.com, clientConfig: {url: \"https://127.0.0.1:1/\"}, sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]}]\n",

	"flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: \"{ns}-pre\"}\nspec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n",
	"discovery.k8s.io/v1/endpointslices":                          "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: pre, namespace: \"{ns}\"}\naddressType: IPv4\nendpoints: []\n",
}

// A server that stops answering like this one takes every guard of an apply away.
func TestPreconditionsOfAnApply(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Widgets).Want(t, 0)
	everyStorage := maps.Clone(everyStorage)
	everyStorage[strings.ReplaceAll("{ns}.example.com/v1/widgets", "{ns}", s.NS)] = clitest.Widget
	for resource, text := range everyStorage {
		t.Run(resource, func(t *testing.T) {
			if strings.HasSuffix(resource, "/validatingadmissionpolicies") {
				s.Cluster.Needs(t, 30, "ValidatingAdmissionPolicies")
			}
			if strings.HasPrefix(resource, "flowcontrol.apiserver.k8s.io/v1/") {
				s.Cluster.Needs(t, 29, "flowcontrol.apiserver.k8s.io/v1")
			}
			b, err := read.Bundle(t.Context(), read.Options{Files: []string{s.File(text)}})
			if err != nil {
				t.Fatal(err)
			}
			u := b.Objects[0].Content
			u.SetLabels(map[string]string{"test": "preconditions"})
			var r dynamic.ResourceInterface = s.Resources(resource)
			if u.GetNamespace() != "" {
				r = s.Resources(resource).Namespace(u.GetNamespace())
			} else {
				s.GoneAfter(resource, u.GetName())
			}
			put := func(version string, uid types.UID) (*unstructured.Unstructured, error) {
				c := u.DeepCopy()
				c.SetResourceVersion(version)
				c.SetUID(uid)
				body, err := c.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				return r.Patch(t.Context(), u.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "brine", FieldValidation: "Strict"})
			}
			const never = "9223372036854775807"
			created, err := put(never, "")
			if err != nil {
				t.Fatalf("what is not there is not created: %v", err)
			}
			if fields := fmt.Sprint(created.GetManagedFields()); strings.Contains(fields, "resourceVersion") || strings.Contains(fields, "f:uid") {
				t.Errorf("the precondition is owned: %s", fields)
			}
			if _, err = put(never, ""); !apierrors.IsConflict(err) {
				t.Errorf("what is there is created again: %v", err)
			}
			if _, err = put("1", created.GetUID()); !apierrors.IsConflict(err) {
				t.Errorf("an old version: %v", err)
			}
			if _, err = put("1", "11111111-1111-1111-1111-111111111111"); !apierrors.IsConflict(err) {
				t.Errorf("another object: %v", err)
			}
			var same *unstructured.Unstructured
			var live *unstructured.Unstructured
			for range 20 { // a controller may be at work
				if live, err = r.Get(t.Context(), u.GetName(), metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
				same, err = put(live.GetResourceVersion(), live.GetUID())
				if err == nil && same.GetResourceVersion() == live.GetResourceVersion() || err != nil && !apierrors.IsConflict(err) {
					break
				}
			}
			if err != nil || same.GetResourceVersion() != live.GetResourceVersion() {
				t.Errorf("the same again: %v", err)
			}
			if err := r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				t.Fatal(err)
			}
			// What has finalizers is there for a while.
			if _, err = put("1", created.GetUID()); !apierrors.IsConflict(err) {
				t.Errorf("what was deleted is created: %v", err)
			}
		})
	}
}

// before lets a second actor act once, right before brine's first request that
// the words stand in the path of.
func before(p *clustertest.Proxy, method, path string, act func()) {
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == method && strings.HasSuffix(r.Path, path) && r.IsWrite() {
			once.Do(act)
		}
		return clustertest.Action{}
	})
}

// lost cuts the connection once the server has acted on the first such request.
func lost(p *clustertest.Proxy, method, path string) {
	var once sync.Once
	p.Intercept(func(r clustertest.Request) (a clustertest.Action) {
		if r.Method == method && strings.HasSuffix(r.Path, path) && r.IsWrite() {
			once.Do(func() { a.CutAfter = true })
		}
		return a
	})
}

func TestObjectThatAnotherInventoryCreatedMeanwhileIsLeftAlone(t *testing.T) {
	s := clitest.New(t)
	second := s.Other("second")
	p := s.Proxied()
	before(p, http.MethodPatch, "/configmaps/web", func() { second.Apply(clitest.ConfigMapOf("web", "{theirs: x}")).Want(t, 0) })
	result := s.Apply(clitest.Documents(clitest.ConfigMap("web"), clitest.ConfigMap("other"))).Want(t, 1).Prints(t, "it belongs to inventory")
	result.Did(t, "ConfigMap", "web", plan.Failed)
	result.Did(t, "ConfigMap", "other", plan.Created)
	live := s.ConfigMap("web")
	if data := clitest.DataOf(live); data["theirs"] != "x" || len(data) != 1 {
		t.Errorf("it holds %v", data)
	}
	if got := s.Members(); !slices.Equal(got, []string{"ConfigMap " + s.NS + "/other"}) {
		t.Errorf("the inventory holds %v", got)
	}
	s.Destroy().Want(t, 0)
	s.Exists("v1/configmaps", "web")
	second.Apply(clitest.ConfigMapOf("web", "{theirs: x}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Unchanged)
}

func TestUnownedObjectCreatedMeanwhileFollowsThePolicy(t *testing.T) {
	for policy, exit := range map[string]int{"adopt-if-no-inventory": 0, "must-match": 1} {
		t.Run(policy, func(t *testing.T) {
			s := clitest.New(t)
			before(s.Proxied(), http.MethodPatch, "/configmaps/web", func() { s.Create("v1/configmaps", clitest.ConfigMapOf("web", "{theirs: x}")) })
			result := s.Apply(clitest.ConfigMapOf("web", "{ours: x}"), "--inventory-policy="+policy).Want(t, exit)
			data := s.Data("web")
			if exit != 0 {
				result.Prints(t, "belongs to no inventory").Did(t, "ConfigMap", "web", plan.Failed)
				if len(data) != 1 || len(s.Members()) != 0 {
					t.Errorf("it holds %v, the inventory %v", data, s.Members())
				}
				return
			}
			if o := result.Did(t, "ConfigMap", "web", plan.Configured); !strings.Contains(o.Diff, "ours") {
				t.Errorf("the diff does not show what changed: %q", o.Diff)
			}
			if len(data) != 2 {
				t.Errorf("it holds %v", data)
			}
		})
	}
}

func TestObjectThatAnotherInventoryAdoptedMeanwhileIsLeftAlone(t *testing.T) {
	for name, flags := range map[string][]string{"apply": nil, "take over": {"--take-over-from=somebody"}, "force": {"--force-conflicts"}} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.ConfigMapOf("web", "{a: \"1\"}")).Want(t, 0)
			if name == "take over" {
				s.PatchAs("somebody", "v1/configmaps", "web", `{"data":{"b":"2"}}`)
			}
			second := s.Other("second")
			before(s.Proxied(), http.MethodPatch, "/configmaps/web", func() {
				second.Apply(clitest.ConfigMapOf("web", "{theirs: x}"), "--inventory-policy=adopt-all").Want(t, 0)
			})
			s.Apply(clitest.ConfigMapOf("web", "{a: \"2\"}"), flags...).Want(t, 1).Prints(t, "it belongs to inventory").Did(t, "ConfigMap", "web", plan.Failed)
			live := s.ConfigMap("web")
			if data := clitest.DataOf(live); data["theirs"] != "x" || data["a"] != "" {
				t.Errorf("it holds %v", data)
			}
			if name == "take over" && !strings.Contains(fmt.Sprint(live.GetManagedFields()), "somebody") {
				t.Error("its fields were taken over")
			}
		})
	}
}

func TestObjectReplacedMeanwhileFollowsThePolicy(t *testing.T) {
	for policy, exit := range map[string]int{"adopt-if-no-inventory": 0, "must-match": 1} {
		t.Run(policy, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.ConfigMapOf("web", "{a: \"1\"}")).Want(t, 0)
			before(s.Proxied(), http.MethodPatch, "/configmaps/web", func() {
				deleteObject(s, "v1/configmaps", "web")
				s.Create("v1/configmaps", clitest.ConfigMapOf("web", "{theirs: x}"))
			})
			s.Apply(clitest.ConfigMapOf("web", "{a: \"2\"}"), "--inventory-policy="+policy).Want(t, exit)
			if data := s.Data("web"); (data["a"] == "2") != (exit == 0) || data["theirs"] != "x" {
				t.Errorf("it holds %v", data)
			}
		})
	}
}

func TestObjectDeletedMeanwhileIsCreatedAgain(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("web", "{a: \"1\"}")).Want(t, 0)
	before(s.Proxied(), http.MethodPatch, "/configmaps/web", func() { deleteObject(s, "v1/configmaps", "web") })
	s.Apply(clitest.ConfigMapOf("web", "{a: \"2\"}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Created)
	s.Exists("v1/configmaps", "web")
}

func TestFieldsThatOthersWroteMeanwhileStay(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("web", "{a: \"1\"}")).Want(t, 0)
	p := s.Proxied()
	before(p, http.MethodPatch, "/configmaps/web", func() { s.PatchAs("somebody", "v1/configmaps", "web", `{"data":{"b":"2"}}`) })
	s.Apply(clitest.ConfigMapOf("web", "{a: \"2\"}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Configured)
	if data := s.Data("web"); data["a"] != "2" || data["b"] != "2" {
		t.Errorf("it holds %v", data)
	}
}

func TestOwnWriteIsRecognizedAfterALostAnswer(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	lost(p, http.MethodPatch, "/configmaps/web")
	s.Apply(clitest.ConfigMapOf("web", "{a: \"1\"}"), "--inventory-policy=must-match").Want(t, 0).Did(t, "ConfigMap", "web", plan.Created)
	lost(p, http.MethodPatch, "/configmaps/web")
	s.Apply(clitest.ConfigMapOf("web", "{a: \"2\"}"), "--inventory-policy=must-match").Want(t, 0).Did(t, "ConfigMap", "web", plan.Configured)
	p.Intercept(nil)
	s.Apply(clitest.ConfigMapOf("web", "{a: \"2\"}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Unchanged)
}

func TestInventoryNamespaceOfAnotherInventoryIsLeftAlone(t *testing.T) {
	s := clitest.New(t)
	home := s.NS + "-home"
	s.GoneAfter("v1/namespaces", home)
	second := s.Other("second")
	s.Inventory = home + "/inv"
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-home\", labels: {whose: %s}}\n"
	before(s.Proxied(), http.MethodPatch, "/namespaces/"+home, func() { second.Apply(fmt.Sprintf(namespace, "theirs")).Want(t, 0) })
	s.Apply(fmt.Sprintf(namespace, "ours")).Want(t, 1).Prints(t, "it belongs to inventory")
	if labels := s.Live("v1/namespaces", "", home).GetLabels(); labels["whose"] != "theirs" {
		t.Errorf("its labels are %v", labels)
	}
}

// deleteObject deletes an object of the fixture's namespace past brine.
func deleteObject(s *clitest.Fixture, resource, name string) {
	s.Helper()
	if err := s.Resources(resource).Namespace(s.NS).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// Preview and apply name the fields that are taken in the same words.
func TestFieldsTakenAreNamed(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("web", "{a: x}")).Want(t, 0)
	s.PatchAs("somebody", "v1/configmaps", "web", `{"data":{"a":"theirs"}}`)
	next := clitest.ConfigMapOf("web", "{a: y}")
	preview, apply := s.Preview(next, "--force-conflicts").Want(t, 0), s.Apply(next, "--force-conflicts").Want(t, 0)
	takes := func(o clitest.Outcome) []string {
		return slices.DeleteFunc(slices.Clone(o.Result.Warnings), func(w string) bool { return !strings.Contains(w, "takes ") })
	}
	if got, want := takes(apply), takes(preview); len(got) != 1 || !slices.Equal(got, want) || !strings.Contains(got[0], ".data.a from somebody") {
		t.Errorf("the apply says %q, the preview %q", got, want)
	}
}
