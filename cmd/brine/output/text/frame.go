package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"brine/bundle"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// What the live view shows, as rows of a given size; live.go draws them.

// liveState is what the live view knows of a run.
type liveState struct {
	paint      wording.Paint
	total      int
	done       int
	inFlight   map[bundle.ID]pending
	waiting    map[bundle.ID]pending
	dependents map[bundle.ID][]bundle.ID // who needs it, from the Started event
	settled    map[bundle.ID]bool        // the server has answered
	rates      []progress                // of the last seconds
}

type pending struct {
	since  time.Duration
	reason string
}

type progress struct {
	at   time.Duration
	done int
}

// rateOver is the time over which a rate is taken.
const rateOver = 5 * time.Second

func (s *liveState) update(e report.Event) {
	_, begins := e.Payload.(report.Started)
	if begins { // a rollback begins again
		s.total, s.done, s.rates = 0, 0, nil
	}
	if s.inFlight == nil || begins {
		s.inFlight, s.waiting = map[bundle.ID]pending{}, map[bundle.ID]pending{}
		s.dependents, s.settled = map[bundle.ID][]bundle.ID{}, map[bundle.ID]bool{}
	}
	s.total, s.done = max(s.total, e.Total), max(s.done, e.Done)
	s.rates = append(s.rates, progress{e.Elapsed, s.done})
	for len(s.rates) > 2 && e.Elapsed-s.rates[1].at >= rateOver {
		s.rates = s.rates[1:]
	}
	var id bundle.ID
	if o := e.Object(); o != nil {
		id = o.ID()
	}
	switch p := e.Payload.(type) {
	case report.Started:
		if p.Result != nil {
			for _, o := range p.Result.Objects {
				s.needs(o)
			}
		}
	case report.Heartbeat:
		for _, pending := range p.Pending {
			s.late(pending, e)
		}
	case report.Acting:
		s.inFlight[id] = pending{since: e.Elapsed}
	case report.Retrying:
		note(s.inFlight, id, e.Elapsed, p.Error)
	case report.Acted:
		delete(s.inFlight, id)
		s.settled[id] = true
	case report.Waiting:
		note(s.waiting, id, e.Elapsed, cmp.Or(p.Reason, p.Object.Reason))
	case report.BecameReady, report.NotReady:
		delete(s.waiting, id)
	}
}

// late takes what a heartbeat lists as waited for.
func (s *liveState) late(p report.Pending, e report.Event) {
	if _, busy := s.inFlight[p.Object]; busy {
		return
	}
	since := e.Elapsed
	if !p.Since.IsZero() && !e.Time.IsZero() {
		since = max(0, e.Elapsed-e.Time.Sub(p.Since))
	}
	note(s.waiting, p.Object, since, p.Reason)
}

// note notes the latest reason why an object is not done, and since when it is
// there unless that is known already.
func note(all map[bundle.ID]pending, id bundle.ID, since time.Duration, reason string) {
	if old, ok := all[id]; ok {
		since = old.since
	}
	all[id] = pending{since, wording.Line(reason)}
}

func (s *liveState) needs(o *report.ObjectResult) {
	for _, n := range o.Needs {
		id := n.ID()
		// An object's needs are merged: twice the same can only be its last.
		if known := s.dependents[id]; n.Kind != "" && (len(known) == 0 || known[len(known)-1] != o.ID()) {
			s.dependents[id] = append(known, o.ID())
		}
	}
}

// frame is the block's rows, none wider than cols-1 cells, for a terminal of
// that size.
func (s *liveState) frame(cols, rows int, elapsed time.Duration) []string {
	room := max(1, min(9, rows-2))
	cols = max(1, cols-1) // the last column is left free: writing it may wrap
	out := []string{s.paint.In(wording.Bold, cut(s.bar(cols, elapsed), cols))}
	out = append(out, s.rows("applying", s.inFlight, min(2, room-1), cols, elapsed)...)
	return append(out, s.rows("waiting", s.waiting, room-len(out), cols, elapsed)...)
}

// bar is "[=======>      ] 120/223 54%  38/s  12s".
func (s *liveState) bar(cols int, elapsed time.Duration) string {
	text := fmt.Sprintf(" %d/%d", s.done, s.total)
	if s.total > 0 {
		text += fmt.Sprintf(" %d%%", s.done*100/s.total)
	}
	if r := s.rate(elapsed); r >= 0.1 {
		text += fmt.Sprintf("  %.1f/s", r)
	}
	text += fmt.Sprintf("  %.0fs", elapsed.Truncate(time.Second).Seconds())
	if n := len(s.inFlight); n > 0 {
		text += fmt.Sprintf("  %d in flight", n)
	}
	if n := len(s.waiting); n > 0 {
		text += fmt.Sprintf("  %d waited for", n)
	}
	size := min(40, cols-cells(text)-2)
	if size < 5 {
		return strings.TrimSpace(text)
	}
	full := 0
	if s.total > 0 {
		full = min(size, size*s.done/s.total)
	}
	bar := strings.Repeat("=", full) + strings.Repeat(" ", size-full)
	if full > 0 && full < size {
		bar = bar[:full-1] + ">" + bar[full:]
	}
	return "[" + bar + "]" + text
}

// rate is how many objects a second were done over the last seconds.
func (s *liveState) rate(elapsed time.Duration) float64 {
	if len(s.rates) == 0 {
		return 0
	}
	oldest := s.rates[0]
	for _, r := range s.rates {
		if elapsed-r.at < rateOver {
			break
		}
		oldest = r
	}
	over := min(elapsed, max(elapsed-oldest.at, 0))
	if over < time.Second/2 {
		return 0
	}
	return float64(s.done-oldest.done) / over.Seconds()
}

// rows lists what is pending, longest first, in at most room rows.
func (s *liveState) rows(verb string, all map[bundle.ID]pending, room, cols int, elapsed time.Duration) []string {
	if len(all) == 0 || room <= 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b bundle.ID) int {
		return cmp.Or(cmp.Compare(all[a].since, all[b].since), strings.Compare(bundle.Name(a), bundle.Name(b)))
	})
	var out []string
	for i, id := range ids {
		if len(out) == room-1 && len(ids)-i > 1 {
			out = append(out, s.row(verb, fmt.Sprintf("and %d more", len(ids)-i), cols))
			break
		}
		p := all[id]
		what := fmt.Sprintf("%3.0fs  %s", max(0, elapsed-p.since).Truncate(time.Second).Seconds(), bundle.Name(id))
		if held := s.heldUp(id); held != "" {
			what += ", needed by " + held
		}
		if p.reason != "" {
			what += ": " + p.reason
		}
		out = append(out, s.row(verb, what, cols))
	}
	return out
}

func (s *liveState) row(verb, what string, cols int) string {
	label := fmt.Sprintf("  %-9s ", verb)
	if cols <= len(label) {
		return cut(label, cols)
	}
	return s.paint.In(wording.VerbColor(verb), label) + cut(what, cols-len(label))
}

// heldUp names who waits for the object: "Job.batch shop/migrate and 3 more".
func (s *liveState) heldUp(id bundle.ID) string {
	first, n := "", 0
	for _, d := range s.dependents[id] {
		if s.settled[d] {
			continue
		}
		if n++; n == 1 {
			first = bundle.Name(d)
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return first
	}
	return fmt.Sprintf("%s and %d more", first, n-1)
}

// cut shortens text to so many cells of a terminal.
func cut(text string, to int) string {
	if cells(text) <= to {
		return text
	}
	var b strings.Builder
	n := 0
	for _, r := range text {
		w := runeCells(r)
		if n+w > to-1 {
			break
		}
		n += w
		b.WriteRune(r)
	}
	return b.String() + "…"
}

func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

// runeCells is 2 for East Asian wide characters (UAX #11) and emoji, 0 for
// marks that combine with the one before.
func runeCells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
