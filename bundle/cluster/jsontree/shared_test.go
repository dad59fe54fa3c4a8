package jsontree

import (
	"slices"
	"testing"
)

func TestWhatIsChangedInPlaceIsTold(t *testing.T) {
	shared := &Shared{}
	list, err := shared.Unmarshal([]byte(`{"items":[{"metadata":{"name":"a","labels":{"app":"x"}},"data":{"k":[1,"v"]}},{"metadata":{"name":"b","labels":{"app":"x"}},"data":{"k":[1,"v"]}}]}`))
	if err != nil || len(shared.Changed()) > 0 {
		t.Fatalf("before any change: %q, %v", shared.Changed(), err)
	}
	items, _ := list["items"].([]any)
	first, _ := items[0].(map[string]any)
	first["status"] = "its own" // the object itself is not shared
	metadata, _ := first["metadata"].(map[string]any)
	metadata["name"] = "c"
	if got := shared.Changed(); len(got) > 0 {
		t.Errorf("what is not shared counts: %q", got)
	}
	labels, _ := metadata["labels"].(map[string]any)
	labels["app"] = "y"
	if got := shared.Changed(); !slices.Equal(got, []string{`{"app":"x"}`}) {
		t.Errorf("after a change of labels: %q", got)
	}
}
