package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
)

// savedPlan sets up --plan-out and --plan.
func (r *changeOptions) savedPlan(o *run.Options) error {
	if r.planOut != "" {
		if o.DryRun != report.Server {
			return errors.New("--plan-out needs brine preview, or --dry-run=server")
		}
		o.PlanOut = func(b *plan.Saved) error { return writePlan(r.planOut, b) }
	}
	if r.plan == "" {
		return nil
	}
	if o.DryRun == report.Client {
		return errors.New("--plan needs a cluster: it cannot be used with --dry-run=client")
	}
	text, err := os.ReadFile(r.plan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	b := &plan.Saved{}
	if err := json.Unmarshal(text, b); err != nil {
		return fmt.Errorf("read the plan %s: %w", r.plan, err)
	}
	switch {
	case b.Kind != "Plan" || !strings.HasPrefix(b.APIVersion, "brine.dev/"):
		return fmt.Errorf("read the plan %s: the file was not written by --plan-out", r.plan)
	case b.APIVersion != plan.SavedVersion:
		return fmt.Errorf("read the plan %s: it is in format %s, which brine %s wrote, and this is %s, which reads %s: use %s, or make a new plan",
			r.plan, b.APIVersion, b.Version, version(), plan.SavedVersion, b.Version)
	}
	if !r.given() {
		o.Inventory.Namespace, o.Inventory.Name = b.Inventory.Namespace, b.Inventory.Name
	}
	o.SavedPlan = b
	return nil
}

// writePlan writes a plan so that the file is whole or not there.
func writePlan(path string, b *plan.Saved) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return output.WriteFile(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
