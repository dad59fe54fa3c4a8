package cli

import (
	"testing"

	"brine/bundle/report"
)

// What is in the place of a plan and cannot be read, as a folder, does not keep a plan from being
// made: only its writing may fail.
func TestAPlanReplacesWhatCannotBeRead(t *testing.T) {
	r := &changeOptions{planOptions: planOptions{planOut: t.TempDir()}}
	if text, err := r.planPlace(report.Inventory{}).Read(t.Context(), nil); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
}
