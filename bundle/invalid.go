package bundle

import "slices"

// Skip takes the objects that problems are about out of the bundle and notes
// the problems in Invalid. It returns the problems that are about none of its
// objects: those cannot be skipped.
func (b *Bundle) Skip(problems []Problem) (rest []Problem) {
	ids, sources := map[ID]bool{}, map[Source]bool{}
	for _, p := range problems {
		ids[p.ID] = p.ID != ID{}
		sources[p.Source] = p.Source.File != ""
	}
	var skipped []*Object
	b.Objects = slices.DeleteFunc(b.Objects, func(o *Object) bool {
		if !ids[o.ID] && !sources[o.Source] {
			return false
		}
		skipped = append(skipped, o)
		return true
	})
	for _, p := range problems {
		about := slices.IndexFunc(skipped, func(o *Object) bool { return o.ID == p.ID || o.Source == p.Source })
		if about < 0 {
			rest = append(rest, p)
			continue
		}
		p.ID = skipped[about].ID // as it is settled by now
		b.Invalid = append(b.Invalid, p)
	}
	return rest
}
