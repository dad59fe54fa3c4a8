package run_test

import (
	"net/http"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// A preview that prunes reads the history once, and each revision once: to see which files are
// gone, and for the way back.
func TestPreviewReadsTheHistoryOnce(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	p.Forget()
	s.Preview(strings.Replace(clitest.ConfigMap("a"), "value", "other", 1)).Want(t, 0)
	lists, gets := 0, map[string]int{}
	for _, r := range p.Requests() {
		_, name, secrets := strings.Cut(r.Path, "/secrets")
		switch {
		case r.Method != http.MethodGet || !secrets:
		case strings.Contains(name, "-revision-"):
			gets[name]++
		default:
			lists++
		}
	}
	if lists > 1 {
		t.Errorf("%d LISTs of Secrets: %v", lists, p.Requests())
	}
	for name, n := range gets {
		if n != 1 {
			t.Errorf("%d GETs of %s", n, name)
		}
	}
	if len(gets) != 1 {
		t.Errorf("revisions that were read: %v", gets)
	}
}
