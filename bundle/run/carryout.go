package run

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
)

type outcome struct {
	steps   []apply.Outcome
	deleted *cluster.Deleted
	found   map[bundle.ID]*unstructured.Unstructured // what the run adopted besides the plan, as it was
}

// carryOut carries out the plan. Without the lock it sends no write. The error is that
// the lock was lost: then another run writes the inventory.
func carryOut(ctx context.Context, s *session, o *Options, in intent) (outcome, error) {
	deadline, _ := ctx.Deadline()
	found := map[bundle.ID]*unstructured.Unstructured{}
	writer := &write.Writer{
		Options: o.writing(), Client: s.client, Plan: in.plan, Inventory: &in.inventory.Inventory, Deadline: deadline, Namespace: s.namespace,
		Quotes: s.record.Secrets.Quotes, Adopting: originsSaver(s, o, in, found),
		Owners: inspect.OwnersReader(s.client, in.plan, in.inventory.Selector()),
		BeforeDelete: func(id bundle.ID) {
			if id == inventoryNamespace(o) {
				s.lock.Leave() // the lock and the inventory are deleted with their namespace, last of all
			}
		},
	}
	steps, outside, ended := apply.Run(ctx, apply.Input{
		Client: s.client, Plan: in.plan, Record: s.record, Rules: in.rules, Hints: in.hints, Selector: in.inventory.Selector(),
		WaitApplied: o.WaitApplied, PruneAnyway: o.PruneAnyway, FailAfter: o.FailAfter, Heartbeat: o.Heartbeat, Writer: writer,
	})
	s.client.OnRetry(s.record.Retrying) // the scheduler's function keeps all objects in memory
	putBack(ctx, s, writer, steps)
	if err := s.lost(); err != nil {
		return outcome{}, err
	}
	if errors.Is(ended, report.ErrTimeout) {
		s.record.TimedOut()
	}
	diagnose(ctx, s, slices.Concat(steps, outside))
	return outcome{steps: steps, deleted: writer.Deleted(), found: found}, s.lost()
}

// originsSaver records the origin of an object that another client created since the plan
// was made, before it is applied: one after another. found gets what it was.
func originsSaver(s *session, o *Options, in intent, found map[bundle.ID]*unstructured.Unstructured) func(context.Context, bundle.ID, *unstructured.Unstructured) error {
	saving := make(chan struct{}, 1)
	return func(ctx context.Context, id bundle.ID, live *unstructured.Unstructured) error {
		select {
		case saving <- struct{}{}:
			defer func() { <-saving }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		maps.Copy(found, keepBefore(o, in.inventory, map[bundle.ID]*unstructured.Unstructured{id: live}))
		added := map[bundle.ID]inventory.Origin{id: numbered(plan.FoundOrigin(&in.inventory.Inventory, id, live, o.Planning.TakeOverFrom), in.number)}
		if err := knowOwners(ctx, s, o, added); err != nil {
			return err
		}
		origins := maps.Clone(in.inventory.Origins)
		maps.Copy(origins, added)
		return in.inventory.SaveOrigins(ctx, origins)
	}
}

// putBack creates again what was pruned first, where pruning did not follow: a policy
// before its bindings. It does so also after time ran out.
func putBack(ctx context.Context, s *session, w *write.Writer, steps []apply.Outcome) {
	late, cancel := s.after.Records.Of(ctx)
	defer cancel()
	late, cancel = context.WithTimeout(late, recordsTime)
	defer cancel()
	for i := range slices.Backward(steps) { // as deletions are in reverse order of need
		o := &steps[i]
		if !o.PutBack {
			continue
		}
		stored, err := w.PutBack(late, o.Step)
		if err != nil {
			o.Result.Error = "it was pruned first (" + remedy.PruneFirst + "), and could not be put back: " + err.Error() + ". Apply a bundle that contains it"
			s.record.Fail(o.Result.About(o.Result.Error))
			continue
		}
		o.UID, o.Done = stored.GetUID(), false
		o.Result.Action, o.Result.Reason = plan.Skipped, "it was pruned first, and is put back: the run ended before it prunes"
		s.record.Emit(report.Acted{Object: o.Result})
	}
}

// diagnosisTime bounds the search for causes: the answer is wanted now.
const diagnosisTime = 8 * time.Second

// diagnose finds out, once and with a few requests, why objects are not ready.
// What cannot be found out in time is left out.
func diagnose(ctx context.Context, s *session, outcomes []apply.Outcome) {
	var late []*apply.Outcome
	var objects []*unstructured.Unstructured
	for i := range outcomes {
		o := &outcomes[i]
		if o.Deletes() || o.Latest == nil || (o.Result.Ready != report.StateNotReady && o.Result.Ready != report.StateFailed) {
			continue
		}
		late, objects = append(late, o), append(objects, o.Latest)
	}
	if len(late) == 0 {
		return
	}
	ctx, cancel := s.after.Diagnosis.Of(ctx) // also after time ran out
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	why := ready.NewDiagnosis(inspect.Reader(s.client)).Explain(ctx, objects)
	for _, o := range late {
		if o.Result.Why = why[o.ID]; len(o.Result.Why) > 0 {
			s.record.Emit(report.Diagnosed{Object: o.Result})
		}
	}
}

func hintsOf(ctx context.Context, s *session, in intent) ready.Hints {
	ids := bundle.Each(slices.Concat(in.plan.Steps, in.plan.Outside), func(s *plan.Step) bundle.ID { return s.ID })
	return inspect.ReadHints(ctx, s.client, ids, in.bundle.Objects)
}
