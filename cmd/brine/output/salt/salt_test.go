package salt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/documents"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/wording"
)

// stateful is what Salt makes of a command's answer: cmd.run with
// `stateful: True` (salt/states/cmd.py: run and _reinterpreted_state).
func stateful(t *testing.T, stdout string, retcode int, test bool) (result any, changes map[string]any, comment string) {
	t.Helper()
	result = retcode == 0
	var data map[string]any
	dec := json.NewDecoder(strings.NewReader(stdout))
	if err := dec.Decode(&data); err != nil {
		t.Fatalf("Salt cannot read the whole output as one JSON object: %v\n%s", err, stdout)
	}
	if dec.More() {
		t.Fatalf("there is more than one JSON object on stdout:\n%s", stdout)
	}
	changed, ok := data["changed"].(bool)
	if !ok {
		t.Fatalf("changed is %v", data["changed"])
	}
	comment, ok = data["comment"].(string)
	if !ok || comment == "" {
		t.Fatalf("comment is %v", data["comment"])
	}
	delete(data, "comment")
	changes = map[string]any{}
	if changed {
		for _, key := range []string{"pid", "retcode", "stdout", "stderr"} {
			if _, ours := data[key]; ours {
				t.Errorf("key %s is Salt's", key)
			}
		}
		changes = data
	}
	if test && retcode == 0 && len(changes) > 0 {
		result = nil
	}
	return result, changes, comment
}

// unified is what Salt asks of a state's return (OutputUnifier.content_check)
// and of the entries of sub_state_run (salt/state.py: call_chunk).
func unified(t *testing.T, stdout string) map[string]any {
	t.Helper()
	var ret map[string]any
	dec := json.NewDecoder(strings.NewReader(stdout))
	if err := dec.Decode(&ret); err != nil || dec.More() {
		t.Fatalf("not one JSON object: %v\n%s", err, stdout)
	}
	check := func(m map[string]any, keys ...string) {
		for _, key := range keys {
			if _, ok := m[key]; !ok {
				t.Errorf("%s is missing in %v", key, m)
			}
		}
		if _, ok := m["changes"].(map[string]any); !ok {
			t.Errorf("changes is %T, must be a mapping", m["changes"])
		}
		if c, ok := m["comment"].(string); !ok || c == "" {
			t.Errorf("comment is %v", m["comment"])
		}
	}
	check(ret, "name", "result", "warnings", "sub_state_run")
	if _, ok := ret["pchanges"]; ok {
		t.Error("pchanges was given up by Salt")
	}
	tags := map[string]bool{}
	for _, s := range ret["sub_state_run"].([]any) {
		sub := s.(map[string]any)
		check(sub, "name", "result", "duration", "start_time")
		low := sub["low"].(map[string]any)
		tag := ""
		for _, key := range []string{"state", "__id__", "name", "fun"} {
			tag += low[key].(string) + "_|-"
		}
		if tags[tag] {
			t.Errorf("two entries of sub_state_run are called %s: Salt would show one", tag)
		}
		tags[tag] = true
	}
	return ret
}

func finished(r *report.Result) []report.Event {
	return []report.Event{
		{Time: outputtest.Base, Payload: report.Started{Result: &report.Result{Command: r.Command, DryRun: r.DryRun, Inventory: r.Inventory}}},
		{Time: outputtest.Base.Add(12 * time.Second), Elapsed: 12 * time.Second, Payload: report.Finished{Result: r}},
	}
}

// saltRuns are the ways a run can end. Every one is shown in both formats.
func saltRuns() map[string]*report.Result {
	inv := report.Inventory{Namespace: "brine", Name: "shop", ID: "shop-1"}
	created := outputtest.Object("ConfigMap", "new", plan.Created)
	created.Source = bundle.Source{File: "-", Line: 3, State: "Create new", SLS: "shop"}
	configured := outputtest.Object("ConfigMap", "settings", plan.Configured)
	configured.Changes = []diff.Change{{Path: "data.a", Old: "1", New: "2"}, {Path: "data.b", New: "3"}}
	configured.ReadyAt, configured.Ready = 4, "ready"
	pruned := outputtest.Object("ConfigMap", "old", plan.Pruned)
	late := outputtest.Object("Job", "late", plan.Created)
	late.Group, late.Ready, late.Reason = "batch", "not-ready", "0 of 1 completed"
	late.Why = []string{"Pod shop/late-x: image cannot be pulled"}
	failed := outputtest.Object("Secret", "no", plan.Failed)
	failed.Error = "apply patch: the server refused it"
	skipped := outputtest.Object("ConfigMap", "after", plan.Skipped)
	skipped.Reason = "needs Secret shop/no, which failed"
	unchanged := outputtest.Object("ConfigMap", "same", plan.Unchanged)
	changed := []*report.ObjectResult{created, configured, pruned, unchanged}
	return map[string]*report.Result{
		"success":                          {Command: "apply", DryRun: "none", Inventory: inv, Objects: changed, Revision: 7, Summary: report.Summary{Created: 1, Configured: 1, Pruned: 1, Unchanged: 1, Ready: 1, Seconds: 12}},
		"success with --detailed-exitcode": {Command: "apply", DryRun: "none", Inventory: inv, Objects: changed, ExitCode: 2, Summary: report.Summary{Created: 1, Configured: 1, Pruned: 1}},
		"no change":                        {Command: "apply", DryRun: "none", Inventory: inv, Objects: []*report.ObjectResult{unchanged}, Summary: report.Summary{Unchanged: 1, Seconds: 1}},
		"dry run":                          {Command: "preview", DryRun: "server", Inventory: inv, Objects: changed, Summary: report.Summary{Created: 1, Configured: 1, Pruned: 1, Unchanged: 1}},
		"dry run with --detailed-exitcode": {Command: "preview", DryRun: "server", Inventory: inv, Objects: changed, ExitCode: 2},
		"dry run of nothing":               {Command: "preview", DryRun: "server", Inventory: inv, Objects: []*report.ObjectResult{unchanged}},
		"dry run that fails":               {Command: "preview", DryRun: "server", Inventory: inv, Objects: []*report.ObjectResult{created, failed}, ExitCode: 1, Summary: report.Summary{Created: 1, Failed: 1}},
		"partial failure": {Command: "apply", DryRun: "none", Inventory: inv, Objects: []*report.ObjectResult{created, failed, skipped, unchanged}, ExitCode: 1,
			Errors: []string{"Secret shop/no: apply patch: the server refused it"}, Warnings: []string{"policy/v1beta1 is deprecated"},
			Summary: report.Summary{Created: 1, Failed: 1, Skipped: 1, Unchanged: 1}},
		"time-out":    {Command: "apply", DryRun: "none", Inventory: inv, Objects: []*report.ObjectResult{created, late}, ExitCode: 4, Summary: report.Summary{Created: 2, NotReady: 1}},
		"interrupted": {Command: "apply", DryRun: "none", Inventory: inv, Objects: []*report.ObjectResult{created}, ExitCode: 143, Interrupted: "SIGTERM", Summary: report.Summary{Created: 1}},
		"locked":      {Command: "apply", DryRun: "none", Inventory: inv, ExitCode: 5, Errors: []string{"inventory brine/shop is locked by host1 (pid 7) since 01:02:03: wait for it, or see who it is with brine status"}},
		"bad input":   {Command: "apply", DryRun: "none", Inventory: inv, ExitCode: 3, Errors: []string{"a.yaml:3: ConfigMap shop/x: data.a: must be text"}},
		"cluster away": {Command: "apply", DryRun: "none", Inventory: inv, ExitCode: 6, Objects: []*report.ObjectResult{created},
			Errors: []string{"read the inventory: dial tcp 127.0.0.1:6443: connection refused"}, Summary: report.Summary{Created: 1}},
	}
}

func TestSaltFormatsInEveryOutcome(t *testing.T) {
	wants := map[string]struct {
		result  any
		changes int
		says    []string
	}{
		"success":                          {true, 3, []string{"Changed inventory brine/shop", "1 created", "revision 7"}},
		"success with --detailed-exitcode": {true, 3, []string{"Changed inventory brine/shop"}},
		"no change":                        {true, 0, []string{"Nothing to change", "1 unchanged"}},
		"dry run":                          {nil, 3, []string{"Would change inventory brine/shop"}},
		"dry run with --detailed-exitcode": {nil, 3, []string{"Would change"}},
		"dry run of nothing":               {true, 0, []string{"Nothing to change"}},
		"dry run that fails":               {false, 1, []string{"Failed", "Secret shop/no: failed: apply patch: the server refused it"}},
		"partial failure":                  {false, 1, []string{"Failed", "1 created", "the server refused it", "needs Secret shop/no, which failed", "exit code 1"}},
		"time-out":                         {false, 2, []string{"Not ready in time", "Job.batch shop/late", "0 of 1 completed", "image cannot be pulled", "Run it again to continue"}},
		"interrupted":                      {false, 1, []string{"Interrupted by SIGTERM", "Run it again to continue"}},
		"bad input":                        {false, 0, []string{"nothing was changed", "a.yaml:3", "exit code 3"}},
		"locked":                           {false, 0, []string{"locked by host1", "nothing was changed", "exit code 5"}},
		"cluster away":                     {false, 1, []string{"connection refused", "exit code 6"}},
	}
	for name, r := range saltRuns() {
		t.Run(name, func(t *testing.T) {
			want := wants[name]
			var fields map[string]any
			for _, format := range []string{Format, CommandFormat} {
				out, err := outputtest.Show(t, New, wording.Options{Format: format}, finished(r))
				if err != "" {
					t.Errorf("%s: Salt would keep this among the changes: %q", format, err)
				}
				var result any
				var changes map[string]any
				var comment string
				if format == Format {
					ret := unified(t, out)
					result, changes, comment = ret["result"], ret["changes"].(map[string]any), ret["comment"].(string)
					fields = changes
					shown := 0
					for _, o := range r.Objects {
						if changed(o) || answerOf(r).notDone(o) {
							shown++
						}
					}
					if got := len(ret["sub_state_run"].([]any)); got != shown {
						t.Errorf("%d entries in sub_state_run for %d objects that changed or failed", got, shown)
					}
				} else {
					code := r.ExitCode
					if code == 2 {
						if !strings.Contains(out, "leave that flag out") { // Salt sees a failure
							t.Errorf("the comment does not say why Salt sees a failure: %s", out)
						}
						continue
					}
					result, changes, comment = stateful(t, out, code, wording.IsPreview(r))
					if len(changes) > 0 {
						changes = changes["objects"].(map[string]any)
					}
					if !slices.Equal(slices.Sorted(maps.Keys(changes)), slices.Sorted(maps.Keys(fields))) {
						t.Errorf("the formats tell of other changes: %v and %v", changes, fields)
					}
				}
				if result != want.result {
					t.Errorf("%s: result %v, want %v", format, result, want.result)
				}
				if len(changes) != want.changes {
					t.Errorf("%s: %d changes, want %d: %v", format, len(changes), want.changes, changes)
				}
				for _, s := range want.says {
					if !strings.Contains(comment, s) {
						t.Errorf("%s: the comment does not say %q:\n%s", format, s, comment)
					}
				}
			}
		})
	}
}

// The lines of salt-events are those of events, but the last holds exactly
// what -o salt prints.
func TestSaltEventsEndWithTheStatesReturn(t *testing.T) {
	for name, events := range map[string][]report.Event{"a full run": outputtest.RichRun("none"), "a preview": outputtest.RichRun("server"), "locked": finished(saltRuns()["locked"])} {
		plain, _ := outputtest.Show(t, documents.NewEvents, wording.Options{Format: "events"}, events)
		state, _ := outputtest.Show(t, New, wording.Options{Format: Format}, events)
		got, err := outputtest.Show(t, New, wording.Options{Format: EventsFormat}, events)
		outputtest.CheckNoSecret(t, got+err)
		if err != "" {
			t.Errorf("%s: on stderr: %s", name, err)
		}
		lines, wants := strings.Split(got, "\n"), strings.Split(plain, "\n")
		if len(lines) != len(wants) {
			t.Fatalf("%s: %d lines, want %d", name, len(lines), len(wants))
		}
		last := len(lines) - 2
		if !slices.Equal(lines[:last], wants[:last]) {
			t.Errorf("%s: the lines before the last differ from those of events", name)
		}
		var end struct {
			Type   string
			Result any
			Return json.RawMessage
		}
		if err := json.Unmarshal([]byte(lines[last]), &end); err != nil || end.Type != "finished" || end.Result != nil {
			t.Fatalf("%s: %v: %s", name, err, lines[last])
		}
		if string(end.Return)+"\n" != state {
			t.Errorf("%s: the return is\n%s\nand -o salt prints\n%s", name, end.Return, state)
		}
	}
	var line struct{ Return map[string]any }
	if err := json.Unmarshal(Error(EventsFormat, 3, []string{"bad"}, false), &line); err != nil || line.Return["result"] != false {
		t.Errorf("%v %v", err, line)
	}
}

// A run that never began has no events: bad input, bad usage, no cluster.
func TestSaltErrorIsOneJSONObject(t *testing.T) {
	errs := []string{`a.yaml:3: ConfigMap "x": a tab`, "a.yaml:9: no name"}
	ret := unified(t, string(Error(Format, 3, errs, false)))
	if ret["result"] != false || !strings.Contains(ret["comment"].(string), "a.yaml:9: no name") || len(ret["changes"].(map[string]any)) != 0 {
		t.Errorf("%v", ret)
	}
	result, changes, comment := stateful(t, string(Error(CommandFormat, 3, errs, false)), 3, false)
	if result != false || len(changes) != 0 || !strings.Contains(comment, "a tab") {
		t.Errorf("%v %v %v", result, changes, comment)
	}
	if ret := unified(t, string(Error(Format, 5, nil, true))); !strings.HasPrefix(ret["comment"].(string), "Objects may have changed") {
		t.Errorf("%v", ret)
	}
}

// A run that begins and is cut off before its result still answers.
func TestSaltFormatsAnswerWithoutAResult(t *testing.T) {
	for _, format := range []string{Format, CommandFormat} {
		var out bytes.Buffer
		p := New(wording.Options{Format: format, Out: &out, Err: &bytes.Buffer{}})
		p.Event(report.Event{Time: outputtest.Base, Payload: report.Started{}})
		if err := p.Close(); err == nil {
			t.Errorf("%s: Close says nothing", format)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: the second Close says %v", format, err)
		}
		if format == Format {
			unified(t, out.String())
			continue
		}
		if result, _, _ := stateful(t, out.String(), 1, false); result != false {
			t.Errorf("%s", out.String())
		}
	}
}

// changes name each object with its old and new fields.
func TestSaltChangesHaveOldAndNewByField(t *testing.T) {
	got, err := json.Marshal(answerOf(saltRuns()["success"]).changes)
	want := `{"v1/ConfigMap shop/new":{"new":"present","old":"absent"},` +
		`"v1/ConfigMap shop/old":{"new":"absent","old":"present"},` +
		`"v1/ConfigMap shop/settings":{"new":{"data.a":"2","data.b":"3"},"old":{"data.a":"1"}}}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// sub_state_run has each object's id, time and own result.
func TestSaltSubStateRun(t *testing.T) {
	state := State(saltRuns()["time-out"], outputtest.Base)
	if state["name"] != "shop" {
		t.Errorf("name %v", state["name"])
	}
	subs := state["sub_state_run"].([]any)
	first, second := subs[0].(map[string]any), subs[1].(map[string]any)
	if low := first["low"].(map[string]any); low["__id__"] != "brine/shop: Create new" || low["name"] != "v1/ConfigMap shop/new" || low["state"] != "brine" {
		t.Errorf("low %v", low)
	}
	if first["result"] != true || first["duration"] != 500.0 || first["start_time"] != outputtest.Base.Add(time.Second).Local().Format("15:04:05.000000") {
		t.Errorf("%v", first)
	}
	if second["result"] != false || !strings.Contains(second["comment"].(string), "0 of 1 completed") {
		t.Errorf("%v", second)
	}
}

// The made-up run with a Secret in it, before and after, in both formats.
func TestSaltFormatsShowNoSecret(t *testing.T) {
	for _, format := range []string{Format, CommandFormat} {
		for _, dry := range []string{"none", "server"} {
			out, err := outputtest.Show(t, New, wording.Options{Format: format}, outputtest.RichRun(dry))
			outputtest.CheckNoSecret(t, out+err)
			if !strings.Contains(out, "v1/Secret shop/login") {
				t.Errorf("%s: whether the Secret changed is not told", format)
			}
			if strings.ContainsRune(out, 0x1b) {
				t.Errorf("%s: an escape sequence", format)
			}
		}
	}
}

// A person who tries it at a terminal sees progress, on the other stream.
func TestSaltFormatsShowProgressAtATerminalOnly(t *testing.T) {
	out, err := outputtest.Show(t, New, wording.Options{Format: CommandFormat, Terminal: true}, outputtest.RichRun("none"))
	if err == "" {
		t.Error("no progress")
	}
	stateful(t, out, 1, false)
}

// Salt prints the changes to a terminal and keeps them in its job cache.
func TestSaltChangesAreShort(t *testing.T) {
	crd := outputtest.Object("CustomResourceDefinition", "things.example.com", plan.Configured)
	crd.Group, crd.Namespace = "apiextensions.k8s.io", ""
	crd.Changes = []diff.Change{{Path: "spec.a", New: "x"}, {Path: "spec.b", New: "x"}, {Path: "spec.c", Old: "x"}, {Path: "spec.d", Old: "x", New: "y"}}
	long := outputtest.Object("ConfigMap", "dashboard", plan.Configured)
	long.Changes = []diff.Change{{Path: "data.json", Old: "{}", New: strings.Repeat("ü", 40000)}}
	for i := range 30 {
		long.Changes = append(long.Changes, diff.Change{Path: fmt.Sprintf("data.k%02d", i), New: i})
	}
	changes := answerOf(&report.Result{Objects: []*report.ObjectResult{crd, long}}).changes
	if got, want := changes["apiextensions.k8s.io/v1/CustomResourceDefinition things.example.com"].(map[string]any)["new"], "configured: 2 fields added, 1 removed, 1 changed"; got != want {
		t.Errorf("a CRD's changes are %v, want %q", got, want)
	}
	fields := changes["v1/ConfigMap shop/dashboard"].(map[string]any)["new"].(map[string]any)
	if got := fields["data.json"].(string); !strings.HasSuffix(got, "… (40000 characters)") || len(got) > 300 {
		t.Errorf("a long value is %q", got)
	}
	if len(fields) != mostFields+1 || fields["…"] != "and 11 fields added" {
		t.Errorf("%d fields are shown, and then %v", len(fields), fields["…"])
	}
}

// The cause comes first and once, what follows from it in one line.
func TestSaltCommentBeginsWithTheCause(t *testing.T) {
	failed := outputtest.Object("Secret", "no", plan.Failed)
	failed.Error = "apply patch: the server refused it"
	objects := []*report.ObjectResult{outputtest.Object("ConfigMap", "new", plan.Created)}
	for _, name := range []string{"a", "b", "c"} {
		o := outputtest.Object("ConfigMap", name, plan.Skipped)
		o.Reason = "needs Secret shop/no, which failed"
		objects = append(objects, o)
	}
	got := answerOf(&report.Result{
		Inventory: report.Inventory{Namespace: "brine", Name: "shop"}, Objects: append(objects, failed), ExitCode: 1,
		Errors: []string{"Secret shop/no: apply patch: the server refused it"}, Summary: report.Summary{Created: 1, Failed: 1, Skipped: 3},
	}).comment()
	want := "Secret shop/no: failed: apply patch: the server refused it\n" +
		"ConfigMap shop/a, ConfigMap shop/b, ConfigMap shop/c: skipped: needs Secret shop/no, which failed\n" +
		"Failed: inventory brine/shop has 1 created, 3 skipped, 1 failed (exit code 1)"
	if got != want {
		t.Errorf("the comment is\n%s\nwant\n%s", got, want)
	}
}

// Salt sends a state's return over its bus, and keeps it.
func TestSaltReturnOfManyObjectsIsSmall(t *testing.T) {
	r := &report.Result{Command: "apply", DryRun: "none", Inventory: report.Inventory{Namespace: "brine", Name: "shop"}}
	for i := range 300 {
		o := outputtest.Object("ConfigMap", fmt.Sprintf("settings-%03d", i), plan.Configured)
		for j := range 10 {
			o.Changes = append(o.Changes, diff.Change{Path: fmt.Sprintf("data.k%d", j), Old: strings.Repeat("a", 500), New: strings.Repeat("b", 20)})
		}
		r.Objects = append(r.Objects, o)
	}
	text, err := json.Marshal(answerOf(r).changes)
	if err != nil || len(text) > 100_000 {
		t.Errorf("the changes have %d bytes (%v)", len(text), err)
	}
	one := answerOf(r).changes["v1/ConfigMap shop/settings-000"].(map[string]any)["new"].(map[string]any)
	if one["data.k0"] == nil || one["…"] != "and 9 fields changed" {
		t.Errorf("an object's changes are %v", one)
	}
}

// A write whose answer the run did not wait for may have been carried out. Salt's module
// looks for these words before it says that there is nothing to undo.
func TestSaltCommentOfAnInterruptedWrite(t *testing.T) {
	o := &report.ObjectResult{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", Action: plan.Failed, Unknown: true, Error: "interrupted: whether it was stored is unknown"}
	r := &report.Result{Command: "apply", DryRun: report.None, ExitCode: 143, Interrupted: "SIGTERM", Objects: []*report.ObjectResult{o}, Summary: report.Summary{Failed: 1}}
	ret := State(r, time.Now())
	comment := fmt.Sprint(ret["comment"])
	if !strings.Contains(comment, "Interrupted by SIGTERM, and objects may have changed: ") || !strings.Contains(comment, "Run it again to continue") {
		t.Error(comment)
	}
	if changes := ret["changes"].(map[string]any); len(changes) > 0 {
		t.Error(changes)
	}
}

// What an inventory has is not known to a run that could not read it.
func TestSaltCommentOfARunThatPlannedNothing(t *testing.T) {
	r := &report.Result{Command: "apply", DryRun: report.None, Inventory: report.Inventory{Namespace: "brine", Name: "shop"}, ExitCode: 6, Errors: []string{"reach the cluster: no"}}
	for interrupted, want := range map[string]string{"": "Failed", "SIGTERM": "Interrupted by SIGTERM"} {
		r.Interrupted = interrupted
		comment := fmt.Sprint(State(r, time.Now())["comment"])
		if !strings.HasSuffix(comment, "\n"+want+" before anything was planned, and nothing was changed: inventory brine/shop (exit code 6)") {
			t.Error(comment)
		}
	}
}
