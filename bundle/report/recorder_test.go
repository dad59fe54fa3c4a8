package report

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
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

// Every text of every payload, by its types, is masked before it is emitted, but for the
// names here. What was given stays as it is.
func TestPayloadsShowNoSecret(t *testing.T) {
	const value = "correct-horse-battery"
	names := strings.Fields("apiVersion kind place command id namespace name server want group version file state sls ready interrupted from to wanted manager time action component Group Kind Namespace Name")
	for _, empty := range []Payload{Started{}, Acting{}, Retrying{}, Acted{}, Waiting{}, BecameReady{}, NotReady{}, Diagnosed{}, Heartbeat{}, Warning{}, Finished{}} {
		full := reflect.New(reflect.TypeOf(empty)).Elem()
		f := filler{text: "the server says: " + value}
		f.fill(full)
		before := document(t, full.Interface())
		if strings.Count(before, value) != f.texts || f.texts == 0 {
			t.Fatalf("%s: %d texts were filled, its document has %d", Event{Payload: empty}.Type(), f.texts, strings.Count(before, value))
		}
		var shown any
		r := New(Header{}, func(e Event) { shown = e.Payload })
		r.Secrets.Read(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "stringData": map[string]any{"password": value},
		}})
		r.Emit(full.Interface().(Payload))
		for line := range strings.Lines(document(t, shown)) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
			if strings.Contains(text, value) && !slices.Contains(names, strings.Trim(name, `"`)) || strings.Contains(name, value) {
				t.Errorf("%s shows a value: %s", Event{Payload: empty}.Type(), strings.ReplaceAll(line, value, "(here)"))
			}
		}
		if document(t, full.Interface()) != before {
			t.Errorf("%s: the payload itself has changed", Event{Payload: empty}.Type())
		}
	}
}

func document(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// filler sets every text in a value, and counts them.
type filler struct {
	text           string
	texts, results int
}

func (f *filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() { // others are brine's own words
			v.SetString(f.text)
			f.texts++
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*Result]() {
			if f.results++; f.results > 2 { // a rollback's rollback
				return
			}
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{f.text + " (a key)": []any{f.text}}))
		f.texts += 2
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
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
