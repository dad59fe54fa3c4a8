package apply

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
)

func TestSameButTimes(t *testing.T) {
	status := func(more ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"resourceVersion": time.Now().String()}, "status": map[string]any{"n": int64(1), "conditions": more}}
	}
	condition := func(at, reason string) any { return map[string]any{"lastProbeTime": at, "reason": reason} }
	for name, test := range map[string]struct {
		a, b map[string]any
		want bool
	}{
		"only times":       {status(condition("2026-01-01T00:00:00Z", "R")), status(condition("2026-01-01T00:00:09.5Z", "R")), true},
		"a reason":         {status(condition("2026-01-01T00:00:00Z", "R")), status(condition("2026-01-01T00:00:00Z", "S")), false},
		"a time for none":  {status(condition("", "R")), status(condition("2026-01-01T00:00:00Z", "R")), false},
		"one more":         {status(condition("", "R")), status(condition("", "R"), condition("", "R")), false},
		"a field more":     {status(), map[string]any{"status": status()["status"], "spec": "x"}, false},
		"a field less":     {map[string]any{"spec": "x"}, map[string]any{}, false},
		"another type":     {map[string]any{"spec": "x"}, map[string]any{"spec": []any{"x"}}, false},
		"fields' managers": {map[string]any{}, map[string]any{"managedFields": []any{"x"}}, true},
	} {
		if got := sameButTimes(test.a, test.b); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Who needs something that is still in progress waits with it, whatever lies between.
func TestStuck(t *testing.T) {
	at := time.Now()
	live := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Creating"}}}
	step := func(s state, needs ...int) *node {
		of := &plan.Step{Object: &bundle.Object{}}
		for _, i := range needs {
			of.Needs = append(of.Needs, plan.Need{Step: i, Want: order.Applied})
		}
		return &node{Outcome: Outcome{Step: of, Latest: live}, state: s, changed: at, seen: at.Add(time.Hour)}
	}
	progress, own, unseen, late := step(waiting), step(waiting), step(waiting), step(waiting)
	progress.changed = at.Add(59 * time.Minute)
	never := time.Duration(0)
	own.rules = &ready.Rules{FailAfter: &never}
	unseen.statusBy, unseen.Latest = at.Add(2*time.Hour), &unstructured.Unstructured{Object: map[string]any{}}
	late.seen = at
	deleted := step(waiting)
	deleted.Object = nil
	e := &scheduler{Input: Input{FailAfter: 5 * time.Minute}}
	e.nodes = []*node{progress, step(finished, 0), step(waiting, 1), step(failing), step(waiting, 3), own, unseen, late, deleted, step(waiting)}
	s := stuck{e: e, now: at.Add(time.Hour)}
	var got []int
	for i, n := range e.nodes {
		if s.after(n) > 0 {
			got = append(got, i)
		}
	}
	if len(got) != 2 || got[0] != 4 || got[1] != 9 || len(s.late) != 1 {
		t.Errorf("stuck are %v; %d kinds are read again", got, len(s.late))
	}
	e.FailAfter = 0
	if s.after(e.nodes[9]) > 0 {
		t.Error("it is off, and one is stuck")
	}
}
