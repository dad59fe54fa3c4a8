package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/run"
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
	if b.APIVersion != "brine.dev/v1" || b.Kind != "Plan" {
		return fmt.Errorf("read the plan %s: the file was not written by --plan-out", r.plan)
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
	return writeFile(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
