package ready

import (
	"testing"
	"time"

	"brine/bundle/bundletest"
)

// One that looks once judges an object that was just written as a run does that waits for it.
func TestSince(t *testing.T) {
	const (
		mute    = `{apiVersion: example.com/v1, kind: Pump, metadata: {name: p}}`
		speaks  = `{apiVersion: example.com/v1, kind: Pump, metadata: {name: q}, status: {address: a}}`
		isReady = `{apiVersion: example.com/v1, kind: Pump, metadata: {name: q}, status: {conditions: [{type: Ready, status: "True"}]}}`
		crd     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: pumps.example.com}, spec: {group: example.com, names: {kind: Pump, plural: pumps}, scope: Namespaced,
  versions: [{name: v1, served: true, storage: true, additionalPrinterColumns: [{name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}]}]}}`
		policy = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: p}}`
	)
	minute, none := time.Minute, time.Duration(0)
	for _, test := range []struct {
		name, object, other string
		age                 time.Duration
		noStatus            bool // of the resource
		rules               *Rules
		want                string // "" is ready
	}{
		{"just written", mute, "", time.Second, false, nil, "has no status yet (counts as ready after 5s without one)"},
		{"long ago", mute, "", 6 * time.Second, false, nil, ""},
		{"another one has a status", mute, speaks, 6 * time.Second, false, nil, "has no status yet (counts as ready after 30s without one)"},
		{"another one has a condition Ready", speaks, isReady, 6 * time.Second, false, nil, "has no condition Ready yet (counts as ready after 30s without one)"},
		{"kubectl prints a condition Ready", speaks, crd, time.Second, false, nil, "has no condition Ready yet (counts as ready after 5s without one)"},
		{"none of the kind has one", speaks, "", time.Second, false, nil, ""},
		{"it says itself how long", mute, "", 6 * time.Second, false, &Rules{StatusTimeout: &minute}, "has no status yet (counts as ready after 1m0s without one)"},
		{"it says not at all", mute, "", 0, false, &Rules{StatusTimeout: &none}, ""},
		{"its kind has no status", mute, "", 0, true, nil, ""},
		{"it is Kubernetes' own", policy, "", 0, false, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			said, live := SaidBy{}, bundletest.Object(t, test.object)
			gk := live.GroupVersionKind().GroupKind()
			said.Hear(gk, live)
			if test.other != "" {
				other := bundletest.Object(t, test.other)
				said.Hear(other.GroupVersionKind().GroupKind(), other)
				said.Defined(other)
			}
			now := time.Now()
			got := said.Of(gk).Since(now.Add(-test.age), now, gk.Group, !test.noStatus, test.rules, Of(live, test.rules, Hints{}))
			if wantState := map[bool]State{true: Ready, false: NotReady}[test.want == ""]; got.State != wantState || got.Reason != test.want {
				t.Errorf("%s: %q", got.State, got.Reason)
			}
		})
	}
}
