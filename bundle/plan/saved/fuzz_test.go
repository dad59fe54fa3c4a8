package saved

import (
	"encoding/json"
	"testing"
)

// FuzzBound: a saved plan is a file that anybody may have written.
func FuzzBound(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"brine.dev/v1","kind":"Plan","digest":"sha256:1","inventory":{"namespace":"ns","name":"inv","id":"x","members":"sha256:2"},"options":{"wait":"ready"},
		  "steps":[{"group":"apps","version":"v1","kind":"Deployment","namespace":"ns","name":"a","action":"configured","uid":"1","resourceVersion":"2","changes":[{"path":"spec.replicas","before":1,"after":2}]}]}`,
		`{"steps":[{},{}]}`, `{"steps":[{"changes":[{}]},{"changes":null}]}`, `null`, `{"options":{"":""}}`,
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		read := func(text string) *Plan {
			b := &Plan{}
			if json.Unmarshal([]byte(text), b) != nil {
				return nil
			}
			return b
		}
		was, is := read(text), read(other)
		if was == nil || is == nil {
			return
		}
		_ = was.Drift(is) // without a cluster, maybe
		was.Cluster, is.Cluster = &Cluster{UID: "1"}, &Cluster{UID: "1"}
		if text == other && len(was.Drift(is)) > 0 {
			// Two steps of one object are no plan.
			if ids := map[any]bool{}; unique(was, ids) {
				t.Errorf("a plan differs from itself: %q", was.Drift(is))
			}
		}
		for _, line := range was.Drift(is) {
			if line == "" {
				t.Error("a difference without a word")
			}
		}
	})
}

func unique(b *Plan, ids map[any]bool) bool {
	for _, s := range b.Steps {
		if ids[s.ID()] {
			return false
		}
		ids[s.ID()] = true
	}
	return true
}
