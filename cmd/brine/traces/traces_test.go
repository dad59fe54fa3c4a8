package traces_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	v1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/cmd/brine/traces"
)

// received is what a collector got.
type received struct {
	mu       sync.Mutex
	headers  []http.Header
	resource map[string]string
	spans    []*tracev1.Span
}

// listen starts a collector that answers with a status, and makes it the environment's.
func listen(t *testing.T, status int) *received {
	t.Helper()
	got := &received{resource: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		text, err := io.ReadAll(body)
		var request collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(text, &request) != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: it cannot be decoded (%v)", r.Method, r.URL.Path, err)
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		got.headers = append(got.headers, r.Header)
		for _, rs := range request.GetResourceSpans() {
			maps(got.resource, rs.GetResource().GetAttributes())
			for _, ss := range rs.GetScopeSpans() {
				got.spans = append(got.spans, ss.GetSpans()...)
			}
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return got
}

func maps(to map[string]string, attributes []*v1.KeyValue) map[string]string {
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *v1.AnyValue_StringValue:
			to[a.GetKey()] = v.StringValue
		case *v1.AnyValue_IntValue:
			to[a.GetKey()] = fmt.Sprint(v.IntValue)
		}
	}
	return to
}

// shape is a line for each span: its name below its parent's, and its duration.
func (g *received) shape() []string {
	names := map[string]string{}
	for _, s := range g.spans {
		names[string(s.GetSpanId())] = s.GetName()
	}
	var lines []string
	for _, s := range g.spans {
		lines = append(lines, fmt.Sprintf("%s < %s: %d ms", s.GetName(), names[string(s.GetParentSpanId())], (s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano())/1e6))
	}
	slices.Sort(lines)
	return lines
}

func (g *received) span(t *testing.T, name string) *tracev1.Span {
	t.Helper()
	for _, s := range g.spans {
		if s.GetName() == name {
			return s
		}
	}
	t.Fatalf("no span %q in %q", name, g.shape())
	return nil
}

func result() *report.Result {
	return &report.Result{
		Command: "apply", DryRun: report.None, Inventory: report.Inventory{Namespace: "shop", Name: "inv"}, Server: "https://api.example.com", ExitCode: 1, Revision: 4,
		Errors:  []string{"it went wrong"},
		Summary: report.Summary{Seconds: 10, Requests: map[string]int{"patch": 2}},
		Objects: []*report.ObjectResult{
			{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "db", Source: bundle.Source{File: "a.yaml", Line: 7}, Action: plan.Created, Ready: report.StateReady,
				QueuedAt: 1, StartedAt: 1.5, ActedAt: 2, ReadyAt: 6, Waits: []report.Wait{{Reason: "not \xff scheduled", Seconds: 4}}},
			{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Action: plan.Failed, Error: "refused", QueuedAt: 6, StartedAt: 6, ActedAt: 7, After: &report.Need{Reference: bundle.Reference{Kind: "Pod", Namespace: "shop", Name: "db"}}},
			{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "same", Action: plan.Unchanged},
			{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "old", Action: plan.Pruned, QueuedAt: 7, StartedAt: 7.5, ActedAt: 8, ReadyAt: 8},
		},
	}
}

func TestSpansOfARun(t *testing.T) {
	got := listen(t, http.StatusOK)
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	t.Setenv("OTEL_SERVICE_NAME", "night")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x")
	if err := traces.Send(t.Context(), result(), "1.2.3"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"apply < brine apply: 6000 ms", "brine apply < : 10000 ms", "created Pod shop/db < apply: 5000 ms", "failed Pod shop/web < apply: 1000 ms",
		"finish < brine apply: 2000 ms", "prepare < brine apply: 1000 ms", "prune < brine apply: 1000 ms", "pruned ConfigMap shop/old < prune: 1000 ms",
	}
	if shape := got.shape(); !slices.Equal(shape, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(shape, "\n"), strings.Join(want, "\n"))
	}
	run := got.span(t, "brine apply")
	if fmt.Sprintf("%x %x", run.GetTraceId(), run.GetParentSpanId()) != "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331" {
		t.Errorf("the run's span is in trace %x below %x", run.GetTraceId(), run.GetParentSpanId())
	}
	if a := maps(map[string]string{}, run.GetAttributes()); a["process.exit.code"] != "1" || a["error.type"] != "1" || a["brine.inventory.name"] != "inv" || a["brine.requests.patch"] != "2" {
		t.Errorf("attributes %v", a)
	}
	if s := run.GetStatus(); s.GetCode() != tracev1.Status_STATUS_CODE_ERROR || s.GetMessage() != "exit code 1: it went wrong" {
		t.Errorf("status %v", s)
	}
	db := got.span(t, "created Pod shop/db")
	if a := maps(map[string]string{}, db.GetAttributes()); a["code.file.path"] != "a.yaml" || a["code.line.number"] != "7" || a["k8s.namespace.name"] != "shop" || a["brine.object.ready"] != "ready" {
		t.Errorf("attributes %v", a)
	}
	var events []string
	for _, e := range db.GetEvents() {
		events = append(events, fmt.Sprintf("%s %d %s", e.GetName(), (e.GetTimeUnixNano()-run.GetStartTimeUnixNano())/1e6, maps(map[string]string{}, e.GetAttributes())["brine.reason"]))
	}
	if want := []string{"sent 1500 ", "answered 2000 ", "waiting 2000 not \uFFFD scheduled", "ready 6000 "}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	if r := got.resource; r["service.name"] != "night" || r["service.version"] != "1.2.3" || r["deployment.environment.name"] != "prod" {
		t.Errorf("resource %v", r)
	}
	if h := got.headers[0].Get("Authorization"); h != "Bearer x" {
		t.Errorf("authorization %q", h)
	}
}

func TestSpansOfARollback(t *testing.T) {
	got := listen(t, http.StatusOK)
	r := result()
	r.Summary.Seconds = 12
	r.Rollback = &report.Result{Command: "rollback", Summary: report.Summary{Seconds: 2}}
	if err := traces.Send(t.Context(), r, "1"); err != nil {
		t.Fatal(err)
	}
	if shape := got.shape(); !slices.Contains(shape, "brine rollback < brine apply: 2000 ms") || !slices.Contains(shape, "prepare < brine rollback: 2000 ms") {
		t.Errorf("%q", shape)
	}
}

func TestWanted(t *testing.T) {
	if traces.Wanted() {
		t.Error("traces are sent although nothing asks for them")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:1/v1/traces")
	if !traces.Wanted() {
		t.Error("no traces are sent")
	}
	for _, off := range [][2]string{{"OTEL_SDK_DISABLED", "TRUE"}, {"OTEL_TRACES_EXPORTER", "none"}} {
		t.Run(off[0], func(t *testing.T) {
			t.Setenv(off[0], off[1])
			if traces.Wanted() {
				t.Error("traces are sent")
			}
		})
	}
}

const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {password: swordfish-swordfish}\n"

// The whole command: a collector that fails is a warning, and changes no exit code.
func TestCommandSendsSpans(t *testing.T) {
	got := listen(t, http.StatusOK)
	clitest.Offline(t, "apply", "--dry-run=client", "-f", clitest.BundleFile(t, secret)).Want(t, 0)
	if len(got.spans) == 0 || strings.Contains(fmt.Sprint(got.spans), "swordfish") {
		t.Errorf("%d spans; if there are any, they have the value of a Secret", len(got.spans))
	}
	listen(t, http.StatusBadRequest)
	s := clitest.Offline(t, "apply", "--dry-run=client", "-o", "json", "-f", clitest.BundleFile(t, secret)).Want(t, 0)
	if s.Result == nil || !strings.Contains(s.Stderr, "warning") || !strings.Contains(s.Stderr, "send traces: ") {
		t.Errorf("%s\n%s", s.Stderr, clitest.Clip(s.Stdout))
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	clitest.Offline(t, "apply", "--dry-run=client", "-f", clitest.BundleFile(t, secret)).Want(t, 0).Prints(t, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
}
