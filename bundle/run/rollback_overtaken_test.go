package run_test

import (
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A rollback that waits for the lock undoes the apply that it was asked to undo, and not
// that of who had the lock.
func TestRollbackUndoesNoApplyThatCameMeanwhile(t *testing.T) {
	s := clitest.New(t)
	bundleOf := func(names ...string) string {
		var all []string
		for _, name := range names {
			all = append(all, clitest.ConfigMap(name))
		}
		return clitest.Documents(all...)
	}
	s.Apply(bundleOf("a")).Want(t, 0)
	s.Apply(bundleOf("a", "b")).Want(t, 0)
	direct := *s
	p := s.Before("GET", "/leases/brine-"+"inv", func() { direct.Apply(bundleOf("a", "b", "c")).Want(t, 0) })
	s.Rollback().Want(t, report.ExitLocked).Prints(t, "another run got in between: revision 3 of ", ", and revision 2 of ", " was to be undone")
	if writes := p.Writes(); len(writes) > 2 { // the lock, taken and given back
		t.Errorf("it wrote: %v", clitest.Describe(writes))
	}
	s.Holds("ConfigMap a", "ConfigMap b", "ConfigMap c")
	s.Rollback("1").Want(t, 0)
	s.Holds("ConfigMap a")
}
