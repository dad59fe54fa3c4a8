// Package preview asks the server what a plan would do, and changes nothing: no
// object, not the inventory, not the lock. The input is a plan, the output one
// Result for each of its steps. Steps are sent as a dry run by package write;
// where the server cannot be asked, because a namespace, a CRD or an API is part
// of the very bundle, a surrogate namespace, the CRD itself or the bundle's own
// words take its place, and the Result says so.
package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/transport"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/validate"
	"brine/bundle/write"
	"brine/inventory/store"
)

// Who vouches for a Result, as ObjectResult.Verified says it.
const (
	byServer      = "server"
	bySurrogate   = "server (surrogate namespace)"
	byAccount     = "server (surrogate service account)"
	byUpdate      = "server (as an update, with the fields taken over)"
	byOtherName   = "server (surrogate name)"
	byFingerprint = "server (unchanged since the last apply)"
	byInventory   = "inventory (completed)"
	byLeftAlone   = "server (not sent: mutation ignore)"
	ByCRD         = "bundle CRD"
	Unverified    = "not verified: "
)

// Result is what a dry run says of one step.
type Result struct {
	Action   plan.Action
	Reason   string
	Stored   *unstructured.Unstructured // as it would be on the cluster; nil where there would be none, or that is not known
	Verified string
	Warnings []string
	Err      error
	// Taken are the fields that it takes from other field managers.
	Taken []string
	// Claims are those of a recreated StatefulSet that get, or do not get, another size.
	Claims []plan.Claim
}

// Input is what a preview needs.
type Input struct {
	Client    *cluster.Client
	Plan      *plan.Plan
	Inventory *store.Inventory
	Record    *report.Recorder
	Options   write.Options
	// Namespace is that of objects that name none.
	Namespace string
	// CRDs are those of the bundle that define objects of it.
	CRDs func() *validate.CRDs
	// Only: the steps that are asked about; nil: all, and what follows from the answers.
	Only func(*plan.Step) bool
	// Rollback: an earlier bundle is applied.
	Rollback bool
	// Drift: the live objects are compared with the bundle, whatever an apply could
	// do about a difference.
	Drift bool
}

// Run asks about every step, in parallel, and of the resources of the plan's CRDs once the
// CRDs are answered. denied says whether a request was forbidden.
func Run(ctx context.Context, in Input) (results []Result, denied bool, err error) {
	p, err := prepare(ctx, in)
	if err != nil {
		return nil, false, err
	}
	results = make([]Result, len(in.Plan.Steps))
	defined := definedKinds(in.Plan)
	for _, late := range []bool{false, true} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(transport.MaxConcurrency)
		for i, s := range in.Plan.Steps {
			if defined.Has(s.ID.GroupKind) != late || in.Only != nil && !in.Only(s) {
				continue
			}
			group.Go(func() error {
				ask := p.ask
				if in.Drift {
					ask = p.compare
				}
				results[i] = ask(report.WithStep(ctx, s), s)
				return ctx.Err()
			})
		}
		if err := group.Wait(); err != nil {
			return nil, false, fmt.Errorf("preview: %w", errors.Join(err, context.Cause(ctx)))
		}
		if !late {
			p.learn(results)
		}
	}
	if !in.Drift && in.Only == nil {
		Propagate(in.Plan, results)
	}
	return results, p.denied.Load(), nil
}

// previewer asks about single steps.
type previewer struct {
	Input
	writer *write.Writer
	steps  map[bundle.ID]*plan.Step
	// fresh are the namespaces that this run would make.
	fresh map[string]bool
	// surrogates are namespaces that are there, the best first.
	surrogates []string
	// taken are the objects in the surrogates whose names clash.
	taken sets.Set[bundle.ID]
	// newKinds are kinds that are not served yet, changedKinds those whose CRD changes.
	newKinds, changedKinds map[schema.GroupKind]bool
	denied                 atomic.Bool // some request was forbidden
	noNamespace            bool        // the inventory's namespace is not there
}

// Propagate skips what apply would skip.
func Propagate(p *plan.Plan, results []Result) {
	outcomes := make([]plan.Outcome, len(results))
	for i, r := range results {
		outcomes[i].Action = r.Action
	}
	for i, reason := range p.Propagate(outcomes) {
		skipped := Result{Action: plan.Skipped, Reason: reason}
		if !p.Steps[i].Deletes() {
			skipped.Verified, skipped.Warnings = results[i].Verified, results[i].Warnings
		}
		results[i] = skipped
	}
}

// AtMost is what an apply would do at most, where some objects came to nothing in the dry run, and
// whether that is more: it may be given what the dry run was refused (a webhook is back, somebody
// let go of a field), and then does what was held up.
func AtMost(p *plan.Plan, results []Result) (most []Result, more bool) {
	most = slices.Clone(results)
	for i, s := range p.Steps {
		if results[i].Action != plan.Recreated && MayRecreate(s, results[i]) {
			most[i], more = Result{Action: plan.Recreated}, true
			continue
		}
		if nothing := results[i].Action == plan.Failed || results[i].Action == plan.Skipped; !nothing || s.Blocked != "" || s.Action == plan.Skipped {
			continue
		}
		switch more = true; {
		case s.Deletes():
			most[i] = Result{Action: s.Action}
		case s.Live == nil:
			most[i] = Result{Action: plan.Created}
		case s.Recreate != plan.NoRecreation:
			most[i] = Result{Action: plan.Recreated}
		default:
			most[i] = Result{Action: plan.Configured}
		}
	}
	if more {
		Propagate(p, most)
		for i, s := range p.Steps {
			if s.First && s.Blocked == "" { // it goes in any case: where something fails, it is put back
				most[i] = Result{Action: s.Action}
			}
		}
	}
	return most, more
}

// MayRecreate says whether an apply recreates an object, or may: where the server could not be asked, it may say
// then that a field is immutable.
func MayRecreate(s *plan.Step, r Result) bool {
	unsure := r.Action == plan.Configured && s.Live != nil && s.Recreate != plan.NoRecreation && strings.HasPrefix(r.Verified, Unverified)
	return r.Action == plan.Recreated || unsure
}

// Report records the results of the steps. Those of a drift name who wrote what
// differs.
func Report(rec *report.Recorder, p *plan.Plan, objects []*report.ObjectResult, results []Result) {
	diffs := make([]diff.Diff, len(p.Steps))
	bundle.Parallel(len(diffs), func(i int) { diffs[i] = diffOf(rec, p.Steps[i], results[i]) })
	for i, s := range p.Steps {
		record(rec, s, objects[i], results[i], diffs[i])
	}
}

// diffOf is what a result changes, as it may be shown.
func diffOf(rec *report.Recorder, s *plan.Step, r Result) diff.Diff {
	switch {
	case r.Err != nil:
	case r.Action == plan.Pruned:
		return rec.Secrets.Diff(s.Live, nil)
	case r.Stored == nil, r.Action == plan.Unchanged, r.Action == plan.Skipped:
	case rec.Result.Wanted != "":
		return diff.Objects(s.Live, r.Stored, rec.Secrets.Text) // ownership metadata, too
	default:
		return rec.Secrets.Diff(s.Live, r.Stored)
	}
	return diff.Diff{}
}

func record(rec *report.Recorder, s *plan.Step, o *report.ObjectResult, r Result, d diff.Diff) {
	o.Action, o.Verified, o.Claims = r.Action, r.Verified, r.Claims
	if r.Reason != "" {
		o.Reason = r.Reason
	}
	for _, w := range r.Warnings {
		rec.Warn(bundle.Name(s.ID) + ": " + w)
	}
	var problems bundle.Problems
	switch {
	case errors.As(r.Err, &problems):
		var lines []string
		for _, p := range problems {
			rec.Fail(p.Error())
			lines = append(lines, fieldOf(p))
		}
		o.Error = strings.Join(lines, "\n")
		o.Reason = o.Error
	case r.Err != nil:
		o.Error, o.Reason = r.Err.Error(), r.Err.Error()
		rec.Explain(r.Err)
		rec.Fail(o.About(r.Err.Error()))
	case s.Deletes() && s.Kept && r.Action == plan.Skipped:
		rec.Fail(o.About("not deleted: " + o.Reason))
	case r.Stored != nil && r.Action != plan.Unchanged && r.Action != plan.Skipped:
		o.Schema = diff.Schemas(s.Live, r.Stored)
		if rec.Result.Wanted != "" {
			d.Unified = strings.Replace(d.Unified, "+++ applied\n", "+++ wanted\n", 1)
			o.Reason = joined(o.Reason, diff.Written(s.Live, d.Changes))
		} else if d.Unified == "" && o.Reason == "" {
			o.Reason = "only its ownership metadata or its field managers change"
		}
	}
	o.Diff, o.Changes = d.Unified, d.Changes
	rec.Settled()
	rec.Emit(report.Acted{Object: o})
}

// fieldOf is a problem without the object that is named beside it:
// "spec.size: is required (a.yaml:7)".
func fieldOf(p bundle.Problem) string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if at := p.Source.String(); at != "" {
		text += " (" + at + ")"
	}
	return text
}
