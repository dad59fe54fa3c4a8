package salt

import (
	"cmp"
	"time"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// answer is a run as Salt asks about it: whether it failed, and what it changed (or
// would change), by the names of the objects.
type answer struct {
	*report.Result
	preview, failed bool
	changes         map[string]any
}

func answerOf(r *report.Result) *answer {
	a := &answer{Result: r, preview: wording.IsPreview(r), changes: map[string]any{}}
	// With --detailed-exitcode a run that is done, and changed something, has a code of its own.
	a.failed = len(r.Errors) > 0 || r.Summary.Failed > 0 || r.Interrupted != "" ||
		!report.Succeeded(r.ExitCode)
	room := roomOf(r.Objects)
	for _, o := range r.Objects {
		if c := changeOf(o, room); c != nil {
			a.changes[keyOf(o)] = c
		}
	}
	return a
}

// State is r as a Salt state returns it: name, result (true, false, or nil
// in a dry run that would change something), changes, comment, warnings and
// sub_state_run, one entry for each object that changed or failed. started is when
// the run began. The keys are those that salt/state.py and
// salt/utils/decorators/state.py ask for.
func State(r *report.Result, started time.Time) map[string]any {
	a, subs := answerOf(r), []any{}
	for _, o := range r.Objects {
		if changed(o) || a.notDone(o) {
			subs = append(subs, a.sub(o, started))
		}
	}
	ret := map[string]any{
		"name":          r.Inventory.Name,
		"result":        a.verdict(a.failed, len(a.changes) > 0),
		"changes":       a.changes,
		"comment":       a.comment(),
		"warnings":      append([]string{}, r.Warnings...), // never null
		"sub_state_run": subs,
	}
	if r.Plan != nil {
		ret["plan"], ret["summary"] = r.Plan, r.Summary
	}
	return ret
}

// command is the answer to cmd.run with `stateful: True`: changed and comment
// always, and what becomes the state's changes when changed is true. Salt adds
// pid, retcode, stdout and stderr to those, so none may be called that.
func (a *answer) command() map[string]any {
	comment := a.comment()
	for _, w := range a.Warnings {
		comment += "\nWarning: " + w
	}
	if a.ExitCode == report.ExitChanges {
		comment += "\nSalt takes the exit code 2 of --detailed-exitcode for a failure: leave that flag out"
	}
	return map[string]any{"changed": len(a.changes) > 0, "comment": comment, "summary": a.Summary, "objects": a.changes}
}

// verdict is a state's result: nil for what a dry run would change.
func (a *answer) verdict(failed, changed bool) any {
	if a.preview && changed && !failed {
		return nil
	}
	return !failed
}

// sub is an object's entry in sub_state_run.
func (a *answer) sub(o *report.ObjectResult, started time.Time) map[string]any {
	key, fun, changes := keyOf(o), "object_present", any(map[string]any{})
	if o.Action == plan.Pruned || o.Action == plan.Detached {
		fun = "object_absent"
	}
	if changed(o) {
		changes = a.changes[key]
	}
	// Two runs of one Salt job may have the same object.
	id := wording.InventoryName(a.Inventory) + ": " + cmp.Or(o.Source.State, key)
	end := max(o.ActedAt, o.ReadyAt, o.StartedAt)
	return map[string]any{
		"name":       key, // content_check wants it of every entry, too
		"low":        map[string]any{"name": key, "state": "brine", "__id__": id, "fun": fun},
		"changes":    changes,
		"result":     a.verdict(a.notDone(o), changed(o)),
		"comment":    a.about(o),
		"duration":   (end - o.StartedAt) * 1000, // milliseconds
		"start_time": started.Add(time.Duration(o.StartedAt * float64(time.Second))).Local().Format("15:04:05.000000"),
	}
}

// notDone: what was skipped in a run that failed was not done.
func (a *answer) notDone(o *report.ObjectResult) bool {
	return o.Action == plan.Failed || o.Ready == report.StateFailed || o.Ready == report.StateNotReady ||
		o.Action == plan.Skipped && (o.Error != "" || a.failed)
}
