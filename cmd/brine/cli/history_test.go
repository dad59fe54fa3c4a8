package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
)

// history is what "brine history" lists, the oldest first: "1 applied".
func (s *fixture) history() []string {
	s.Helper()
	did := brine(s.TB, s.kubeconfig, "history", "--inventory", s.inventory).want(s.TB, 0)
	var history struct {
		Revisions []struct {
			Number int    `json:"number"`
			Result string `json:"result"`
		} `json:"revisions"`
	}
	if err := json.Unmarshal([]byte(did.stdout), &history); err != nil {
		s.Fatal(err)
	}
	var lines []string
	for _, r := range history.Revisions {
		lines = append(lines, fmt.Sprint(r.Number, " ", r.Result))
	}
	slices.Reverse(lines)
	return lines
}

func (s *fixture) wantHistory(want ...string) {
	s.Helper()
	if got := s.history(); !slices.Equal(got, want) {
		s.Errorf("the history is %q, want %q", got, want)
	}
}

// take makes another field manager own the data of a ConfigMap.
func (s *fixture) take(name string) {
	s.Helper()
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"key":"theirs"}}`
	force := true
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(s.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody", Force: &force}); err != nil {
		s.Fatal(err)
	}
}

// A bundle that fails when it is applied again is a revision of its own: that of
// its first run is still there to go back to.
func TestFailedRepetitionKeepsTheGoodRevision(t *testing.T) {
	s := newFixture(t)
	s.apply(configMapOf("a", "{key: one}")).want(t, 0)
	s.take("a")
	s.apply(configMapOf("a", "{key: one}")).want(t, 1)
	s.apply(configMapOf("a", "{key: one}")).want(t, 1) // and again: the same result of the same bundle
	s.wantHistory("1 applied", "2 failed")
	s.apply(configMapOf("a", "{key: two}")).want(t, 1)
	s.rollback("--force-conflicts").want(t, 0).did(t, "ConfigMap", "a", plan.Configured)
	s.wantHistory("1 applied", "2 failed", "3 failed", "4 applied")
	if got, _, _ := unstructuredString(s, "a", "data", "key"); got != "one" {
		t.Errorf("after the rollback it holds %q", got)
	}
}

func TestHistoryLimitKeepsTheLastGoodRevision(t *testing.T) {
	s := newFixture(t)
	s.apply(configMapOf("a", "{key: one}"), "--history-limit=2").want(t, 0)
	s.take("a")
	for _, value := range []string{"two", "three", "four", "five"} {
		s.apply(configMapOf("a", "{key: "+value+"}"), "--history-limit=2").want(t, 1)
	}
	s.wantHistory("1 applied", "4 failed", "5 failed")
	s.rollback("--force-conflicts", "--history-limit=1").want(t, 0)
	s.wantHistory("1 applied", "6 applied")
	s.destroy().want(t, 0)
}

// A rollback can be repeated, whatever its history limit drops.
func TestRollbackKeepsItsRevision(t *testing.T) {
	s := newFixture(t)
	for _, value := range []string{"one", "two", "three", "four"} {
		s.apply(configMapOf("a", "{key: "+value+"}")).want(t, 0)
	}
	for range 2 {
		s.rollback("1", "--history-limit=1").want(t, 0)
	}
	s.wantHistory("1 applied", "4 applied", "5 applied")
	s.apply(configMapOf("a", "{key: six}"), "--history-limit=1").want(t, 0)
	s.wantHistory("5 applied", "6 applied")
}

// An inventory object that lost the number of its last revision does not
// overwrite the first ones.
func TestRevisionsAreNumberedOnWithoutTheAnnotation(t *testing.T) {
	s := newFixture(t)
	s.apply(configMapOf("a", "{key: one}")).want(t, 0)
	s.apply(configMapOf("a", "{key: two}")).want(t, 0)
	s.patchMap("inv", `{"metadata":{"annotations":{"brine.dev/last-revision":null}}}`)
	s.apply(configMapOf("a", "{key: three}")).want(t, 0)
	s.wantHistory("1 applied", "2 applied", "3 applied")
	s.patchMap("inv", `{"metadata":{"annotations":{"brine.dev/last-revision":null}}}`)
	s.apply(configMapOf("a", "{key: three}")).want(t, 0)
	s.wantHistory("1 applied", "2 applied", "3 applied")
	s.rollback().want(t, 0)
	if got, _, _ := unstructuredString(s, "a", "data", "key"); got != "two" {
		t.Errorf("after the rollback it holds %q", got)
	}
}
