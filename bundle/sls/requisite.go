package sls

import (
	"slices"
	"strings"

	"brine/bundle"
)

// Salt's requisites: which states wait for which.

// needing are the requisites that make a state wait for its targets; inverse
// are those that make the targets wait for it.
var (
	needing = []string{"require", "require_any", "watch", "watch_any", "onchanges", "onchanges_any", "prerequired"}
	inverse = []string{"require_in", "watch_in", "onchanges_in", "prereq", "onfail_in"}
	// without are those that no order follows from.
	without = []string{
		"listen", "listen_in", "onfail", "onfail_any", "onfail_all", "onfail_stop", "prereq_in", "use", "use_in",
	}
)

func isRequisite(key string) bool {
	return slices.Contains(needing, key) || slices.Contains(inverse, key) || slices.Contains(without, key)
}

// readRequisites takes the requisites out of a chunk's arguments.
func (d *Rendering) readRequisites(c *chunk) {
	for _, a := range c.args {
		if !slices.Contains(needing, a.key) && !slices.Contains(inverse, a.key) && a.key != "prereq_in" || isNull(a.value) {
			continue
		}
		kind := a.key
		if kind == "prereq_in" { // A prereq_in B: B runs before A, like A requires B
			kind = "prerequired"
		}
		for _, e := range listed(a.value) {
			if isString(e) {
				c.requisites = append(c.requisites, requisite{kind, "id", e.Value, line(e)})
				continue
			}
			if !isMapping(e) || len(e.Content) == 0 {
				d.problem(c.at(line(e)), "an entry of %s must be an id or {module: id}", a.key)
				continue
			}
			for _, p := range pairs(e) {
				if !isString(p.value) {
					d.problem(c.at(p.line), "%s: %s needs the id or name of a state", a.key, p.key)
					continue
				}
				module, _, _ := strings.Cut(p.key, ".")
				c.requisites = append(c.requisites, requisite{kind, module, p.value.Value, p.line})
			}
		}
	}
}

// edge is one resolved requisite: the chunk it leads to and its reason.
type edge struct {
	to     *chunk
	reason string
}

// Link resolves the requisites of renderings that are one bundle: the states of
// one see those of the others, as in Salt's high state of several SLS files. A
// requisite that matches nothing is a problem of its rendering.
func Link(renderings ...*Rendering) {
	all := map[*chunk][]edge{}
	chunks := slices.Concat(bundle.Each(renderings, func(d *Rendering) []*chunk { return d.chunks })...)
	own, known := make([]index, len(renderings)), indexed(chunks)
	for i, d := range renderings {
		own[i] = known
		if len(renderings) > 1 {
			own[i] = indexed(d.chunks)
		}
	}
	for i, d := range renderings {
		for _, c := range d.chunks {
			for _, r := range c.requisites {
				d.resolve(c, r, own[i], known, all)
			}
		}
	}
	for _, c := range chunks {
		requires := require(c, all)
		for _, doc := range c.docs {
			doc.Requires = requires
		}
	}
}

// index finds chunks by what a requisite may call them.
type index struct {
	byName, bySLS map[string][]*chunk
	all           []*chunk
}

func indexed(chunks []*chunk) index {
	known := index{byName: map[string][]*chunk{}, bySLS: map[string][]*chunk{}, all: chunks}
	for _, c := range chunks {
		known.byName[c.id] = append(known.byName[c.id], c)
		if c.name != c.id {
			known.byName[c.name] = append(known.byName[c.name], c)
		}
		known.bySLS[c.SLS] = append(known.bySLS[c.SLS], c)
	}
	return known
}

// targets are the chunks that r matches. A plain name means the state of the
// same rendering, where that has one: the same SLS may be in several.
func (r requisite) targets(own, known index) []*chunk {
	matching := func(i index) []*chunk { return bundle.Where(i.candidates(r), r.matches) }
	if r.module != "sls" && !strings.ContainsAny(r.target, "*?[") {
		if found := matching(own); len(found) > 0 {
			return found
		}
	}
	return matching(known)
}

// candidates are the chunks that r may match: few for a plain name.
func (known index) candidates(r requisite) []*chunk {
	switch {
	case strings.ContainsAny(r.target, "*?["):
		return known.all
	case r.module == "sls":
		return known.bySLS[r.target]
	}
	return known.byName[r.target]
}

func (d *Rendering) resolve(c *chunk, r requisite, own, known index, all map[*chunk][]edge) {
	found := r.targets(own, known)
	for _, t := range found {
		if t == c {
			continue
		}
		switch {
		case r.kind == "onfail_in" && t.isObject():
			t.of.problem(t.Source, "brine cannot evaluate onfail_in of %q: decide in the template whether the object is in the bundle", c.id)
		case r.kind == "onfail_in":
		case slices.Contains(inverse, r.kind):
			all[t] = append(all[t], edge{c, r.kind + ": " + c.id})
		case r.module == "sls":
			all[c] = append(all[c], edge{t, r.kind + ": sls " + r.target})
		default:
			all[c] = append(all[c], edge{t, r.kind + ": " + t.id})
		}
	}
	if len(found) > 0 || r.module == "sls" && slices.ContainsFunc(d.includes, func(name string) bool {
		return match(r.target, strings.TrimLeft(name, ".")) // reported already: it is not part of this rendering
	}) {
		return
	}
	d.problem(c.at(r.line), "%s: no state of the bundle matches {%s: %s}", r.kind, r.module, r.target)
}

func (r requisite) matches(t *chunk) bool {
	switch {
	case r.module == "sls":
		return t.SLS != "" && match(r.target, t.SLS)
	case r.module != "id" && r.module != t.module:
		return false
	}
	return match(r.target, t.name) || match(r.target, t.id)
}

// require finds the documents a chunk's requisites lead to, straight or
// through states that are no objects.
func require(c *chunk, all map[*chunk][]edge) []Require {
	var found []Require
	seen := map[*chunk]bool{c: true}
	var walk func(from *chunk, before string)
	walk = func(from *chunk, before string) {
		for _, e := range all[from] {
			if seen[e.to] {
				continue
			}
			seen[e.to] = true
			reason := e.reason
			if before != "" {
				reason = before + ", " + e.reason
			}
			for _, doc := range e.to.docs {
				found = append(found, Require{On: doc, Reason: reason})
			}
			if !e.to.isObject() {
				walk(e.to, reason)
			}
		}
	}
	walk(c, "")
	return found
}
