package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules about built-in kinds by their Go types: how they are asked, and what they share.

// values judges a built-in object by the rules of the API server's own validation for the kinds
// that most bundles hold: k8s.io/kubernetes/pkg/apis/*/validation has all of them. A field that is not written has its default on the server. No value of a Secret
// is in any error.
type values struct {
	minor  int // of Kubernetes
	errs   field.ErrorList
	claims []string // the volumes that a StatefulSet makes
}

func (v *values) of(obj runtime.Object) field.ErrorList {
	visit(reflect.ValueOf(obj), nil, v.judge)
	return v.errs
}

// visit shows a function every struct of an object but its status, with its path, the outer
// ones first.
func visit(v reflect.Value, at *field.Path, show func(v any, at *field.Path)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), at, show)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			visit(v.Index(i), at.Index(i), show)
		}
	case reflect.Struct:
		show(v.Addr().Interface(), at)
		for i := range v.NumField() {
			switch inside := v.Field(i); inside.Kind() {
			case reflect.Struct:
			case reflect.Pointer, reflect.Slice:
				if inside.IsNil() {
					continue
				}
			default: // as most are
				continue
			}
			name := jsonName(v.Type().Field(i))
			switch {
			case !v.Type().Field(i).IsExported() || name == "status" || name == "managedFields" || v.Type() == unjudged:
			case name == "":
				visit(v.Field(i), at, show)
			default:
				visit(v.Field(i), at.Child(name), show)
			}
		}
	}
}

// unjudged are the metrics of autoscalers, whose selectors are others' to read.
var unjudged = reflect.TypeFor[autoscalingv2.MetricIdentifier]()

func (v *values) refuse(errs ...*field.Error) { v.errs = append(v.errs, errs...) }

// refuseIf adds an error where a rule is broken.
func (v *values) refuseIf(broken bool, err *field.Error) {
	if broken {
		v.refuse(err)
	}
}

// must adds an error about a value that breaks a rule; what is wrong with it are its reasons.
func (v *values) must(at *field.Path, value any, reasons ...string) {
	for _, reason := range reasons {
		v.refuse(field.Invalid(at, value, reason))
	}
}

// text judges one that may be left out.
func (v *values) text(at *field.Path, value string, rule func(string) []string) {
	if value != "" {
		v.must(at, value, rule(value)...)
	}
}

func (v *values) needs(at *field.Path, value string, rule func(string) []string) {
	if value == "" {
		v.refuse(field.Required(at, ""))
	} else if rule != nil {
		v.must(at, value, rule(value)...)
	}
}

func (v *values) number(at *field.Path, n, least, most int64) {
	switch {
	case n >= least && n <= most:
	case most == noLimit:
		v.must(at, n, "must be "+strconv.FormatInt(least, 10)+" or more")
	default:
		v.must(at, n, fmt.Sprintf("must be from %d to %d", least, most))
	}
}

// countOrPercent returns the number, where there is one.
func (v *values) countOrPercent(at *field.Path, n *intstr.IntOrString, most int) int {
	if n == nil {
		return -1
	}
	if n.Type == intstr.Int {
		v.number(at, int64(n.IntVal), 0, noLimit)
		return int(n.IntVal)
	}
	if reasons := validation.IsValidPercent(n.StrVal); len(reasons) > 0 {
		v.must(at, n.StrVal, reasons...)
		return -1
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(n.StrVal, "%"))
	v.refuseIf(most > 0 && percent > most, field.Invalid(at, n.StrVal, fmt.Sprintf("must not be more than %d%%", most)))
	return percent
}

// unique finds a name that was there before.
func (v *values) unique(seen map[string]bool, at *field.Path, name string) {
	v.refuseIf(name != "" && seen[name], field.Duplicate(at, name))
	seen[name] = true
}

// child is the path of a key, as messages of brine write it.
func child(at *field.Path, key string) *field.Path {
	if strings.ContainsAny(key, "./[] ") {
		return at.Key(key)
	}
	return at.Child(key)
}

func (v *values) judge(value any, at *field.Path) {
	v.judgeFields(reflect.ValueOf(value).Elem(), at)
	switch o := value.(type) {
	case *metav1.ObjectMeta:
		v.refuse(v1validation.ValidateLabels(o.Labels, at.Child("labels"))...)
		v.refuse(apivalidation.ValidateAnnotations(o.Annotations, at.Child("annotations"))...)
	case *metav1.LabelSelector:
		v.refuse(v1validation.ValidateLabelSelector(o, v1validation.LabelSelectorValidationOptions{}, at)...)
	}
	v.workloads(value, at)
	v.network(value, at)
	v.others(value, at)
}

// The versions of Kubernetes since which names of Services are labels that may begin with a
// digit, addresses are read strictly, and names are reserved for files of the API server.
const (
	relaxedSince = 36
	strictSince  = 36
	staticSince  = 37
)

func noBacksteps(path string) []string {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}

func pathBelow(path string) []string {
	if strings.HasPrefix(path, "/") {
		return []string{"must be a relative path"}
	}
	if strings.HasPrefix(path, "..") {
		return []string{"must not start with '..'"}
	}
	return noBacksteps(path)
}
