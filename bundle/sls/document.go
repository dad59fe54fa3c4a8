package sls

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/remedy"
)

// conditions decide in Salt whether a state runs at all.
var conditions = []string{"unless", "onlyif", "creates", "onfail", "onfail_any", "onfail_all", "use"}

// documents turns the chunks, which are in order, into documents.
func (d *Rendering) documents() {
	targets := map[string]int{}
	for _, c := range d.chunks {
		if !c.isObject() {
			d.otherState(c)
			continue
		}
		d.conditions(c)
		if c.absent() && !d.strict(c) {
			continue
		}
		for _, key := range []string{"kubeconfig", "context"} {
			if v := text(c.arg(key).value); v != "" {
				targets[key+" "+v]++
			}
		}
		for _, n := range d.manifests(c) {
			c.docs = append(c.docs, &Document{Node: n, Source: c.at(line(n)), Absent: c.absent()})
		}
		d.Documents = append(d.Documents, c.docs...)
	}
	for target, n := range targets {
		d.warn(bundle.Source{Line: 1}, "%d states name the %s: brine takes its own %s and %s for all of them", n, target, remedy.Kubeconfig, remedy.Context)
	}
	slices.SortFunc(d.Warnings, func(a, b bundle.Problem) int {
		return cmp.Or(cmp.Compare(a.Source.Line, b.Source.Line), strings.Compare(a.Message, b.Message))
	})
	if len(d.Documents) == 0 && len(d.Problems) == 0 {
		d.problem(bundle.Source{Line: d.chunks[0].Line}, "none of the %d states is an object (object_present, manifest_present, object_absent, manifest_absent)%s",
			len(d.chunks), d.includeHint())
	}
	for _, c := range d.chunks {
		c.args = nil // only requisites and documents are needed from here on
	}
}

func (d *Rendering) otherState(c *chunk) {
	switch {
	case patchFuns[c.fun] || (c.module == "brine" || c.module == "brine_object") && c.fun != "waited": // never skipped: nothing else would do it
		module := "brine_object"
		if c.module == "brine" {
			module = c.module
		}
		d.problem(c.Source, "%s.%s changes objects that the bundle does not contain: move it to an SLS that Salt runs itself, as %s.%s",
			c.module, c.fun, module, c.fun)
	case !d.options.IgnoreNonKubernetesStates:
		d.problem(c.Source, "%s.%s is not an object brine can apply: leave it out of the bundle, or skip such states with %s",
			c.module, c.fun, remedy.IgnoreForeignStates)
	}
}

func (d *Rendering) conditions(c *chunk) {
	for _, key := range conditions {
		a := c.arg(key)
		if isNull(a.value) || key == "use" && d.resolved {
			continue
		}
		d.problem(c.at(a.line), "brine cannot evaluate %s: decide in the template whether the object is in the bundle", key)
	}
	if a := c.arg("check_cmd"); !isNull(a.value) {
		d.warn(c.at(a.line), "check_cmd is not run: brine waits until the object is ready (brine.dev/ready-when defines when)")
	}
}

// manifests are the manifest nodes of one chunk.
func (d *Rendering) manifests(c *chunk) []*yaml.Node {
	a := c.arg("manifest")
	if isNull(a.value) {
		if c.absent() {
			return d.named(c)
		}
		from := text(c.arg("source").value)
		if from == "" && strings.Contains(c.name, "/") {
			from = c.name
		}
		if from != "" {
			d.problem(c.Source, "%s.%s reads its manifest from %s when it runs: render that file into the bundle instead", c.module, c.fun, from)
			return nil
		}
		d.problem(c.Source, "%s.%s needs its manifest inline", c.module, c.fun)
		return nil
	}
	all := listed(a.value)
	if len(all) == 0 || slices.ContainsFunc(all, func(n *yaml.Node) bool { return !isMapping(n) || len(n.Content) == 0 }) {
		d.problem(c.at(a.line), "manifest: must be a mapping with apiVersion, kind and metadata")
		return nil
	}
	if c.absent() {
		for _, n := range all {
			d.agree(c, n)
		}
	}
	return all
}

// naming are the arguments of object_absent that say which object it deletes.
var naming = []string{"apiVersion", "api_version", "kind", "namespace", "name"}

// absentArguments are all that object_absent and Salt know.
var absentArguments = slices.Concat(naming, needing, inverse, without, conditions, []string{
	"names", "manifest", "source", "template", "defaults", "template_context", "kubeconfig", "kubeconfig_data", "context", "wait", "timeout",
	"state", "fun", "order", "failhard", "retry", "parallel", "check_cmd", "cmd_opts_exclude", "runas", "runas_password", "umask",
	"reload_modules", "reload_grains", "reload_pillar", "fire_event", "saltenv", "aggregate",
})

// strict reports whether the arguments of object_absent leave no doubt. One that is empty, or
// that nobody reads, would name another object, and that would be deleted.
func (d *Rendering) strict(c *chunk) bool {
	before := len(d.Problems)
	for _, a := range c.args {
		switch {
		case a.key == "names": // that it is not empty, expand has seen
			d.problem(c.at(a.line), "names: is empty, so it does not say which object is to be absent")
		case slices.Contains(naming, a.key) && (isEmpty(a.value) || !isString(a.value)):
			d.problem(c.at(a.line), "%s: must be text, and not empty: it says which object is to be absent", a.key)
		case !slices.Contains(absentArguments, a.key) && !strings.HasPrefix(a.key, "__"):
			hint := ""
			if best := bundle.Nearest(a.key, absentArguments); best != "" {
				hint = ": did you mean " + best + "?"
			}
			d.problem(c.at(a.line), "%s.%s has no argument %s%s", c.module, c.fun, a.key, hint)
		}
	}
	return len(d.Problems) == before
}

// agree reports arguments that name another object than the manifest does. A name may also be
// a title, as the state's ID is.
func (d *Rendering) agree(c *chunk, manifest *yaml.Node) {
	metadata := field(manifest, "metadata")
	if namespace := field(metadata, "namespace"); namespace != nil && isEmpty(namespace) {
		d.problem(c.at(line(namespace)), "metadata.namespace is empty: write the namespace of the object that is to be absent, or leave the field out")
	}
	for _, key := range naming {
		a, in := c.arg(key), manifest
		if key == "name" || key == "namespace" {
			in = metadata
		}
		says := text(field(in, strings.Replace(key, "api_version", "apiVersion", 1)))
		if v := text(a.value); v != "" && v != says && (key != "name" || v != c.id && !strings.ContainsAny(v, " /")) {
			d.problem(c.at(a.line), "%s is %q, and in the manifest %q: leave one of them out", key, v, says)
		}
	}
}

// named makes the manifest that object_absent's name, kind, apiVersion and namespace stand for.
func (d *Rendering) named(c *chunk) []*yaml.Node {
	version, kind := cmp.Or(c.arg("apiVersion").value, c.arg("api_version").value), c.arg("kind").value
	if version == nil || kind == nil {
		d.problem(c.Source, "%s.%s needs apiVersion and kind in addition to the name, or a manifest", c.module, c.fun)
		return nil
	}
	name := cmp.Or(c.arg("name").value, scalar(c.Line, c.name))
	metadata := mapping(c.Line, "name", name)
	if namespace := c.arg("namespace").value; namespace != nil {
		metadata.Content = append(metadata.Content, scalar(c.Line, "namespace"), namespace)
	}
	return []*yaml.Node{mapping(c.Line, "apiVersion", version, "kind", kind, "metadata", metadata)}
}

// mapping is one of keys, each with its value behind it.
func mapping(line int, fields ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap, Line: line, Column: 1}
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			n.Content = append(n.Content, scalar(line, f))
		case *yaml.Node:
			n.Content = append(n.Content, f)
		}
	}
	return n
}

func scalar(line int, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: s, Line: line, Column: 1, Style: yaml.DoubleQuotedStyle}
}
