package apply

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
	"brine/bundle/plan"
)

// lateKind bounds how long a kind that this run defined may take to be served.
const lateKind = 30 * time.Second

// act does a node's request. It runs on an applier's goroutine and touches no
// state of the execution.
func (e *execution) act(n *node) outcome {
	ctx := context.WithValue(e.work, nodeKey{}, n)
	switch n.Action {
	case plan.Pruned:
		return e.delete(ctx, n)
	case plan.Detached:
		return e.detach(ctx, n)
	default:
		return e.apply(ctx, n)
	}
}

type nodeKey struct{}

// apply sends one server-side apply, and what has to come before and after it.
func (e *execution) apply(ctx context.Context, n *node) outcome {
	resource, err := e.resourceOf(ctx, n)
	if err != nil {
		return outcome{node: n, action: plan.Failed, err: err}
	}
	n.resource = resource
	if n.ID.Name == "" { // generateName: a new one each run, which nobody tracks
		var stored *unstructured.Unstructured
		err := e.caughtUp(ctx, n, func() (err error) {
			stored, err = e.client.Create(ctx, resource, n.Object.Content, cluster.Write{})
			return err
		})
		if err != nil {
			return outcome{node: n, action: plan.Failed, err: e.explain(n, err)}
		}
		return outcome{node: n, action: plan.Created, stored: stored}
	}
	if n.Terminating != nil {
		// Applied now it would still go, and take with it what is put into it.
		if err := e.awaitGone(ctx, n, n.Terminating); err != nil {
			return outcome{node: n, action: plan.Failed, err: err}
		}
	}
	sent, err := e.mutate(ctx, n)
	if err != nil {
		return outcome{node: n, action: plan.Failed, err: err}
	}
	live := n.Live
	if live == nil && n.ID == e.made {
		live = e.home
	}
	w, err := e.put(ctx, n, live, sent.body)
	recreated := false
	if cluster.Immutable(err) && w.live != nil {
		if !n.Recreate {
			err = needsRecreate(n.Step, err)
		} else {
			recreated = true
			w, err = e.recreate(ctx, n, w.live, sent.body)
		}
	}
	if err != nil {
		return outcome{node: n, action: plan.Failed, err: e.explain(n, err), warnings: w.warnings}
	}
	action, before := actionOf(n, w, e.inv.ID)
	if recreated {
		action, before = plan.Recreated, w.live
	}
	o := outcome{node: n, action: action, stored: w.stored, before: before, warnings: w.warnings, secret: sent.secret}
	o.print, o.printed = n.Fingerprint(w.stored)
	unstructured.RemoveNestedField(w.stored.Object, "metadata", "managedFields") // half of it, and of no more use
	return o
}

// patch applies the body. Where --field-validation lets unknown fields pass, a
// server that still has the older schema of a CRD which this run changed would
// drop the new ones: it is asked strictly until it knows them, or until it is
// certain that nobody does.
func (e *execution) patch(ctx context.Context, n *node, body []byte, w cluster.Write) (stored *unstructured.Unstructured, warnings []string, err error) {
	w.Strict = e.client.Lenient() && e.recent.newSchema(n.ID.GroupKind)
	send := func() (err error) {
		stored, warnings, err = e.client.Apply(ctx, n.resource, n.ID, body, w)
		return err
	}
	err = e.caughtUp(ctx, n, send)
	if w.Strict && cluster.UnknownField(err) {
		w.Strict = false
		err = e.caughtUp(ctx, n, send)
	}
	return stored, warnings, err
}

// definedHere says whether the kind comes from a CRD or an APIService of this
// bundle.
func (e *execution) definedHere(n *node) bool {
	return slices.ContainsFunc(n.Needs, func(need plan.Need) bool {
		gk := e.plan.Steps[need.Step].ID.GroupKind
		return gk == bundle.CRDKind || gk == bundle.APIServiceKind
	})
}

// resourceOf finds how a kind is served; where an APIService of this run is
// to serve it, by asking the server again.
func (e *execution) resourceOf(ctx context.Context, n *node) (cluster.Resource, error) {
	deadline := time.Now().Add(lateKind)
	for {
		resource, err := e.client.Resource(n.GVK)
		var unknown *meta.NoKindMatchError
		if err == nil || !errors.As(err, &unknown) || !e.definedHere(n) || time.Now().After(deadline) || ctx.Err() != nil {
			return resource, err
		}
		if err := e.client.Discover(ctx); err != nil {
			return resource, err
		}
		if resource, err := e.client.Resource(n.GVK); err == nil {
			return resource, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// needsRecreate says what the user can do about an immutable field.
func needsRecreate(s *plan.Step, err error) error {
	return fmt.Errorf("%w; to have it deleted and created anew, annotate it with %s: recreate, or use --recreate=%s", err, bundle.OnImmutable, s.ID.GroupKind)
}

// awaitGone waits until the object that was looked at is deleted.
func (e *execution) awaitGone(ctx context.Context, n *node, old *unstructured.Unstructured) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		live, err := e.client.Get(ctx, n.resource, n.ID)
		if err != nil {
			return fmt.Errorf("wait until it is gone, to create it anew: %w", err)
		}
		if live == nil || live.GetUID() != old.GetUID() {
			return nil
		}
		if !e.deadline.IsZero() && time.Now().After(e.deadline) {
			return fmt.Errorf("wait until it is gone, to create it anew: time ran out; it %s", deleting(live))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until it is gone, to create it anew: it %s: %w", deleting(live), context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// explain makes the server's answer something to act on.
func (e *execution) explain(n *node, err error) error {
	if conflicts := cluster.FieldConflicts(err); len(conflicts) > 0 {
		byManager := map[string][]string{}
		var managers []string
		for _, c := range conflicts {
			if byManager[c.Manager] == nil {
				managers = append(managers, c.Manager)
			}
			byManager[c.Manager] = append(byManager[c.Manager], c.Field)
		}
		var parts []string
		for _, m := range managers {
			parts = append(parts, fmt.Sprintf("%s owns %s", m, strings.Join(byManager[m], ", ")))
		}
		return &answer{err: err, text: fmt.Sprintf("conflict: %s: take the fields with --force-conflicts, move them with --take-over-from, or leave them out of the bundle", strings.Join(parts, "; "))}
	}
	text := cluster.Message(err)
	if hint := n.lineOf(text); hint != "" {
		text += " (" + hint + ")"
	}
	return &answer{text: text, err: err}
}

// answer is a server's answer as it is shown; the error itself is kept for
// errors.As.
type answer struct {
	text string
	err  error
}

func (a *answer) Error() string { return a.text }
func (a *answer) Unwrap() error { return a.err }

// lineOf finds the line of a field that the server names.
func (n *node) lineOf(text string) string {
	for _, path := range cluster.FieldPaths(text) {
		if line := n.Object.Line(path); line > n.Object.Source.Line {
			return fmt.Sprintf("%s is at %s:%d", path, n.Object.Source.File, line)
		}
	}
	return ""
}

// probe waits until the versions of a CRD are served: it is established a
// little before.
func (e *execution) probe(n *node) {
	resources := cluster.Defined(n.Object.Content)
	go func() {
		deadline := time.Now().Add(lateKind)
		for _, r := range resources {
			for pause := 25 * time.Millisecond; ; pause = min(2*pause, time.Second) {
				ok, err := e.client.Serves(e.work, r.GVR)
				if ok {
					break
				}
				if time.Now().After(deadline) || e.work.Err() != nil {
					e.send(served{node: n, err: fmt.Errorf("established, but %s is not served: %w", r.GVR, errors.Join(err))})
					return
				}
				select {
				case <-e.work.Done():
				case <-time.After(pause):
				}
			}
		}
		e.send(served{node: n})
	}()
}

func (e *execution) send(m any) {
	select {
	case e.mail <- m:
	case <-e.work.Done():
	}
}
