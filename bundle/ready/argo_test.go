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

// What keeps an object from being ready is what its diagnosis names: one polarity for both.
func TestPolarity(t *testing.T) {
	for _, c := range argoCases(t) {
		o := object{c.Object}
		wanted, _ := o.number("metadata", "generation")
		for _, condition := range o.conditions() {
			reason := split(condition.reason)
			byReason := condition.kind == "Progressing" || condition.kind == "Running" || len(reason) > 0 && reason[len(reason)-1] == "failed"
			old := condition.generation > 0 && condition.generation < wanted
			if condition.doubtful(o, false) && !condition.abnormal() && !byReason && !old {
				t.Errorf("%s: %s keeps it from being ready, and is not abnormal", c.Case, condition)
			}
		}
	}
}

// The table of Argo's cases. Before there was the general rule, 352 of the 431 cases that
// Argo calls Progressing, Missing or Degraded were ready, and
// 3 of 195 healthy ones waited. "unseen" and "unsaid" (no condition Ready, where others of the
// kind have one) are ready unless they have just been written. Of the 38 that stay, 20 say it
// by a number of one vendor's (state: 3).
func TestArgosCases(t *testing.T) {
	count, waits := map[string]int{}, []string{}
	cases := argoCases(t)
	says := map[string]bool{} // the kinds of which one has a condition Ready
	for _, c := range cases {
		if SaysReady(&unstructured.Unstructured{Object: c.Object}) {
			says[c.Group+"/"+c.Kind] = true
		}
	}
	for _, c := range cases {
		s := Of(&unstructured.Unstructured{Object: c.Object}, nil, Hints{})
		state := string(s.State)
		switch {
		case s.Unseen:
			state = "unseen"
		case s.Unsaid && says[c.Group+"/"+c.Kind]:
			state = "unsaid"
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
		"Degraded failed": 2, "Degraded not-ready": 187, "Degraded ready": 29, "Degraded unseen": 1,
		"Healthy not-ready": 7, "Healthy ready": 183, "Healthy unseen": 5,
		"Missing not-ready":     6,
		"Progressing not-ready": 112, "Progressing ready": 9, "Progressing unsaid": 4, "Progressing unseen": 81,
		"Suspended not-ready": 13, "Suspended ready": 29, "Suspended unsaid": 2, "Suspended unseen": 1,
		"Unknown not-ready": 11, "Unknown unseen": 3,
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
