package ready

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Terminating says what keeps an object that is being deleted: conditions of a
// Namespace or CRD, and finalizers.
func Terminating(live *unstructured.Unstructured) string {
	reason := "is being deleted"
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["status"] == "True" && (live.GetKind() == "Namespace" || condition["type"] == "Terminating") { // a CRD's
			reason += fmt.Sprintf("; %v: %v", condition["reason"], condition["message"])
		}
	}
	finalizers := slices.Clone(live.GetFinalizers())
	more, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "finalizers")
	if finalizers = append(finalizers, more...); len(finalizers) > 0 {
		reason += "; held by finalizers: " + strings.Join(finalizers, ", ")
	}
	return reason
}
