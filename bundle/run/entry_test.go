package run

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

var (
	web       = bundle.ID{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"}
	ours      = inventory.Status{Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
	earlier   = inventory.Fingerprint{Desired: "earlier"}
	now       = inventory.Fingerprint{Desired: "now"}
	createdBy = inventory.Origin{How: inventory.Created, Run: 7}
)

// intended is the intent of a run whose inventory has web as a member, or not.
func intended(member bool) intent {
	inv := &store.Inventory{Inventory: *inventory.Empty("shop", "shop", "")}
	inv.Members, inv.Fingerprints, inv.Origins = map[bundle.ID]inventory.Status{}, map[bundle.ID]inventory.Fingerprint{}, map[bundle.ID]inventory.Origin{}
	if member {
		inv.Members[web], inv.Fingerprints[web] = inventory.Status{Creating: 3, Reconcile: "Succeeded"}, earlier
		inv.Origins[web] = inventory.Origin{How: inventory.Adopted, Run: 2}
	}
	return intent{target: target{bundle: &bundle.Bundle{Digest: "new"}}, inventory: inv, plan: &plan.Plan{}, number: 7, begun: true}
}

// ended is a step of web, and how it ended.
func ended(planned, came plan.Action, change func(*apply.Outcome)) apply.Outcome {
	o := apply.Outcome{Step: &plan.Step{ID: web, Action: planned}, Result: &report.ObjectResult{Action: came, Ready: report.StateReady}}
	if came == plan.Failed || came == plan.Skipped {
		o.Result.Ready = ""
	}
	if planned != plan.Pruned {
		o.Object = &bundle.Object{ID: web}
	}
	if change != nil {
		change(&o)
	}
	return o
}

func TestWhoEntersAndLeavesTheInventory(t *testing.T) {
	stored := func(o *apply.Outcome) { o.UID, o.Fingerprint, o.HasFingerprint = "u", now, true }
	live := func(owner string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAnnotations(map[string]string{inventory.OwningInventory: owner})
		return u
	}
	status := func(change func(*inventory.Status)) *inventory.Status {
		s := ours
		change(&s)
		return &s
	}
	same := func(*inventory.Status) {}
	for name, test := range map[string]struct {
		member      bool
		step        apply.Outcome
		gone        bool
		status      *inventory.Status // nil: it keeps what it has
		fingerprint inventory.Fingerprint
		origin      inventory.Origin
	}{
		"created":                         {step: ended(plan.Created, plan.Created, stored), status: status(same), fingerprint: now, origin: createdBy.Of("u")},
		"configured":                      {member: true, step: ended(plan.Configured, plan.Configured, stored), status: status(same), fingerprint: now, origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"it was not waited for":           {member: true, step: ended(plan.Configured, plan.Configured, func(o *apply.Outcome) { stored(o); o.Result.Ready = "" }), status: status(func(s *inventory.Status) { s.Reconcile = "Pending" }), fingerprint: now, origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"unchanged, and not waited for":   {member: true, step: ended(plan.Unchanged, plan.Unchanged, func(o *apply.Outcome) { o.Result.Ready = "" }), status: status(same), fingerprint: earlier, origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"recreated: another object":       {member: true, step: ended(plan.Recreated, plan.Recreated, stored), status: status(same), fingerprint: now, origin: inventory.Origin{How: inventory.Adopted, Run: 2}.Of("u")},
		"unchanged: what is known holds":  {member: true, step: ended(plan.Unchanged, plan.Unchanged, nil), status: status(same), fingerprint: earlier, origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"not ready":                       {member: true, step: ended(plan.Configured, plan.Configured, func(o *apply.Outcome) { stored(o); o.Result.Ready = report.StateNotReady }), status: status(func(s *inventory.Status) { s.Reconcile = "Timeout" }), fingerprint: now, origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"pruned and gone":                 {member: true, step: ended(plan.Pruned, plan.Pruned, func(o *apply.Outcome) { o.Done = true }), gone: true},
		"pruned, and not gone yet":        {member: true, step: ended(plan.Pruned, plan.Pruned, nil), status: &inventory.Status{Strategy: "Delete", Actuation: "Succeeded", Reconcile: "Timeout"}, origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"its pruning was skipped":         {member: true, step: ended(plan.Pruned, plan.Skipped, nil), origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"never sent":                      {step: ended(plan.Created, plan.Skipped, nil), gone: true},
		"never sent, as it was not known": {step: ended(plan.Configured, plan.Skipped, func(o *apply.Outcome) { o.Unread = errors.New("conversion webhook") }), status: status(func(s *inventory.Status) { s.Actuation, s.Reconcile = "Skipped", "Skipped" })},
		"refused for good":                {step: ended(plan.Created, plan.Failed, func(o *apply.Outcome) { o.Refused = true }), gone: true},
		"refused, but perhaps stored":     {step: ended(plan.Created, plan.Failed, func(o *apply.Outcome) { o.Refused, o.Uncertain = true, true }), status: status(func(s *inventory.Status) { s.Actuation, s.Reconcile = "Failed", "Skipped" })},
		"never sent, a member before":     {member: true, step: ended(plan.Configured, plan.Skipped, func(o *apply.Outcome) { o.Member = true }), status: status(func(s *inventory.Status) { s.Actuation, s.Reconcile, s.Creating = "Skipped", "Skipped", 3 }), origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
		"never sent, its inventory lost":  {step: ended(plan.Created, plan.Skipped, func(o *apply.Outcome) { o.Live = live(inventory.DefaultID("shop", "shop")) }), status: status(func(s *inventory.Status) { s.Actuation, s.Reconcile = "Skipped", "Skipped" })},
		"never sent, another inventory's": {step: ended(plan.Created, plan.Skipped, func(o *apply.Outcome) { o.Live = live("other") }), gone: true},
		"blocked":                         {member: true, step: ended(plan.Configured, plan.Skipped, func(o *apply.Outcome) { o.Blocked = "it belongs to others" }), origin: inventory.Origin{How: inventory.Adopted, Run: 2}},
	} {
		e := entryOf(ending{intent: intended(test.member), steps: []apply.Outcome{test.step}})
		if got := slices.Contains(e.gone, web); got != test.gone {
			t.Errorf("%s: leaves %v, want %v", name, got, test.gone)
		}
		if got, ok := e.statuses[web]; ok != (test.status != nil) || ok && got != *test.status {
			t.Errorf("%s: status %+v (%v), want %+v", name, got, ok, test.status)
		}
		if got := e.fingerprints[web]; !reflect.DeepEqual(got, test.fingerprint) {
			t.Errorf("%s: fingerprint %+v, want %+v", name, got, test.fingerprint)
		}
		if got := e.origins[web]; got != test.origin {
			t.Errorf("%s: origin %+v, want %+v", name, got, test.origin)
		}
	}
}

// What another client created, and was adopted meanwhile, is not created by the run because an answer was lost.
func TestAdoptedWhileItIsCreated(t *testing.T) {
	in := intended(true)
	in.inventory.Origins[web] = inventory.Origin{How: inventory.Adopted, Run: 7}.Of("u")
	e := entryOf(ending{intent: in, steps: []apply.Outcome{ended(plan.Created, plan.Created, func(o *apply.Outcome) { o.UID = "u" })}})
	if got := e.origins[web]; got != in.inventory.Origins[web] {
		t.Errorf("origin %+v", got)
	}
}

// The history and what is known of members are there before the inventory object names
// them. A destroy may leave nothing that holds them.
func TestOrderInWhichTheInventoryIsWritten(t *testing.T) {
	said := inventory.Revision{Digest: "d"}
	for name, test := range map[string]struct {
		e    entry
		want [][]part
	}{
		"before the first object": {beginningOf(&Options{}, intended(true)), [][]part{{origins}, {members, key, past}}},
		"after an apply":          {entryOf(ending{intent: intended(true), revision: said}), [][]part{{revision, fingerprints, origins}, {members}, {trim}}},
		"without a history":       {entryOf(ending{intent: intended(true)}), [][]part{{fingerprints, origins}, {members}}},
		"after a destroy":         {entryOf(ending{intent: intended(true), mode: Destroy}), [][]part{{members}, {fingerprints, origins}}},
	} {
		if !reflect.DeepEqual(test.e.order, test.want) {
			t.Errorf("%s: %v, want %v", name, test.e.order, test.want)
		}
	}
}

// An apply that writes objects is known before the first of them; what undoes one is not.
func TestWhatBegins(t *testing.T) {
	changes := func(in *intent) {
		in.plan.Steps = []*plan.Step{{ID: web, Action: plan.Configured, Object: &bundle.Object{ID: web}}}
	}
	for name, test := range map[string]struct {
		mode   Mode
		change func(*intent)
		want   int
	}{
		"an apply":             {Apply, changes, 7},
		"a rollback":           {Rollback, changes, 0},
		"a destroy":            {Destroy, changes, 0},
		"nothing changes":      {Apply, func(*intent) {}, 0},
		"the last one's again": {Apply, func(in *intent) { changes(in); in.bundle.Digest = "" }, 0},
	} {
		in := intended(true)
		test.change(&in)
		if got := beginningOf(&Options{Mode: test.mode}, in).begins; got.Number != test.want || test.want > 0 && (got.Result != inventory.Interrupted || got.Digest != "new") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOriginsBeforeTheFirstObject(t *testing.T) {
	in := intended(true)
	in.plan.Add = []bundle.ID{web}
	adopted := inventory.Origin{How: inventory.Adopted}.Of("u")
	in.plan.Origins = map[bundle.ID]inventory.Origin{web: adopted}
	e := beginningOf(&Options{}, in)
	if want := adopted; e.origins[web].Run != 7 || e.origins[web].UID != want.UID || !slices.Equal(e.enters, in.plan.Add) || e.number != 7 {
		t.Errorf("adopted: %+v", e)
	}
	in.plan.Origins[web] = inventory.Origin{} // a record of another object, which is gone
	if e := beginningOf(&Options{}, in); len(e.origins) > 0 {
		t.Errorf("what is gone still has its origin: %+v", e.origins)
	}
	// Of a run without the lock nothing is recorded yet; of one with it, what was found since is.
	in.begun = false
	in.plan.Origins[web] = adopted
	if got := entryOf(ending{intent: in}).origins[web]; got.UID != adopted.UID {
		t.Errorf("without the lock: %+v", got)
	}
	in.begun = true
	if got := entryOf(ending{intent: in}).origins[web]; got != in.inventory.Origins[web] {
		t.Errorf("with the lock: %+v", got)
	}
}

func TestPartialRunKeepsTheOtherFingerprints(t *testing.T) {
	in := intended(true)
	in.chosen = map[*bundle.Object]bool{}
	if e := entryOf(ending{intent: in}); !maps.EqualFunc(e.fingerprints, in.inventory.Fingerprints, func(a, b inventory.Fingerprint) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("%+v", e.fingerprints)
	}
	in.chosen = nil
	if e := entryOf(ending{intent: in}); len(e.fingerprints) > 0 {
		t.Errorf("a whole run keeps those of what it does not contain: %+v", e.fingerprints)
	}
}

func TestOriginsThatCannotBeWrittenAreStillToBeRecorded(t *testing.T) {
	in := intended(true)
	e := entryOf(ending{intent: in, steps: []apply.Outcome{ended(plan.Configured, plan.Configured, func(o *apply.Outcome) { o.UID = "u" })}})
	if e.statuses[web].Creating != 0 {
		t.Fatalf("%+v", e.statuses[web])
	}
	if e.withoutOrigins(in.inventory.Members); e.statuses[web].Creating != 3 {
		t.Errorf("%+v", e.statuses[web])
	}
}

func TestWhatTheHistorySaysOfARun(t *testing.T) {
	object := &bundle.Object{ID: web, Content: &unstructured.Unstructured{Object: map[string]any{}}}
	o := &Options{HistoryLimit: 10, Header: report.Header{Command: "apply"}, Who: "me", Version: "v"}
	in := intended(true)
	in.target = target{bundle: &bundle.Bundle{Objects: []*bundle.Object{object}, Digest: "d"}}
	content := &inventory.Content{Bundle: in.bundle}
	at := time.Date(2026, 11, 24, 1, 2, 3, 4, time.UTC)
	for name, test := range map[string]struct {
		objects []*report.ObjectResult
		partial bool
		want    string
	}{
		"all applied":        {objects: []*report.ObjectResult{{Action: plan.Created, Ready: report.StateReady}}, want: "applied"},
		"one failed":         {objects: []*report.ObjectResult{{Action: plan.Failed}, {Action: plan.Created, Ready: report.StateNotReady}}, want: "failed"},
		"one skipped":        {objects: []*report.ObjectResult{{Action: plan.Skipped, Source: bundle.Source{File: "f"}}}, want: "failed"},
		"a prune skipped":    {objects: []*report.ObjectResult{{Action: plan.Skipped}}, want: "applied"},
		"one is not ready":   {objects: []*report.ObjectResult{{Action: plan.Created, Ready: report.StateNotReady}}, want: inventory.NotReady},
		"some objects only":  {partial: true, want: inventory.Partial},
		"some, one of which": {partial: true, objects: []*report.ObjectResult{{Action: plan.Failed}}, want: "failed"},
	} {
		in := in
		if test.partial {
			in.chosen = map[*bundle.Object]bool{object: true}
		}
		r := revisionOf(o, in, content, test.objects, at)
		if r.Result != test.want || r.Digest != "d" || r.Objects != 1 || !r.Time.Equal(at.Truncate(time.Second)) || r.Number != 0 {
			t.Errorf("%s: %+v, want %s", name, r, test.want)
		}
	}
	if r := revisionOf(&Options{}, in, content, nil, at); r.Digest != "" {
		t.Errorf("a history of no revisions: %+v", r)
	}
	if r := revisionOf(o, in, nil, nil, at); r.Digest != "" {
		t.Errorf("content that is not known: %+v", r)
	}
}

// That a Job has completed stays known where the run did not come to it.
func TestCompletedStaysKnown(t *testing.T) {
	done := inventory.Fingerprint{Desired: "earlier", Completed: "spec", CompletedIn: "uid"}
	for name, steps := range map[string][]apply.Outcome{
		"it failed": {ended(plan.Configured, plan.Failed, nil)}, "it was skipped": {ended(plan.Configured, plan.Skipped, func(o *apply.Outcome) { o.Member = true })}, "it has no step": nil,
		"it was applied, and not waited for": {ended(plan.Configured, plan.Configured, func(o *apply.Outcome) { o.UID, o.Fingerprint, o.HasFingerprint = "u", now, true })},
	} {
		in := intended(true)
		in.inventory.Fingerprints[web] = done
		if got := entryOf(ending{intent: in, steps: steps}).fingerprints[web]; got.Completed != "spec" || got.CompletedIn != "uid" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, end := range map[string]ending{
		"pruned":                         {steps: []apply.Outcome{ended(plan.Pruned, plan.Pruned, func(o *apply.Outcome) { o.Done = true })}},
		"pruned, not gone yet":           {steps: []apply.Outcome{ended(plan.Pruned, plan.Pruned, nil)}},
		"a destroy that was interrupted": {mode: Destroy},
	} {
		end.intent = intended(true)
		end.inventory.Fingerprints[web] = done
		if e := entryOf(end); len(e.fingerprints) > 0 {
			t.Errorf("%s: %v", name, e.fingerprints)
		}
	}
}
