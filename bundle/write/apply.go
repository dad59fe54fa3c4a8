package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/surrogate"
	"brine/bundle/takeover"
)

// One apply or creation, with what comes before and after it.

// kindDelay bounds how long a kind that this run defines may take to be served.
const kindDelay = 30 * time.Second

// Apply sends one server-side apply, and what has to come before and after it.
// Only a dry run has a place that is not the object's own.
func (w *Writer) Apply(ctx context.Context, s *plan.Step, r cluster.Resource, body Body, place surrogate.Place) Outcome {
	t := &target{step: s, resource: r, body: body.JSON, secret: body.Secret, place: place, stored: &storedSoFar{}}
	if s.ID.Name == "" { // generateName: a new one in each run, not tracked
		return w.create(ctx, t)
	}
	if s.Terminating != nil && w.Mode == Persist {
		// Applied now it would still be deleted, with all that is put into it.
		if err := w.awaitGone(ctx, t, s.Terminating, w.Deadline); err != nil {
			return failed(err)
		}
	}
	live := s.Live
	if live == nil && w.Namespace != nil && s.ID == (bundle.ID{GroupKind: bundle.NamespaceKind, Name: w.Namespace.GetName()}) {
		live = w.Namespace
	}
	var put written
	var err error
	recreated := s.Always && live != nil && !t.elsewhere()
	switch {
	case recreated:
		put, err = w.recreate(ctx, t, written{live: live}, errors.New(bundle.Run+": "+bundle.RunAlways))
	case s.Migration != nil && live != nil && !t.elsewhere():
		put, err = w.migrate(ctx, t, live)
	default:
		put, err = w.put(ctx, t, live)
	}
	immutable := false
	if put.live != nil && !recreated && (answers.Immutable(err, ready.Custom(s.ID.GroupKind.Group)) || stays(s.Object, put.live, err) != "") {
		if s.Recreate == plan.NoRecreation {
			immutable, err = true, needsRecreate(s, err)
		} else {
			recreated = true
			put, err = w.recreate(ctx, t, put, err)
		}
	}
	o := put.Outcome
	o.Action, o.Place, o.Recreates, o.Immutable, o.Wrote, o.Err = plan.Failed, t.place, recreated, immutable, t.stored.any, err
	switch {
	case err != nil && w.Mode == Persist: // Stored is that of a migration that got stuck
		o.Err = w.Explain(s, err)
		if t.stored.takeOver {
			o.Err = fmt.Errorf("%w (the fields of %s are taken over already)", o.Err, strings.Join(w.Options.TakeOverFrom, ", "))
		}
		return o
	case err != nil: // a preview distinguishes the answers
		o.Stored = nil
		return o
	}
	o.Action, o.Before = actionOf(s, put, w.Inventory.ID)
	if recreated {
		o.Action, o.Before = plan.Recreated, put.live
	}
	if put.Stored != nil && w.Mode == Persist {
		if put.live != nil && !recreated {
			if taken := takeover.Taken(put.live, put.Stored); len(taken) > 0 { // as the preview says
				o.Warnings = append(slices.Clone(o.Warnings), "takes "+strings.Join(taken, "; "))
			}
		}
		o.Fingerprint, o.HasFingerprint = s.Fingerprint(put.Stored, put.left)
		unstructured.RemoveNestedField(put.Stored.Object, "metadata", "managedFields") // half of it, and of no more use
		w.Plan.Guard.Keep(s.ID, put.Stored)
		w.changes.note(s.Object, o.Action)
		if o.Before != nil { // a server may still go by it
			w.changes.note(&bundle.Object{ID: s.ID, Content: o.Before}, o.Action)
		}
	}
	return o
}

type target struct {
	step     *plan.Step
	resource cluster.Resource
	body     []byte
	secret   bool // values of a Secret are in the body
	place    surrogate.Place
	stored   *storedSoFar
}

// storedSoFar is what was stored for a step: the copies of its target share it.
type storedSoFar struct{ any, takeOver bool }

// sent is the body as it is sent to an object that is live: a copy in another
// place is always a new one.
func (t *target) sent(live *unstructured.Unstructured) ([]byte, error) {
	if t.elsewhere() {
		return t.body, nil
	}
	return t.step.Send(t.body, live)
}

// elsewhere says whether a dry run cannot take place where the object belongs.
func (t *target) elsewhere() bool {
	return t.place.Namespace != t.step.ID.Namespace || t.place.Name != t.step.ID.Name
}

func (w *Writer) create(ctx context.Context, t *target) Outcome {
	id := t.step.ID
	u, err := bundle.Decode(t.body)
	if err != nil {
		return failed(err)
	}
	sent := u.DeepCopy()
	if id.Namespace != "" {
		u.SetNamespace(t.place.Namespace)
	}
	var stored *unstructured.Unstructured
	err = w.caughtUp(ctx, t.step, func() (err error) {
		stored, err = w.Client.Create(ctx, t.resource, u, cluster.Write{DryRun: w.Mode == DryRun})
		return err
	})
	switch {
	case err != nil && w.Mode == Persist:
		return failed(w.Explain(t.step, err))
	case err != nil:
		return failed(err)
	case w.Mode == DryRun:
		stored.SetName("")
		stored.SetNamespace(id.Namespace)
		stored = surrogate.Unallocated(stored, sent)
	}
	return Outcome{Action: plan.Created, Stored: stored, Place: t.place}
}

// send applies the body. Where the user lets unknown fields pass, a
// server that still has the older schema of a CRD which this run changed would
// drop the new ones. So it is asked strictly until it knows them, or until it is
// certain that no server does.
func (w *Writer) send(ctx context.Context, t *target, body []byte, live *unstructured.Unstructured, force bool) (stored *unstructured.Unstructured, warnings []string, err error) {
	if w.Mode == DryRun {
		return w.try(ctx, t, body, force)
	}
	options := cluster.Write{Live: live, Force: force, Strict: w.Client.Lenient() && w.changes.fresh("schema "+t.step.ID.GroupKind.String())}
	request := func() (err error) {
		stored, warnings, err = w.Client.Apply(ctx, t.resource, t.step.ID, body, options)
		return err
	}
	err = w.caughtUp(ctx, t.step, request)
	if options.Strict && answers.UnknownField(err) {
		options.Strict = false
		err = w.caughtUp(ctx, t.step, request)
	}
	t.stored.any = t.stored.any || err == nil
	return stored, warnings, err
}

// try dry-runs an apply in its place, and returns the object as it would be where
// it belongs.
func (w *Writer) try(ctx context.Context, t *target, body []byte, force bool) (*unstructured.Unstructured, []string, error) {
	id := t.step.ID
	sent, err := bundle.Decode(body)
	if err != nil {
		return nil, nil, err
	}
	if t.elsewhere() || id.GroupKind == bundle.PodKind {
		if body, err = t.place.Move(body, w.NewAccount); err != nil {
			return nil, nil, err
		}
		id.Namespace, id.Name = t.place.Namespace, t.place.Name
	}
	stored, warnings, err := w.Client.Apply(ctx, t.resource, id, body, cluster.Write{DryRun: true, Force: force})
	if err != nil {
		return nil, warnings, err
	}
	if t.elsewhere() || t.place.Account != "" {
		stored = t.place.MoveBack(stored, sent, t.step.ID)
	}
	if t.step.Live == nil || t.elsewhere() {
		stored = surrogate.Unallocated(stored, sent)
	}
	return stored, warnings, nil
}

// definedHere says whether the kind comes from a CRD or an APIService of this
// bundle.
func (w *Writer) definedHere(s *plan.Step) bool {
	return slices.ContainsFunc(s.Needs, func(need plan.Need) bool {
		gk := w.Plan.Steps[need.Step].ID.GroupKind
		return gk == bundle.CRDKind || gk == bundle.APIServiceKind
	})
}

// resourceOf finds how a kind is served; where an APIService of this run is
// to serve it, by asking the server again.
func (w *Writer) resourceOf(ctx context.Context, s *plan.Step) (cluster.Resource, error) {
	deadline := time.Now().Add(kindDelay)
	for {
		resource, err := w.Client.Resource(s.GVK)
		var unknown *meta.NoKindMatchError
		if err == nil || !errors.As(err, &unknown) || !w.definedHere(s) || time.Now().After(deadline) || ctx.Err() != nil {
			return resource, err
		}
		if err := w.Client.LearnServed(ctx, s.GVK); err != nil && !answers.Transient(err) {
			return resource, err
		}
		if resource, err := w.Client.Resource(s.GVK); err == nil {
			return resource, nil
		}
		if !cluster.Sleep(ctx, 500*time.Millisecond) {
			return resource, err
		}
	}
}

func (w *Writer) awaitGone(ctx context.Context, t *target, old *unstructured.Unstructured, deadline time.Time) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		live, err := w.Client.Get(ctx, t.resource, t.step.ID)
		if err != nil {
			return fmt.Errorf("wait until it is gone, to create it again: %w", err)
		}
		if live == nil || live.GetUID() != old.GetUID() {
			return nil
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			return fmt.Errorf("wait until it is gone, to create it again: time ran out; it %s", ready.Terminating(live))
		}
		if !cluster.Sleep(ctx, pause) {
			return fmt.Errorf("wait until it is gone, to create it again: it %s: %w", ready.Terminating(live), cluster.WhyEnded(ctx))
		}
	}
}
