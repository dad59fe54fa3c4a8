package run_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// revisions is what "brine history" lists, the oldest first: "1 applied".
func revisions(s *clitest.Fixture) []string {
	s.Helper()
	did := clitest.Run(s.TB, s.Kubeconfig, "history", "--inventory", s.Inventory).Want(s.TB, 0)
	var history struct {
		Revisions []struct {
			Number int    `json:"number"`
			Result string `json:"result"`
		} `json:"revisions"`
	}
	if err := json.Unmarshal([]byte(did.Stdout), &history); err != nil {
		s.Fatal(err)
	}
	var lines []string
	for _, r := range history.Revisions {
		lines = append(lines, fmt.Sprint(r.Number, " ", r.Result))
	}
	slices.Reverse(lines)
	return lines
}

func wantHistory(s *clitest.Fixture, want ...string) {
	s.Helper()
	if got := revisions(s); !slices.Equal(got, want) {
		s.Errorf("the history is %q, want %q", got, want)
	}
}

// take makes another field manager own the data of a ConfigMap.
func take(s *clitest.Fixture, name string) {
	s.Helper()
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"key":"theirs"}}`
	force := true
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(s.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody", Force: &force}); err != nil {
		s.Fatal(err)
	}
}

// A bundle that fails when it is applied again is a revision of its own: that of
// its first run is still there to go back to.
func TestFailedRepetitionKeepsTheGoodRevision(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	take(s, "a")
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 1)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 1) // and again: the same result of the same bundle
	wantHistory(s, "1 applied", "2 failed")
	s.Apply(clitest.ConfigMapOf("a", "{key: two}")).Want(t, 1)
	s.Rollback("--force-conflicts").Want(t, 0).Did(t, "ConfigMap", "a", plan.Configured)
	wantHistory(s, "1 applied", "2 failed", "3 failed", "4 applied")
	if got, _, _ := unstructuredString(s, "a", "data", "key"); got != "one" {
		t.Errorf("after the rollback it holds %q", got)
	}
}

func TestHistoryLimitKeepsTheLastGoodRevision(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}"), "--history-limit=2").Want(t, 0)
	take(s, "a")
	for _, value := range []string{"two", "three", "four", "five"} {
		s.Apply(clitest.ConfigMapOf("a", "{key: "+value+"}"), "--history-limit=2").Want(t, 1)
	}
	wantHistory(s, "1 applied", "4 failed", "5 failed")
	s.Rollback("--force-conflicts", "--history-limit=1").Want(t, 0)
	wantHistory(s, "1 applied", "5 failed", "6 applied")
	s.Destroy().Want(t, 0)
}

// A rollback can be repeated, whatever its history limit drops.
func TestRollbackKeepsItsRevision(t *testing.T) {
	s := clitest.New(t)
	for _, value := range []string{"one", "two", "three", "four"} {
		s.Apply(clitest.ConfigMapOf("a", "{key: "+value+"}")).Want(t, 0)
	}
	for range 2 {
		s.Rollback("1", "--history-limit=1").Want(t, 0)
	}
	wantHistory(s, "1 applied", "3 applied", "4 applied", "5 applied")
	s.Apply(clitest.ConfigMapOf("a", "{key: six}"), "--history-limit=1").Want(t, 0)
	wantHistory(s, "5 applied", "6 applied")
}

// An inventory object that lost the number of its last revision does not
// overwrite the first ones.
func TestRevisionsAreNumberedOnWithoutTheAnnotation(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Apply(clitest.ConfigMapOf("a", "{key: two}")).Want(t, 0)
	s.PatchConfigMap("inv", `{"metadata":{"annotations":{"brine.dev/last-revision":null}}}`)
	s.Apply(clitest.ConfigMapOf("a", "{key: three}")).Want(t, 0)
	wantHistory(s, "1 applied", "2 applied", "3 applied")
	s.PatchConfigMap("inv", `{"metadata":{"annotations":{"brine.dev/last-revision":null}}}`)
	s.Apply(clitest.ConfigMapOf("a", "{key: three}")).Want(t, 0)
	wantHistory(s, "1 applied", "2 applied", "3 applied")
	s.Rollback().Want(t, 0)
	if got, _, _ := unstructuredString(s, "a", "data", "key"); got != "two" {
		t.Errorf("after the rollback it holds %q", got)
	}
}
