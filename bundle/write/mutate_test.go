package write

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle/bundletest"
)

func TestSubstitute(t *testing.T) {
	const source = `{metadata: {name: s}, spec: {text: hidden-value, number: 80, flag: true, map: {a: 1}, list: [x, w], id: 9007199254740993}}`
	for name, tc := range map[string]struct {
		from, to, token string
		want            string // the target's spec as JSON
		err             string
	}{
		"whole field":       {"$.spec.text", "$.spec.old", "", `{"old":"hidden-value","text":"a-$x-$x"}`, ""},
		"number stays one":  {"$.spec.number", "$.spec.old", "", `{"old":80,"text":"a-$x-$x"}`, ""},
		"a large number":    {"$.spec.id", "$.spec.old", "", "", "source: a whole number beyond 2^53 cannot be copied exactly"},
		"its text":          {"$.spec.id", "$.spec.text", "$x", `{"old":1,"text":"a-9007199254740993-9007199254740993"}`, ""},
		"mapping":           {"$.spec.map", "$.spec.old", "", `{"old":{"a":1},"text":"a-$x-$x"}`, ""},
		"every token":       {"$.spec.number", "$.spec.text", "$x", `{"old":1,"text":"a-80-80"}`, ""},
		"bool in text":      {"$.spec.flag", "$.spec.text", "$x", `{"old":1,"text":"a-true-true"}`, ""},
		"list in text":      {"$.spec.list", "$.spec.text", "$x", `{"old":1,"text":"a-[\"x\",\"w\"]-[\"x\",\"w\"]"}`, ""},
		"token not there":   {"$.spec.text", "$.spec.text", "$y", `{"old":1,"text":"a-$x-$x"}`, ""},
		"no source field":   {"$.spec.none", "$.spec.old", "", "", "source: the path leads to 0 fields"},
		"many sources":      {"$.spec.list[*]", "$.spec.old", "", "", "source: the path leads to 2 fields"},
		"no target field":   {"$.spec.text", "$.spec.none", "$x", "", "target: the path leads to 0 fields"},
		"token in a number": {"$.spec.text", "$.spec.old", "$x", "", "target: a token can be replaced in text only"},
		"not a path":        {"$.spec[", "$.spec.old", "", "", "source: "},
	} {
		t.Run(name, func(t *testing.T) {
			target := bundletest.Object(t, `{metadata: {name: t}, spec: {old: 1, text: a-$x-$x}}`)
			err := substitute(target, bundletest.Object(t, source), mutation.FieldSubstitution{SourcePath: tc.from, TargetPath: tc.to, Token: tc.token})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want %q", err, tc.err)
				}
				if strings.Contains(err.Error(), "hidden-value") {
					t.Error("the error shows a value")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(target.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
