package report

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
)

func TestExitCodes(t *testing.T) {
	did := func(a plan.Action, state string) *ObjectResult { return &ObjectResult{Action: a, Ready: state} }
	for name, test := range map[string]struct {
		cause    error
		code     int
		err      error
		objects  []*ObjectResult
		detailed bool
		timedOut bool
		want     int
	}{
		"done":                           {objects: []*ObjectResult{did(plan.Created, StateReady)}, want: ExitOK},
		"an object failed":               {objects: []*ObjectResult{did(plan.Failed, "")}, want: ExitFailed},
		"failed before not ready":        {objects: []*ObjectResult{did(plan.Failed, ""), did(plan.Created, StateNotReady)}, want: ExitFailed},
		"not ready":                      {objects: []*ObjectResult{did(plan.Unchanged, StateNotReady)}, want: ExitNotReady},
		"its status says failed":         {objects: []*ObjectResult{did(plan.Created, StateFailed)}, want: ExitNotReady},
		"time ran out":                   {objects: []*ObjectResult{did(plan.Created, StateReady)}, timedOut: true, want: ExitNotReady},
		"changes, detailed":              {objects: []*ObjectResult{did(plan.Pruned, "")}, detailed: true, want: ExitChanges},
		"no changes, detailed":           {objects: []*ObjectResult{did(plan.Unchanged, StateReady)}, detailed: true, want: ExitOK},
		"not ready, detailed":            {objects: []*ObjectResult{did(plan.Created, StateNotReady)}, detailed: true, want: ExitNotReady},
		"stopped before the first write": {code: ExitBadBundle, err: &Stop{Code: ExitBadBundle, Errors: []error{errors.New("wrong")}}, want: ExitBadBundle},
		"unreachable, and time ran out":  {code: ExitUnreachable, err: ErrTimeout, timedOut: true, want: ExitUnreachable},
		"SIGTERM":                        {cause: ErrTerminated, objects: []*ObjectResult{did(plan.Failed, "")}, want: ExitTerminated},
		"SIGINT":                         {cause: ErrInterrupted, code: ExitLocked, err: errors.New("locked"), want: ExitInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			var last Event
			r := New(Header{Detailed: test.detailed}, func(e Event) { last = e })
			r.Result.Objects = test.objects
			if test.timedOut {
				r.TimedOut()
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if test.cause != nil {
				cancel(test.cause)
			}
			result := r.Finish(ctx, test.code, test.err, nil)
			if result.ExitCode != test.want {
				t.Errorf("exit code %d, want %d", result.ExitCode, test.want)
			}
			if end, ok := last.Payload.(Finished); !ok || end.Result != result {
				t.Errorf("the last event is %#v", last.Payload)
			}
			if test.err != nil && len(result.Errors) == 0 {
				t.Error("the error is not in the result")
			}
		})
	}
}

// Every text of every payload is masked before it is emitted.
func TestPayloadsShowNoSecret(t *testing.T) {
	const value = "correct-horse-battery"
	quote := "the server says: " + value
	id := bundle.ID{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: "web"}
	object := func() *ObjectResult {
		return &ObjectResult{Kind: "ConfigMap", Namespace: "shop", Name: "web", Reason: quote, Error: quote, Verified: quote, Diff: quote, Why: []string{quote}}
	}
	result := func() *Result {
		return &Result{Objects: []*ObjectResult{object()}, Errors: []string{quote}, Warnings: []string{quote}, MissingRights: []string{quote}}
	}
	for _, p := range []Payload{
		Started{Result: result()}, Acting{Object: object()}, Retrying{Object: object(), Error: quote}, Acted{Object: object()},
		Waiting{Object: object(), Reason: quote}, BecameReady{Object: object()}, NotReady{Object: object(), Reason: quote}, Diagnosed{Object: object()},
		Heartbeat{Pending: []Pending{{ID: id, Reason: quote}}}, Warning{Message: quote}, Finished{Result: result()},
		Started{}, Finished{},
	} {
		var shown string
		r := New(Header{}, func(e Event) {
			shown = fmt.Sprintf("%+v", e.Payload)
			if o := e.Object(); o != nil {
				shown += fmt.Sprintf("%+v", *o)
			}
			var whole *Result
			switch p := e.Payload.(type) {
			case Started:
				whole = p.Result
			case Finished:
				whole = p.Result
			}
			if whole != nil {
				shown += fmt.Sprintf("%+v %+v", *whole, *whole.Objects[0])
			}
		})
		r.Secrets.Read(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "stringData": map[string]any{"password": value},
		}})
		r.Emit(p)
		if shown == "" || strings.Contains(shown, value) {
			t.Errorf("%s shows a value, or nothing", p.name())
		}
	}
}

func TestWarningsAreReportedOnce(t *testing.T) {
	var events []Event
	r := New(Header{}, func(e Event) { events = append(events, e) })
	s := &plan.Step{ID: bundle.ID{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "shop", Name: "web"}, Object: &bundle.Object{}}
	for range 3 {
		r.Warn("deprecated")
		r.Retrying(WithStep(t.Context(), s), errors.New("etcdserver: leader changed"), 1)
	}
	want := []Payload{Warning{Message: "deprecated"}, Warning{Message: "retrying: Pod shop/web: etcdserver: leader changed", Attempt: 1}}
	if len(events) != 2 || events[0].Payload != want[0] || events[1].Payload != want[1] {
		t.Errorf("the events are %v", events)
	}
	if len(r.Result.Warnings) != 1 {
		t.Errorf("the result's warnings are %q", r.Result.Warnings)
	}
}
