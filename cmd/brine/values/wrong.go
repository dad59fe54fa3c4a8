package values

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"brine/bundle"
	"brine/bundle/validate"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/documents"
	"brine/inventory"
)

// Values of flags: what is wrong with them is found before anything is read or written.

// CheckFlags finds all that is wrong with the values of a command's flags, so that
// nothing of it is found only when the lock is taken.
func CheckFlags(flags *pflag.FlagSet) bundle.Problems {
	var problems bundle.Problems
	flags.VisitAll(func(f *pflag.Flag) {
		if wrong := wrongValue(f); wrong != "" {
			problems = append(problems, bundle.Problem{Message: given(f) + ": " + wrong})
		}
	})
	return problems
}

// ExplainInvalid is the error about a value that a flag, or its variable, cannot take.
func ExplainInvalid(name string, err *pflag.InvalidValueError) error {
	why := err.Unwrap()
	switch err.GetFlag().Value.Type() {
	case "duration":
		why = errDuration
	case "int":
		why = errors.New("invalid number")
	case "bool":
		why = errors.New("invalid value: use true or false")
	}
	return fmt.Errorf("%s=%s: %w", name, err.GetValue(), why)
}

// given is a flag as it was given: --timeout=-5s, BRINE_TIMEOUT=-5s.
func given(f *pflag.Flag) string {
	name := "--" + f.Name
	if from := f.Annotations[environment]; len(from) > 0 {
		name = from[0]
	}
	return name + "=" + strings.Join(valuesOf(f), ",")
}

// valuesOf are the values of a flag, one unless it takes several.
func valuesOf(f *pflag.Flag) []string {
	if several, ok := f.Value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	return []string{f.Value.String()}
}

// InSecret is the word for a plan in a Secret beside the inventory, in place of a file.
const InSecret = "secret"

// negative is what to give instead of a negative value, by flag or type: no flag takes one.
var negative = map[string]string{
	"duration":      "a duration cannot be negative: use 0, or one like 90s or 10m",
	"int":           "it must be 0 or more, for example 10",
	"parallel":      "it must be at least 1, or 0 to adapt to the speed of the server",
	"history-limit": "it must be 0, which keeps none, or more",
	"revision":      "it must be the number of a revision, for example 3 (brine history lists them)",
}

var errDuration = errors.New("invalid duration: write it like 90s or 10m")

// wrongValue is what is wrong with the value of a flag.
func wrongValue(f *pflag.Flag) string {
	value := f.Value.String()
	if value == "" {
		return ""
	}
	if t := f.Value.Type(); (t == "duration" || t == "int") && strings.HasPrefix(value, "-") {
		return cmp.Or(negative[f.Name], negative[t])
	}
	if check := checks[f.Name]; check != nil {
		return cmp.Or(bundle.Each(valuesOf(f), check)...)
	}
	return ""
}

// checks say what is wrong with a value, by flag.
var checks = map[string]func(value string) string{
	"request-timeout": func(value string) string { // kubectl's, which is a text
		if d, err := clientcmd.ParseTimeout(value); err != nil {
			return errDuration.Error() + "; 0 is no limit"
		} else if d < 0 {
			return negative["duration"]
		}
		return ""
	},
	"max-prune": wrongMaxPrune, "inventory": CheckInventory, "name": wrongName, "namespace": wrongNamespace, "report": wrongReport,
	"inventory-id": func(value string) string {
		return bundle.InWords(strings.Join(validation.IsValidLabelValue(value), "; "))
	},
	"kubernetes-version": func(value string) string {
		if known := validate.Versions(); !slices.Contains(known, validate.Version(value)) {
			return fmt.Sprintf("unknown version: use %s to %s", known[len(known)-1], known[0])
		}
		return ""
	},
	"plan-out": func(value string) string {
		if value == InSecret {
			return ""
		}
		return output.Unwritable(value)
	},
}

func wrongMaxPrune(value string) string {
	number, share := strings.CutSuffix(value, "%")
	most, err := strconv.Atoi(number)
	if err != nil || most < 0 || share && most > 100 {
		return "it must be a number of objects, or a share of the inventory from 0% to 100%"
	}
	return ""
}

// CheckInventory says what is wrong with the place of an inventory.
func CheckInventory(value string) string {
	namespace, name, both := strings.Cut(value, "/")
	if !both {
		return wrongName(value)
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return "it must be NAMESPACE/NAME"
	}
	return cmp.Or(wrongNamespace(namespace), wrongName(name))
}

// wrongName: an inventory is a ConfigMap.
func wrongName(name string) string {
	if len(name) > inventory.MaxName {
		return fmt.Sprintf("the name of an inventory has at most %d characters, this one has %d", inventory.MaxName, len(name))
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Sprintf("%q cannot be the name of an inventory: %s", name, bundle.InWords(wrong[0]))
	}
	return ""
}

func wrongNamespace(name string) string {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Sprintf("%q cannot be a namespace: %s", name, bundle.InWords(wrong[0]))
	}
	return ""
}

func wrongReport(path string) string {
	if !slices.Contains(documents.Reports, strings.TrimPrefix(filepath.Ext(path), ".")) {
		return path + " must end in ." + strings.Join(documents.Reports, ", .")
	}
	return output.Unwritable(path)
}
