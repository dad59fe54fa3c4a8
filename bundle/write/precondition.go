package write

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/takeover"
)

// contended bounds how long a write is retried that another client keeps
// overtaking.
const contended = 30 * time.Second

// written is how an apply ended.
type written struct {
	Outcome
	live *unstructured.Unstructured // the object before it; nil where there was none
	// left: fields were left to other managers, for which there was a conflict.
	left bool
}

// put applies the body to the very object that the plan, or the decision here,
// was made for. If another client wrote it since it was read, or created it, or
// deleted it, it is read again and decided again: the plan may be minutes old.
// A dry run stores nothing, and so holds for whatever version is there.
func (w *Writer) put(ctx context.Context, t *target, live *unstructured.Unstructured) (written, error) {
	deadline := time.Now().Add(contended)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		result, err := w.putOnce(ctx, t, live)
		if !answers.Overtaken(err) || time.Now().After(deadline) || !cluster.Sleep(ctx, pause) {
			return result, err
		}
		if live, err = w.again(ctx, t); err != nil {
			return result, err
		}
		if live != nil && plan.LeavesAlone(t.step.Object) {
			return written{Outcome: Outcome{Stored: live}, live: live}, nil
		}
	}
}

func (w *Writer) putOnce(ctx context.Context, t *target, live *unstructured.Unstructured) (written, error) {
	result := written{live: live}
	if live != nil && !t.elsewhere() && takeover.Of(live, w.Options.TakeOverFrom).Needed(live) {
		current, err := w.takeOver(ctx, t, live)
		if err != nil {
			return result, err
		}
		if w.Mode == DryRun {
			result.Reason = "takes over the fields of " + strings.Join(w.Options.TakeOverFrom, ", ")
			return w.afterMove(ctx, t, result, current)
		}
		live = current
	}
	for gone := []string{}; ; {
		var err error
		result, err = w.sendOnce(ctx, t, live, result)
		from := cluster.UnservedOwnership(err, t.resource)
		if from == "" || live == nil || t.elsewhere() || slices.Contains(gone, from) || !slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return f.APIVersion == t.resource.GVK.Group+"/"+from
		}) {
			return result, err
		}
		gone = append(gone, from)
		if live, err = w.Client.MoveOwnership(ctx, t.resource, live, gone, w.Mode == DryRun); err != nil {
			return result, err
		}
		if w.Mode == DryRun {
			return w.afterMove(ctx, t, result, live)
		}
		t.stored.any = true
	}
}

func (w *Writer) sendOnce(ctx context.Context, t *target, live *unstructured.Unstructured, result written) (written, error) {
	if live == nil { // it went since it was read
		result.live = nil
	}
	body, err := t.sent(live)
	if err != nil {
		return result, err
	}
	leaves, err := w.settle(t, live, body, func(body []byte, force bool) (err error) {
		result.Body = body
		result.Stored, result.Warnings, err = w.send(ctx, t, body, live, force)
		return err
	})
	result.left, result.Warnings = len(leaves) > 0, append(result.Warnings, leaves...)
	return result, err
}

// again reads an object that another client wrote since it was read, and decides
// whether it may still be applied. With an error it returns one that does not go.
func (w *Writer) again(ctx context.Context, t *target) (*unstructured.Unstructured, error) {
	live, err := w.Client.Get(ctx, t.resource, t.step.ID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("another client wrote it since it was read, and its owner cannot be read: %w", err)
	case live == nil:
		return nil, nil
	}
	if why := plan.Refusal(live, w.Inventory.ID, w.Options.Policy); why != "" {
		return nil, &NotOwned{why}
	}
	if live.GetDeletionTimestamp() != nil && w.Mode == Persist {
		if err := w.awaitGone(ctx, t, live, w.Deadline); err != nil {
			return live, err
		}
		return nil, nil
	}
	if w.Adopting != nil && !plan.LeavesAlone(t.step.Object) && !plan.Owned(live, w.Inventory.ID) {
		if err := w.Adopting(ctx, t.step.ID, live); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// NotOwned is why an object that came to belong to another inventory since the
// plan was made is not applied. Nothing was written.
type NotOwned struct{ why string }

func (o *NotOwned) Error() string { return o.why }

// actionOf is what was done to an object, now that it is known what was there.
func actionOf(s *plan.Step, w written, inventoryID string) (plan.Action, *unstructured.Unstructured) {
	before := s.Live // as the plan saw it: our own write whose answer was lost is not "before"
	if w.live == nil || before == nil || before.GetUID() != w.live.GetUID() {
		before = w.live
	}
	switch {
	case before == nil, s.Live == nil && s.Action == plan.Created && plan.Owned(before, inventoryID):
		return plan.Created, nil // also where the answer to our own creation was lost
	case w.Stored != nil && !s.Changed(before, w.Stored):
		return plan.Unchanged, before
	}
	return plan.Configured, before
}
