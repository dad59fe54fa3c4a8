package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/remedy"
)

// SLS and files of an earlier run that are gone.

// Removal is an SLS or a file of an earlier run from which this bundle was not rendered,
// or which gives nothing any more, with the objects of it that are pruned.
type Removal struct {
	Origin  string // of the objects
	Objects []bundle.ID
	// What became of it.
	What string
	// Refused: the run is not carried out because of it.
	Refused bool
}

// Removals is all that decides about what an earlier run was rendered from.
type Removals struct {
	Revision int              // of the earlier run
	Earlier  []*bundle.Object // of it
	Now      *bundle.Bundle
	Pruned   []bundle.ID // what this run deletes and the bundle does not name as absent
	// Removed are the origins that are meant to be gone, with * for any text. Refuse
	// refuses all others; else those are refused that Salt still has.
	Removed []string
	Refuse  bool
	// IsFile says whether an absolute path is a file here.
	IsFile func(path string) bool
}

// Find names each origin that went, in the order of the earlier bundle. One that is still
// there, so that somebody most likely forgot to include it, stops a run of Salt. Where it
// is gone, too, and an object of it is in the bundle, it was renamed.
func (r Removals) Find() (found []Removal) {
	pruned, stays, now, empty := sets.New(r.Pruned...), bundle.IDs(r.Now.Objects), sets.New[string](), map[string]bool{}
	for _, o := range r.Now.Objects {
		now.Insert(o.Source.Origin())
	}
	for _, a := range r.Now.Absent {
		now.Insert(a.Source.Origin())
	}
	if salt := r.Now.Rendering; salt != nil {
		for _, origin := range slices.Concat(salt.SLS, salt.Files) {
			empty[origin] = !now.Has(origin)
		}
	}
	there := r.still(now)
	at, renamed, files := map[string]int{}, map[string]bool{}, map[string]string{}
	for _, o := range r.Earlier {
		origin := o.Source.Origin()
		if origin == "" || there.Has(origin) {
			continue
		}
		renamed[origin] = renamed[origin] || stays.Has(o.ID)
		if !pruned.Has(o.ID) {
			continue
		}
		pruned.Delete(o.ID) // once
		i, known := at[origin]
		if !known {
			i, at[origin] = len(found), len(found)
			o := *o
			o.Source.SLS = ""
			files[origin] = o.Source.Origin()
			found = append(found, Removal{Origin: origin})
		}
		found[i].Objects = append(found[i].Objects, o.ID)
	}
	decided := found[:0]
	for _, one := range found {
		if r.decide(&one, files[one.Origin], empty[one.Origin], renamed[one.Origin]) {
			decided = append(decided, one)
		}
	}
	return decided
}

// decide says what became of an origin; false where nothing is to be said.
func (r Removals) decide(one *Removal, file string, empty, renamed bool) bool {
	what, there := "is no longer in the bundle", false
	switch {
	case r.Now.Rendering == nil:
	case empty:
		what = "gives nothing any more"
	default:
		what, there = r.place(one.Origin, file)
	}
	if renamed && !there {
		return false
	}
	one.What = fmt.Sprintf("%s, from which revision %d was made, %s", one.Origin, r.Revision, what)
	one.Refused = (there || r.Refuse) && !slices.ContainsFunc(r.Removed, func(word string) bool { return fields.Like(word, one.Origin) })
	return true
}

// String says what became of the origin and of its objects.
func (r Removal) String() string {
	names := bundle.Each(r.Objects, bundle.Name)
	count, some := bundle.Count(len(names), "object"), bundle.Some(names, 5)
	if r.Refused {
		return fmt.Sprintf("%s: %s would be pruned, and nothing was changed: %s. If this is intended, give %s=%s", r.What, count, some, remedy.Removed, r.Origin)
	}
	return fmt.Sprintf("%s: pruned with it: %s: %s", r.What, count, some)
}

// place says whether Salt still has an origin. Where that is not known, it has.
func (r Removals) place(origin, file string) (what string, there bool) {
	salt := r.Now.Rendering
	in := fmt.Sprintf("saltenv %q", salt.Saltenv)
	here, left := "is still in "+in+", and is not part of this run", "is no longer in "+in
	switch {
	case path.IsAbs(origin):
		if r.IsFile(origin) {
			return "is still there, and is not part of this run", true
		}
		return "is no longer there", false
	case salt.Tree == nil:
		return "is not part of this run (whether it is still in " + in + " is not known)", true
	}
	candidates := []string{strings.ReplaceAll(origin, ".", "/") + ".sls", strings.ReplaceAll(origin, ".", "/") + "/init.sls"}
	for _, name := range []string{origin, file} {
		if name, is := strings.CutPrefix(name, "salt://"); is {
			name, _, _ = strings.Cut(name, "?")
			candidates = append(candidates, name)
		}
	}
	if slices.ContainsFunc(salt.Tree, func(name string) bool { return slices.Contains(candidates, name) }) {
		return here, true
	}
	return left, false
}

// still are the earlier origins that are there now: by their whole names, and then each by what is
// comparable of one that is left, so that no file stands for another one of its name.
func (r Removals) still(now sets.Set[string]) sets.Set[string] {
	earlier := bundle.SetOf(r.Earlier, func(o *bundle.Object) string { return o.Source.Origin() })
	there, left := earlier.Intersection(now), map[string]int{}
	for origin := range now.Difference(earlier) {
		left[r.comparable(origin)]++
	}
	for _, origin := range sets.List(earlier.Difference(now)) {
		if at := r.comparable(origin); left[at] > 0 {
			left[at]--
			there.Insert(origin)
		}
	}
	return there
}

// comparable is what two names of the same origin have in common. On the command line the
// folders above differ from one checkout to the next.
func (r Removals) comparable(origin string) string {
	if r.Now.Rendering != nil {
		return origin
	}
	return path.Join(path.Base(path.Dir(origin)), path.Base(origin))
}

// Removes are the objects that the plan prunes and that the bundle does not name as absent.
func (p *Plan) Removes() []bundle.ID {
	removed := bundle.Where(p.Steps, func(s *Step) bool { return s.Action == Pruned && !p.Guard.Absent.Has(s.ID) })
	return bundle.Each(removed, func(s *Step) bundle.ID { return s.ID })
}
