package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// noVersion is a resourceVersion that no object ever has. The server compares
// it only where there is an object (apiserver's registry/generic/registry/store.go,
// Update): an apply that carries it creates, or is refused with a conflict.
const noVersion = "9223372036854775807"

// movedFor bounds how long an object is tried that somebody else keeps writing.
const movedFor = 30 * time.Second

// exactly is the body as it holds for one version of one object only, or, where
// live is nil, only for an object that is not there. The uid never goes alone:
// the server would call another uid an immutable field.
func exactly(body []byte, live *unstructured.Unstructured) ([]byte, error) {
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("decode what is to be applied: %w", err)
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return nil, fmt.Errorf("decode the metadata of what is to be applied: %w", err)
	}
	version := noVersion
	if live != nil {
		version = live.GetResourceVersion()
		metadata["uid"], _ = json.Marshal(live.GetUID()) //nolint:errchkjson // a string
	}
	metadata["resourceVersion"], _ = json.Marshal(version) //nolint:errchkjson // a string
	var err error
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, fmt.Errorf("encode the metadata of what is to be applied: %w", err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be applied: %w", err)
	}
	return text, nil
}

// written is an object that was applied.
type written struct {
	stored   *unstructured.Unstructured
	live     *unstructured.Unstructured // the object before it; nil where there was none
	warnings []string
}

// put applies the body to the very object that the plan, or the decision here,
// was made for. If somebody wrote it since it was read, or created it, or
// deleted it, it is read again and decided anew: the plan may be minutes old.
func (e *execution) put(ctx context.Context, n *node, live *unstructured.Unstructured, body []byte) (written, error) {
	deadline := time.Now().Add(movedFor)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		w, err := e.putOnce(ctx, n, live, body)
		if !cluster.Overtaken(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return w, err
		}
		if live, err = e.again(ctx, n); err != nil {
			return w, err
		}
		if live != nil && plan.LeavesAlone(n.Object) {
			return written{stored: live, live: live}, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (e *execution) putOnce(ctx context.Context, n *node, live *unstructured.Unstructured, body []byte) (written, error) {
	w := written{live: live}
	current, err := e.takeOver(ctx, n, live)
	if err != nil {
		return w, err
	}
	exact, err := exactly(body, current)
	if err != nil {
		return w, err
	}
	w.stored, w.warnings, err = e.patch(ctx, n, exact, cluster.Write{Exact: true})
	return w, err
}

// again reads an object that somebody wrote since it was read, and decides
// whether it may still be applied.
func (e *execution) again(ctx context.Context, n *node) (*unstructured.Unstructured, error) {
	live, err := e.client.Get(ctx, n.resource, n.ID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("somebody wrote it since it was read, and whose it is now cannot be read: %w", err)
	case live == nil:
		return nil, nil
	}
	if why := plan.Refusal(live, e.inv.ID, e.Plan.Policy); why != "" {
		return nil, &notOurs{why}
	}
	if live.GetDeletionTimestamp() != nil {
		return nil, e.awaitGone(ctx, n, live)
	}
	return live, nil
}

// notOurs is why an object that came to belong to somebody else since the plan
// was made is not applied. Nothing was written.
type notOurs struct{ why string }

func (o *notOurs) Error() string { return o.why }

// actionOf is what was done to an object, now that it is known what was there.
func actionOf(n *node, w written, inventoryID string) (plan.Action, *unstructured.Unstructured) {
	before := n.Live // as the plan saw it: a lost answer's own write is not "before"
	if w.live == nil || before == nil || before.GetUID() != w.live.GetUID() {
		before = w.live
	}
	switch {
	case before == nil, n.Live == nil && n.Action == plan.Created && plan.Owned(before, inventoryID):
		return plan.Created, nil // also where the answer to our own creation was lost
	case !plan.Changed(before, w.stored):
		return plan.Unchanged, before
	}
	return plan.Configured, before
}
