package answers_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"brine/bundle/cluster/answers"
)

func TestLongValuesAreLeftOutOfAnswers(t *testing.T) {
	path := field.NewPath("spec", "template")
	long := map[string]any{"containers": []string{strings.Repeat("x", 500)}, "note": "a: b}: c"}
	for _, test := range []struct {
		name string
		errs field.ErrorList
		want string
	}{
		{"a struct", field.ErrorList{field.Invalid(path, long, "field is immutable")}, "spec.template: Invalid value: field is immutable"},
		{"a list", field.ErrorList{field.Invalid(path, []string{strings.Repeat("y", 500)}, "must be short")}, "spec.template: Invalid value: must be short"},
		{"a text", field.ErrorList{field.Invalid(path, strings.Repeat("z", 500), "must be short")}, "spec.template: Invalid value: must be short"},
		{"a short value", field.ErrorList{field.Invalid(path, "me", "must be you")}, `spec.template: Invalid value: "me": must be you`},
		{"no value", field.ErrorList{field.Required(path, "say it")}, "spec.template: Required value: say it"},
		{"two", field.ErrorList{field.Invalid(path, long, "field is immutable"), field.Invalid(path.Child("x"), 7, "must be 8")},
			"[spec.template: Invalid value: field is immutable, spec.template.x: Invalid value: 7: must be 8]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "migrate", test.errs)
			got := answers.Message(fmt.Errorf("%w; and what to do", err))
			if want := `Job.batch "migrate" is invalid: ` + test.want + "; and what to do"; got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		})
	}
}
