package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// DriftFrom makes the options of a run those of a drift: the live objects are
// compared with a bundle, or, where that is nil, with a revision, whose bundle it
// returns: number, or, where that is 0, the last one of which all was applied. The
// fields that the run of this revision left to others are left out. Nothing is written.
func DriftFrom(ctx context.Context, inv *store.Inventory, b *bundle.Bundle, number int, o *Options) (*bundle.Bundle, error) {
	past, err := inv.Past(ctx)
	if err != nil {
		return nil, err
	}
	history := past.Standing()
	content := &inventory.Content{}
	found, ok := inventory.LastApplied(history)
	if number > 0 {
		found, ok = inventory.Revision{Number: number, Result: "applied"}, true
	}
	switch {
	case ok:
		if content, err = inv.LoadRevision(ctx, found.Number); err != nil {
			return nil, err
		}
	case b == nil:
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{fmt.Errorf(
			"inventory %s/%s has no revision that was applied without an error: %s; %s NUMBER compares with it, and -f with a bundle", inv.Namespace, inv.Name, inventory.NoTarget(history, 0), remedy.Revision)}}
	}
	if b == nil {
		b, o.Wanted = content.Bundle, fmt.Sprintf("revision %d", found.Number)
		o.Namespace = cmp.Or(content.Namespace, o.Namespace)
		if last := inv.Last(); last.Number > found.Number && number == 0 && !last.Applied() {
			b.Warnings = append(b.Warnings, bundle.Problem{Message: fmt.Sprintf("revision %d, the last one, is %s: the cluster is compared with revision %d, the last one that was applied", last.Number, last.Result, found.Number)})
		}
	}
	o.Mode, o.DryRun, o.Detailed = Drift, report.Server, true
	p := &o.Planning
	p.Policy, p.AllowEmpty, p.ForceNamespaces, p.NamespaceNamed = plan.AdoptAll, true, true, true // a difference is reported, whatever an apply may do about it
	p.NoPrune = content.Options["no-prune"] == "true"
	p.Conflicts, err = compared(content.Options["conflicts"])
	if err == nil && p.IgnoreFields == nil && content.Options["ignore-fields"] != "" {
		err = json.Unmarshal([]byte(content.Options["ignore-fields"]), &p.IgnoreFields)
	}
	if err != nil {
		return nil, fmt.Errorf("read the options of revision %d: %w", found.Number, err)
	}
	return b, nil
}

// compared are rules about conflicts that leave to others what a run left to them.
// Any other conflict is a difference, with the value that the bundle wants.
func compared(rules string) (fields.ConflictRules, error) {
	parsed, err := fields.ParseConflictRules(strings.FieldsFunc(rules, func(r rune) bool { return r == ',' }))
	if err != nil {
		return nil, err
	}
	for i := range parsed {
		if parsed[i].Do == fields.Fail {
			parsed[i].Do = fields.Take
		}
	}
	return append(parsed, fields.ConflictRule{Manager: "*", Do: fields.Take}), nil
}
