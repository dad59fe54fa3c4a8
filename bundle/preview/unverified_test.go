package preview

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/plan"
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

// What the dry run was refused, an apply may be given: then what that holds up goes on.
func TestAtMost(t *testing.T) {
	live, object := &unstructured.Unstructured{}, &bundle.Object{}
	p := &plan.Plan{Steps: []*plan.Step{
		{Action: plan.Configured, Object: object},
		{Action: plan.Configured, Object: object, Live: live},
		{Action: plan.Configured, Object: object, Live: live, Recreate: plan.WithDependents},
		{Action: plan.Pruned, Live: live},
		{Action: plan.Skipped, Live: live},
		{Action: plan.Pruned, Live: live},
		{Action: plan.Pruned, Live: live, First: true}, // and put back, where something fails
	}}
	with := func(actions ...plan.Action) []Result {
		return bundle.Each(actions, func(a plan.Action) Result { return Result{Action: a} })
	}
	unsure := with(plan.Created, plan.Configured, plan.Configured, plan.Pruned, plan.Skipped, plan.Pruned, plan.Pruned)
	for i := range unsure[:3] {
		unsure[i].Verified = Unverified + "a webhook cannot be asked now"
	}
	for name, test := range map[string]struct {
		blocked     string
		found, most []Result
		more        bool
	}{
		"all is known":         {"", with(plan.Created, plan.Unchanged, plan.Configured, plan.Pruned, plan.Skipped, plan.Pruned, plan.Pruned), with(plan.Created, plan.Unchanged, plan.Configured, plan.Pruned, plan.Skipped, plan.Pruned, plan.Pruned), false},
		"some failed":          {"", with(plan.Failed, plan.Skipped, plan.Failed, plan.Skipped, plan.Skipped, plan.Failed, plan.Skipped), with(plan.Created, plan.Configured, plan.Recreated, plan.Pruned, plan.Skipped, plan.Pruned, plan.Pruned), true},
		"one may be recreated": {"", unsure, with(plan.Created, plan.Configured, plan.Recreated, plan.Pruned, plan.Skipped, plan.Pruned, plan.Pruned), true},
		"one fails in the apply, too": {"it belongs to another inventory", with(plan.Failed, plan.Configured, plan.Configured, plan.Skipped, plan.Skipped, plan.Skipped, plan.Skipped),
			with(plan.Failed, plan.Configured, plan.Configured, plan.Skipped, plan.Skipped, plan.Skipped, plan.Pruned), true},
	} {
		p.Steps[0].Blocked = test.blocked
		most, more := AtMost(p, test.found)
		if got := bundle.Each(most, func(r Result) plan.Action { return r.Action }); more != test.more || !slices.Equal(got, bundle.Each(test.most, func(r Result) plan.Action { return r.Action })) {
			t.Errorf("%s: %v %t", name, got, more)
		}
	}
}
