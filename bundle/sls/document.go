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
	for _, n := range all {
		if isMapping(n) && len(n.Content) > 0 {
			continue
		}
		d.problem(c.at(a.line), "manifest: must be a mapping with apiVersion, kind and metadata")
		return nil
	}
	return all
}

// named makes the manifest that object_absent's name, kind, apiVersion and
// namespace stand for.
func (d *Rendering) named(c *chunk) []*yaml.Node {
	version := cmp.Or(text(c.arg("apiVersion").value), text(c.arg("api_version").value))
	kind, namespace := text(c.arg("kind").value), text(c.arg("namespace").value)
	if version == "" || kind == "" {
		d.problem(c.Source, "%s.%s needs apiVersion and kind in addition to the name, or a manifest", c.module, c.fun)
		return nil
	}
	metadata := mapping(c.Line, "name", c.name)
	if namespace != "" {
		metadata.Content = append(metadata.Content, scalar(c.Line, "namespace"), scalar(c.Line, namespace))
	}
	n := mapping(c.Line, "apiVersion", version, "kind", kind)
	n.Content = append(n.Content, scalar(c.Line, "metadata"), metadata)
	return []*yaml.Node{n}
}

func mapping(line int, fields ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: yaml.NodeTagMap, Line: line, Column: 1}
	for _, f := range fields {
		n.Content = append(n.Content, scalar(line, f))
	}
	return n
}

func scalar(line int, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagString, Value: s, Line: line, Column: 1, Style: yaml.DoubleQuotedStyle}
}
