package report

import (
	"slices"
	"testing"

	"brine/bundle"
)

func TestCriticalPath(t *testing.T) {
	object := func(name string, queued, sent, answered, ready float64, after, want string, waits ...Wait) *ObjectResult {
		o := &ObjectResult{Kind: "K", Name: name, QueuedAt: queued, StartedAt: sent, ActedAt: answered, ReadyAt: ready, Waits: waits}
		if after != "" {
			o.After = &Need{Reference: bundle.Reference{Kind: "K", Name: after}, Want: want, Reason: "any"}
		}
		return o
	}
	for name, c := range map[string]struct {
		objects []*ObjectResult
		want    []string
		longest string
		queued  float64 // of the longest step
		request float64
		waiting float64
		reason  string
	}{
		"nothing was sent":       {objects: []*ObjectResult{{Kind: "K", Name: "same"}}},
		"one object":             {objects: []*ObjectResult{object("a", 1, 2, 4, 9, "", "", Wait{"short", 1}, Wait{"long", 4})}, want: []string{"a"}, longest: "a", queued: 1, request: 2, waiting: 5, reason: "long"},
		"only what let it begin": {objects: []*ObjectResult{object("a", 0.1, 0.2, 0.3, 5, "", "", Wait{"image", 4}), object("other", 0.1, 0.2, 6, 6, "", ""), object("b", 5, 5.1, 5.2, 7, "a", "ready")}, want: []string{"a", "b"}, longest: "a", queued: 0.1, request: 0.1, waiting: 4.7, reason: "image"},
		"an answer is enough":    {objects: []*ObjectResult{object("a", 0.1, 0.2, 3, 4, "", ""), object("b", 3, 3.1, 3.2, 4.5, "a", "applied")}, want: []string{"a", "b"}, longest: "a", queued: 0.1, request: 2.8},
		"what is unchanged":      {objects: []*ObjectResult{object("a", 0, 0, 0, 8, "", "", Wait{"rollout", 8})}, want: []string{"a"}, longest: "a", waiting: 8, reason: "rollout"},
	} {
		t.Run(name, func(t *testing.T) {
			p := criticalPath(c.objects)
			if p == nil {
				if c.want != nil {
					t.Fatal("there is none")
				}
				return
			}
			var names []string
			for _, s := range p.Steps {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, c.want) {
				t.Fatalf("it is %v, want %v", names, c.want)
			}
			s := p.Steps[p.Longest]
			if s.Name != c.longest || s.Queued != c.queued || s.Request != c.request || s.Waiting != c.waiting || s.Reason != c.reason {
				t.Errorf("the longest is %+v", s)
			}
		})
	}
}
