package plan

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/order"
)

func propagated(name string, deletes bool, action Action, needs ...Need) *Step {
	s := &Step{ID: bundle.ID{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "d", Name: name}, Action: action, Needs: needs}
	if !deletes {
		s.Object = &bundle.Object{ID: s.ID}
	}
	return s
}

func TestPropagate(t *testing.T) {
	ready := func(on int) Need { return Need{Step: on, Want: order.Ready, Reason: "mounts it"} }
	before := func(on int, weak bool) Need {
		return Need{Step: on, Want: order.Applied, Reason: "must be deleted first: runs as", Weak: weak}
	}
	for name, test := range map[string]struct {
		steps []*Step
		came  map[int]Action // the outcome of a step, where it is not its action
		want  map[int]string
	}{
		"nothing failed": {
			steps: []*Step{propagated("a", false, Created), propagated("b", false, Created, ready(0)), propagated("c", true, Pruned)},
			want:  map[int]string{},
		},
		"a chain, and all deletions": {
			steps: []*Step{propagated("a", false, Created), propagated("b", false, Created, ready(0)), propagated("c", false, Configured, ready(1)), propagated("d", true, Pruned)},
			came:  map[int]Action{0: Failed},
			want: map[int]string{
				1: "needs ConfigMap d/a ready (mounts it), which failed",
				2: "needs ConfigMap d/b ready (mounts it), which was skipped",
				3: "kept, because 3 objects could not be applied",
			},
		},
		"unchanged, and failed for a reason of its own": {
			steps: []*Step{propagated("a", false, Created), propagated("b", false, Unchanged, ready(0)), propagated("c", false, Created, ready(0))},
			came:  map[int]Action{0: Failed, 2: Failed},
			want:  map[int]string{},
		},
		"a deletion that failed": {
			steps: []*Step{propagated("a", true, Pruned), propagated("b", true, Pruned, before(0, false)), propagated("c", true, Pruned, before(1, true))},
			came:  map[int]Action{0: Failed},
			want: map[int]string{
				1: "kept: ConfigMap d/a must be deleted first (runs as), and failed",
				2: "kept: ConfigMap d/b must be deleted first (runs as), and was kept",
			},
		},
		"a deletion that the plan keeps, and lets others pass": {
			steps: []*Step{propagated("a", true, Skipped), propagated("b", true, Pruned, before(0, true)), propagated("c", true, Pruned, before(0, false))},
			want:  map[int]string{2: "kept: ConfigMap d/a must be deleted first (runs as), and was kept"},
		},
		"one that must not be kept": {
			steps: []*Step{func() *Step { s := propagated("a", true, Skipped); s.Kept = true; return s }(), propagated("b", true, Pruned, before(0, true))},
			want:  map[int]string{1: "kept: ConfigMap d/a must be deleted first (runs as), and was kept"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Steps: test.steps}
			outcomes := make([]Outcome, len(p.Steps))
			for i, s := range p.Steps {
				outcomes[i].Action = s.Action
				if came, ok := test.came[i]; ok {
					outcomes[i].Action = came
				}
			}
			if got := p.Propagate(outcomes); !maps.Equal(got, test.want) {
				t.Errorf("skipped:\n%v\nwant:\n%v", got, test.want)
			}
			for i := range test.want {
				if outcomes[i].Action != Skipped {
					t.Errorf("step %d is %s", i, outcomes[i].Action)
				}
			}
		})
	}
}

func TestKeepsAll(t *testing.T) {
	p := &Plan{Steps: []*Step{propagated("a", false, Created), propagated("b", false, Created), propagated("c", true, Skipped)}}
	for name, test := range map[string]struct {
		outcomes  []Outcome
		readiness bool
		want      string
	}{
		"all is well":               {[]Outcome{{Action: Created}, {Action: Unchanged}, {Action: Skipped}}, true, ""},
		"not applied":               {[]Outcome{{Action: Failed}, {Action: Created, NotReady: "0 of 1"}, {}}, true, "kept, because 1 object could not be applied"},
		"not ready":                 {[]Outcome{{Action: Created}, {Action: Created, NotReady: "0 of 1"}, {}}, true, "kept, because ConfigMap d/b is not ready"},
		"two are not ready":         {[]Outcome{{Action: Created, NotReady: "0 of 1"}, {Action: Created, NotReady: "0 of 1"}, {}}, true, "kept, because ConfigMap d/a and 1 more object are not ready"},
		"readiness does not count":  {[]Outcome{{Action: Created, NotReady: "0 of 1"}, {Action: Created}, {}}, false, ""},
		"not applied always counts": {[]Outcome{{Action: Skipped}, {Action: Created}, {}}, false, "kept, because 1 object could not be applied"},
	} {
		if got := p.HoldsPruning(test.outcomes, test.readiness); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
