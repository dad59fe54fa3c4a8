package bundle

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type keeper struct {
	tool, key, value string
	is               func(value, want string) bool
	label            bool // also as a label
}

// keepers are the annotations that keep an object from deletion: those of cli-utils, which are
// brine's too, and those of the tools that bundles were written for. What Helm or Argo CD would
// keep holds data that somebody meant to keep, whoever deletes. Each value is compared as its
// tool does.
var keepers = []keeper{
	{"", OnRemove, "keep", same, false}, // cli-utils' common.NoDeletion
	{"", LifecycleDeletion, "detach", same, false},
	{"Helm", "helm.sh/resource-policy", "keep", trimmed, false},
	{"Argo CD", ArgoOptions, "Prune=false", option, false},
	{"Argo CD", ArgoOptions, "Delete=false", option, false},
	{"Argo CD", ArgoOptions, "Prune=confirm", option, false}, // a run cannot ask
	{"Argo CD", ArgoOptions, "Delete=confirm", option, false},
	{"Flux", "kustomize.toolkit.fluxcd.io/prune", "disabled", strings.EqualFold, true},
	{"kapp", "kapp.k14s.io/delete-strategy", "orphan", same, false},
}

// ArgoOptions are options of Argo CD for one object, separated by commas.
const ArgoOptions = "argocd.argoproj.io/sync-options"

func same(value, want string) bool { return value == want }

func trimmed(value, want string) bool { return strings.EqualFold(strings.TrimSpace(value), want) }

func option(values, want string) bool {
	for value := range strings.SplitSeq(values, ",") {
		if strings.TrimSpace(value) == want {
			return true
		}
	}
	return false
}

// KeptBy is the annotation that forbids to delete an object, and the tool that it is of, like
// "helm.sh/resource-policy: keep (Helm)"; "" if none does.
func KeptBy(o metav1.Object) string {
	annotations, labels := o.GetAnnotations(), o.GetLabels()
	for _, k := range keepers {
		text := k.key + ": " + k.value
		switch value, found := annotations[k.key]; {
		case found && k.is(value, k.value) && k.tool == "":
			return text
		case found && k.is(value, k.value):
			return text + " (" + k.tool + ")"
		case k.label && k.is(labels[k.key], k.value):
			return text + " (a label, " + k.tool + ")"
		}
	}
	return ""
}

// KeepKeys are the annotations that may keep an object from deletion.
func KeepKeys() []string {
	return Each(keepers, func(k keeper) string { return k.key })
}

// NearlyKeeps is the value that was probably meant where an annotation's value keeps nothing, by
// a slip; "" if it is none.
func NearlyKeeps(key, value string) string {
	var values []string
	for _, k := range keepers {
		if k.key == key && k.is(value, k.value) {
			return ""
		} else if k.key == key {
			values = append(values, k.value)
		}
	}
	for part := range strings.SplitSeq(value, ",") {
		if best := Nearest(strings.TrimSpace(part), values); best != "" {
			return best
		}
	}
	return ""
}
