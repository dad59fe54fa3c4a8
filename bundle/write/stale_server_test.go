package write

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
)

// Each refusal is one that the API server gives when it has not heard of the
// change; the texts are its own.
func TestRefusalsOfAServerThatIsBehind(t *testing.T) {
	object := func(group, kind, namespace, name string, spec map[string]any) *bundle.Object {
		gk, u := schema.GroupKind{Group: group, Kind: kind}, &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetGroupVersionKind(gk.WithVersion("v1"))
		return &bundle.Object{ID: bundle.ID{GroupKind: gk, Namespace: namespace, Name: name}, Content: u}
	}
	crd := object("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com", map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
		"versions": []any{map[string]any{"name": "v1", "served": true}},
	})
	widget := bundle.ID{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, Namespace: "a", Name: "w"}
	pod := bundle.ID{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "a", Name: "p"}
	answer := func(code int, reason metav1.StatusReason, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text}}
	}
	undeclared := answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, "failed to create typed patch object (a/w; example.com/v1, Kind=Widget): .spec.color: field not declared in schema")
	refused := func(text string) error { return answer(http.StatusForbidden, metav1.StatusReasonForbidden, text) }
	role := object("rbac.authorization.k8s.io", "Role", "a", "r", nil)
	quota := object("", "ResourceQuota", "a", "q", nil)
	policy := object("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "", "p", nil)
	webhooks := object("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", "c", nil)
	webhooks.Content.Object["webhooks"] = []any{map[string]any{"name": "w.example.com"}}
	for name, test := range map[string]struct {
		changed *bundle.Object
		action  plan.Action
		id      bundle.ID
		err     error
		want    bool
	}{
		"a field of a changed CRD":   {crd, plan.Configured, widget, undeclared, true},
		"a field of a new CRD":       {crd, plan.Created, widget, undeclared, false},
		"a field of an old CRD":      {crd, plan.Unchanged, widget, undeclared, false},
		"a field of another kind":    {crd, plan.Configured, pod, undeclared, false},
		"a value of a changed CRD":   {crd, plan.Configured, widget, answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Widget.example.com "w" is invalid: spec.color: Unsupported value: "red"`), true},
		"an immutable field":         {crd, plan.Configured, widget, answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Widget.example.com "w" is invalid: spec.color: Invalid value: "red": field is immutable`), false},
		"a kind of a new CRD":        {crd, plan.Created, widget, answer(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource"), true},
		"a new role":                 {role, plan.Created, widget, refused(`roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=[]) is attempting to grant RBAC permissions not currently held:`), true},
		"the role of a binding":      {role, plan.Created, pod, answer(http.StatusNotFound, metav1.StatusReasonNotFound, `roles.rbac.authorization.k8s.io "r" not found`), true},
		"a right":                    {role, plan.Configured, pod, refused(`pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "a"`), true},
		"a right, nothing changed":   {quota, plan.Configured, pod, refused(`pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "a"`), false},
		"a new quota":                {quota, plan.Created, pod, refused(`pods "p" is forbidden: status unknown for quota: q, resources: pods`), true},
		"a raised quota":             {quota, plan.Configured, pod, refused(`pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`), true},
		"a quota elsewhere":          {object("", "ResourceQuota", "b", "q", nil), plan.Created, pod, refused(`pods "p" is forbidden: status unknown for quota: q, resources: pods`), false},
		"an account":                 {object("", "ServiceAccount", "a", "sa", nil), plan.Created, pod, refused(`pods "p" is forbidden: error looking up service account a/sa: serviceaccount "sa" not found`), true},
		"a namespace":                {object("", "Namespace", "", "a", nil), plan.Created, pod, answer(http.StatusNotFound, metav1.StatusReasonNotFound, `namespaces "a" not found`), true},
		"a namespace's pod security": {object("", "Namespace", "", "a", nil), plan.Configured, pod, refused(`pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged`), true},
		"a changed policy":           {policy, plan.Configured, pod, answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `pods "p" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no`), true},
		"another policy":             {policy, plan.Configured, pod, answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `pods "p" is forbidden: ValidatingAdmissionPolicy 'q' with binding 'q' denied request: no`), false},
		"its binding":                {object("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "", "b", map[string]any{"policyName": "p"}), plan.Configured, pod, answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `pods "p" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), true},
		"a webhook":                  {webhooks, plan.Created, pod, refused(`admission webhook "w.example.com" denied the request: no`), true},
		"another webhook":            {webhooks, plan.Created, pod, refused(`admission webhook "v.example.com" denied the request: no`), false},
		"a server that starts":       {webhooks, plan.Created, pod, refused(`pods "p" is forbidden: not yet ready to handle request`), true},
		"a policy, nothing changed":  {quota, plan.Configured, pod, answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `pods "p" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no`), false},
		"a priority class":           {object("scheduling.k8s.io", "PriorityClass", "", "high", nil), plan.Created, pod, refused(`pods "p" is forbidden: no PriorityClass with name high was found`), true},
		"a lost connection":          {crd, plan.Configured, widget, errors.New("connection reset by peer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := changes{}
			r.note(test.changed, test.action)
			if got := r.explain(test.id, test.err); got != test.want {
				t.Errorf("%t, want %t: changed %v, refused about %v", got, test.want, topicsOf(test.changed, test.action), topicsOfRefusal(test.id, test.err))
			}
			for topic := range r.when {
				r.when[topic] = r.when[topic].Add(-settling)
			}
			if r.explain(test.id, test.err) {
				t.Error("it counts for ever")
			}
		})
	}
	if got := topicsOf(crd, plan.Configured); !slices.Equal(got, []string{"kind Widget.example.com", "schema Widget.example.com"}) {
		t.Errorf("a CRD changes %v", got)
	}
}
