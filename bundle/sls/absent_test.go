package sls

import (
	"slices"
	"strings"
	"testing"
)

// What object_absent deletes is what it names, or there is a problem: never the object that is
// called like the state, or one of another namespace.
func TestAbsentIsReadStrictly(t *testing.T) {
	high := func(args ...string) string { return "{Old: {k.object_absent: [" + strings.Join(args, ", ") + "]}}" }
	const kind, version = "{kind: ConfigMap}", "{apiVersion: v1}"
	const noText = ": must be text, and not empty: it says which object is to be absent"
	for name, c := range map[string]struct{ in, want string }{
		"a namespace that is a list":    {high("{name: a}", kind, version, "{namespace: [prod]}"), "namespace" + noText},
		"an empty namespace":            {high("{name: a}", kind, version, "{namespace: }"), "namespace" + noText},
		"an empty text":                 {high("{name: a}", kind, version, "{namespace: ' '}"), "namespace" + noText},
		"a name that is a list":         {high("{name: [a, b]}", kind, version), "name" + noText},
		"the same in low data":          {"[{state: k, fun: object_absent, __id__: Old, name: [a], kind: ConfigMap, apiVersion: v1}]", "name" + noText},
		"a kind that is a mapping":      {high("{name: a}", "{kind: {ConfigMap: }}", version), "kind" + noText},
		"a version that is null":        {high("{name: a}", kind, "{api_version: ~}"), "api_version" + noText},
		"names with nothing among them": {high("{names: [old, ~]}", kind, version), "names: each must be a name, or {name: [arguments]}"},
		"names with a list among them":  {high("{names: [[old]]}", kind, version), "names: each must be a name"},
		"no names":                      {high("{names: []}", kind, version), "names: is empty"},
		"a misspelt argument":           {high("{name: a}", kind, version, "{namesapce: prod}"), "k.object_absent has no argument namesapce: did you mean namespace?"},
		"an argument of nobody":         {high("{name: a}", kind, version, "{ns: prod}"), "k.object_absent has no argument ns"},
		"a merge of no mapping":         {high("{name: a}", kind, version, "{<<: prod}"), "k.object_absent has no argument <<"},
		"another name in the manifest":  {high("{name: b}", "{manifest: "+cm("a")+"}"), `name is "b", and in the manifest "a"`},
		"a namespace beside a manifest": {high("{namespace: prod}", "{manifest: "+cm("a")+"}"), `namespace is "prod", and in the manifest ""`},
		"another version beside it":     {high("{api_version: v2}", "{manifest: "+cm("a")+"}"), `api_version is "v2", and in the manifest "v1"`},
		"an empty one in a manifest":    {high("{manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: }}}"), "metadata.namespace is empty"},
		"a list of no manifest":         {high("{manifest: []}"), "manifest: must be a mapping with apiVersion, kind and metadata"},
		"two of one name":               {high("{names: [{q: [{namespace: x}]}, {q: [{namespace: y}]}]}", kind, version), "names: q is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := parse(t, c.in)
			docs, problems, warnings := decoded(doc, Detect(doc), Options{})
			if len(problems) != 1 || !strings.Contains(problems[0].Message, c.want) || problems[0].Source.State != "Old" {
				t.Errorf("want %q, got\n%s", c.want, show(docs, problems, warnings))
			}
		})
	}
}

// All that Salt and the modules know beside the names is left alone, and a title is no name.
func TestAbsentAcceptsWhatSaltKnows(t *testing.T) {
	for _, in := range []string{
		"A: {k.object_absent: [{name: a}, {kind: ConfigMap}, {api_version: v1}, {wait: true}, {retry: {attempts: 5}}, {require_in: [{k: B}]}, {kubeconfig: ~}, {context: ~}]}",
		"A: {k.object_absent: [{name: a}, {kind: ConfigMap}, {apiVersion: v1}, {namespace: default}, {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}}]}",
		"A: {k.object_absent: [{name: Remove the old one}, {manifest: " + cm("a") + "}]}",
		"old: {k.object_absent: [{name: old}, {manifest: " + cm("a") + "}]}",
	} {
		doc := parse(t, in+"\nB: {k.object_present: [{manifest: "+cm("b")+"}]}\n")
		docs, problems, warnings := decoded(doc, Detect(doc), Options{})
		if len(problems) > 0 || !docs[0].Absent || text(field(field(docs[0].Node, "metadata"), "name")) != "a" {
			t.Errorf("%s:\n%s", in, show(docs, problems, warnings))
		}
	}
}

// Salt refuses these, too: the last would count, and an object be lost.
func TestKeysThatAreThereTwice(t *testing.T) {
	doc := parse(t, `
A: {k.object_present: [{manifest: `+cm("a")+`, manifest: `+cm("b")+`}]}
A: {k.object_present: [{manifest: {apiVersion: v1, kind: ConfigMap, kind: Job, metadata: {name: c}}}]}
B: {k.object_present: [{<<: {order: 1}, <<: {order: 2}}, {manifest: `+cm("d")+`}]}
C: {}
D: {__sls__: s}
`)
	_, problems, _ := decoded(doc, High, Options{Offset: 10})
	var got []string
	for _, p := range problems {
		got = append(got, shown(p))
	}
	want := []string{
		"line 12: duplicate key manifest; the first is on line 12", "line 13: duplicate key A; the first is on line 12", "line 14: duplicate key <<; the first is on line 14",
		`line 15 (state "C"): the state has no function`, `line 16 (state "D", sls s): the state has no function`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// YAML's merges work in Salt's own mappings as they do in Salt.
func TestMergesInStates(t *testing.T) {
	doc := parse(t, `
A:
  k.object_absent:
  - name: a
  - &prod {namespace: prod, kind: Secret}
  - {kind: ConfigMap, apiVersion: v1, <<: *prod}
B: {k.object_absent: [{name: b, apiVersion: v1, <<: [{kind: Job, <<: {namespace: inner}}, *prod]}]}
C: {k.object_absent: [{name: c, apiVersion: v1}, &loop {kind: Job, <<: {namespace: own, <<: *loop}}]}
`)
	docs, problems, warnings := decoded(doc, Detect(doc), Options{})
	var got []string
	for _, d := range docs {
		got = append(got, text(field(d.Node, "kind"))+" "+text(field(field(d.Node, "metadata"), "namespace")))
	}
	if s := strings.Join(got, ", "); s != "ConfigMap prod, Job inner, Job own" || len(problems)+len(warnings) > 0 {
		t.Errorf("%s\n%s", s, show(docs, problems, warnings))
	}
}
