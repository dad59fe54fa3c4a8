package simulator

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/report"
	"brine/inventory"
	"brine/scripts/simulator/apiserver"
)

// Finding is what a history showed.
type Finding struct {
	Seed     uint64
	Violated []string
	Script   []string
	Log      []string
	Covered  map[string]int // command, fault or disturbance, exit code
	Steps    int

	played, disturbed []string
}

// play plays a history, in a bubble of testing/synctest.
func play(of trial) *Finding {
	w := newWorld(of)
	f := &Finding{Seed: of.Seed, Covered: map[string]int{}}
	for i, s := range steps(w.rand) {
		w.rand = rand.New(rand.NewPCG(of.Seed, uint64(i)+1000)) // each has its own chance: shrinking leaves others out
		w.at, w.events = fmt.Sprint(i), 0
		if slices.Contains(of.Without, w.at) {
			continue
		}
		if s.carriesOut && w.plan == nil {
			continue
		}
		f.played = append(f.played, w.at)
		mood := w.mood(s.calm)
		if s.carriesOut {
			s = w.plan.planned(s.calm)
		}
		if s.refused && w.rand.IntN(3) > 0 {
			w.mood(true)
			mood, w.faults, w.rate, w.aim = "aimed at JSON patches", []fault{forbidden}, 0.7, isJSONPatch
		}
		if s.found {
			w.somebodyCreates()
		}
		if s.guests {
			w.somebodyMovesIn()
		}
		if s.damaged {
			w.somebodyDamages(s.inventory)
		}
		running := []*done{w.begin(s, fmt.Sprintf("brine-%d", i))}
		if contested := w.pace > 0; !s.damaged && (contested || !s.calm && w.rand.IntN(6) == 0) {
			mood += ", two at once"
			second := step{inventory: s.inventory, onFailure: s.onFailure, policy: s.policy, only: s.only, patience: s.patience}
			second.text = manifests(w.rand, s.inventory)
			second.command = "apply"
			if contested {
				second.patience = 5 * time.Minute
			}
			running = append(running, w.begin(second, fmt.Sprintf("brine-%d-too", i)))
		}
		if w.outage != nil {
			w.outage.process = running[0].process
		}
		f.settle(w, running, mood)
		if len(f.Violated) > 0 {
			break
		}
	}
	if len(f.Violated) == 0 {
		w.at, w.events = "end", 0
		f.converge(w)
	}
	f.Script, f.disturbed = w.script, w.all
	for _, entry := range w.server.Log {
		f.Log = append(f.Log, entry.String())
	}
	return f
}

// mood picks what disturbs a step; nothing, if it is to be calm.
func (w *World) mood(calm bool) string {
	w.faults, w.rate, w.people, w.cuts, w.outage, w.pace, w.served, w.aim = nil, 0, 0, 0, nil, 0, 0, nil
	w.servers, w.server.Twice = nil, false
	if calm {
		return "undisturbed"
	}
	switch w.rand.IntN(10) {
	case 5, 6:
		return w.takeAim()
	case 7:
		return w.several()
	case 0:
		w.faults, w.rate = []fault{killBefore, killAfter}, 0.03
		return "killed"
	case 1, 2:
		one := allFaults[2+w.rand.IntN(len(allFaults)-2)]
		w.faults, w.rate = []fault{one}, 0.1
		return string(one)
	case 3:
		w.people = 0.05
		return "somebody acts"
	case 4:
		from := w.rand.IntN(60)
		o := &outage{from: from, to: from + 1 + w.rand.IntN(40)}
		switch w.outage = o; w.rand.IntN(10) {
		case 9:
			o.mood = restarts
		case 0:
			o.mood, w.cuts, o.from = watchCut, 0.1, 1<<30
		case 1:
			o.mood, w.cuts, o.from = watchGone, 0.1, 1<<30
		case 2:
			o.mood = noRights
		case 3:
			o.mood, o.resource = unserved, []string{"widgets", "deployments", "configmaps"}[w.rand.IntN(3)]
		case 4, 5:
			o.mood, o.lasts = suspended, time.Duration(61+w.rand.IntN(600))*time.Second
		case 6:
			o.mood, o.lasts, w.pace = stopped, time.Duration(62+w.rand.IntN(12))*time.Second, time.Second
		default: // while another run waits for the lock
			o.mood, o.lasts, w.pace = cutOff, time.Duration(40+w.rand.IntN(90))*time.Second, time.Second
		}
		return o.mood
	}
	return "undisturbed"
}

func isJSONPatch(r *http.Request) bool {
	return r.Header.Get("Content-Type") == string(types.JSONPatchType)
}

// several are three API servers, of which some are behind; half of the time, while others act.
func (w *World) several() string {
	w.servers = []time.Duration{0, time.Duration(w.rand.IntN(1000)) * time.Millisecond, time.Duration(w.rand.IntN(8)) * time.Second}
	w.server.Twice = w.rand.IntN(2) == 0
	if w.rand.IntN(2) == 0 {
		w.people = 0.05
	}
	return "some API servers are behind"
}

// takeAim picks requests around which guards stand, and what befalls them alone.
func (w *World) takeAim() string {
	one := allFaults[w.rand.IntN(len(allFaults)-1)] // the last one has an aim of its own
	w.faults, w.rate = []fault{one}, 0.4
	at := "deletions"
	switch w.rand.IntN(5) {
	case 0: // a move takes a second one, about the managed fields
		at, w.aim = "JSON patches", isJSONPatch
	case 1: // webhooks quote what they refuse
		at, w.faults = "Secrets", []fault{forbidden}
		w.aim = func(r *http.Request) bool {
			return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets/")
		}
	case 2:
		at, w.aim = "the inventory's writes", func(r *http.Request) bool {
			return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/namespaces/default/configmaps/")
		}
	case 3:
		at, w.aim = "single reads", func(r *http.Request) bool {
			t, ok := apiserver.Parse(r.URL.Path)
			return ok && r.Method == http.MethodGet && t.Name != "" && t.Resource != "leases"
		}
		w.rate = 0.1
	default:
		w.aim = func(r *http.Request) bool { return r.Method == http.MethodDelete }
	}
	return "aimed at " + at
}

// settle serves the processes until they have ended, and judges what they did.
func (f *Finding) settle(w *World, running []*done, mood string) {
	var processes []*Process
	for _, d := range running {
		processes = append(processes, d.process)
	}
	if mood != "undisturbed" {
		w.note("%s", mood)
	}
	ended := w.run(processes...)
	for _, d := range running {
		d.to = len(w.server.Log)
		f.Steps++
		f.oneTarget(w, d)
		if d.process.dead && w.rand.IntN(2) == 0 {
			w.leaveProof(d)
		}
		if !ended {
			f.violate("12 every run ends in its time", fmt.Sprintf("%s has not ended after %s", d.actor, limit))
			continue
		}
		if d.made != nil {
			w.plan = &savedPlan{of: d.step, plan: d.made, at: d.from}
		}
		code, holds := "killed", invariants
		if d.isAdministrative() {
			holds = administrationInvariants
			if d.command == "rename" {
				w.renamed[d.into] = append(w.renamed[d.into], append(w.renamed[d.inventory], inventory.DefaultID("default", d.inventory))...)
			}
			if d.exit != report.ExitBadBundle {
				if w.halfDone = &d.step; !d.process.dead && d.exit == report.ExitOK {
					w.halfDone = nil
				}
			}
		}
		switch {
		case d.process.dead:
		case d.result != nil:
			code = fmt.Sprint(d.result.ExitCode)
			w.note("%s: exit code %d %s", d.actor, d.result.ExitCode, strings.Join(d.result.Errors, "; "))
		case d.isAdministrative():
			code = fmt.Sprint(d.exit)
			w.note("%s: exit code %d %v", d.actor, d.exit, d.err)
		default:
			code = "refused"
			w.note("%s: %v", d.actor, d.err)
		}
		f.Covered[d.called()+" × "+mood+" × "+code]++
		o := &oracle{server: w.server, d: d, were: w.renamed[d.inventory], alone: len(running) == 1 && d.process.faulty == 0 && w.people == 0 && w.cuts == 0}
		for _, invariant := range holds {
			if d.result == nil && !d.isAdministrative() || d.process.dead && !slices.Contains([]string{"1", "3", "8", "11", "13"}, strings.Fields(invariant.name)[0]) {
				continue
			}
			for _, wrong := range invariant.check(o) {
				f.violate(invariant.name, d.actor+": "+wrong)
			}
		}
	}
	for range 5 {
		w.server.Step()
	}
}

// oneTarget: rollbacks without a number between two applies all go to the same revision.
func (f *Finding) oneTarget(w *World, d *done) {
	switch before := w.targets[d.inventory]; {
	case d.command == "apply" || d.command == "destroy" || d.revision > 0:
		delete(w.targets, d.inventory)
	case d.target > 0 && before > 0 && d.target != before:
		f.violate("2 a rollback has one target", fmt.Sprintf("%s: revision %d, and %d before", d.actor, d.target, before))
	case d.target > 0:
		w.targets[d.inventory] = d.target
	}
}

func (f *Finding) violate(invariant, how string) {
	f.Violated = append(f.Violated, invariant+": "+how)
}

// converge is invariant 7: an undisturbed apply of a good bundle ends with exit code 0,
// and the second one writes nothing. An apply that meets objects that are not its own may
// refuse, the same way twice.
func (f *Finding) converge(w *World) {
	w.mood(true)
	w.server.Away = ""
	text := strings.ReplaceAll(manifests(rand.New(rand.NewPCG(f.Seed, 7)), "shop"), "image: broken", "image: good")
	if again := w.halfDone; again != nil {
		f.settle(w, []*done{w.begin(*again, "last-repeated")}, "undisturbed at the end")
	}
	var exits []int
	for i := range 2 {
		d := w.begin(step{command: "apply", inventory: "shop", text: text}, fmt.Sprintf("last-%d", i))
		f.settle(w, []*done{d}, "undisturbed at the end")
		if d.result == nil || len(f.Violated) > 0 {
			return
		}
		exits = append(exits, d.result.ExitCode)
		refusals := strings.Join(errorsOf(d.result), " ")
		foreign := strings.Contains(refusals, "belongs to") || strings.Contains(refusals, "contains objects outside this inventory") || strings.Contains(refusals, "conflict: before-first-apply") || w.halfDone != nil && strings.Contains(refusals, "was interrupted: repeat that command first") // a person's object, with a person's values
		if d.result.ExitCode != report.ExitOK && !foreign {
			f.violate("7 convergence", fmt.Sprintf("exit code %d: %s", d.result.ExitCode, strings.Join(errorsOf(d.result), "; ")))
		}
		if wrote := (&oracle{server: w.server, d: d}).own(); i == 1 && exits[0] == report.ExitOK && len(wrote) > 0 {
			f.violate("7 convergence", "the second run writes: "+wrote[0].String())
		}
	}
}

func errorsOf(r *report.Result) []string {
	all := slices.Clone(r.Errors)
	for _, o := range r.Objects {
		if o.Error != "" {
			all = append(all, o.Error)
		}
	}
	return all
}
