package text

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/wording"
)

// screen is as much of a terminal as the live view asks for. It cuts off lines
// that are too long, as xterm does on a resize, and has no end below.
type screen struct {
	lines  [][]rune
	row    int
	col    int
	cols   int
	hidden bool
	t      *testing.T
}

var sequence = regexp.MustCompile(`^\x1b\[(\??)([0-9;]*)([A-Za-z])`)

func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for text != "" {
		if m := sequence.FindStringSubmatch(text); m != nil {
			s.control(m[1]+m[3], m[2])
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col = 0
		case '\n': // a terminal in cooked mode returns as well
			s.row, s.col = s.row+1, 0
		default:
			s.put(r)
		}
	}
	return len(p), nil
}

func (s *screen) at(row int) *[]rune {
	for len(s.lines) <= row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[row]
}

func (s *screen) put(r rune) {
	if s.col >= s.cols { // wraps
		s.row, s.col = s.row+1, 0
	}
	line := s.at(s.row)
	for len(*line) <= s.col {
		*line = append(*line, ' ')
	}
	(*line)[s.col] = r
	s.col++
}

func (s *screen) control(code, args string) {
	line := s.at(s.row)
	switch code {
	case "K":
		*line = (*line)[:min(len(*line), s.col)]
	case "J":
		*line = (*line)[:min(len(*line), s.col)]
		s.lines = s.lines[:s.row+1]
	case "A":
		n, _ := strconv.Atoi(args)
		if s.row -= n; s.row < 0 {
			s.t.Fatal("the cursor left the screen")
		}
	case "?l", "?h":
		if args == "25" {
			s.hidden = code == "?l"
		}
	case "m":
	default:
		s.t.Fatalf("unexpected control %q", code)
	}
}

func (s *screen) String() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(strings.TrimRight(string(l), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// TestLiveIsAPlainRecordAtTheEnd draws after each event, and compares what is
// left with a run without a terminal.
func TestLiveIsAPlainRecordAtTheEnd(t *testing.T) {
	s := &screen{cols: 200, t: t}
	o := wording.Options{Terminal: true, Shared: true, ErrColor: true, Width: func() int { return s.cols }, Height: func() int { return 12 }, Now: func() time.Time { return outputtest.Base }, Out: s, Err: s}
	p := New(wording.Options{Out: s, Err: s, Heartbeat: time.Hour})
	p.live = newLive(o)
	close(p.live.done) // no ticker: the test draws
	p.out.W, p.err.W = p.live, p.live
	sawBlock := false
	for _, e := range outputtest.RichRun("none") {
		p.Event(e)
		if _, end := e.Payload.(report.Finished); end {
			break
		}
		p.live.mu.Lock()
		p.live.draw()
		p.live.mu.Unlock()
		if !s.hidden {
			t.Error("the cursor is not hidden")
		}
		sawBlock = sawBlock || strings.Contains(s.String(), "/11 ") && strings.Contains(s.String(), "waiting")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if s.hidden {
		t.Error("the cursor stays hidden")
	}
	if !sawBlock {
		t.Error("the block was never seen")
	}
	var plain bytes.Buffer
	q := New(wording.Options{Out: &plain, Err: &plain, Heartbeat: time.Hour})
	for _, e := range outputtest.RichRun("none") {
		if e.Type() != "heartbeat" && e.Type() != "retrying" { // the block shows these
			q.Event(e)
		}
	}
	if got := s.String(); got != wrapped(plain.String(), 200) {
		t.Errorf("what is left is not the plain record:\n%s", got)
	}
}

func wrapped(text string, cols int) string {
	s := &screen{cols: cols}
	_, _ = s.Write([]byte(text))
	return s.String()
}

func TestLiveSurvivesResize(t *testing.T) {
	s := &screen{cols: 100, t: t}
	l := newLive(wording.Options{Err: s, Width: func() int { return s.cols }, Height: func() int { return 12 }, Now: func() time.Time { return outputtest.Base }})
	close(l.done)
	for _, e := range outputtest.RichRun("none")[:12] {
		l.update(e)
	}
	for _, cols := range []int{100, 30, 7, 1, 80} {
		s.cols = cols
		for i := range s.lines { // what a terminal that does not wrap again does
			s.lines[i] = s.lines[i][:min(len(s.lines[i]), cols)]
		}
		l.draw()
		if s.row != 0 {
			t.Errorf("at %d columns the cursor is left in row %d", cols, s.row)
		}
		for _, line := range s.lines {
			if len(line) > max(1, cols-1) {
				t.Errorf("at %d columns a row has %d", cols, len(line))
			}
		}
	}
	if got := s.String(); !strings.Contains(got, "/11") || strings.Count(got, "\n") > 10 {
		t.Errorf("the block is\n%s", got)
	}
	l.stop()
	if strings.TrimSpace(s.String()) != "" {
		t.Errorf("the block stays:\n%s", s)
	}
}

func TestFrame(t *testing.T) {
	r := &outputtest.Run{}
	web := r.Object("apps", "v1", "Deployment", "shop", "web", 1)
	var all []*report.ObjectResult
	for i := range 12 {
		o := r.Object("", "v1", "ConfigMap", "shop", fmt.Sprintf("c%02d", i), 1)
		o.Needs = []report.Need{{Reference: bundle.Reference{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Want: "ready"}}
		all = append(all, o)
	}
	r.At(0, report.Event{Payload: report.Started{Result: &report.Result{Objects: r.Objects}}})
	r.Acted(0.5, web, plan.Created, "")
	r.At(1, report.Event{Payload: report.Waiting{Object: web, Reason: "1 of 3 pods\nready, 漢字"}})
	for i, o := range all[:9] {
		r.At(2+float64(i)/10, report.Event{Payload: report.Acting{Object: o}})
	}
	r.At(3, report.Event{Payload: report.Retrying{Object: all[1], Error: "leader changed"}})
	for i, o := range all[:8] {
		r.At(3+float64(i)/10, report.Event{Payload: report.Waiting{Object: o, Reason: "x"}})
	}
	r.Acted(4, all[11], plan.Unchanged, "")
	var s liveState
	for _, e := range r.Events {
		s.update(e)
	}
	var b strings.Builder
	for _, size := range [][2]int{{120, 40}, {60, 8}, {20, 3}, {4, 1}} {
		rows := s.frame(size[0], size[1], 9*time.Second)
		fmt.Fprintf(&b, "%d by %d:\n%s\n\n", size[0], size[1], strings.Join(rows, "\n"))
		for _, row := range rows {
			if cells(row) > size[0]-1 {
				t.Errorf("%d cells in a terminal of %d: %s", cells(row), size[0], row)
			}
		}
		if len(rows) > max(1, size[1]-2) {
			t.Errorf("%d rows in a terminal of %d", len(rows), size[1])
		}
	}
	outputtest.CompareGolden(t, "frame.out", b.String())
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		in   string
		to   int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"漢字漢", 5, "漢字…"}, {"漢字漢", 4, "漢…"}, {"e\u0301e", 2, "e\u0301e"}, {"ab", 1, "…"}} {
		if got := cut(test.in, test.to); got != test.want {
			t.Errorf("cut(%q, %d) = %q", test.in, test.to, got)
		}
	}
	if got := wording.Line("a \x1b[31mred\x1b[0m\x07\n\n b"); got != "a red\ufffd; b" {
		t.Errorf("oneLine gives %q", got)
	}
}

// TestLiveDemo plays a run of a quarter of a minute, to be looked at in a real
// terminal: BRINE_LIVE_DEMO=1 go test -run LiveDemo ./cmd/brine/output/text
func TestLiveDemo(t *testing.T) {
	if os.Getenv("BRINE_LIVE_DEMO") == "" {
		t.Skip("set BRINE_LIVE_DEMO=1 to see the live view")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	o := wording.Options{Heartbeat: 5 * time.Second}
	o.Streams(os.Stdout, os.Stderr)
	o.Now = time.Now
	p := New(o)
	defer func() { _ = p.Close() }()
	began, r := time.Now(), &outputtest.Run{}
	for i := range 60 {
		kind := []string{"ConfigMap", "Deployment", "Service"}[i%3]
		o := r.Object("", "v1", kind, "shop", fmt.Sprintf("thing-%02d", i), i)
		if i > 10 {
			o.Needs = []report.Need{{Reference: bundle.Reference{Kind: "Deployment", Namespace: "shop", Name: "thing-01"}}}
		}
	}
	done := 0
	send := func(e report.Event) {
		e.Time, e.Elapsed, e.Total, e.Done = time.Now(), time.Since(began), len(r.Objects), done
		p.Event(e)
		select {
		case <-ctx.Done():
		case <-time.After(80 * time.Millisecond):
		}
	}
	send(report.Event{Payload: report.Started{Result: &report.Result{Objects: r.Objects, Inventory: report.Inventory{Name: "demo"}}}})
	result := &report.Result{Objects: r.Objects}
	for i, o := range r.Objects {
		if ctx.Err() != nil {
			result.Interrupted = "SIGINT"
			break
		}
		send(report.Event{Payload: report.Acting{Object: o}})
		o.Action = plan.Created
		send(report.Event{Payload: report.Acted{Object: o}})
		if o.Kind == "Deployment" {
			send(report.Event{Payload: report.Waiting{Object: o, Reason: "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability; " + strings.Repeat("long ", 20)}})
		} else {
			done++
		}
		if w := r.Objects[max(0, i-9)]; w.Kind == "Deployment" && w.Ready == "" && i > 12 {
			w.Ready = "ready"
			done++
			send(report.Event{Payload: report.BecameReady{Object: w}})
		}
	}
	send(report.Event{Payload: report.Finished{Result: result}})
}

// A block that gets lower, or the same, leaves nothing of the one before.
func TestLiveBlockShrinks(t *testing.T) {
	s := &screen{cols: 100, t: t}
	l := newLive(wording.Options{Err: s, Now: func() time.Time { return outputtest.Base }})
	close(l.done)
	r := &outputtest.Run{}
	a, b := r.Object("", "v1", "Pod", "x", "first", 1), r.Object("", "v1", "Pod", "x", "second", 1)
	r.At(1, report.Event{Payload: report.Waiting{Object: a, Reason: "a long reason"}})
	r.At(1, report.Event{Payload: report.Waiting{Object: b, Reason: "a long reason"}})
	r.At(1, report.Event{Payload: report.Waiting{Object: a, Reason: "short"}})
	r.At(1, report.Event{Payload: report.BecameReady{Object: a}})
	for i, want := range []string{
		"  waiting     0s  Pod x/first: a long reason\n",
		"  waiting     0s  Pod x/first: a long reason\n  waiting     0s  Pod x/second: a long reason\n",
		"  waiting     0s  Pod x/first: short\n  waiting     0s  Pod x/second: a long reason\n",
		"  waiting     0s  Pod x/second: a long reason\n",
	} {
		l.update(r.Events[i])
		l.draw()
		if _, rows, _ := strings.Cut(s.String(), "\n"); rows != want {
			t.Errorf("after event %d the rows are\n%s", i, rows)
		}
	}
	writes := len(s.String())
	l.w = outputtest.BrokenWriter{} // nothing has changed: nothing is written
	l.draw()
	if l.err != nil || len(s.String()) != writes {
		t.Error("a frame that did not change was written again")
	}
}
