package preview

import (
	"reflect"
	"testing"

	"brine/bundle/bundletest"
)

// What the server cannot answer is shown as the bundle's words laid over what is
// there.
func TestOverlay(t *testing.T) {
	for name, test := range map[string]struct{ live, sent, want string }{
		"maps are merged":                      {"a: 1\nb: {c: 2, d: 3}", "b: {c: 4}", "a: 1\nb: {c: 4, d: 3}"},
		"another type replaces":                {"a: {b: 1}", "a: text", "a: text"},
		"items with names by their names":      {"c: [{name: x, image: old, port: 1}, {name: y}]", "c: [{name: z}, {name: x, image: new}]", "c: [{name: z}, {name: x, image: new, port: 1}]"},
		"items without names by their place":   {"c: [{a: 1, b: 2}]", "c: [{a: 3}, {a: 4}]", "c: [{a: 3, b: 2}, {a: 4}]"},
		"a list is as long as the one sent":    {"c: [1, 2, 3]", "c: [4]", "c: [4]"},
		"a list where there was none":          {"c: text", "c: [{a: 1}]", "c: [{a: 1}]"},
		"an item with a name that is not live": {"c: [{name: x, a: 1}]", "c: [{name: y}]", "c: [{name: y}]"},
	} {
		parse := func(text string) any { return bundletest.Map(t, text) }
		if got := overlay(parse(test.live), parse(test.sent)); !reflect.DeepEqual(got, parse(test.want)) {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}

func TestNamesAsWords(t *testing.T) {
	for text, want := range map[string]bool{
		`serviceaccount "runner" not found`:   true,
		`namespaces "shop-runner" not found`:  false,
		`configmap runner.example not found`:  false,
		`runner`:                              true,
		`role shop/runner: is not there`:      true,
		`priority class runners is not there`: false,
	} {
		if names(text, "runner") != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
	if names("anything", "") {
		t.Error("an object without a name is named everywhere")
	}
}
