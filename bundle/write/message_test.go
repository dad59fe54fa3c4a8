package write

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"brine/bundle"
	"brine/bundle/bundletest"
)

// An object is recreated only for a field that belongs to nobody: what another manager owns, it
// may give up, and what a webhook refuses today, it may let pass tomorrow.
func TestFieldThatStays(t *testing.T) {
	const path = "spec.strategy.rollingUpdate"
	o := &bundle.Object{Content: bundletest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a}, spec: {strategy: {type: Recreate}}}`)}
	live := func(managed string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a, managedFields: [` + managed + `]}, spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}`
	}
	managed := func(manager, operation, strategy string) string {
		return `{manager: ` + manager + `, operation: ` + operation + `, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:strategy": ` + strategy + `}}}`
	}
	ours := managed(bundle.FieldManager, "Apply", `{"f:type": {}}`)
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", field.ErrorList{field.Forbidden(field.NewPath("spec", "strategy", "rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")})
	denied := func(reason metav1.StatusReason) error {
		e := *invalid
		e.ErrStatus.Reason, e.ErrStatus.Message = reason, `admission webhook "webhook.example.com" denied the request: not now`
		return &e
	}
	forbidden := *invalid
	forbidden.ErrStatus.Reason = metav1.StatusReasonForbidden
	for name, c := range map[string]struct {
		live string
		err  error
		want string
	}{
		"a default":                      {live(ours), invalid, path},
		"nobody says who owns what":      {live(""), invalid, path},
		"another manager owns the type":  {live(managed("kubectl", "Update", `{"f:type": {}}`)), invalid, path},
		"another manager owns it":        {live(ours + "," + managed("operator", "Apply", `{"f:rollingUpdate": {}}`)), invalid, ""},
		"another manager owns a part":    {live(ours + "," + managed("operator", "Update", `{"f:rollingUpdate": {".": {}, "f:maxSurge": {}}}`)), invalid, ""},
		"another manager owns all of it": {live(managed("operator", "Apply", `{}`)), invalid, ""},
		"not invalid":                    {live(ours), &forbidden, ""},
		"a webhook forbids it":           {live(ours), denied(metav1.StatusReasonForbidden), ""},
		"a webhook calls it invalid":     {live(ours), denied(metav1.StatusReasonInvalid), ""},
	} {
		if got := stays(o, bundletest.Object(t, c.live), c.err); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	owned := live(ours + "," + managed("operator", "Apply", `{"f:rollingUpdate": {}}`))
	if field, others := left(o, bundletest.Object(t, owned), invalid); field != path || !others {
		t.Errorf("what another manager owns: %q, %t", field, others)
	}
}
