package validate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/validate"
)

// A kind that came later than a version of Kubernetes was not removed from it: after a downgrade its objects
// are still stored.
func TestRemovedKindsAndLaterOnes(t *testing.T) {
	for kind, want := range map[string]struct{ removed, later bool }{
		"PodSecurityPolicy.policy": {removed: true}, "MutatingAdmissionPolicy.admissionregistration.k8s.io": {later: true}, "ConfigMap": {}, "CronJob.batch": {},
	} {
		gk := schema.ParseGroupKind(kind)
		removed, later, err := validate.Removed(gk, "v1.30.2")
		if err != nil || removed != want.removed || later != want.later {
			t.Errorf("%s: removed %v, later %v (%v)", kind, removed, later, err)
		}
	}
}
