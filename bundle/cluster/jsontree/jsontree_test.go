package jsontree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
)

// What is decoded is what util/json decodes, and what is refused is refused in its words.
func compare(t *testing.T, text string) {
	t.Helper()
	var want map[string]any
	got, err := Unmarshal([]byte(text))
	wantErr := json.Unmarshal([]byte(text), &want)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%.200q\nis %#v, %v\nnot %#v, %v", text, got, err, want, wantErr)
	}
	sharing := &Shared{}
	for range 2 {
		if got, err := sharing.Unmarshal([]byte(text)); fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("shared: %.200q\nis %#v, %v\nnot %#v, %v", text, got, err, want, wantErr)
		}
	}
}

var cases = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":-0,"b":-12,"c":9223372036854775807,"d":9223372036854775808,"e":1.5,"f":1e3,"g":-2E-2,"h":1.0}`,
	`{"a":[],"b":[1,"x",null,true,false,[{}],{"c":[2]}],"c":{}}`, "{\n\t\"a\" : [ 1 , 2 ] ,\r\n \"b\" : { \"c\" : \"d\" } }",
	`{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"":""}`, `{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800x"}`, `{"ä":"é😀"}`, "{\"a\":\"\xff\"}", "{\"\xff\":1}",
	`{"a\u0062":"c"}`, `{"a":"` + strings.Repeat("long ", 100) + `"}`, `{"A":1,"a":2}`, `{"a":1e400}`, `{"a":123456789012345678901234567890}`,
	`{"metadata":{"managedFields":[{"manager":"a","fieldsV1":{"f:x":{"k:{\"a\":\"}\"}":{}}}},{"manager":"b"},[1,{}],"]"]}}`, `{"metadata":{"managedFields":[{"fieldsV1":1},{"fieldsV1":{"a":[]}}]}}`,
	`{"metadata":{"managedFields":[{"fieldsV1":{"a":1]}]}}`, `{"metadata":{"managedFields":[{"fieldsV1":{"a":"\`, `{"metadata":{"managedFields":[{]}}`, `{"managedFields":[{"manager":"a","fieldsV1":{"f:x":{"k:{\\"a\\":\\"}\\"}":{}}}},{"manager":"b"}]}`, `{"fieldsV1":1,"a":{"fieldsV1":"}"},"managedFields":{}}`, `{"managedFields":[1,"]",null,[{}]]}`,
	`{"items":[{"metadata":{"labels":{"a":"b"},"annotations":{}},"spec":{"a":[1,{}]},"rules":[{},{}]},{"metadata":{"labels":{"a":"b"},"annotations":{}},"spec":{"a":[1,{}]},"rules":[{},{}]},{"spec":{"a":[1,{}}}]}`, `{"items":[{"metadata":{"labels":{"a":1},"annotations":null},"spec":{"a":[1,{}]},"rules":[]},{"labels":{"a":1},"spec":{"a":[1,{}]},"rules":[]}]}`,
	`{"fieldsV1":{"a":1]}`, `{"fieldsV1":{"a":1`, `{"managedFields":[{"a":"\`, `{"fieldsV1":}`, `{"fieldsV1"`, `{"managedFields":[}`, `{"managedFields":[{},]}`,
	// refused, or not an object
	``, ` `, `null`, `[]`, `"a"`, `1`, `{`, `}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{"a":1 "b":2}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[}`, `{"a":01}`, `{"a":+1}`,
	`{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":-}`, `{"a":1-2}`, `{"a":tru}`, `{"a":nul`, `{"a":trueish}`, `{"a":"`, `{"a":"\`, `{"a":"\x"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x00é\"}",
	`{a:1}`, `{"a":1}}`, `{"a":1} x`, "{\"a\":1}\x00", "\x00{}", "{\"a\":\x00}", `{"a":'b'}`, `{1:2}`, `{"a":1}{"b":2}`,
	`{"a":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`, `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, `{"a":` + strings.Repeat("[", 20000),
}

func TestUnmarshal(t *testing.T) {
	for _, text := range cases {
		compare(t, text)
	}
}

// Texts that are cut off, or have a byte changed, too.
func TestUnmarshalOfBrokenText(t *testing.T) {
	whole, err := os.ReadFile("../../validate/metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	from := append([]string{string(whole[:min(len(whole), 4000)])}, cases...)
	for range 20000 {
		text := []byte(from[random.IntN(len(from))])
		if len(text) == 0 || len(text) > 8000 {
			continue
		}
		switch at := random.IntN(len(text)); random.IntN(3) {
		case 0:
			text = text[:at]
		case 1:
			text[at] = `{}[]",:\0123e.-+ tfnu`[random.IntN(21)]
		default:
			text[at] = byte(random.IntN(256))
		}
		compare(t, string(text))
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, text := range cases {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { compare(t, text) })
}

// What was decoded before is not changed by what is decoded later.
func TestUnmarshalSharesNothingThatChanges(t *testing.T) {
	text := []byte(`{"a":{"b":["c"]}}`)
	one, err := Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	copy(text, `{"x":{"y":["z"]}}`)
	if _, err := Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(one, map[string]any{"a": map[string]any{"b": []any{"c"}}}) {
		t.Errorf("it became %v", one)
	}
}

// Equal managedFields are one map, others stay apart.
func TestFieldsAreShared(t *testing.T) {
	entries := []string{
		`{"manager":"a","time":"1","fieldsV1":{"f:data":{}}}`, `{"manager":"a","time":"2","fieldsV1":{"f:data":{}}}`,
		`{"manager":"a","time":"1","fieldsV1":{"f:spec":{}}}`, `{"manager":"a","time":"1","subresource":"status","fieldsV1":{"f:data":{}}}`,
	}
	fields, maps, trees := &Shared{}, map[uintptr]bool{}, map[uintptr]bool{}
	for _, text := range append(entries, entries...) {
		object, err := fields.Unmarshal([]byte(`{"metadata":{"managedFields":[` + text + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		entry := object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
		maps[reflect.ValueOf(entry).Pointer()], trees[reflect.ValueOf(entry["fieldsV1"]).Pointer()] = true, true
	}
	for range 2 {
		object, err := fields.Unmarshal([]byte(`{"spec":{"managedFields":[{"a":"b"}],"fieldsV1":{"c":"d"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		spec := object["spec"].(map[string]any)
		other, tree := spec["managedFields"].([]any)[0].(map[string]any), spec["fieldsV1"].(map[string]any)
		if other["a"] != "b" || tree["c"] != "d" {
			t.Error("fields of others are shared")
		}
		other["a"], tree["c"] = "changed", "changed"
	}
	if len(maps) != len(entries) || len(trees) != 2 {
		t.Errorf("%d maps and %d trees for %d entries with two trees", len(maps), len(trees), len(entries))
	}
}

// What the items of lists have in common is one map, or one list; each has its own metadata.
func TestItemsShare(t *testing.T) {
	shared := &Shared{}
	const item = `{"metadata":{"name":"a","labels":{"l":"1"},"annotations":{"n":"1"}},"spec":{"metadata":{"labels":{"t":"1"}}},"rules":[{"verbs":["get"]}]}`
	var items []map[string]any
	for range 2 {
		list, err := shared.Unmarshal([]byte(`{"items":[` + item + `,` + strings.ReplaceAll(item, `"1"`, `"2"`) + `,` + item + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list["items"].([]any) {
			items = append(items, item.(map[string]any))
		}
	}
	different := func(of func(item map[string]any) any) int {
		all := map[uintptr]bool{}
		for _, item := range items {
			all[reflect.ValueOf(of(item)).Pointer()] = true
		}
		return len(all)
	}
	for want, of := range map[string]func(map[string]any) any{
		"6 items":       func(item map[string]any) any { return item },
		"6 metadata":    func(item map[string]any) any { return item["metadata"] },
		"2 labels":      func(item map[string]any) any { return item["metadata"].(map[string]any)["labels"] },
		"2 annotations": func(item map[string]any) any { return item["metadata"].(map[string]any)["annotations"] },
		"2 spec":        func(item map[string]any) any { return item["spec"] },
		"1 rules":       func(item map[string]any) any { return item["rules"] },
	} {
		if n := different(of); !strings.HasPrefix(want, fmt.Sprint(n)+" ") {
			t.Errorf("%d, not %s", n, want)
		}
	}
}

// What is different in each item is not looked for any more, nor kept.
func TestWhatDiffersIsNotKept(t *testing.T) {
	var list strings.Builder
	for i := range 2 * enough {
		fmt.Fprintf(&list, `,{"metadata":{"labels":{"a":"b"}},"data":{"number":"%d"},"spec":{"large":"%s"}}`, i, strings.Repeat("x", longest))
	}
	shared := &Shared{}
	if _, err := shared.Unmarshal([]byte(`{"items":[` + list.String()[1:] + `]}`)); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]tries{"labels": {2 * enough, 2*enough - 1}, "data": {enough, 0}, "spec": {enough, 0}} {
		if *shared.tries[key] != want {
			t.Errorf("%s: %+v, not %+v", key, *shared.tries[key], want)
		}
	}
	if len(shared.values) != enough+1 {
		t.Errorf("%d values are kept", len(shared.values))
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	var list strings.Builder
	for i := range 500 {
		fmt.Fprintf(&list, `,{"metadata":{"name":"object-%d","namespace":"bench-%d","uid":"5a9f3c1e-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-11-25T07:17:37Z","labels":{"app":"bench","part":"%d"},"managedFields":[{"manager":"brine","operation":"Apply","apiVersion":"v1","time":"2026-11-25T07:17:37Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:mode":{},"f:settings.ini":{}},"f:metadata":{"f:labels":{"f:app":{},"f:part":{}}}}}]},"data":{"mode":"fast","settings.ini":"number = %d\nlevel = info\n"}}`, i, i%10, i, i, i, i)
	}
	text := []byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + list.String()[1:] + `]}`)
	for name, unmarshal := range map[string]func([]byte) (map[string]any, error){"jsontree": Unmarshal, "fields": func(text []byte) (map[string]any, error) { return (&Shared{}).Unmarshal(text) }, "utiljson": func(text []byte) (object map[string]any, err error) { err = json.Unmarshal(text, &object); return }} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := unmarshal(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
