package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"brine/bundle/plan/saved"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/values"
	"brine/inventory/store"
)

// secretLifetime is how long a plan in a Secret may be carried out: no run deletes it.
const secretLifetime = 24 * time.Hour

// planOptions are those of saved plans.
type planOptions struct {
	planOut, plan, digest string
	lifetime              time.Duration
}

// savedPlan sets up --plan-out, and --plan of a file.
func (r *changeOptions) savedPlan(o *run.Options) error {
	switch {
	case r.planOut != "" && o.DryRun != report.Server:
		return errors.New("--plan-out needs brine preview, or --dry-run=server")
	case r.planOut == "" && r.lifetime != 0:
		return errors.New("--plan-lifetime needs --plan-out")
	case r.plan == "" && r.digest != "":
		return errors.New("--plan-digest needs --plan")
	case r.plan != "" && o.DryRun == report.Client:
		return errors.New("--plan needs a cluster: it cannot be used with --dry-run=client")
	}
	if r.planOut != "" {
		o.PlanOut = r.planPlace(o.Inventory)
	}
	if r.plan == "" || r.plan == values.InSecret {
		return nil
	}
	text, err := os.ReadFile(r.plan)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	return r.carryOut(o, r.plan, text)
}

// planPlace is where --plan-out saves a plan.
func (r *changeOptions) planPlace(inv report.Inventory) *run.PlanPlace {
	if r.planOut == values.InSecret {
		return &run.PlanPlace{
			Name: store.PlanPlace(inv.Namespace, inv.Name), Lifetime: cmp.Or(r.lifetime, secretLifetime),
			Read:  func(ctx context.Context, inv *store.Inventory) ([]byte, error) { return inv.ReadPlan(ctx) },
			Write: func(ctx context.Context, inv *store.Inventory, text []byte) error { return inv.WritePlan(ctx, text) },
		}
	}
	return &run.PlanPlace{
		Name: r.planOut, Lifetime: r.lifetime,
		Read: func(context.Context, *store.Inventory) ([]byte, error) {
			text, _ := os.ReadFile(r.planOut) // what cannot be read is replaced, or cannot be written either
			return text, nil
		},
		Write: func(_ context.Context, _ *store.Inventory, text []byte) error {
			return output.WriteFile(r.planOut, 0o600, func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
		},
	}
}

// planInSecret reads --plan=secret.
func (r *changeOptions) planInSecret(ctx context.Context, s Streams, o *run.Options) error {
	if r.plan != values.InSecret {
		return nil
	}
	client, err := r.client(s, r.cluster)
	if err != nil {
		return err
	}
	place := store.PlanPlace(o.Inventory.Namespace, o.Inventory.Name)
	text, err := store.ReadPlan(ctx, client, o.Inventory.Namespace, o.Inventory.Name)
	switch {
	case err != nil:
		return failed(err)
	case text == nil:
		return fmt.Errorf("there is no saved plan, and nothing was changed: %s is not there; brine preview --plan-out=%s makes one", place, values.InSecret)
	}
	return r.carryOut(o, place, text)
}

// carryOut lets the run do what a saved plan says, or nothing.
func (r *changeOptions) carryOut(o *run.Options, name string, text []byte) error {
	if err := saved.CheckApproved(name, text, r.digest); err != nil {
		return err
	}
	b, err := saved.ReadPlan(name, text, version())
	if err != nil {
		return err
	}
	if of := b.Inventory; r.plan == values.InSecret && (of.Namespace != o.Inventory.Namespace || of.Name != o.Inventory.Name) {
		return fmt.Errorf("%s has the plan of another inventory, %s/%s, and nothing was changed", name, of.Namespace, of.Name)
	}
	if !r.given() {
		o.Inventory.Namespace, o.Inventory.Name = b.Inventory.Namespace, b.Inventory.Name
	}
	o.SavedPlan = b
	if r.ignoreFields == "" {
		if o.Planning.IgnoreFields, err = b.IgnoreFields(); err != nil {
			return err
		}
	}
	if len(o.Only) == 0 {
		o.Only, o.WithNeeds = b.Only()
	}
	if len(o.Only) > 0 && o.RollbackOnFailure {
		return fmt.Errorf("%s is a plan of chosen objects, and %s applies a whole bundle again: leave one of them out; nothing was changed", name, remedy.RollbackOnFailure)
	}
	return nil
}
