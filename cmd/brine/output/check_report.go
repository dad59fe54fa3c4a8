package output

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"brine/bundle"
	"brine/bundle/order"
	"brine/cmd/brine/output/wording"
)

// The result of brine check as text, as JSON, and as a graph for Graphviz.

// Check shows the order of a bundle and the reasons for it, in one of the
// formats text, json (one document) and dot (Graphviz). rules has the rule of readiness of
// each object, where that is to be shown. Text lists the objects if it is verbose.
func Check(w io.Writer, format string, b *bundle.Bundle, g *order.Graph, rules map[bundle.ID]string, problems []bundle.Problem, verbose bool) error {
	doc := checkDocumentOf(b, g, rules, problems)
	out := bufio.NewWriter(w)
	switch format {
	case "text", "":
		for _, p := range problems {
			fmt.Fprintf(out, "error: %s\n", wording.Line(p.Error()))
		}
		for _, p := range checkWarnings(b, g) {
			fmt.Fprintf(out, "warning: %s\n", wording.Line(p.Error()))
		}
		checkNotWaiting(out, g, verbose)
		doc.text(out, verbose)
	case "json":
		if err := wording.JSON(out, doc); err != nil {
			return err
		}
	case "dot":
		doc.dot(out)
	default:
		return fmt.Errorf("unknown output format %q: use text, json or dot", format)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the check: %w", err)
	}
	return nil
}

// checkDocument is what was read, and its JSON form. Lists are never null.
type checkDocument struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Objects    []checkObject  `json:"objects"`
	Absent     []checkObject  `json:"absent"`
	Dropped    []checkDropped `json:"dropped"`
	Errors     []checkProblem `json:"errors"`
	Warnings   []checkProblem `json:"warnings"`
}

// text counts what was read; verbose, it lists the objects in the order in which they are
// applied, and what they need.
func (d *checkDocument) text(w io.Writer, verbose bool) {
	if verbose {
		d.objects(w)
	}
	edges, explicit := 0, 0
	for _, o := range d.Objects {
		edges += len(o.Needs)
		for _, n := range o.Needs {
			if !n.Weak {
				explicit++
			}
		}
	}
	fmt.Fprintf(w, "%s in order, %s (%d explicit, %d dropped), %s, %s\n",
		bundle.Count(len(d.Objects), "object"), bundle.Count(edges, "dependency"), explicit, len(d.Dropped),
		bundle.Count(len(d.Warnings), "warning"), bundle.Count(len(d.Errors), "error"))
}

// checkNotWaiting prints the objects that do not wait: those for one object in one line, unless
// every one was asked for. A webhook with wide rules has very many.
func checkNotWaiting(w io.Writer, g *order.Graph, verbose bool) {
	var first []order.Edge
	count := map[int]int{}
	for _, e := range g.Dropped {
		if count[e.To]++; verbose || count[e.To] == 1 {
			first = append(first, e)
		}
	}
	for _, e := range first {
		from, to := g.Objects[e.From], g.Objects[e.To]
		who, does, why := checkPlace(from.ID, from.Source, " at "), "does", wording.Line(e.Reason)
		if n := count[e.To]; n > 1 && !verbose {
			who, does = bundle.Count(n, "object"), "do"
			why += ", and so on (-v lists them)"
		}
		fmt.Fprintf(w, "dropped: %s %s not wait for %s, as that would close a cycle: %s\n", who, does, checkPlace(to.ID, to.Source, " at "), why)
	}
}

func (d *checkDocument) objects(w io.Writer) {
	width := len(strconv.Itoa(len(d.Objects)))
	for i, o := range d.Objects {
		fmt.Fprintf(w, "%*d  %s\n", width, i+1, checkPlace(o.ID(), o.Source, "  "))
		if o.Rule != "" {
			fmt.Fprintf(w, "%*s  rule %s\n", width, "", wording.Line(o.Rule))
		}
		for _, n := range o.Needs {
			outside, strength := "", ""
			if n.External {
				outside = ", which is not in the bundle"
			}
			if !n.Weak {
				strength = " (explicit)"
			}
			fmt.Fprintf(w, "%*s  needs %s %s%s: %s%s\n", width, "", nameOf(n.ID()), n.Want, outside, wording.Line(n.Reason), strength)
		}
	}
	for _, a := range d.Absent {
		fmt.Fprintf(w, "absent: %s, to be deleted\n", checkPlace(a.ID(), a.Source, " at "))
	}
}

// checkWarnings are the bundle's and those of the order.
func checkWarnings(b *bundle.Bundle, g *order.Graph) []bundle.Problem {
	return slices.Concat(b.Warnings, g.Notices)
}

func checkPlace(id bundle.ID, s bundle.Source, between string) string {
	if s.File == "" {
		return nameOf(id)
	}
	return nameOf(id) + between + wording.Line(s.String())
}

func nameOf(id bundle.ID) string { return wording.Line(bundle.Name(id)) }

type checkObject struct {
	bundle.FullReference
	Version string        `json:"version"`
	Source  bundle.Source `json:"source"`
	Needs   []checkNeed   `json:"needs"`
	// Rule says, with -v, which rule decides when it is ready.
	Rule string `json:"rule,omitempty"`
}

type checkNeed struct {
	bundle.FullReference
	Want   string `json:"want"` // applied or ready
	Reason string `json:"reason"`
	Weak   bool   `json:"weak"`
	// External says that the object is not in the bundle.
	External bool `json:"external,omitempty"`
}

type checkDropped struct {
	From   bundle.FullReference `json:"from"`
	To     bundle.FullReference `json:"to"`
	Want   string               `json:"want"`
	Reason string               `json:"reason"`
}

type checkProblem struct {
	Source  bundle.Source         `json:"source"`
	Object  *bundle.FullReference `json:"object,omitempty"`
	Path    string                `json:"path,omitempty"`
	Message string                `json:"message"`
}

func checkDocumentOf(b *bundle.Bundle, g *order.Graph, rules map[bundle.ID]string, problems []bundle.Problem) *checkDocument {
	doc := &checkDocument{
		APIVersion: "brine.dev/v1",
		Kind:       "Check",
		Objects:    make([]checkObject, 0, len(g.Sorted)),
		Absent:     make([]checkObject, 0, len(b.Absent)),
		Dropped:    make([]checkDropped, 0, len(g.Dropped)),
		Errors:     checkProblems(problems),
		Warnings:   checkProblems(checkWarnings(b, g)),
	}
	for _, i := range g.Sorted {
		o := g.Objects[i]
		doc.Objects = append(doc.Objects, checkObject{bundle.ReferFullyTo(o.ID), o.GVK.Version, o.Source, checkNeeds(g, i), rules[o.ID]})
	}
	for _, a := range b.Absent {
		doc.Absent = append(doc.Absent, checkObject{bundle.ReferFullyTo(a.ID), a.GVK.Version, a.Source, []checkNeed{}, ""})
	}
	for _, e := range g.Dropped {
		doc.Dropped = append(doc.Dropped, checkDropped{
			bundle.ReferFullyTo(g.Objects[e.From].ID), bundle.ReferFullyTo(g.Objects[e.To].ID), e.Want.String(), e.Reason,
		})
	}
	return doc
}

func checkNeeds(g *order.Graph, i int) []checkNeed {
	needs := make([]checkNeed, 0, len(g.Needs[i])+len(g.External[i]))
	for _, e := range g.Needs[i] {
		needs = append(needs, checkNeed{
			FullReference: bundle.ReferFullyTo(g.Objects[e.To].ID), Want: e.Want.String(), Reason: e.Reason, Weak: e.Weak,
		})
	}
	for _, e := range g.External[i] {
		needs = append(needs, checkNeed{
			FullReference: bundle.ReferFullyTo(e.On), Want: order.Ready.String(), Reason: e.Reason, External: true,
		})
	}
	return needs
}

func checkProblems(problems []bundle.Problem) []checkProblem {
	all := make([]checkProblem, 0, len(problems))
	for _, p := range problems {
		c := checkProblem{Source: p.Source, Path: p.Path, Message: p.Message}
		if p.ID != (bundle.ID{}) {
			id := bundle.ReferFullyTo(p.ID)
			c.Object = &id
		}
		all = append(all, c)
	}
	return all
}

// dot draws an arrow from each object to what it needs: dashed when it is
// weak, bold when it waits until the other is ready.
func (d *checkDocument) dot(w io.Writer) {
	fmt.Fprintln(w, "digraph brine {\n  rankdir=LR;\n  node [shape=box];")
	outside := map[bundle.FullReference]bool{}
	for _, o := range d.Objects {
		dotNode(w, o.FullReference, "")
		for _, n := range o.Needs {
			if n.External && !outside[n.FullReference] {
				outside[n.FullReference] = true
				dotNode(w, n.FullReference, ", style=dotted")
			}
		}
	}
	for _, o := range d.Objects {
		for _, n := range o.Needs {
			fmt.Fprintf(w, "  %s -> %s [label=%s%s];\n", dotName(o.FullReference), dotName(n.FullReference), dotQuote(n.Reason), n.style())
		}
	}
	fmt.Fprintln(w, "}")
}

func dotNode(w io.Writer, id bundle.FullReference, more string) {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	label := strings.TrimSuffix(dotQuote(id.Kind), `"`) + `\n` + strings.TrimPrefix(dotQuote(name), `"`)
	fmt.Fprintf(w, "  %s [label=%s%s];\n", dotName(id), label, more)
}

func (n checkNeed) style() string {
	ready := n.Want == order.Ready.String()
	switch {
	case n.External:
		return ", style=bold"
	case n.Weak && ready:
		return `, style="dashed,bold"`
	case n.Weak:
		return `, style="dashed"`
	case ready:
		return `, style="bold"`
	}
	return ""
}

func dotName(r bundle.FullReference) string { return dotQuote(bundle.Name(r.ID())) }

// dotQuote writes a string as DOT quotes it: \" is the one escape of the
// language itself, a backslash would be one of its labels'.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(wording.Line(s)) + `"`
}
