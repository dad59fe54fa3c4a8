package apply

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/plan"
)

// The live object of what is unchanged and ready is not kept; of anything else it is
// asked for later.
func TestLiveObjectsThatAreReadyAreNotKept(t *testing.T) {
	live := func(api, kind string, more map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": api, "kind": kind, "metadata": map[string]any{"name": "x", "namespace": "ns", "generation": int64(1)}}}
		maps.Copy(u.Object, more)
		return u
	}
	complete := map[string]any{"status": map[string]any{"succeeded": int64(1), "conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}}
	withTTL := map[string]any{"status": complete["status"], "spec": map[string]any{"ttlSecondsAfterFinished": int64(60)}}
	for name, c := range map[string]struct {
		live   *unstructured.Unstructured
		change func(*plan.Step)
		kept   bool
	}{
		"ready":               {live: live("v1", "ConfigMap", nil)},
		"a complete Job":      {live: live("batch/v1", "Job", complete)},
		"a Job that goes":     {live: live("batch/v1", "Job", withTTL), kept: true},
		"not ready":           {live: live("apps/v1", "Deployment", map[string]any{"status": map[string]any{}}), kept: true},
		"being deleted":       {live: live("v1", "ConfigMap", map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}}), kept: true},
		"to be changed":       {live: live("v1", "ConfigMap", nil), change: func(s *plan.Step) { s.Action = plan.Configured }, kept: true},
		"no member":           {live: live("v1", "ConfigMap", nil), change: func(s *plan.Step) { s.Member = false }, kept: true},
		"blocked":             {live: live("v1", "ConfigMap", nil), change: func(s *plan.Step) { s.Blocked = "why" }, kept: true},
		"completed, and gone": {change: func(s *plan.Step) { s.Completed = true }},
		"pruned":              {live: live("v1", "ConfigMap", nil), change: func(s *plan.Step) { s.Action = plan.Pruned }, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &plan.Step{Action: plan.Unchanged, Member: true, Live: c.live}
			if c.live != nil {
				s.GVK = c.live.GroupVersionKind()
				s.ID = bundle.ID{GroupKind: s.GVK.GroupKind(), Namespace: "ns", Name: "x"}
			}
			if c.change != nil {
				c.change(s)
			}
			wasReady := (&Input{Plan: &plan.Plan{Steps: []*plan.Step{s}}}).dropReady()
			if kept := s.Live != nil; kept != c.kept {
				t.Errorf("kept: %t, want %t", kept, c.kept)
			}
			if _, is := wasReady[s]; is != (c.live != nil && !c.kept) {
				t.Errorf("ready: %t", is)
			}
		})
	}
}
