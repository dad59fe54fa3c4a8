package simulator

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/jsontree"
	"brine/bundle/plan"
	"brine/bundle/report"
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
	// Converged: at its end an apply had exit code 0, and the next one wrote nothing.
	Converged bool

	disturbed []string
}

// scene is a step, what may disturb it, and the chance by which it does.
type scene struct {
	at     string // its number
	chance uint64
	step   step
	too    *step // another process, at the same time
	mood   mood
}

// scenesOf are those of a seed. Each has its own chance: shrinking leaves others out.
func scenesOf(seed uint64) []scene {
	home = homeOf(seed)
	var all []scene
	give := around(seed)
	for i, s := range steps(rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))) {
		r := rand.New(rand.NewPCG(seed, uint64(i)+1000))
		if !s.secret { // the plan is for what the preview had
			decorate(rand.New(rand.NewPCG(seed, uint64(i)+2000)), &s)
		}
		one := scene{at: fmt.Sprint(i), chance: r.Uint64(), step: s, mood: moodOf(r, s.calm)}
		if s.refused && r.IntN(3) > 0 {
			one.mood = mood{name: aimed + string(jsonPatches), faults: []fault{forbidden}, rate: 0.7, aim: jsonPatches}
		}
		if s.late {
			one.mood = several(r)
			one.mood.people = 0
		}
		if contested := one.mood.pace > 0; !s.damaged && (contested || !s.calm && !s.late && r.IntN(6) == 0) {
			one.too = &step{command: "apply", inventory: s.inventory, text: manifests(r, s.inventory), onFailure: s.onFailure, policy: s.policy, only: s.only, patience: s.patience}
			if contested {
				one.too.patience = 5 * time.Minute
			}
		}
		give(rand.New(rand.NewPCG(seed, uint64(i)+4000)), &one)
		if one.too != nil {
			one.too.around = one.step.around
		}
		all = append(all, one)
	}
	return all
}

// play plays a history, in a bubble of testing/synctest.
func play(of trial) *Finding {
	home = homeOf(of.seed)
	w := newWorld(of)
	f := &Finding{Seed: of.seed, Covered: map[string]int{}}
	if of.scenes == nil {
		of.scenes = scenesOf(of.seed)
	}
	for i := range of.scenes {
		f.playScene(w, &of.scenes[i])
		if len(f.Violated) > 0 {
			break
		}
	}
	if len(f.Violated) == 0 {
		s := changing(of.scenes)
		w.enter("end", mood{name: undisturbed}, s)
		f.converge(w, s)
	}
	f.Script, f.disturbed = w.script, w.all
	for _, entry := range w.server.Log {
		f.Log = append(f.Log, entry.String())
	}
	return f
}

func (f *Finding) playScene(w *World, one *scene) {
	s := one.step
	if s.carriesOut && w.plan == nil {
		return
	}
	if s.carriesOut {
		s = w.plan.planned(s.calm)
	}
	too := one.too
	if s.around.planned {
		s, too = f.plan(w, one)
		if len(f.Violated) > 0 {
			return
		}
	}
	w.rand = rand.New(rand.NewPCG(one.chance, 0))
	w.enter(one.at, one.mood, s.around)
	time.Sleep(s.later)
	if s.found {
		w.somebodyCreates()
	}
	if s.guests {
		w.somebodyMovesIn()
	}
	if s.around.tool != "" {
		w.somebodyUsesTool(s.around.tool)
	}
	if s.around.scheduled {
		w.somethingSchedules()
	}
	if s.around.dependents {
		w.somebodyOwns()
	}
	if s.around.controlled {
		w.somethingControls()
	}
	if s.around.leaving != "" {
		w.somebodyDeletesSlowly(s.around.leaving)
	}
	if s.around.moved && s.plan != nil {
		w.somebodyMoves(s.plan.plan)
	}
	if s.damaged {
		w.somebodyDamages(s.inventory)
	}
	if s.around.copied {
		w.somebodyRestores()
	}
	if s.around.owned {
		w.somebodyMakesOwners()
	}
	if s.around.part.Name != "" {
		s = w.withPart(s)
	}
	s.around.ofCopy = s.around.ofCopy && s.command != "patch" && w.isCopied(s.inventory)
	if s.around.putBack = s.around.putBack && too == nil && !s.around.ofCopy; s.around.putBack {
		undo := w.somebodyPutsBack(s.inventory)
		if s.around.putBack = undo != nil; undo != nil {
			defer undo()
		}
	}
	running, name := []*done{w.begin(s, "brine-"+one.at)}, one.mood.name
	if too != nil {
		name += ", two at once"
		running = append(running, w.begin(*too, "brine-"+one.at+"-too"))
	}
	if w.outage != nil {
		w.outage.process = running[0].process
	}
	f.settle(w, running, name)
}

// plan makes a plan of a step, and has it carried out, by two processes if it says so.
func (f *Finding) plan(w *World, one *scene) (s step, too *step) {
	s, too = one.step, one.too
	s.around.planned = false
	preview := scene{at: one.at + "-plan", chance: one.chance, step: s, mood: mood{name: undisturbed}}
	preview.step.command, preview.step.saves, preview.step.onFailure, preview.step.later = "preview", true, false, 0
	w.plan = nil
	f.playScene(w, &preview)
	if w.plan == nil || len(f.Violated) > 0 {
		return s, too
	}
	made := w.plan.planned(s.calm)
	s.plan, s.around.leaving, s.around.tool, s.around.dependents, s.around.controlled, s.found, s.guests = made.plan, "", "", false, false, false, false
	if too = nil; s.around.twice {
		again := s
		again.around.putBack, too = false, &again
	}
	return s, too
}

// enter has a mood disturb what comes.
func (w *World) enter(at string, m mood, s surroundings) {
	if m.outage != nil {
		o := *m.outage // it changes while it lasts
		m.outage = &o
	}
	w.server.Admit, w.server.Older = w.admits(s.hooks), s.older
	w.around = s
	w.at, w.events, w.served, w.mood, w.server.Twice, w.server.Old, w.server.Began = at, 0, 0, m, m.twice, m.old, len(w.server.Log)
}

// mood is what may disturb a step.
type mood struct {
	name   string
	faults []fault       // that may befall a request
	rate   float64       // of requests that one befalls
	aim    aim           // faults befall these requests alone
	people float64       // of requests before which somebody else acts
	cuts   float64       // of requests before which all watches end
	pace   time.Duration // a request takes at most, beyond some milliseconds
	outage *outage
	behind []time.Duration // API servers: how far each is behind
	twice  bool            // events may come twice
	old    bool            // a LIST from a cache comes before each watch
}

const undisturbed = "undisturbed"

// moodOf picks what disturbs a step; nothing, if it is to be calm.
func moodOf(r *rand.Rand, calm bool) mood {
	if calm {
		return mood{name: undisturbed}
	}
	switch r.IntN(10) {
	case 5, 6:
		return takeAim(r)
	case 7:
		return several(r)
	case 0:
		return mood{name: "killed", faults: []fault{killBefore, killAfter}, rate: 0.03}
	case 1, 2:
		one := allFaults[2+r.IntN(len(allFaults)-2)]
		return mood{name: string(one), faults: []fault{one}, rate: 0.1}
	case 3:
		return mood{name: "somebody acts", people: 0.05}
	case 4:
		m, from := mood{}, r.IntN(60)
		o := &outage{from: from, to: from + 1 + r.IntN(40)}
		switch r.IntN(10) {
		case 9:
			o.mood = restarts
		case 0:
			o.mood, m.cuts, o.from = watchCut, 0.1, 1<<30
		case 1:
			o.mood, m.cuts, o.from = watchGone, 0.1, 1<<30
		case 2:
			o.mood = noRights
		case 3:
			o.mood, o.resource = unserved, []string{"widgets", "deployments", "configmaps"}[r.IntN(3)]
		case 4, 5:
			o.mood, o.lasts = suspended, time.Duration(61+r.IntN(600))*time.Second
		case 6:
			o.mood, o.lasts, m.pace = stopped, time.Duration(62+r.IntN(12))*time.Second, time.Second
		default: // while another run waits for the lock
			o.mood, o.lasts, m.pace = cutOff, time.Duration(40+r.IntN(90))*time.Second, time.Second
		}
		m.name, m.outage = o.mood, o
		return m
	}
	return mood{name: undisturbed}
}

// several are three API servers, of which some are behind; half of the time, while others act.
func several(r *rand.Rand) mood {
	m := mood{name: "some API servers are behind", behind: []time.Duration{0, time.Duration(r.IntN(1000)) * time.Millisecond, time.Duration(r.IntN(8)) * time.Second}}
	m.twice = r.IntN(2) == 0
	m.old = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		m.people = 0.05
	}
	return m
}

// aim are requests around which guards stand.
type aim string

const (
	aimed = "aimed at "

	jsonPatches     aim = "JSON patches" // a move takes a second one, about the managed fields
	secretWrites    aim = "Secrets"      // webhooks quote what they refuse
	inventoryWrites aim = "the inventory's writes"
	singleReads     aim = "single reads"
	deletions       aim = "deletions"
	discoveries     aim = "discovery"
	dryRuns         aim = "dry runs"
)

func (a aim) meets(r *http.Request) bool {
	switch a {
	case jsonPatches:
		return r.Header.Get("Content-Type") == string(types.JSONPatchType)
	case secretWrites:
		return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets/")
	case inventoryWrites:
		return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/namespaces/"+home+"/configmaps/") && keepsBooks(home, path.Base(r.URL.Path))
	case dryRuns:
		return r.Method == http.MethodPatch && r.URL.Query().Has("dryRun")
	case singleReads:
		t, ok := apiserver.Parse(r.URL.Path)
		return ok && r.Method == http.MethodGet && t.Name != "" && t.Resource != "leases"
	case discoveries:
		t, ok := apiserver.Parse(r.URL.Path)
		return strings.HasPrefix(r.URL.Path, "/api") && (!ok || t.Resource == "")
	}
	return r.Method == http.MethodDelete
}

func takeAim(r *rand.Rand) mood {
	one := allFaults[r.IntN(len(allFaults)-1)] // the last one has an aim of its own
	m := mood{faults: []fault{one}, rate: 0.4, aim: []aim{jsonPatches, secretWrites, inventoryWrites, singleReads, deletions}[r.IntN(5)]}
	switch m.aim {
	case secretWrites:
		m.faults = []fault{forbidden}
	case singleReads:
		m.rate = 0.1
	}
	m.name = aimed + string(m.aim)
	return m
}

// settle serves the processes until they have ended, and judges what they did.
func (f *Finding) settle(w *World, running []*done, mood string) {
	var processes []*Process
	for _, d := range running {
		processes = append(processes, d.process)
	}
	if mood != undisturbed {
		w.note("%s", mood)
	}
	ended := w.run(processes...)
	for _, one := range w.cached {
		f.violate("4 what decides is not read from a cache", one)
	}
	w.cached = nil
	for _, d := range running {
		d.to = len(w.server.Log)
		f.Steps++
		if !d.around.ofCopy && !d.around.putBack {
			f.oneTarget(w, d, running)
			f.noteApplied(w, d, len(running) == 1)
		}
		if d.process.dead && w.rand.IntN(2) == 0 {
			w.leaveProof(d)
		}
		if !ended {
			f.violate("12 every run ends in its time", fmt.Sprintf("%s has not ended after %s", d.actor, limit))
			continue
		}
		d.process.lists.Range(func(shared, _ any) bool {
			for _, text := range shared.(*jsontree.Shared).Changed() {
				f.violate("6 the result is true", d.actor+": what objects of a list share was changed in place: "+text)
			}
			return true
		})
		w.notePlan(d)
		if d.made != nil {
			w.plan = &savedPlan{of: d.step, plan: d.made, at: d.from, behind: d.behind}
		}
		code, holds := "killed", invariants
		switch {
		case d.command == "patch": // which uses no inventory
			holds = patchInvariants
		case d.around.putBack:
			holds = putBackInvariants
		case d.around.ofCopy:
			holds = copyInvariants
		}
		if d.isAdministrative() {
			holds = administrationInvariants
			if d.exit != report.ExitBadBundle {
				w.halfDone = slices.DeleteFunc(w.halfDone, func(half *step) bool {
					return half.inventory == d.inventory && half.into == d.into && (half.command == d.command && slices.Equal(half.names, d.names) || d.command == "merge")
				})
				if d.process.dead || d.exit != report.ExitOK {
					w.halfDone = append(w.halfDone, &d.step)
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
		if d.repair != nil { // a person is told of them
			for _, one := range d.repair.NotAdded {
				w.notAdded[one.ID()] = true
			}
		}
		o := &oracle{server: w.server, d: d, hidden: w.outage != nil && w.outage.mood == unserved, behind: len(w.behind) > 0, alone: len(running) == 1 && d.process.faulty == 0 && w.people == 0 && w.cuts == 0}
		o.rivals = map[string]bool{}
		for _, other := range running {
			o.rivals[other.actor] = other != d && !other.process.dead
		}
		o.others = len(running) > 1 || slices.ContainsFunc(w.server.Log[d.from:d.to], func(write *apiserver.Write) bool { return write.Actor != d.actor && write.Actor != "system" })
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

// oneTarget: rollbacks without a number between two applies all go to the same revision. Of two
// commands at once either may have come first.
func (f *Finding) oneTarget(w *World, d *done, running []*done) {
	switch before := w.targets[d.inventory]; {
	case d.command == "rename": // the history goes along, if it is all copied
		delete(w.targets, d.inventory)
		delete(w.targets, d.into)
		if before > 0 && d.err == nil && !d.process.dead {
			w.targets[d.into] = before
		}
	case slices.ContainsFunc(running, func(other *done) bool {
		return other.inventory == d.inventory && (other.command == "apply" || other.command == "destroy" || other.revision > 0)
	}):
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

// converge is invariant 7: an undisturbed apply of a good bundle ends with exit code 0, and the
// next one writes nothing. An apply that meets what others have may refuse it. Then people take
// away what is of no inventory, and a run adopts all and forces what conflicts; at last, the
// other inventories are destroyed, and no reason is left.
func (f *Finding) converge(w *World, around surroundings) {
	w.server.Away = ""
	for i, again := range slices.Clone(w.halfDone) {
		again.around = surroundings{}
		f.settle(w, []*done{w.begin(*again, "last-repeated"+strings.Repeat("-too", i))}, "undisturbed at the end")
	}
	last := step{command: "apply", inventory: "shop", options: options{recreate: []string{"*"}, migrate: true}, around: around} // pods that are selected, and fields of resources, may be others
	last.text = strings.ReplaceAll(manifests(rand.New(rand.NewPCG(f.Seed, 7)), "shop"), "image: broken", "image: good")
	kept := func(refusals string) bool { // by an annotation of an earlier bundle
		return w.interrupts(refusals) || strings.Contains(refusals, "it cannot be deleted, to create it again: ") || strings.Contains(refusals, "the garbage collector would delete")
	}
	guests := func(refusals string) bool {
		return kept(refusals) || strings.Contains(refusals, "contains objects outside this inventory") || strings.Contains(refusals, partTaken) || strings.Contains(refusals, "is there but is no inventory")
	}
	f.Converged = f.endsTwice(w, last, "last", func(refusals string) bool {
		return guests(refusals) || strings.Contains(refusals, "belongs to") || strings.Contains(refusals, "conflict: ") // what others have, with values of theirs
	})
	if f.goesOn() {
		w.somebodyTidiesUp()
		last.policy, last.force = plan.AdoptAll, true
		f.Converged = f.endsTwice(w, last, "last-forced", guests)
	}
	for i, half := range slices.Clone(w.halfDone) {
		if f.goesOn() && half.command == "rename" { // what a refusal says that finds another inventory of the name
			f.settle(w, []*done{w.begin(step{command: "merge", inventory: half.inventory, into: half.into}, "last-merged"+strings.Repeat("-too", i))}, "undisturbed at the end")
		}
	}
	if f.goesOn() {
		for _, name := range inventories[1:] {
			if name == another && w.server.Get(bundle.ConfigMapKind, home, name) == nil {
				continue
			}
			destroyed := w.begin(step{command: "destroy", inventory: name}, strings.TrimSuffix("last-destroyed-"+name, "-other"))
			f.settle(w, []*done{destroyed}, "undisturbed at the end")
			if destroyed.result != nil { // a rollback was killed while it gave members back
				f.follow(w, strings.Join(errorsOf(destroyed.result), " "))
			}
		}
		w.somebodyTidiesUp()
		f.Converged = f.endsTwice(w, last, "last-alone", kept)
	}
}

// follow runs the commands that a refusal prints for members whose move was interrupted.
func (f *Finding) follow(w *World, refusals string) {
	for i, m := range splits.FindAllStringSubmatch(refusals, -1) {
		f.settle(w, []*done{w.begin(step{command: "split", inventory: m[1], into: m[2], names: []string{m[3]}}, "last-moved"+strings.Repeat("-too", i))}, "undisturbed at the end")
	}
}

var splits = regexp.MustCompile(`brine inventory split \S+/(\S+) --to \S+/(\S+) --members (\S+)`)

func (f *Finding) goesOn() bool { return !f.Converged && len(f.Violated) == 0 }

// interrupts says whether refusals are for a command about inventories, which refuses to go on.
func (w *World) interrupts(refusals string) bool {
	return len(w.halfDone) > 0 && strings.Contains(refusals, "was interrupted: repeat that command first")
}

// partTaken is what brine says where another one has what has the name of a part: an error, or a warning.
const partTaken = "and does not belong to the inventory"

// endsTwice says whether a step ended with exit code 0, and wrote nothing when it was repeated.
// What refuses it may be right, and what keeps a part from being written: each run tries that again,
// under the lock.
func (f *Finding) endsTwice(w *World, s step, name string, right func(string) bool) bool {
	settled, again := false, false // not settled: the run before waited for what was being deleted
	for i := 0; i < 3 && !again; i++ {
		again = settled
		d := w.begin(s, fmt.Sprintf("%s-%d", name, i))
		f.settle(w, []*done{d}, "undisturbed at the end")
		if d.result == nil || len(f.Violated) > 0 {
			return false
		}
		calm := !slices.ContainsFunc(w.server.Log[d.from:d.to], func(w *apiserver.Write) bool {
			return w.Actor == "system" && w.After == nil && (owner(w.Before) != "" || w.Verb == "unblock") // a member may not be marked any more
		})
		if d.result.ExitCode == report.ExitNotReady && !calm && i == 0 { // a member went, and what it owned
			continue
		}
		if d.result.ExitCode != report.ExitOK {
			if !right(strings.Join(errorsOf(d.result), " ")) {
				f.violate("7 convergence", fmt.Sprintf("exit code %d: %s", d.result.ExitCode, strings.Join(errorsOf(d.result), "; ")))
			}
			return false
		}
		if wrote := (&oracle{server: w.server, d: d}).own(); again && len(wrote) > 0 {
			said := strings.Join(d.result.Warnings, " ")
			if strings.Contains(said, partTaken) && right(said) && !slices.ContainsFunc(wrote, func(w *apiserver.Write) bool { return w.Kind != bundle.LeaseKind }) {
				return false
			}
			f.violate("7 convergence", "the second run writes: "+wrote[0].String())
		}
		settled = calm
	}
	return true
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
