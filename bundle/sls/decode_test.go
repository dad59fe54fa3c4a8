package sls

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

func parse(t *testing.T, s string) *yaml.Node {
	t.Helper()
	n := &yaml.Node{}
	if err := yaml.Unmarshal([]byte(s), n); err != nil {
		t.Fatal(err)
	}
	return n
}

// show prints what Decode returned, a line each.
func show(docs []*Document, problems, warnings []bundle.Problem) string {
	var b strings.Builder
	for i, d := range docs {
		what := "present"
		if d.Absent {
			what = "absent"
		}
		fmt.Fprintf(&b, "%d %s %s %s/%s\n", i, what, d.State, text(field(d.Node, "kind")), text(field(field(resolve(d.Node), "metadata"), "name")))
		for _, r := range d.Requires {
			fmt.Fprintf(&b, "  needs %d: %s\n", slices.Index(docs, r.On), r.Reason)
		}
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "problem %s\n", shown(p))
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning %s\n", shown(w))
	}
	return b.String()
}

// cm is a manifest in flow style.
func cm(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}"
}

func TestDetect(t *testing.T) {
	high := "A: {k.object_present: [{manifest: " + cm("a") + "}]}"
	low := "[{state: k, fun: object_present, name: a, manifest: " + cm("a") + "}]"
	for in, want := range map[string]Shape{
		cm("a"):                                  Manifests,
		"# nothing\n":                            Manifests,
		"metadata: {name: x}":                    Manifests,
		"values: [1, 2]\nimage.tag: a\nother: b": Manifests,
		"just text":                              Manifests,
		high:                                     High,
		"A: {k: [object_present, {manifest: {}}]}":        High,
		"A: test.nop\nB: {k.object_present: []}":          High,
		"include: [x]":                                    High,
		"{local: {" + high + "}}":                         High,
		"minion-1.example.com: {" + high + "}":            High,
		low:                                               Low,
		"{local: " + low + "}":                            Low,
		"{local: [\"Rendering SLS 'base:x' failed\"]}":    Errors,
		"[\"Rendering SLS 'base:x' failed\"]":             Errors,
		"{local: \"'state.show_sls' is not available.\"}": Errors,
		"{}":                                   Empty,
		"[]":                                   Empty,
		"{local: {}}":                          Empty,
		"{local: null}":                        Empty,
		"{minion-1: []}":                       Empty,
		"{local: " + cm("a") + "}":             Manifests,
		`{"local": "apiVersion: v1\nkind: A"}`: Rendered,
		"{m1: {" + high + "}, m2: {" + high + "}}": High,
	} {
		if got := Detect(parse(t, in)); got != want {
			t.Errorf("%s is %v, want %v", in, got, want)
		}
	}
}

// decoded is one rendering by itself.
func decoded(doc *yaml.Node, shape Shape, o Options) ([]*Document, []bundle.Problem, []bundle.Problem) {
	r := Decode(doc, shape, o)
	Link(r)
	return r.Documents, r.Problems, r.Warnings
}

func TestDecode(t *testing.T) {
	cases := map[string]struct {
		in, want string
		ignore   bool
	}{
		"dotted and split functions of any module": {
			in: `
A: {metalk8s_kubernetes.object_present: [{manifest: ` + cm("a") + `}]}
B: {kubernetes: [manifest_present, {manifest: ` + cm("b") + `}]}
C: {other.object_absent: [{name: c}, {apiVersion: v1}, {kind: Secret}, {namespace: ns}]}
D: {other.manifest_absent: [{manifest: ` + cm("d") + `}]}`,
			want: `0 present A ConfigMap/a
1 present B ConfigMap/b
2 absent C Secret/c
3 absent D ConfigMap/d
`},
		"order: numbers, first, last, counted from the end, and the text's order for ties": {
			in: `
A: {k.object_present: [{manifest: ` + cm("a") + `}, {order: last}]}
B: {k.object_present: [{manifest: ` + cm("b") + `}]}
C: {k.object_present: [{manifest: ` + cm("c") + `}, {order: 2}]}
D: {k.object_present: [{manifest: ` + cm("d") + `}, {order: 1}]}
E: {k.object_present: [{manifest: ` + cm("e") + `}, {order: 1}]}
F: {k.object_present: [{manifest: ` + cm("f") + `}, {order: first}]}
G: {k.object_present: [{manifest: ` + cm("g") + `}, {order: -1}]}`,
			want: `0 present F ConfigMap/f
1 present D ConfigMap/d
2 present E ConfigMap/e
3 present C ConfigMap/c
4 present B ConfigMap/b
5 present G ConfigMap/g
6 present A ConfigMap/a
`},
		"require by id, by name, by glob and without a module": {
			in: `
A: {k.object_present: [{name: first}, {manifest: ` + cm("a") + `}]}
B: {k.object_present: [{manifest: ` + cm("b") + `}, {require: [{k: A}]}]}
C: {k.object_present: [{manifest: ` + cm("c") + `}, {require: [{k: first}]}]}
D: {k.object_present: [{manifest: ` + cm("d") + `}, {require: [{k: "[AB]"}]}]}
E: {k.object_present: [{manifest: ` + cm("e") + `}, {require: [A]}]}`,
			want: `0 present A ConfigMap/a
1 present B ConfigMap/b
  needs 0: require: A
2 present C ConfigMap/c
  needs 0: require: A
3 present D ConfigMap/d
  needs 0: require: A
  needs 1: require: B
4 present E ConfigMap/e
  needs 0: require: A
`},
		"watch, onchanges, the _in forms, prereq": {
			in: `
A: {k.object_present: [{manifest: ` + cm("a") + `}, {require_in: [{k: B}]}]}
B: {k.object_present: [{manifest: ` + cm("b") + `}, {watch_in: [{k: C}]}]}
C: {k.object_present: [{manifest: ` + cm("c") + `}, {watch: [{k: A}]}, {onchanges_in: [{k: D}]}]}
D: {k.object_present: [{manifest: ` + cm("d") + `}, {onchanges: [{k: A}]}, {require_any: [{k: B}]}]}
E: {k.object_present: [{manifest: ` + cm("e") + `}, {prereq: [{k: A}]}]}`,
			want: `0 present A ConfigMap/a
  needs 4: prereq: E
1 present B ConfigMap/b
  needs 0: require_in: A
2 present C ConfigMap/c
  needs 1: watch_in: B
  needs 0: watch: A
3 present D ConfigMap/d
  needs 2: onchanges_in: C
  needs 0: onchanges: A
  needs 1: require_any: B
4 present E ConfigMap/e
`},
		"a whole SLS, and through states that are not ours": {
			ignore: true,
			in: `
A: {k.object_present: [{manifest: ` + cm("a") + `}], __sls__: one}
B: {k.object_present: [{manifest: ` + cm("b") + `}], __sls__: one}
C: {k.object_present: [{manifest: ` + cm("c") + `}, {require: [{sls: one}]}], __sls__: two}
W: {cmd.run: [{name: echo}, {require: [{sls: one}]}, {require_in: [{k: D}]}], __sls__: two}
D: {k.object_present: [{manifest: ` + cm("d") + `}], __sls__: two}
E: {k.object_present: [{manifest: ` + cm("e") + `}, {require: [{sls: o*}, {sls: two}]}], __sls__: two}`,
			want: `0 present A ConfigMap/a
1 present B ConfigMap/b
2 present C ConfigMap/c
  needs 0: require: sls one
  needs 1: require: sls one
3 present D ConfigMap/d
  needs 0: require_in: W, require: sls one
  needs 1: require_in: W, require: sls one
4 present E ConfigMap/e
  needs 0: require: sls o*
  needs 1: require: sls o*
  needs 2: require: sls two
  needs 3: require: sls two
`},
		"names, plain and with arguments of their own": {
			in: `
Old:
  k.object_absent:
  - names: [x, y, {z: [{kind: Secret}]}, x]
  - kind: ConfigMap
  - apiVersion: v1
After: {k.object_present: [{manifest: ` + cm("a") + `}, {require: [{k: Old}]}]}`,
			want: `0 absent Old ConfigMap/x
1 absent Old ConfigMap/y
2 absent Old Secret/z
3 present After ConfigMap/a
  needs 0: require: Old
  needs 1: require: Old
  needs 2: require: Old
`},
		"extend replaces arguments and adds requisites; exclude drops": {
			in: `
include: [base]
extend:
  A: {k: [{manifest: ` + cm("other") + `}, {require: [{k: B}]}]}
exclude: [{id: C}]
A: {k.object_present: [{manifest: ` + cm("a") + `}]}
B: {k.object_present: [{manifest: ` + cm("b") + `}]}
C: {k.object_present: [{manifest: ` + cm("c") + `}]}`,
			want: `0 present A ConfigMap/other
  needs 1: require: B
1 present B ConfigMap/b
warning line 2: include of "base" is not followed: slsutil.renderer prints one file; what it holds is not part of this bundle (state.show_sls prints all)
`},
		"a requisite on nothing": {
			in: `A: {k.object_present: [{manifest: ` + cm("a") + `}, {require: [{k: B}, {sls: gone}]}], __sls__: s}`,
			want: `0 present A ConfigMap/a
problem line 1 (state "A", sls s): require: no state of the bundle matches {k: B}
problem line 1 (state "A", sls s): require: no state of the bundle matches {sls: gone}
`},
		"non-Kubernetes states and object_updated are listed": {
			in: `
A: {k.object_present: [{manifest: ` + cm("a") + `}], __sls__: s}
B: {pkg.installed: [{name: vim}], __sls__: s}
C: {k.object_updated: [{name: n}, {patch: {}}], __sls__: s}`,
			want: `0 present A ConfigMap/a
problem line 3 (state "B", sls s): pkg.installed is not an object brine can apply: leave it out of the bundle, or skip such states with --ignore-foreign-states
problem line 4 (state "C", sls s): k.object_updated changes objects that the bundle does not contain: move it to an SLS that Salt runs itself, as brine_object.object_updated
`},
		"states that change other objects are never skipped": {
			ignore: true,
			in: `
A: {k.object_present: [{manifest: ` + cm("a") + `}], __sls__: s}
B: {pkg.installed: [{name: vim}], __sls__: s}
C: {k.object_updated: [{name: n}, {patch: {}}], __sls__: s}
D: {k.labels_exist: [{name: n}, {labels: {}}], __sls__: s}
E: {brine.present: [{manifest: {}}], __sls__: s}
F: {brine.waited: [{name: n}], __sls__: s}`,
			want: `0 present A ConfigMap/a
problem line 4 (state "C", sls s): k.object_updated changes objects that the bundle does not contain: move it to an SLS that Salt runs itself, as brine_object.object_updated
problem line 5 (state "D", sls s): k.labels_exist changes objects that the bundle does not contain: move it to an SLS that Salt runs itself, as brine_object.labels_exist
problem line 6 (state "E", sls s): brine.present changes objects that the bundle does not contain: move it to an SLS that Salt runs itself, as brine.present
`},
		"conditions that only Salt can evaluate": {
			in: `
A: {k.object_present: [{manifest: ` + cm("a") + `}, {unless: "true"}, {onlyif: []}, {check_cmd: [x]}], __sls__: s}
B: {k.object_present: [{manifest: ` + cm("b") + `}, {onfail_in: [{k: A}]}], __sls__: s}`,
			want: `0 present A ConfigMap/a
1 present B ConfigMap/b
problem line 2 (state "A", sls s): brine cannot evaluate unless: decide in the template whether the object is in the bundle
problem line 2 (state "A", sls s): brine cannot evaluate onlyif: decide in the template whether the object is in the bundle
problem line 2 (state "A", sls s): brine cannot evaluate onfail_in of "B": decide in the template whether the object is in the bundle
warning line 2 (state "A", sls s): check_cmd is not run: brine waits until the object is ready (brine.dev/ready-when defines when)
`},
		"manifests that are not there": {
			in: `
A: {k.object_present: [{name: salt://x.yaml}]}
B: {k.object_present: []}
C: {k.object_absent: [{name: c}]}
D: {k.object_present: [{manifest: text}]}`,
			want: `problem line 2 (state "A"): k.object_present reads its manifest from salt://x.yaml when it runs: render that file into the bundle instead
problem line 3 (state "B"): k.object_present needs its manifest inline
problem line 4 (state "C"): k.object_absent needs apiVersion and kind in addition to the name, or a manifest
problem line 5 (state "D"): manifest: must be a mapping with apiVersion, kind and metadata
`},
		"Salt's errors, without the text around them": {
			in: `{"local": ["Rendering SLS 'base:x' failed: could not find expected ':'; line 7\n\n---\npassword: hunter2\n---", "No matching sls found for 'y' in env 'base'"]}`,
			want: `problem line 1: Salt did not render this: Rendering SLS 'base:x' failed: could not find expected ':'; line 7 (the text around it is left out)
problem line 1: Salt did not render this: No matching sls found for 'y' in env 'base'
`},
		"Salt's errors, of its own words only": {
			in: `{"local": ["Rendering SLS 'base:x' failed: Jinja error: hunter2; line 7", "Specified SLS y in saltenv base is not available", "'x.y' is not available.", "pass word"]}`,
			want: `problem line 1: Salt did not render this: Rendering SLS 'base:x' failed: Jinja error: (left out: it may hold Secrets); line 7
problem line 1: Salt did not render this: Specified SLS y in saltenv base is not available
problem line 1: Salt did not render this: 'x.y' is not available.
problem line 1: Salt printed a text that is neither states nor an error brine knows: it is left out, as Secrets may be in it (a file that only Jinja renders needs apiVersion at the start of a line)
`},
		"an empty rendering": {
			in: `{"local": {}}`,
			want: `problem line 1: Salt rendered nothing ({}): an empty rendering is an error, not an empty bundle; the Salt command's own log says why
`},
		"nothing but an include": {
			in: `{"local": {"include": ["x"]}}`,
			want: `problem line 1: Salt rendered no states, only includes, which slsutil.renderer does not follow: use state.show_sls
warning line 1: include of "x" is not followed: slsutil.renderer prints one file; what it holds is not part of this bundle (state.show_sls prints all)
`},
		"nothing but foreign states, passed over": {
			ignore: true,
			in:     `A: {test.nop: []}`,
			want: `problem line 1: none of the 1 states is an object (object_present, manifest_present, object_absent, manifest_absent)
`},
		"several minions": {
			in: `{"m1": {A: {k.object_present: [{manifest: ` + cm("a") + `}]}}, "m2": {A: {k.object_present: [{manifest: ` + cm("a") + `}]}}}`,
			want: `problem line 1: this is the answer of 2 minions (m1, m2): a bundle is one rendering; ask one of them, or use salt-call
`},
		"a cluster named in states": {
			in: `A: {k.object_present: [{manifest: ` + cm("a") + `}, {kubeconfig: /etc/admin.conf}, {context: null}]}`,
			want: `0 present A ConfigMap/a
warning line 1: 1 states name the kubeconfig /etc/admin.conf: brine takes its own --kubeconfig and --context for all of them
`},
		"states that are malformed": {
			in: `
A: {k.object_present: {manifest: ` + cm("a") + `}}
B: {k: [object_present, object_absent, {manifest: ` + cm("a") + `}]}
C: [x]
D: {k.object_present: [{manifest: ` + cm("d") + `}, {require: [{k: []}]}]}
E: {k.object_present: [{manifest: ` + cm("e") + `}]}`,
			want: `0 present D ConfigMap/d
1 present E ConfigMap/e
problem line 2 (state "A"): the arguments of k.object_present must be a list of one-field mappings
problem line 4 (state "C"): a state's body must be a mapping of module.function to its arguments
problem line 3 (state "B"): state module k needs exactly one function, this has 2 (object_present, object_absent)
problem line 5 (state "D"): require: k needs the id or name of a state
`},
		"low data, resolved by Salt": {
			in: `
- {state: k, fun: object_present, name: a, __id__: A, __sls__: s, manifest: ` + cm("a") + `, order: 10001, use: [{k: Z}]}
- {state: k, fun: object_present, name: b, __id__: B, __sls__: s, manifest: ` + cm("b") + `, order: 10000, require: [{k: A}]}`,
			want: `0 present B ConfigMap/b
  needs 1: require: A
1 present A ConfigMap/a
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			doc := parse(t, c.in)
			got := show(decoded(doc, Detect(doc), Options{IgnoreNonKubernetesStates: c.ignore}))
			if got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// A shape that is forced on something else is a problem, not a panic.
func TestDecodeForcedShapeOnOtherInput(t *testing.T) {
	for _, in := range []string{"", "null", "x", "[]", "[1, 2]", "{a: 1}", "{a: {b: [{c: 1}]}}", "[{state: a}]", "[[a]]", "{a: {b: [[c]]}}", "{[a]: b}", "a: &x {b: [*x]}"} {
		for _, s := range []Shape{Manifests, High, Low, Errors, Empty, Rendered} {
			n := &yaml.Node{}
			if err := yaml.Unmarshal([]byte(in), n); err != nil {
				continue
			}
			docs, problems, _ := decoded(n, s, Options{})
			if len(docs) == 0 && len(problems) == 0 {
				t.Errorf("%q as %v: neither documents nor problems", in, s)
			}
		}
	}
}

func shown(p bundle.Problem) string {
	at := fmt.Sprintf("line %d", p.Source.Line)
	if p.Source.State != "" {
		at += fmt.Sprintf(" (state %q", p.Source.State)
		if p.Source.SLS != "" {
			at += ", sls " + p.Source.SLS
		}
		at += ")"
	}
	return at + ": " + p.Message
}

func (s Shape) String() string {
	return [...]string{"manifests", "high", "low", "errors", "empty", "rendered"}[s]
}
