package ready

import (
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoCase is one of Argo CD's health cases (see testdata/README.md).
type argoCase struct {
	Group, Kind, Case, Want string
	Object                  map[string]any
}

func argoCases(t *testing.T) []argoCase {
	t.Helper()
	f, err := os.Open("testdata/argo-health-a-m.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []argoCase
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		whole(c.Object)
	}
	return cases
}

// whole makes whole numbers of v int64, as a client has them.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// The table of Argo's cases. Before there was the general rule, 352 of the 431 cases that
// Argo calls Progressing, Missing or Degraded were ready, and
// 3 of 195 healthy ones waited. "unseen" is ready unless it has just been written.
func TestArgosCases(t *testing.T) {
	count, waits := map[string]int{}, []string{}
	for _, c := range argoCases(t) {
		s := Of(&unstructured.Unstructured{Object: c.Object}, nil, Hints{})
		state := string(s.State)
		if s.Unseen {
			state = "unseen"
		}
		count[c.Want+" "+state]++
		if c.Want == "Healthy" && s.State != Ready {
			waits = append(waits, c.Case+": "+s.Reason)
		}
		if c.Want != "Degraded" && c.Want != "Healthy" && s.State == Failed {
			t.Errorf("%s %s: failed: %s", c.Want, c.Case, s.Reason)
		}
	}
	want := map[string]int{
		"Degraded failed": 2, "Degraded not-ready": 184, "Degraded ready": 32, "Degraded unseen": 1,
		"Healthy not-ready": 7, "Healthy ready": 183, "Healthy unseen": 5,
		"Missing not-ready":     6,
		"Progressing not-ready": 108, "Progressing ready": 18, "Progressing unseen": 80,
		"Suspended not-ready": 13, "Suspended ready": 31, "Suspended unseen": 1,
		"Unknown not-ready": 9, "Unknown ready": 2, "Unknown unseen": 3,
	}
	if !maps.Equal(count, want) {
		t.Errorf("the table differs:\ngot  %v\nwant %v", count, want)
	}
	healthy := []string{
		"apps.kruise.io/CloneSet:healthy.yaml: FailedScale=True MinimumReplicasAvailable: Deployment has minimum availability.",
		"apps.openshift.io/DeploymentConfig:healthy_zero_replicas.yaml: Available=False: Deployment config does not have minimum availability.",
		"cluster.x-k8s.io/MachinePool:scaling_provisioned.yaml: phase is Scaling",
		// its spec names another parent than the status that is about it
		"gateway.networking.k8s.io/HTTPRoute:healthy_multiple_generations.yaml: parents: Accepted=False NoMatchingParent: No listeners match this parent ref",
		"kafka.strimzi.io/KafkaBridge:healthy.yaml: is being deleted, finalizers: foregroundDeletion",
		"kafka.strimzi.io/KafkaConnect:healthy.yaml: is being deleted, finalizers: foregroundDeletion",
		"kafka.strimzi.io/KafkaConnector:healthy.yaml: is being deleted, finalizers: foregroundDeletion",
	}
	slices.Sort(waits)
	if !slices.Equal(waits, healthy) {
		t.Errorf("healthy ones that wait:\n%q\nwant\n%q", waits, healthy)
	}
}
