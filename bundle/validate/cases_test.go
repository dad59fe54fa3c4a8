package validate

// crCase is one custom resource against testdata/crds.yaml. That the real
// server answers the same is TestCheckIsTheServer.
type crCase struct {
	name string
	yaml string
	old  string   // the live object, applied by another field manager
	want []string // "path: message" of each problem; nil: accepted
	// stored is the spec (or another part) as JSON; "" where it does not matter.
	stored string
}

const widget = "apiVersion: validate.brine.dev/v1\nkind: Widget\nmetadata: {name: w}\n"

var crCases = []crCase{
	{
		name:   "defaults, nested ones too",
		yaml:   widget + "spec: {size: small, fallback: null, note: null}",
		stored: `{"fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"note":null,"replicas":1,"size":"small"}`,
	},
	{
		name:   "defaults in list items",
		yaml:   widget + "spec: {size: small, steps: [{run: a}, {run: b, retries: 0}], nested: {deep: {level: 2}}}",
		stored: `{"fallback":"none","maxReplicas":10,"nested":{"deep":{"level":2,"lit":true}},"replicas":1,"size":"small","steps":[{"retries":3,"run":"a"},{"retries":0,"run":"b"}]}`,
	},
	{name: "unknown field", yaml: widget + "spec: {size: small, replica: 1}", want: []string{`spec.replica: unknown field "replica"; did you mean "replicas"?`}},
	{name: "unknown field deep in a list", yaml: widget + "spec: {size: small, steps: [{run: a, retrys: 1}]}", want: []string{`spec.steps[0].retrys: unknown field "retrys"; did you mean "retries"?`}},
	{name: "unknown field at the root", yaml: widget + "spec: {size: small}\nsepc: {}", want: []string{`sepc: unknown field "sepc"; did you mean "spec"?`}},
	{name: "unknown field in metadata", yaml: "apiVersion: validate.brine.dev/v1\nkind: Widget\nmetadata: {name: w, lables: {a: b}}\nspec: {size: small}", want: []string{`metadata.lables: unknown field "lables"; did you mean "labels"?`}},
	{name: "unknown field in an embedded resource", yaml: widget + "spec: {size: small, closed: {apiVersion: v1, kind: Secret, metadata: {name: x, bogus: 1}, dta: {}}}",
		want: []string{`spec.closed.dta: unknown field "dta"; did you mean "data"?`, `spec.closed.metadata.bogus: unknown field "bogus"`}},
	{name: "required", yaml: widget + "spec: {replicas: 1}", want: []string{"spec.size: is required and missing", rulesNote}},
	{name: "required at the root", yaml: widget, want: []string{"spec: is required and missing", rulesNote}},
	{name: "enum", yaml: widget + "spec: {size: medium}", want: []string{`spec.size: Unsupported value: "medium": supported values: "small", "large"`, rulesNote}},
	{name: "pattern", yaml: widget + "spec: {size: small, colour: RED}", want: []string{`spec.colour: Invalid value: "RED": should match '^[a-z]+$'`}},
	{name: "length", yaml: widget + "spec: {size: small, colour: lightblueish}", want: []string{"spec.colour: Too long: may not be more than 10 bytes", rulesNote}},
	{name: "maximum", yaml: widget + "spec: {size: small, replicas: 101, maxReplicas: 200}", want: []string{`spec.replicas: Invalid value: 101: should be less than or equal to 100`}},
	{name: "minimum", yaml: widget + "spec: {size: small, replicas: -1}", want: []string{`spec.replicas: Invalid value: -1: should be greater than or equal to 0`, `spec.replicas: Invalid value: -1: should be a non-negative integer`}},
	{name: "exclusive minimum", yaml: widget + "spec: {size: small, ratio: 0}", want: []string{`spec.ratio: Invalid value: 0: should be greater than 0`}},
	{name: "a whole number where fractions go", yaml: widget + "spec: {size: small, ratio: 2}", stored: `{"fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"ratio":2,"replicas":1,"size":"small"}`},
	{name: "format", yaml: widget + "spec: {size: small, when: yesterday}", want: []string{`spec.when: must be of type date-time, which "yesterday" is not`, rulesNote}},
	{name: "null", yaml: widget + "spec: {size: small, nickname: null}", want: []string{`spec.nickname: must be of type string, not null`, rulesNote}},
	{name: "type", yaml: widget + "spec: {size: 1}", want: []string{"spec.size: must be of type string, not integer", `spec.size: Unsupported value: 1: supported values: "small", "large"`, rulesNote}},
	{name: "type of a list", yaml: widget + "spec: {size: small, tags: a}", want: []string{"spec.tags: must be of type array, not string", rulesNote}},
	{name: "int or string", yaml: widget + "spec: {size: small, port: http}"},
	{name: "neither int nor string", yaml: widget + "spec: {size: small, port: [1]}", want: []string{"spec.port: must be of type integer,string, not array", rulesNote}},
	{name: "set with the same twice", yaml: widget + "spec: {size: small, tags: [a, b, a]}", want: []string{`spec.tags[2]: Duplicate value: "a"`}},
	{name: "map with the same keys twice, by a default", yaml: widget + "spec: {size: small, ports: [{port: 1}, {port: 1, protocol: TCP}]}", want: []string{`spec.ports[1]: Duplicate value: {"port":1,"protocol":"TCP"}`}},
	{name: "map without its key", yaml: widget + "spec: {size: small, ports: [{name: x}]}", want: []string{"spec.ports[0].port: is required and missing", rulesNote}},
	{name: "too few items", yaml: widget + "spec: {size: small, steps: []}", want: []string{"spec.steps: Invalid value: 0: should have at least 1 items"}},
	{name: "too many properties", yaml: widget + "spec: {size: small, limits: {a: a, b: b, c: c, d: d}}", want: []string{"spec.limits: Too many: 4: must have at most 3 items", rulesNote}},
	{name: "type of a map's value", yaml: widget + "spec: {size: small, limits: {a: 1}}", want: []string{"spec.limits.a: must be of type string, not integer", rulesNote}},
	{name: "unknown fields are kept where they may be", yaml: widget + "spec: {size: small, free: {known: 1, other: {a: [1]}}, template: {apiVersion: v1, kind: Secret, metadata: {name: x}, x: 1}}",
		stored: `{"fallback":"none","free":{"known":1,"other":{"a":[1]}},"maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"replicas":1,"size":"small","template":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"x":1}}`},
	{name: "embedded resource without a kind", yaml: widget + "spec: {size: small, template: {apiVersion: v1}}", want: []string{"spec.template.kind: is required and missing", rulesNote}},
	{name: "embedded resource with a bad label", yaml: widget + "spec: {size: small, template: {apiVersion: v1, kind: Pod, metadata: {labels: {a: b c}}}}", want: []string{`spec.template.metadata.labels: Invalid value: "b c"`}},
	{name: "one of, both", yaml: widget + "spec: {size: small, oneof: {a: x, b: y}}", want: []string{`spec.oneof: must validate one and only one schema (oneOf). Found 2 valid alternatives`}},
	{name: "rule", yaml: widget + "spec: {size: small, replicas: 11}", want: []string{"spec.replicas: replicas must not be above maxReplicas"}},
	{name: "rule on a change", old: widget + "spec: {size: small, colour: red, immutable: a}", yaml: widget + "spec: {size: small, colour: blue, immutable: b}",
		want: []string{"spec: colour is immutable", `spec.immutable: Invalid value: "b": may not change`}},
	{name: "what another manager applied stays", old: widget + "spec: {size: small, colour: red, tags: [a], ports: [{port: 1, name: x}]}", yaml: widget + "spec: {size: large, tags: [b], ports: [{port: 2}]}",
		stored: `{"colour":"red","fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"ports":[{"name":"x","port":1,"protocol":"TCP"},{"port":2,"protocol":"TCP"}],"replicas":1,"size":"large","tags":["a","b"]}`},
	{name: "update without a required field", old: widget + "spec: {size: small}", yaml: widget + "spec: {replicas: 3}",
		stored: `{"fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"replicas":3,"size":"small"}`},
	{name: "live in another version", old: "apiVersion: validate.brine.dev/v1beta1\nkind: Widget\nmetadata: {name: w}\nspec: {size: small, colour: red}", yaml: widget + "spec: {size: large}",
		stored: `{"colour":"red","fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"replicas":1,"size":"large"}`},
	{name: "status is not the object's to write", yaml: widget + "spec: {size: small}\nstatus: {replicas: 3}", stored: `{"fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"replicas":1,"size":"small"}`},
	{name: "another served version", yaml: "apiVersion: validate.brine.dev/v1beta1\nkind: Widget\nmetadata: {name: w}\nspec: {size: any}", stored: `{"fallback":"none","maxReplicas":10,"nested":{"deep":{"level":1,"lit":true}},"replicas":1,"size":"any"}`},
	{name: "unknown in that version", yaml: "apiVersion: validate.brine.dev/v1beta1\nkind: Widget\nmetadata: {name: w}\nsizes: 1", want: []string{`sizes: unknown field "sizes"`}},
	{name: "version that is not served", yaml: "apiVersion: validate.brine.dev/v1alpha1\nkind: Widget\nmetadata: {name: w}", want: []string{"apiVersion: the CRD widgets.validate.brine.dev (testdata/crds.yaml:1) does not serve v1alpha1, only v1, v1beta1; write apiVersion: validate.brine.dev/v1"}},
	{name: "bad name", yaml: "apiVersion: validate.brine.dev/v1\nkind: Widget\nmetadata: {name: W_1}\nspec: {size: small}", want: []string{`metadata.name: Invalid value: "W_1"`}},
	{name: "bad label", yaml: "apiVersion: validate.brine.dev/v1\nkind: Widget\nmetadata: {name: w, labels: {a: b c}}\nspec: {size: small}", want: []string{`metadata.labels: Invalid value: "b c"`}},
	{name: "rule over metadata, cluster-scoped", yaml: "apiVersion: validate.brine.dev/v1\nkind: Planet\nmetadata: {name: pluto}", want: []string{`pluto is no planet`}},
	{name: "length of a name", yaml: "apiVersion: validate.brine.dev/v1\nkind: Planet\nmetadata: {name: kepler-186-f}", want: []string{"metadata.name: Too long: may not be more than 10 bytes", rulesNote}},
	{name: "cluster-scoped", yaml: "apiVersion: validate.brine.dev/v1\nkind: Planet\nmetadata: {name: mars}"},
	{name: "anything goes", yaml: "apiVersion: validate.brine.dev/v1\nkind: Anything\nmetadata: {name: a}\nspec: {a: [1, {b: null}], c: 1.5}", stored: `{"a":[1,{"b":null}],"c":1.5}`},
}

const rulesNote = "the CRD's rules (x-kubernetes-validations) were not checked because of the other problems: correct those first"
