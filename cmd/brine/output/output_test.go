package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/wording"
)

func TestGolden(t *testing.T) {
	beat, at := 5*time.Second, func() time.Time { return outputtest.Base }
	previous := "brine_exit_code{command=\"apply\",inventory=\"brine/shop\"} 0\nbrine_last_success_timestamp_seconds{command=\"apply\",inventory=\"brine/shop\"} 1700000000\n" +
		"brine_last_success_timestamp_seconds{command=\"apply\",inventory=\"brine/other\"} 1\n"
	for name, test := range map[string]struct {
		o      wording.Options
		events []report.Event
	}{
		"text":             {wording.Options{Heartbeat: beat}, outputtest.RichRun("none")},
		"text-verbose":     {wording.Options{Heartbeat: beat, Verbose: true, Diff: true}, outputtest.RichRun("none")},
		"text-quiet":       {wording.Options{Heartbeat: beat, Quiet: true}, outputtest.RichRun("none")},
		"text-color":       {wording.Options{Heartbeat: beat, Color: true, ErrColor: true, Diff: true}, outputtest.RichRun("none")},
		"text-good":        {wording.Options{Heartbeat: beat}, outputtest.GoodRun()},
		"text-interrupted": {wording.Options{Heartbeat: beat}, outputtest.InterruptedRun()},
		"json":             {wording.Options{Format: "json", Heartbeat: beat}, outputtest.RichRun("none")},
		"json-empty":       {wording.Options{Format: "json", Quiet: true}, []report.Event{{Payload: report.Finished{Result: &report.Result{}}}}},
		"events":           {wording.Options{Format: "events"}, outputtest.RichRun("none")},
		"preview":          {wording.Options{Diff: true}, outputtest.RichRun("server")},
		"preview-color":    {wording.Options{Diff: true, Color: true}, outputtest.RichRun("server")},
		"preview-json":     {wording.Options{Format: "json"}, outputtest.RichRun("server")},
		"preview-markdown": {wording.Options{Format: "md", Now: at}, outputtest.RichRun("server")},
		"preview-github":   {wording.Options{Format: "github", Now: at}, outputtest.RichRun("server")},
		"preview-gitlab":   {wording.Options{Format: "gitlab", Now: at}, outputtest.RichRun("server")},
		"junit":            {wording.Options{Format: "xml", Now: at}, outputtest.RichRun("none")},
		"junit-good":       {wording.Options{Format: "xml", Now: at}, outputtest.GoodRun()},
		"metrics":          {wording.Options{Format: "prom", Now: at, Previous: previous}, outputtest.RichRun("none")},
		"metrics-good":     {wording.Options{Format: "prom", Now: at, Previous: previous}, outputtest.GoodRun()},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := outputtest.Show(t, New, test.o, test.events)
			outputtest.CheckNoSecret(t, out+err)
			outputtest.CompareGolden(t, name+".out", out)
			outputtest.CompareGolden(t, name+".err", err)
		})
	}
}

func TestJSONIsOneDocumentWithoutNulls(t *testing.T) {
	for _, events := range [][]report.Event{outputtest.RichRun("none"), {{Payload: report.Finished{Result: &report.Result{}}}}} {
		out, _ := outputtest.Show(t, New, wording.Options{Format: "json"}, events)
		var doc map[string]any
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, ": null") {
			t.Error("there is a null in the document")
		}
		for _, f := range []string{"summary", "objects", "errors", "warnings"} {
			if _, ok := doc[f]; !ok {
				t.Errorf("no %q in the document", f)
			}
		}
	}
}

func TestEventsAreOneObjectALineAndEndWithTheResult(t *testing.T) {
	var w lines
	p := New(wording.Options{Format: "events", Out: &w})
	events := outputtest.RichRun("none")
	for i, e := range events {
		p.Event(e)
		if len(w) != i+1 {
			t.Fatalf("event %d was not written at once: %d writes", i, len(w))
		}
	}
	p.Event(report.Event{Payload: report.Warning{Message: "late"}})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var last struct {
		Type   string
		Result *report.Result
	}
	for i, line := range w {
		if strings.Count(line, "\n") != 1 || !json.Valid([]byte(line)) {
			t.Errorf("line %d is not one JSON object", i)
		}
	}
	if err := json.Unmarshal([]byte(w[len(w)-1]), &last); err != nil || last.Type != "finished" || len(last.Result.Objects) != 11 {
		t.Errorf("the last line does not hold the result: %v", err)
	}
}

// lines keeps each write.
type lines []string

func (l *lines) Write(p []byte) (int, error) {
	*l = append(*l, string(p))
	return len(p), nil
}

func TestWriteErrorsAreToldAtTheEnd(t *testing.T) {
	for _, format := range Formats {
		p := New(wording.Options{Format: format, Out: outputtest.BrokenWriter{}, Err: &bytes.Buffer{}})
		for _, e := range outputtest.GoodRun() {
			p.Event(e)
		}
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("%s: Close says %v", format, err)
		}
	}
	if err := Finished(wording.Options{Format: "yaml", Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, &report.Result{}); err == nil || !strings.Contains(err.Error(), "text, json, events") {
		t.Errorf("an unknown format: %v", err)
	}
}
