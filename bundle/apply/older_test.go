package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
)

// What a watch shows from before what this run wrote is passed over, also of servers whose
// versions cannot be compared.
func TestOlder(t *testing.T) {
	t.Parallel()
	shown := func(uid, version string, generation int64) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID(types.UID(uid))
		u.SetResourceVersion(version)
		u.SetGeneration(generation)
		return u
	}
	numbered := &node{Outcome: Outcome{Step: &plan.Step{Live: shown("old", "10", 1)}}, stored: shown("new", "20", 2)}
	lettered := &node{Outcome: Outcome{Step: &plan.Step{Live: shown("old", "a", 1)}}, stored: shown("new", "b", 2)}
	for name, test := range map[string]struct {
		node *node
		live *unstructured.Unstructured
		want bool
	}{
		"a later version":                      {numbered, shown("new", "21", 2), false},
		"the version that was stored":          {numbered, shown("new", "20", 2), false},
		"a version from before":                {numbered, shown("new", "19", 2), true},
		"the object that was replaced":         {numbered, shown("old", "11", 1), true},
		"another object, later":                {numbered, shown("third", "30", 1), false},
		"no numbers: a later generation":       {lettered, shown("new", "c", 3), false},
		"no numbers: the same generation":      {lettered, shown("new", "c", 2), false},
		"no numbers: a generation from before": {lettered, shown("new", "c", 1), true},
		"no numbers: what was replaced":        {lettered, shown("old", "c", 9), true},
		"no numbers: another object":           {lettered, shown("third", "c", 1), false},
	} {
		if got := older(test.node, test.live); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
