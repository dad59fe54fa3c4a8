package sls

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// chunk is one call of a state function: Salt's low data.
type chunk struct {
	bundle.Source
	module, fun string
	id, name    string
	args        arguments
	requisites  []requisite
	order       float64
	nameOrder   int
	of          *Rendering
	docs        []*Document
}

// requisite is one entry of a requisite list: target's state (or "sls", or
// "id" for any) and the name or id it matches, both as Salt writes them.
type requisite struct {
	kind, module, target string
	line                 int
}

func (c *chunk) absent() bool   { return absentFuns[c.fun] }
func (c *chunk) isObject() bool { return presentFuns[c.fun] || c.absent() }

// arg is an argument; without one of that key its value is nil.
func (c *chunk) arg(key string) pair { return c.args.last(key) }

// arguments are those of a function. A later one of the same name wins.
type arguments []pair

func (all arguments) last(key string) pair {
	for _, a := range slices.Backward(all) {
		if a.key == key {
			return a
		}
	}
	return pair{}
}

// at is the chunk's place with another line.
func (c *chunk) at(line int) bundle.Source {
	at := c.Source
	at.Line = line
	return at
}

func (d *Rendering) problem(at bundle.Source, format string, args ...any) {
	d.Problems = append(d.Problems, d.problemAt(at, format, args...))
}

func (d *Rendering) warn(at bundle.Source, format string, args ...any) {
	d.Warnings = append(d.Warnings, d.problemAt(at, format, args...))
}

func (d *Rendering) problemAt(at bundle.Source, format string, args ...any) bundle.Problem {
	at.File, at.Line = cmp.Or(at.File, d.options.File), at.Line+d.options.Offset
	return bundle.Problem{Source: at, Message: fmt.Sprintf(format, args...)}
}

// saltsWords are what errors of Salt's compiler and of its modules begin with.
var saltsWords = bundle.Pattern(`^(Rendering SLS|Specified SLS|No (matching|state|function)|(SLS|ID|Name|State) ['"]|SLS \S+ (does|is) not|The (state|function|require|order|name)|` +
	`Too many functions|Cannot extend ID|Detected conflicting|Conflicting|A? ?[Rr]ecursive requisite|Include |Extend |Requisite |Pillar failed|Data failed|` +
	`Minion did not return|Module function|Passed invalid|ERROR[: ]|Jinja |'[\w.]+' (is not available|__virtual__))`)

// othersWords are what such an error quotes: a template's own exception, the body of an answer,
// what YAML took for a tag. The Salt modules leave out the same.
var othersWords = bundle.Pattern(`(Jinja error: |HTTP response body: ).*?(; line \d+)?$|((?:alias|anchor|tag|tag handle) )(?:'[^']*'|"[^"]*")`)

// saltErrors reports the errors that Salt printed in place of states: of each its first line.
// What follows, and a text that Salt does not say itself, may hold anything, Secrets too.
func (d *Rendering) saltErrors(root *yaml.Node) {
	for _, e := range listed(root) {
		message, _, cut := strings.Cut(strings.TrimSpace(text(e)), "\n")
		if !saltsWords().MatchString(message) {
			d.problem(at(e), "Salt printed a text that is neither states nor an error brine knows: it is left out, as Secrets may be in it (a file that only Jinja renders needs apiVersion at the start of a line)")
			continue
		}
		message = bundle.Clip(othersWords().ReplaceAllString(message, "$1$3(left out: it may hold Secrets)$2"), 300)
		if cut {
			message += " (the text around it is left out)"
		}
		d.problem(at(e), "Salt did not render this: %s", message)
	}
}

// fileKey is what brine's Salt module adds to the low data: the file of the SLS.
const fileKey = "__file__"

func (d *Rendering) low(root *yaml.Node) {
	if !isSequence(root) {
		d.problem(at(root), "low data must be a list of states (as state.show_low_sls prints it)")
		return
	}
	d.resolved = true
	for _, item := range items(root) {
		c := &chunk{
			module: text(field(item, "state")), fun: text(field(item, "fun")),
			id: text(field(item, "__id__")), name: text(field(item, "name")), args: pairs(item),
		}
		c.Source = bundle.Source{Line: line(item), State: c.id, SLS: text(field(item, "__sls__")), File: text(field(item, fileKey))}
		if c.module == "" || c.fun == "" {
			d.problem(c.Source, "a state in low data needs `state` and `fun`")
			continue
		}
		if c.id == "" {
			c.id, c.State = c.name, c.name
		}
		d.add(c)
	}
	d.sort()
}

// add takes a chunk whose arguments are complete.
func (d *Rendering) add(c *chunk) {
	if c.name == "" {
		c.name = c.id
	}
	c.of = d
	d.readRequisites(c)
	d.chunks = append(d.chunks, c)
}

// sort is Salt's order_chunks, but ties keep the order of the text.
func (d *Rendering) sort() {
	top := 1.0
	for _, c := range d.chunks {
		if n, err := strconv.Atoi(text(c.arg("order").value)); err == nil && n > 0 && float64(n) > top-1 {
			top = float64(n) + 100
		}
	}
	for _, c := range d.chunks {
		c.order = order(text(c.arg("order").value), top)
		if c.nameOrder > 0 && c.arg("order").value != nil {
			c.order += float64(c.nameOrder) / 10000
		}
	}
	slices.SortStableFunc(d.chunks, func(a, b *chunk) int { return cmp.Compare(a.order, b.order) })
}

// order is a state's place by Salt's rules: a number, first, last, a negative
// number counted from the end; top for everything else.
func order(s string, top float64) float64 {
	const end = 1000000
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case s == "first":
		return 0
	case s == "last":
		return top + end
	case err != nil:
		return top
	case n < 0:
		return top + end + n
	}
	return n
}
