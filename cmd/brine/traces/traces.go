// Package traces sends the outcome of a run to an OpenTelemetry collector, where the
// environment names one: a span for the run, one for each of its phases, one for each
// object that a request was sent for or that was waited for. The input is a finished
// Result, whose texts are without values of Secrets.
package traces

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// sendFor bounds the sending: a run does not wait long for a collector.
const sendFor = 5 * time.Second

// atOnce is how many spans one request holds.
const atOnce = 512

// Wanted says whether the environment asks for traces, by the variables that
// OpenTelemetry defines.
func Wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Send sends the spans of a run that has just ended. version is brine's.
func Send(ctx context.Context, r *report.Result, version string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return fmt.Errorf("%s=%s: brine sends traces by http/protobuf only", name, protocol)
		}
	}
	ended := time.Now()
	limit := sendFor
	if ctx.Err() != nil { // the run was interrupted, and most of the grace may be over
		limit = report.Grace / 20
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	from, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "brine"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // the last one wins
	if err != nil {
		return fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	done := &collected{}
	provider := sdk.NewTracerProvider(sdk.WithResource(from), sdk.WithSpanProcessor(done))
	parent := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT"), "tracestate": os.Getenv("TRACESTATE")})
	t := tracer{provider.Tracer("brine", trace.WithInstrumentationVersion(version))}
	t.run(parent, r, ended)
	if len(done.spans) == 0 {
		return nil // the parent is not sampled
	}
	// A retry would wait for 5 seconds first, which is all the time there is.
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	for spans := range slices.Chunk(done.spans, atOnce) {
		if err := exporter.ExportSpans(ctx, spans); err != nil {
			return fmt.Errorf("send traces: %w", err)
		}
	}
	_ = exporter.Shutdown(ctx) // all is sent
	return nil
}

// collected keeps the spans that have ended.
type collected struct{ spans []sdk.ReadOnlySpan }

func (e *collected) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (e *collected) OnEnd(s sdk.ReadOnlySpan)                   { e.spans = append(e.spans, s) }
func (e *collected) Shutdown(context.Context) error             { return nil }
func (e *collected) ForceFlush(context.Context) error           { return nil }

type tracer struct{ trace.Tracer }

// span is one with explicit times.
func (t tracer) span(ctx context.Context, name string, from, until time.Time, attributes ...attribute.KeyValue) (context.Context, func(failure string, events ...event)) {
	ctx, s := t.Start(ctx, valid(name), trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	return ctx, func(failure string, events ...event) {
		for _, e := range events {
			s.AddEvent(e.name, trace.WithTimestamp(e.at), trace.WithAttributes(e.attributes...))
		}
		if failure != "" {
			s.SetStatus(codes.Error, valid(failure))
		}
		s.End(trace.WithTimestamp(until))
	}
}

type event struct {
	name       string
	at         time.Time
	attributes []attribute.KeyValue
}

// run makes the spans of a run that ended so.
func (t tracer) run(ctx context.Context, r *report.Result, ended time.Time) {
	begin := ended.Add(-seconds(r.Summary.Seconds))
	attributes := []attribute.KeyValue{
		text("brine.command", r.Command), text("brine.dry_run", string(r.DryRun)),
		text("brine.inventory.namespace", r.Inventory.Namespace), text("brine.inventory.name", r.Inventory.Name),
		text("process.executable.name", "brine"), attribute.Int("process.pid", os.Getpid()), attribute.Int("process.exit.code", r.ExitCode),
		attribute.Int("brine.objects", len(r.Objects)),
	}
	if r.Server != "" {
		attributes = append(attributes, text("url.full", r.Server))
	}
	if r.Revision > 0 {
		attributes = append(attributes, attribute.Int("brine.revision", r.Revision))
	}
	for _, verb := range slices.Sorted(maps.Keys(r.Summary.Requests)) {
		attributes = append(attributes, attribute.Int("brine.requests."+verb, r.Summary.Requests[verb]))
	}
	failure := ""
	if !report.Succeeded(r.ExitCode) {
		failure = fmt.Sprintf("exit code %d", r.ExitCode)
		attributes = append(attributes, text("error.type", fmt.Sprint(r.ExitCode)))
		if len(r.Errors) > 0 {
			failure += ": " + r.Errors[0]
		}
	}
	ctx, end := t.span(ctx, "brine "+r.Command, begin, ended, attributes...)
	own := ended
	if r.Rollback != nil {
		own = ended.Add(-seconds(r.Rollback.Summary.Seconds))
		t.run(ctx, r.Rollback, ended)
	}
	t.phases(ctx, r, begin, own)
	end(failure)
}

// phases are those that a Result knows: until the first object, applying, deleting, and
// what follows.
func (t tracer) phases(ctx context.Context, r *report.Result, begin, ended time.Time) {
	var applied, deleted []*report.ObjectResult
	for _, o := range slices.Concat(r.Outside, r.Objects) {
		switch {
		case o.StartedAt == 0 && len(o.Waits) == 0:
		case o.Action == plan.Pruned || o.Action == plan.Detached:
			deleted = append(deleted, o)
		default:
			applied = append(applied, o)
		}
	}
	at := begin
	for _, phase := range []struct {
		name    string
		objects []*report.ObjectResult
	}{{"apply", applied}, {"prune", deleted}} {
		if len(phase.objects) == 0 {
			continue
		}
		from, until := ended, begin
		for _, o := range phase.objects {
			if first := begin.Add(seconds(begun(o))); first.Before(from) {
				from = first
			}
			if last := begin.Add(seconds(o.End())); last.After(until) {
				until = last
			}
		}
		if at.Equal(begin) {
			_, end := t.span(ctx, "prepare", begin, from)
			end("")
		}
		inside, end := t.span(ctx, phase.name, from, until, attribute.Int("brine.objects", len(phase.objects)))
		for _, o := range phase.objects {
			t.object(inside, o, begin)
		}
		end("")
		at = until
	}
	name := "finish"
	if at.Equal(begin) {
		name = "prepare" // it did nothing else
	}
	_, end := t.span(ctx, name, at, ended)
	end("")
}

// begun is when all was there that an object needs; what is unchanged, and waited for,
// has no such time.
func begun(o *report.ObjectResult) float64 {
	if o.QueuedAt > 0 || o.StartedAt > 0 {
		return max(o.QueuedAt, 0)
	}
	waited := 0.0
	for _, w := range o.Waits {
		waited += w.Seconds
	}
	return max(o.End()-waited, 0)
}

func (t tracer) object(ctx context.Context, o *report.ObjectResult, begin time.Time) {
	attributes := []attribute.KeyValue{
		text("brine.object.group", o.Group), text("brine.object.version", o.Version), text("brine.object.kind", o.Kind), text("brine.object.name", o.Name),
		text("brine.object.action", string(o.Action)), text("brine.object.ready", o.Ready),
	}
	if o.Namespace != "" {
		attributes = append(attributes, text("k8s.namespace.name", o.Namespace))
	}
	if o.Source.File != "" {
		attributes = append(attributes, text("code.file.path", o.Source.File), attribute.Int("code.line.number", o.Source.Line))
	}
	if o.After != nil {
		attributes = append(attributes, text("brine.object.after", bundle.Name(o.After.ID())))
	}
	failure := ""
	if o.Action == plan.Failed || o.Ready == report.StateFailed || o.Ready == report.StateNotReady {
		failure = cmp.Or(o.Error, o.Reason)
	}
	from := begun(o)
	_, end := t.span(ctx, string(o.Action)+" "+bundle.Name(o.ID()), begin.Add(seconds(from)), begin.Add(seconds(max(o.End(), from))), attributes...)
	var events []event
	for _, e := range []struct {
		name string
		at   float64
	}{{"sent", o.StartedAt}, {"answered", o.ActedAt}, {"ready", o.ReadyAt}} {
		if e.at > 0 {
			events = append(events, event{e.name, begin.Add(seconds(e.at)), nil})
		}
	}
	at := max(o.ActedAt, from)
	for _, w := range o.Waits {
		events = append(events, event{"waiting", begin.Add(seconds(at)), []attribute.KeyValue{text("brine.reason", w.Reason), attribute.Float64("brine.seconds", w.Seconds)}})
		at += w.Seconds
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	end(failure, events...)
}

func text(key, value string) attribute.KeyValue { return attribute.String(key, valid(value)) }

// valid is text that a protocol buffer may hold.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
