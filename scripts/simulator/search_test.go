package simulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"brine/bundle/report"
)

// Finding is what a history showed.
type Finding struct {
	Seed     uint64
	Violated []string
	Script   []string
	Log      []string
	Covered  map[string]int // command, fault or disturbance, exit code
	Steps    int
}

// play plays the history of a seed, in a bubble of testing/synctest.
func play(seed uint64) *Finding {
	w := newWorld(seed)
	f := &Finding{Seed: seed, Covered: map[string]int{}}
	plan := steps(w.rand)
	for i, s := range plan {
		w.faults, w.rate, w.people = nil, 0, 0
		mood := "undisturbed"
		switch w.rand.IntN(5) {
		case 0:
			mood, w.faults, w.rate = "killed", []fault{killBefore, killAfter}, 0.03
		case 1, 2:
			one := allFaults[2+w.rand.IntN(len(allFaults)-2)]
			mood, w.faults, w.rate = string(one), []fault{one}, 0.1
		case 3:
			mood, w.people = "somebody acts", 0.05
		}
		if s.found {
			w.somebodyCreates()
		}
		running := []*done{w.begin(s, fmt.Sprintf("brine-%d", i))}
		if w.rand.IntN(6) == 0 {
			mood += ", two at once"
			second := s
			second.text = manifests(w.rand, s.inventory)
			second.command = "apply"
			running = append(running, w.begin(second, fmt.Sprintf("brine-%d-too", i)))
		}
		f.settle(w, running, mood)
		if len(f.Violated) > 0 {
			break
		}
	}
	if len(f.Violated) == 0 {
		f.converge(w)
	}
	f.Script = w.script
	for _, entry := range w.server.Log {
		f.Log = append(f.Log, entry.String())
	}
	return f
}

// settle serves the processes until they have ended, and judges what they did.
func (f *Finding) settle(w *World, running []*done, mood string) {
	var processes []*Process
	for _, d := range running {
		processes = append(processes, d.process)
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
		code := "killed"
		switch {
		case d.process.dead:
		case d.result != nil:
			code = fmt.Sprint(d.result.ExitCode)
			w.note("%s: exit code %d %s", d.actor, d.result.ExitCode, strings.Join(d.result.Errors, "; "))
		default:
			code = "refused"
			w.note("%s: %v", d.actor, d.err)
		}
		f.Covered[d.command+" × "+mood+" × "+code]++
		o := &oracle{server: w.server, d: d, alone: len(running) == 1 && d.process.faulty == 0 && w.people == 0}
		for _, invariant := range invariants {
			if d.result == nil || d.process.dead && !slices.Contains([]string{"1", "3", "8", "11", "13"}, strings.Fields(invariant.name)[0]) {
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
	w.faults, w.rate, w.people = nil, 0, 0
	text := strings.ReplaceAll(manifests(rand.New(rand.NewPCG(f.Seed, 7)), "shop"), "image: broken", "image: good")
	var exits []int
	for i := range 2 {
		d := w.begin(step{command: "apply", inventory: "shop", text: text}, fmt.Sprintf("last-%d", i))
		f.settle(w, []*done{d}, "undisturbed at the end")
		if d.result == nil || len(f.Violated) > 0 {
			return
		}
		exits = append(exits, d.result.ExitCode)
		refusals := strings.Join(errorsOf(d.result), " ")
		foreign := strings.Contains(refusals, "belongs to") || strings.Contains(refusals, "contains objects outside this inventory") || strings.Contains(refusals, "conflict: before-first-apply") // a person's object, with a person's values
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
