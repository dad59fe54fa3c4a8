package fields

import (
	"reflect"
	"strings"
	"testing"

	"brine/bundle/bundletest"
)

func TestSettle(t *testing.T) {
	const two = `{"f:data": {"f:a": {}, "f:b": {}}}`
	for name, test := range map[string]struct {
		rules, wanted, owned string
		conflicts            []string // "field manager"
		want                 string   // "fail", or what is sent, is left and is taken
	}{
		"no rule":                   {"", "data: {a: 1}", two, []string{".data.a other"}, "fail"},
		"take":                      {"o*=take", "data: {a: 1}", two, []string{".data.a other"}, "data: {a: 1}; taken .data.a"},
		"leave":                     {"other=leave", "data: {a: 1, b: 2}", two, []string{".data.a other"}, "data: {b: 2}; left .data.a"},
		"the first rule counts":     {"other=fail,*=take", "data: {a: 1}", two, []string{".data.a other"}, "fail"},
		"one of them fails":         {"x=leave,other=fail", "data: {a: 1, b: 2}", two, []string{".data.a x", ".data.b other"}, "fail"},
		"left and taken by owners":  {"other=take,x=leave", "data: {a: 1}", two, []string{".data.a other", ".data.a x"}, "fail"}, // x owns nothing: it cannot be found
		"a field of a list":         {"*=leave", `l: [{name: q, v: 1}, {name: p, v: 2}]`, `{"f:l": {'k:{"name":"p"}': {"f:v": {}}}}`, []string{`.l[name="p"].v other`}, "l: [{name: q, v: 1}, {name: p}]; left .l[name=\"p\"].v"},
		"a value of a set":          {"*=leave", `l: [a, b]`, `{"f:l": {'v:"b"': {}}}`, []string{`.l[="b"] other`}, `l: [a]; left .l[="b"]`},
		"a key with dots":           {"*=leave", `data: {a.b: 1, a: {b: 2}}`, `{"f:data": {"f:a.b": {}}}`, []string{".data.a.b other"}, "data: {a: {b: 2}}; left .data.a.b"},
		"an owner that is not live": {"*=leave", "data: {a: 1}", `{"f:data": {"f:b": {}}}`, []string{".data.a other"}, "fail"},
		"and taking its fields":     {"*=take", "data: {a: 1}", `{"f:data": {"f:b": {}}}`, []string{".data.a other"}, "data: {a: 1}; taken .data.a"},
	} {
		t.Run(name, func(t *testing.T) {
			var words []string
			if test.rules != "" {
				words = strings.Split(test.rules, ",")
			}
			rules, err := ParseConflictRules(words)
			if err != nil || rules.String() != test.rules {
				t.Fatal(rules, err)
			}
			wanted := bundletest.Map(t, "{"+test.wanted+"}")
			u := live(t, "{"+test.wanted+"}", "", test.owned)
			var conflicts []Conflict
			for _, c := range test.conflicts {
				field, manager, _ := strings.Cut(c, " ")
				conflicts = append(conflicts, ConflictsOf(field, manager, wanted, u)...)
			}
			sent, left, taken, ok := rules.Settle(wanted, conflicts)
			if !reflect.DeepEqual(wanted, bundletest.Map(t, "{"+test.wanted+"}")) {
				t.Error("what came in was changed")
			}
			if test.want == "fail" {
				if ok {
					t.Errorf("sent is %v", sent)
				}
				return
			}
			content, rest, _ := strings.Cut(test.want, "; ")
			got := ""
			for _, c := range left {
				got += "left " + c.Field
			}
			for _, c := range taken {
				got += "taken " + c.Field
			}
			if !ok || got != rest || !reflect.DeepEqual(sent, bundletest.Map(t, "{"+content+"}")) {
				t.Errorf("sent is %v, %s", sent, got)
			}
		})
	}
}
