package sls

import (
	"slices"
	"strings"

	"brine/bundle"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Salt's high data: declarations, includes, excludes and extensions, as Salt's compiler reads
// them.

// declaration is one module's block under a state id. An argument of high data
// is a mapping of one field; the function is a string among them or behind the
// module's dot.
type declaration struct {
	bundle.Source
	module string
	funs   []string
	args   arguments
}

func (d *Rendering) high(root *yaml.Node) {
	if !isMapping(root) {
		d.problem(at(root), "high data must be a mapping of states by their id (as state.show_sls prints it)")
		return
	}
	var declared []*declaration
	var extends, excludes []*yaml.Node
	for _, p := range pairs(root) {
		switch {
		case p.key == "include":
			d.readIncludes(p.value)
		case p.key == "extend":
			extends = append(extends, p.value)
		case p.key == "__extend__":
			extends = append(extends, items(p.value)...)
		case p.key == "exclude" || p.key == "__exclude__":
			excludes = append(excludes, items(p.value)...)
		case reserved(p.key):
		default:
			declared = append(declared, d.declarations(p)...)
		}
	}
	declared = exclude(declared, excludes)
	for _, e := range extends {
		for _, p := range pairs(e) {
			for _, by := range d.declarations(p) {
				declared = d.extend(declared, by)
			}
		}
	}
	for _, decl := range declared {
		d.expand(decl)
	}
	d.sort()
	if len(d.chunks) == 0 && len(d.Problems) == 0 {
		d.problem(at(root), "Salt rendered no states%s", d.includeHint())
	}
}

func (d *Rendering) readIncludes(n *yaml.Node) {
	for _, item := range items(n) {
		name := text(item)
		if isMapping(item) { // {saltenv: name} or {name: {defaults: …}}
			if f := pairs(item); len(f) > 0 {
				name = f[0].key
				if isString(f[0].value) {
					name = f[0].value.Value
				}
			}
		}
		if name == "" {
			continue
		}
		d.includes = append(d.includes, name)
		d.warn(at(item), "include of %q is not followed: slsutil.renderer prints one file; what it holds is not part of this bundle (state.show_sls prints all)", name)
	}
}

func (d *Rendering) includeHint() string {
	if len(d.includes) == 0 {
		return ""
	}
	return ", only includes, which slsutil.renderer does not follow: use state.show_sls"
}

// declarations reads the mapping of one state id.
func (d *Rendering) declarations(p pair) []*declaration {
	at := bundle.Source{Line: p.line, State: p.key, SLS: text(field(p.value, "__sls__"))}
	if isString(p.value) { // ID: module.function
		module, fun, _ := strings.Cut(p.value.Value, ".")
		if !isBody(p.value) {
			d.problem(at, "a state's body is a mapping of module.function to its arguments; this is text")
			return nil
		}
		return []*declaration{{Source: at, module: module, funs: []string{fun}}}
	}
	if !isMapping(p.value) {
		d.problem(at, "a state's body must be a mapping of module.function to its arguments")
		return nil
	}
	var all []*declaration
	for _, f := range pairs(p.value) {
		if strings.HasPrefix(f.key, "__") {
			continue
		}
		decl := &declaration{Source: at}
		module, fun, dotted := strings.Cut(f.key, ".")
		decl.module = module
		if dotted {
			decl.funs = append(decl.funs, fun)
		}
		if !isNull(f.value) && !isSequence(f.value) {
			d.problem(bundle.Source{Line: f.line, State: at.State, SLS: at.SLS}, "the arguments of %s must be a list of one-field mappings", f.key)
			continue
		}
		for _, item := range items(f.value) {
			if isString(item) {
				decl.funs = append(decl.funs, item.Value)
			}
			decl.args = append(decl.args, pairs(item)...)
		}
		all = append(all, decl)
	}
	if !slices.ContainsFunc(pairs(p.value), func(f pair) bool { return !strings.HasPrefix(f.key, "__") }) {
		d.problem(at, "the state has no function")
	}
	return all
}

// exclude drops the declarations that exclude lists by SLS or by id.
func exclude(declared []*declaration, excludes []*yaml.Node) []*declaration {
	return slices.DeleteFunc(declared, func(decl *declaration) bool {
		return slices.ContainsFunc(excludes, func(e *yaml.Node) bool {
			if isString(e) {
				return decl.SLS != "" && match(e.Value, decl.SLS)
			}
			if id := text(field(e, "id")); id != "" {
				return id == decl.State
			}
			sls := text(field(e, "sls"))
			return sls != "" && decl.SLS != "" && match(sls, decl.SLS)
		})
	})
}

// extend is Salt's reconcile_extend: requisites are added to, the function and
// every other argument is replaced.
func (d *Rendering) extend(declared []*declaration, by *declaration) []*declaration {
	known := false
	for _, decl := range declared {
		if decl.State != by.State && text(decl.args.last("name").value) != by.State {
			continue
		}
		known = true
		if decl.module != by.module {
			continue
		}
		if len(by.funs) > 0 {
			decl.funs = by.funs
		}
		for _, a := range by.args {
			if isRequisite(a.key) {
				decl.args = append(decl.args, a)
				continue
			}
			decl.args = slices.DeleteFunc(decl.args, func(old pair) bool {
				return old.key == a.key || a.key == "name" && old.key == "names"
			})
			decl.args = append(decl.args, a)
		}
		return declared
	}
	if known {
		return append(declared, by)
	}
	d.problem(by.Source, "extend of %q: there is no state of that id in this rendering%s", by.State, d.includeHint())
	return declared
}

// expand makes one chunk of a declaration, or one for each of its names.
func (d *Rendering) expand(decl *declaration) {
	if len(decl.funs) != 1 {
		if decl.module == "require" || decl.module == "watch" {
			return // Salt passes over these, too
		}
		d.problem(decl.Source, "state module %s needs exactly one function, this has %d (%s)", decl.module, len(decl.funs), bundle.Some(decl.funs, 5))
		return
	}
	base := chunk{Source: decl.Source, module: decl.module, fun: decl.funs[0], id: decl.State}
	var names []*yaml.Node
	for _, a := range decl.args {
		switch {
		case a.key == "names" && !isEmpty(a.value):
			names = append(names, listed(a.value)...)
		case a.key == "state":
		default:
			base.args = append(base.args, a)
		}
	}
	if len(names) == 0 {
		base.name = text(base.arg("name").value)
		d.add(&base)
		return
	}
	seen := map[string]*yaml.Node{}
	for i, n := range names {
		c := base
		c.args = slices.Clone(base.args)
		c.nameOrder = i + 1
		name := n
		if own := pairs(n); len(own) == 1 { // {name: [its own arguments]}
			name = scalar(own[0].line, own[0].key)
			for _, item := range items(own[0].value) {
				c.args = append(c.args, pairs(item)...)
			}
		}
		if c.name = text(name); c.name == "" {
			d.problem(c.at(line(n)), "names: each must be a name, or {name: [arguments]}")
			continue
		}
		if first := seen[c.name]; first != nil {
			if !isString(n) || !isString(first) { // Salt would run both
				d.problem(c.at(line(n)), "names: %s is there twice, with arguments of its own: give each a name of its own", c.name)
			}
			continue
		}
		seen[c.name] = n
		c.args = append(c.args, pair{key: "name", line: line(n), value: name})
		d.add(&c)
	}
}
