package simulator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"brine/bundle"
	"brine/inventory"
	"brine/scripts/simulator/apiserver"
)

// The inventory object of an earlier day is put back. It lists the right members: only the history
// knows that more was applied since.

const lastRevision, begun = "brine.dev/last-revision", "brine.dev/begun"

// putBack: somebody puts an inventory object back before some commands, and the newest one after them.
func putBack(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if r.IntN(2) == 0 && slices.Contains([]string{"apply", "preview", "rollback", "destroy"}, s.command) && !s.secret && !s.saves && !s.carriesOut && !s.around.planned {
			s.around.older, s.around.putBack, one.too, one.mood = false, true, nil, mood{name: undisturbed}
		}
	}
}

// somebodyPutsBack has an inventory object say what it said of its last revision some runs ago; and
// what returns has it say again what it said.
func (w *World) somebodyPutsBack(name string) (undo func()) {
	now := w.server.Get(bundle.ConfigMapKind, home, name)
	if now == nil {
		return nil
	}
	newest := revisionIn(now.GetAnnotations()[lastRevision])
	if kept := w.server.Get(bundle.SecretKind, home, inventory.RevisionName(name, newest.Number, 0)); kept == nil || kept.GetLabels()[inventory.RevisionLabel] == "" || kept.GetLabels()[inventory.AuxiliaryLabel] == "" {
		return nil
	}
	var old []string
	for _, write := range w.server.Log {
		if write.Kind != bundle.ConfigMapKind || write.Namespace != home || write.Name != name || write.After == nil {
			continue
		}
		if text := write.After.GetAnnotations()[lastRevision]; (inventory.Latest{Last: revisionIn(text)}).IsBefore(newest) && !slices.Contains(old, text) {
			old = append(old, text)
		}
	}
	if len(old) == 0 {
		return nil
	}
	annotate := func(values map[string]string) {
		live := w.server.Get(bundle.ConfigMapKind, home, name)
		if live == nil {
			return
		}
		u := live.DeepCopy()
		annotations := u.GetAnnotations()
		for _, key := range []string{lastRevision, begun} {
			if delete(annotations, key); values[key] != "" {
				annotations[key] = values[key]
			}
		}
		u.SetAnnotations(annotations)
		k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.GroupKind() == bundle.ConfigMapKind })
		if _, err := w.server.Put(person, "update", "kubectl-replace", k, live, u, false); err != nil {
			panic(err)
		}
	}
	text := old[w.rand.IntN(len(old))]
	w.note("%s puts back the inventory object %s of revision %d", person, name, revisionIn(text).Number)
	annotate(map[string]string{lastRevision: text})
	return func() {
		w.note("%s puts back the newest inventory object %s", person, name)
		annotate(now.GetAnnotations())
	}
}

func revisionIn(text string) (r inventory.Revision) {
	_ = json.Unmarshal([]byte(text), &r)
	return r
}

// putBackInvariants are those of commands about an inventory object that was put back.
var putBackInvariants = []invariant{
	{"3 an inventory that was put back is not used", func(o *oracle) (wrong []string) {
		knows := !slices.Contains(o.d.around.denied, "list secrets") // the history alone tells
		for _, w := range o.own() {
			if knows && !o.bookkeeping(w) || w.Kind == bundle.SecretKind && strings.HasPrefix(w.Name, fmt.Sprintf("%s-revision-", o.d.inventory)) {
				wrong = append(wrong, w.String())
			}
		}
		return wrong
	}},
	{"11 one writer", (*oracle).oneWriter},
	{"12 every run ends in its time", (*oracle).endsInTime},
	{"13 no secret", (*oracle).noSecret},
}
