// Package salt writes a run as Salt reads it.
package salt

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/documents"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// The formats for Salt: a state's whole return, what cmd.run with
// `stateful: True` reads, and, for scripts/salt, the lines of -o events of
// which the last holds the state's return in place of the result.
const (
	Format        = "salt"
	CommandFormat = "salt-cmd"
	EventsFormat  = "salt-events"
)

// State is r as a Salt state returns it: name, result (true, false, or nil
// in a dry run that would change something), changes, comment, warnings and
// sub_state_run, one entry for each object that changed or failed. started is when
// the run began. The keys are those that salt/state.py and
// salt/utils/decorators/state.py ask for.
func State(r *report.Result, started time.Time) map[string]any {
	subs := []any{}
	for _, o := range r.Objects {
		if saltChange(o, 0) != nil || saltObjectFailed(r, o) {
			subs = append(subs, saltSub(r, o, started))
		}
	}
	ret := map[string]any{
		"name":          r.Inventory.Name,
		"result":        saltResult(r),
		"changes":       saltChanges(r),
		"comment":       saltComment(r),
		"warnings":      orEmpty(r.Warnings),
		"sub_state_run": subs,
	}
	if r.Plan != nil {
		ret["plan"], ret["summary"] = r.Plan, r.Summary
	}
	return ret
}

// Command is r for cmd.run with `stateful: True`: changed and comment
// always, and what becomes the state's changes when changed is true. Salt adds
// pid, retcode, stdout and stderr to those, so none may be called that.
func Command(r *report.Result) map[string]any {
	comment := saltComment(r)
	for _, w := range r.Warnings {
		comment += "\nWarning: " + w
	}
	objects := saltChanges(r)
	return map[string]any{
		"changed": len(objects) > 0,
		"comment": comment,
		"summary": r.Summary,
		"objects": objects,
	}
}

// Error is the one JSON object, a line, for a run that never began: bad
// input, bad usage, a cluster that does not answer.
func Error(format string, exitCode int, errs []string) []byte {
	comment := strings.Join(errs, "\n")
	if comment == "" {
		comment = "brine failed and gave no reason"
	}
	comment = wording.Clean(fmt.Sprintf("Nothing was changed (exit code %d):\n%s", exitCode, comment))
	if format == CommandFormat {
		return saltJSON(map[string]any{"changed": false, "comment": comment})
	}
	ret := saltNothing(comment)
	if format == EventsFormat {
		return saltJSON(lastLine(report.Event{Time: time.Now(), Run: rand.Text()[:16]}, 1, ret))
	}
	return saltJSON(ret)
}

// saltNothing is the return of a state that failed and knows of no changes.
func saltNothing(comment string) map[string]any {
	return map[string]any{
		"name": "brine", "result": false, "changes": map[string]any{}, "comment": comment,
		"warnings": []string{}, "sub_state_run": []any{},
	}
}

func saltJSON(v any) []byte {
	var b bytes.Buffer
	enc := wording.NewEncoder(&b)
	if err := enc.Encode(v); err != nil {
		b.Reset()
		_ = enc.Encode(map[string]any{
			"name": "brine", "result": false, "changed": false, "changes": map[string]any{},
			"comment": "brine could not write its result as JSON: " + err.Error(),
		})
	}
	return b.Bytes()
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// saltFailed: anything but "done" and "a dry run that found changes".
func saltFailed(r *report.Result) bool {
	if len(r.Errors) > 0 || r.Summary.Failed > 0 || r.Interrupted != "" {
		return true
	}
	return r.ExitCode != 0 && (r.ExitCode != 2 || !wording.IsPreview(r))
}

func saltResult(r *report.Result) any {
	switch {
	case saltFailed(r):
		return false
	case wording.IsPreview(r) && len(saltChanges(r)) > 0:
		return nil
	}
	return true
}

// saltChanges are the objects that a run changed (or would change), by name.
func saltChanges(r *report.Result) map[string]any {
	changes, room := map[string]any{}, saltRoom(r)
	for _, o := range r.Objects {
		if c := saltChange(o, room); c != nil {
			changes[saltKey(o)] = c
		}
	}
	return changes
}

// saltKey is "apps/v1/Deployment ns/name".
func saltKey(o *report.ObjectResult) string {
	key := o.Version + "/" + o.Kind + " "
	if o.Group != "" {
		key = o.Group + "/" + key
	}
	if o.Namespace != "" {
		key += o.Namespace + "/"
	}
	return key + o.Name
}

// saltChange is {old, new} for an object that changed, nil for every other. A
// configured object has its fields by path; their values come masked where
// they are a Secret's, and as many of them as there is room for.
func saltChange(o *report.ObjectResult, room int) map[string]any {
	switch o.Action {
	case plan.Created:
		return map[string]any{"old": "absent", "new": "present"}
	case plan.Pruned:
		return map[string]any{"old": "present", "new": "absent"}
	case plan.Detached:
		return map[string]any{"old": "tracked", "new": "detached"}
	case plan.Configured, plan.Recreated:
	default:
		return nil
	}
	switch {
	case len(o.Changes) == 0:
		return map[string]any{"old": "present", "new": string(o.Action)}
	case o.Group == bundle.CRDKind.Group && o.Kind == bundle.CRDKind.Kind:
		return map[string]any{"old": "present", "new": string(o.Action) + ": " + saltFieldCounts(o.Changes)}
	}
	before, after := map[string]any{}, map[string]any{}
	for i, c := range o.Changes {
		if i == saltFields || i > 0 && room < 0 {
			after["…"] = "and " + saltFieldCounts(o.Changes[i:])
			break
		}
		if c.Old != nil {
			before[c.Path] = saltValue(c.Old)
			room -= saltSize(c.Path, before[c.Path])
		}
		if c.New != nil {
			at := cmp.Or(c.Moved, c.Path)
			after[at] = saltValue(c.New)
			room -= saltSize(at, after[at])
		}
	}
	return map[string]any{"old": before, "new": after}
}

// What a person reads of an object's changes, and Salt keeps in its job cache: the
// report file has all of it.
const (
	saltFields = 20  // of an object
	saltLength = 200 // characters of a value
	saltBytes  = 40_000
)

// saltRoom is how many bytes of changed fields an object has, so that the return
// of a run which changes hundreds of objects stays below 100 KB on Salt's bus.
func saltRoom(r *report.Result) int {
	configured := 0
	for _, o := range r.Objects {
		if len(o.Changes) > 0 {
			configured++
		}
	}
	return saltBytes / max(configured, 1)
}

func saltSize(path string, v any) int { return len(path) + len(saltJSON(v)) }

// saltFieldCounts is "3 fields added, 1 removed, 2 changed".
func saltFieldCounts(changes []diff.Change) string {
	var added, removed, changed int
	for _, c := range changes {
		switch {
		case c.Old == nil:
			added++
		case c.New == nil:
			removed++
		default:
			changed++
		}
	}
	text := ""
	for _, one := range []struct {
		N    int
		verb string
	}{{added, "added"}, {removed, "removed"}, {changed, "changed"}} {
		switch {
		case one.N == 0:
		case text == "":
			text = bundle.Count(one.N, "field") + " " + one.verb
		default:
			text += fmt.Sprintf(", %d %s", one.N, one.verb)
		}
	}
	return text
}

// saltValue is a field's value, or the beginning of a long one.
func saltValue(v any) any {
	text, ok := v.(string)
	if !ok {
		text = strings.TrimSpace(string(saltJSON(v)))
	}
	if runes := []rune(text); len(runes) > saltLength {
		return fmt.Sprintf("%s… (%d characters)", string(runes[:saltLength/2]), len(runes))
	}
	return v
}

func saltSub(r *report.Result, o *report.ObjectResult, started time.Time) map[string]any {
	key, fun := saltKey(o), "object_present"
	if o.Action == plan.Pruned || o.Action == plan.Detached {
		fun = "object_absent"
	}
	// Two runs of one Salt job may have the same object.
	id := wording.InventoryName(r.Inventory) + ": " + cmp.Or(o.Source.State, key)
	changes := saltChange(o, saltRoom(r))
	var result any = true
	switch {
	case saltObjectFailed(r, o):
		result = false
	case wording.IsPreview(r) && changes != nil:
		result = nil
	}
	if changes == nil {
		changes = map[string]any{}
	}
	end := max(o.ActedAt, o.ReadyAt, o.StartedAt)
	return map[string]any{
		"name":       key, // content_check wants it of every entry, too
		"low":        map[string]any{"name": key, "state": "brine", "__id__": id, "fun": fun},
		"changes":    changes,
		"result":     result,
		"comment":    saltObjectComment(r, o),
		"duration":   (end - o.StartedAt) * 1000, // milliseconds
		"start_time": started.Add(time.Duration(o.StartedAt * float64(time.Second))).Local().Format("15:04:05.000000"),
	}
}

// saltObjectFailed: what was skipped in a run that failed was not done.
func saltObjectFailed(r *report.Result, o *report.ObjectResult) bool {
	return o.Action == plan.Failed || o.Ready == "failed" || o.Ready == "not-ready" ||
		o.Action == plan.Skipped && (o.Error != "" || saltFailed(r))
}

func saltObjectComment(r *report.Result, o *report.ObjectResult) string {
	text := string(o.Action)
	if wording.IsPreview(r) && saltChange(o, 0) != nil {
		text = "would be " + text
	}
	if o.Ready != "" {
		text += ", " + o.Ready
	}
	for _, more := range append([]string{o.Error, o.Reason}, o.Why...) {
		if more != "" && !strings.Contains(text, more) {
			text += ": " + more
		}
	}
	if at := o.Source.String(); at != "" {
		text += " (" + at + ")"
	}
	return text
}

// saltComment is what a run came to. Where it went wrong, the causes come first:
// what failed, what is not ready, then what was skipped because of them, and at the
// end what to do.
func saltComment(r *report.Result) string {
	const most = 100
	var lines, skipped []string
	var failed []*report.ObjectResult
	because := map[string][]string{}
	for _, o := range r.Objects {
		switch {
		case !saltObjectFailed(r, o):
			continue
		case o.Action == plan.Skipped && o.Error == "":
			if because[o.Reason] == nil {
				skipped = append(skipped, o.Reason)
			}
			because[o.Reason] = append(because[o.Reason], bundle.Name(o.ID()))
		default:
			lines = append(lines, bundle.Name(o.ID())+": "+saltObjectComment(r, o))
		}
		failed = append(failed, o)
	}
	for _, reason := range skipped {
		names := because[reason]
		lines = append(lines, fmt.Sprintf("%s: skipped: %s", bundle.Some(names, 5), reason))
	}
	for i, o := range r.Outside {
		line := wording.OutsideTitle(r) + ": " + wording.OutsideLines(r)[i]
		if wording.UnreadyOutside(r, o) {
			failed, lines = append(failed, o), append([]string{line}, lines...)
		} else {
			lines = append(lines, line)
		}
	}
	if r.Review != nil && r.Review.Back != nil && len(r.Review.Back.Losses) > 0 {
		lines = append(lines, wording.BackTitle(r.Review.Back)+" "+strings.Join(wording.BackLines(r.Review.Back), "; "))
	}
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	lines = append(wording.ErrorsOfNoObject(r.Errors, failed), lines...)
	return strings.Join(append(lines, saltHeadline(r)), "\n")
}

func saltHeadline(r *report.Result) string {
	name := " the run"
	if r.Inventory.Name != "" {
		name = " inventory " + wording.InventoryName(r.Inventory)
	}
	counts := saltCounts(r)
	took := fmt.Sprintf(" in %.1f s", r.Summary.Seconds)
	if r.Revision > 0 {
		took += fmt.Sprintf(", revision %d", r.Revision)
	}
	again := " (exit code %d). Run it again to continue"
	if len(r.Objects) == 0 && saltFailed(r) { // it is not known what the inventory has
		why := "Failed"
		if r.Interrupted != "" {
			why = "Interrupted by " + r.Interrupted
		}
		return fmt.Sprintf("%s before anything was planned, and nothing was changed:%s (exit code %d)", why, name, r.ExitCode)
	}
	switch {
	case r.ExitCode == report.ExitRolledBack:
		return fmt.Sprintf("Failed, and rolled back:%s has %s (exit code %d)", name, counts, r.ExitCode)
	case r.Interrupted != "":
		return fmt.Sprintf("Interrupted by %s:%s has %s"+again, r.Interrupted, name, counts, r.ExitCode)
	case saltFailed(r) && r.Summary.Failed == 0 && len(r.Errors) == 0 && r.Summary.NotReady > 0:
		return fmt.Sprintf("Not ready in time:%s has %s"+again, name, counts, r.ExitCode)
	case saltFailed(r) && slices.ContainsFunc(r.Objects, func(o *report.ObjectResult) bool { return o.Unknown }):
		return fmt.Sprintf("Failed, and objects may have changed:%s has %s"+again, name, counts, r.ExitCode)
	case saltFailed(r) && len(saltChanges(r)) == 0:
		return fmt.Sprintf("Failed, and nothing was changed:%s has %s (exit code %d)", name, counts, r.ExitCode)
	case saltFailed(r):
		return fmt.Sprintf("Failed:%s has %s (exit code %d)", name, counts, r.ExitCode)
	case len(saltChanges(r)) == 0:
		return fmt.Sprintf("Nothing to change:%s has %s%s", name, counts, took)
	case wording.IsPreview(r):
		return fmt.Sprintf("Would change%s: %s", name, counts)
	}
	return fmt.Sprintf("Changed%s: %s%s", name, counts, took)
}

func saltCounts(r *report.Result) string {
	var parts []string
	for _, c := range append(wording.ActionCounts(r.Summary), wording.ActionCount{Action: "ready", N: r.Summary.Ready}, wording.ActionCount{Action: "not ready", N: r.Summary.NotReady}) {
		if c.N > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.N, c.Action))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no objects")
}

// saltPrinter writes one JSON object to Out when the run is over (of
// salt-events: lines as things happen, that one last). Salt keeps
// what cmd.run's command writes to Err among the changes, so progress is shown
// there only to a person at a terminal.
type saltPrinter struct {
	mu       sync.Mutex
	out      *wording.Stream
	format   string
	progress wording.Printer // nil without a terminal
	started  time.Time
	begun    bool
	over     bool
	seq      int
	last     report.Event
}

// lastLine is the line of -o salt-events that holds a return.
func lastLine(e report.Event, seq int, ret map[string]any) documents.EventLine {
	e.Payload = report.Finished{}
	l := documents.LineOf(e, seq)
	l.Return = ret
	return l
}

// New is the printer.
func New(o wording.Options) wording.Printer {
	p := &saltPrinter{out: &wording.Stream{W: o.Out}, format: o.Format}
	if o.Terminal {
		p.progress = text.NewProgress(o)
	}
	return p
}

func (p *saltPrinter) Event(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if p.progress != nil {
		p.progress.Event(e)
	}
	if !p.begun {
		p.begun, p.started = true, e.Time.Add(-e.Elapsed)
	}
	p.seq++
	p.last = e
	end, ok := wording.CleanEvent(e).Payload.(report.Finished) // Salt prints what it is given as it is
	if !ok || end.Result == nil {
		if p.format == EventsFormat {
			p.out.Print(string(saltJSON(documents.LineOf(e, p.seq))))
		}
		return
	}
	p.over = true
	r := wording.FillLists(end.Result)
	switch p.format {
	case CommandFormat:
		p.out.Print(string(saltJSON(Command(r))))
	case EventsFormat:
		l := lastLine(e, p.seq, State(r, p.started))
		l.Inventory = &r.Inventory
		p.out.Print(string(saltJSON(l)))
	default:
		p.out.Print(string(saltJSON(State(r, p.started))))
	}
}

// Close writes the object that has to be there even if a run that began never
// came to its result.
func (p *saltPrinter) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.progress != nil {
		err = p.progress.Close()
	}
	if p.begun && !p.over {
		p.over = true
		lost := errors.New("the run ended without a result")
		comment := lost.Error() + ": objects may have changed. Run it again to continue"
		switch ret := saltNothing(comment); p.format {
		case CommandFormat:
			p.out.Print(string(saltJSON(map[string]any{"changed": true, "comment": comment})))
		case EventsFormat:
			p.out.Print(string(saltJSON(lastLine(p.last, p.seq+1, ret))))
		default:
			p.out.Print(string(saltJSON(ret)))
		}
		err = errors.Join(lost, err)
	}
	return errors.Join(p.out.Err, err)
}
