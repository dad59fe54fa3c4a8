package answers_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/answers"
)

func answer(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	if len(causes) > 0 {
		s.Details = &metav1.StatusDetails{Causes: causes}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func invalid(message string, causes ...string) error {
	var all []metav1.StatusCause
	for _, c := range causes {
		all = append(all, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: c})
	}
	return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message, all...)
}

func refused(message string) error {
	return answer(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

// Answers of real API servers (1.29 to 1.37), and what each of them means. A
// meaning that is not named does not hold.
func TestMeaningOfAnswers(t *testing.T) {
	const (
		notServed, transient, proof, unreachable, misdirected = "not served", "transient", "refused", "unreachable", "misdirected"
		unknownField, immutable, noDryRun, webhookFailed      = "unknown field", "immutable", "no dry run", "webhook failed"
		terminating, quota, allocated, namespaceRefuses       = "terminating", "quota", "allocated", "namespace refuses"
	)
	meanings := map[string]func(error) bool{
		notServed: answers.NotServed, transient: answers.Transient, proof: answers.Refused, unreachable: answers.Unreachable,
		misdirected: answers.Misdirected, unknownField: answers.UnknownField, immutable: func(err error) bool { return answers.Immutable(err, false) }, noDryRun: answers.NoDryRun,
		webhookFailed: answers.WebhookFailed, terminating: answers.NamespaceTerminating, quota: answers.QuotaExceeded,
		allocated: answers.Allocated, namespaceRefuses: answers.NamespaceRefuses,
	}
	internal := func(message string) error {
		return answer(http.StatusInternalServerError, metav1.StatusReasonInternalError, message)
	}
	missing := func(message string) error {
		return answer(http.StatusNotFound, metav1.StatusReasonNotFound, message)
	}
	conflict := func(message string) error {
		return answer(http.StatusConflict, metav1.StatusReasonConflict, message)
	}
	for _, test := range []struct {
		err   error
		cause answers.Cause
		means []string
	}{
		{nil, answers.NoCause, nil},
		{missing("the server could not find the requested resource"), answers.KindCause, []string{notServed, proof}},
		{answer(http.StatusNotFound, metav1.StatusReasonNotFound, "404 page not found", metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse}),
			answers.KindCause, []string{notServed, proof}},
		{missing(`pods "p" not found`), answers.NoCause, []string{proof}},
		{missing(`namespaces "a" not found`), answers.NamespaceCause, []string{proof, namespaceRefuses}},
		{missing(`clusterroles.rbac.authorization.k8s.io "r" not found`), answers.RBACCause, []string{proof}},

		{refused(`pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "a"`), answers.RBACCause, []string{proof, namespaceRefuses}},
		{refused(`roles.rbac.authorization.k8s.io "r" is forbidden: user "u" (groups=[]) is attempting to grant RBAC permissions not currently held:`), answers.RBACCause, []string{proof}},
		{refused(`pods "p" is forbidden: status unknown for quota: q, resources: pods`), answers.LimitsCause, []string{proof}},
		{refused(`pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`), answers.LimitsCause, []string{proof, quota, namespaceRefuses}},
		{refused(`pods "p" is forbidden: failed quota: q: must specify limits.cpu for: c`), answers.LimitsCause, []string{proof, namespaceRefuses}},
		{refused(`pods "p" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Pod is 1Gi, but limit is 2Gi]`), answers.LimitsCause, []string{proof, namespaceRefuses}},
		{refused(`pods "p" is forbidden: cpu max limit to requested ratio per Container is 2, but provided ratio is 4.000000`), answers.LimitsCause, []string{proof, namespaceRefuses}},
		{refused(`pods "p" is forbidden: error looking up service account a/sa: serviceaccount "sa" not found`), answers.AccountCause, []string{proof, namespaceRefuses}},
		{refused(`pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged (container "c" must not set securityContext.privileged=true)`), answers.NamespaceCause, []string{proof, namespaceRefuses}},
		{refused(`pods "p" is forbidden: no PriorityClass with name high was found`), answers.ClassCause, []string{proof}},
		{refused(`configmaps "a" is forbidden: not yet ready to handle request`), answers.AdmissionCause, []string{proof}},
		{answer(http.StatusForbidden, metav1.StatusReasonForbidden, `configmaps "a" is forbidden: unable to create new content in namespace x because it is being terminated`,
			metav1.StatusCause{Type: "NamespaceTerminating", Field: "metadata.namespace"}), answers.NoCause, []string{proof, transient, terminating, namespaceRefuses}},
		{answer(http.StatusForbidden, metav1.StatusReason("Denied by hook"), `admission webhook "no.example.com" denied the request: no`), answers.AdmissionCause, []string{proof}},
		{invalid(`pods "p" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no`), answers.AdmissionCause, []string{proof}},

		{invalid(`Widget.example.com "w" is invalid: spec.color: Unsupported value: "red"`, `Unsupported value: "red"`), answers.SchemaCause, []string{proof}},
		{invalid(`Job.batch "j" is invalid: spec.template: Invalid value: {}: field is immutable`, `Invalid value: {}: field is immutable`), answers.NoCause, []string{proof, immutable}},
		{invalid(`Job.batch "j" is invalid: [spec.template: Invalid value: {}: field is immutable, spec.x: Required value]`, `Invalid value: {}: field is immutable`, "Required value"),
			answers.SchemaCause, []string{proof}}, // a new one would be as invalid
		{invalid(`Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.1"]: may not change once set`), answers.NoCause, []string{proof, immutable}},
		{invalid(`RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: {}: cannot change roleRef`), answers.NoCause, []string{proof, immutable}},
		{invalid(`StatefulSet.apps "s" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden`), answers.NoCause, []string{proof, immutable}},
		{invalid(`StorageClass.storage.k8s.io "s" is invalid: parameters: Forbidden: updates to parameters are forbidden.`), answers.NoCause, []string{proof, immutable}},
		{invalid(`StorageClass.storage.k8s.io "s" is invalid: provisioner: Forbidden: updates to provisioner are forbidden.`), answers.NoCause, []string{proof, immutable}},
		{invalid(`VolumeAttributesClass.storage.k8s.io "s" is invalid: driverName: Forbidden: updates to driverName are forbidden.`), answers.NoCause, []string{proof, immutable}},
		{invalid(`deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: objects may not be changed`, `objects may not be changed`), answers.AdmissionCause, []string{proof}},
		{invalid(`admission webhook "validate.kyverno.svc" denied the request: label team is immutable`), answers.AdmissionCause, []string{proof}},
		{invalid(`Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than spec.containers[*].image`), answers.NoCause, []string{proof, immutable}},
		{invalid(`PersistentVolumeClaim "c" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests`), answers.NoCause, []string{proof, immutable}},
		{invalid(`Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 30000: provided port is already allocated`), answers.SchemaCause, []string{proof, allocated}},

		{internal("failed to create typed patch object (a/w; example.com/v1, Kind=Widget): .spec.color: field not declared in schema"), answers.SchemaCause, []string{proof, unknownField}},
		{answer(http.StatusBadRequest, metav1.StatusReasonBadRequest, `Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.color"`), answers.SchemaCause, []string{proof, unknownField}},
		{internal(`unable to convert unstructured object to /v1, Kind=Secret: illegal base64 data at input byte 4`), answers.NoCause, []string{proof}},
		{internal("etcdserver: request is too large"), answers.NoCause, []string{proof}},
		{answer(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "limit is 3145728"), answers.NoCause, []string{proof}},
		{internal(`Internal error occurred: failed calling webhook "no.example.com": failed to call webhook: Post "https://127.0.0.1:1/?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused`),
			answers.NoCause, []string{transient, proof, webhookFailed}},
		{answer(http.StatusBadRequest, metav1.StatusReasonBadRequest, `admission webhook "a.example.com" does not support dry run`), answers.AdmissionCause, []string{proof, noDryRun}},
		{internal("etcdserver: leader changed"), answers.NoCause, []string{transient}},
		{answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later"), answers.NoCause, []string{proof, transient}},
		{answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized"), answers.NoCause, []string{proof}},

		{conflict(`Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`), answers.NoCause, []string{proof, transient}},
		{conflict(`Operation cannot be fulfilled on configmaps "a": the UID in the precondition (x) does not match the UID in record (y). The object might have been deleted and then recreated`), answers.NoCause, []string{proof}},
		{conflict(`Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: y`), answers.NoCause, []string{proof}},
		{conflict(`Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid x, and no existing object was found`), answers.NoCause, []string{proof}},
		{answers.ConflictError([]answers.Conflict{{Manager: `"kubectl" using apps/v1`, Field: ".spec.replicas"}}, `Apply failed with 1 conflict`), answers.NoCause, []string{proof}},

		{errors.New("unexpected error when reading response body. Please retry. Original error: context deadline"), answers.NoCause, []string{transient, unreachable}},
		{errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority"), answers.NoCause, []string{misdirected}},
	} {
		var got []string
		for name, holds := range meanings {
			if holds(test.err) {
				got = append(got, name)
			}
			if test.err != nil && holds(fmt.Errorf("about an object: %w", test.err)) != holds(test.err) && name != namespaceRefuses {
				t.Errorf("%v: %q depends on whether the error is wrapped", test.err, name)
			}
		}
		if want := slices.Sorted(slices.Values(test.means)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%v: it means %v, want %v", test.err, got, want)
		}
		if got := answers.CauseOf(test.err); got != test.cause {
			t.Errorf("%v: cause %q, want %q", test.err, got, test.cause)
		}
	}
}

func TestMissingRight(t *testing.T) {
	for message, want := range map[string]string{
		`pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "a"`:                                                                               "patch pods in namespace a",
		`deployments.apps "d" is forbidden: User "u" cannot create resource "deployments" in API group "apps" in the namespace "a": RBAC: role.rbac "r" not found`:                        "create deployments.apps in namespace a",
		`customresourcedefinitions.apiextensions.k8s.io is forbidden: User "u" cannot list resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`: "list customresourcedefinitions.apiextensions.k8s.io",
		`pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`:                                                                                      "",
	} {
		right, ok := answers.MissingRight(fmt.Errorf("apply: %w", refused(message)))
		if right != want || ok != (want != "") {
			t.Errorf("%s: %q, %t; want %q", message, right, ok, want)
		}
	}
	if right, ok := answers.MissingRight(errors.New(`User "u" cannot patch resource "pods" in API group ""`)); ok {
		t.Errorf("an error that is no answer asks for %q", right)
	}
}

func TestFieldConflicts(t *testing.T) {
	want := []answers.Conflict{{Manager: `"kubectl" using apps/v1`, Field: ".spec.replicas"}, {Manager: `"helm"`, Field: ".data.a"}}
	err := fmt.Errorf("apply: %w", answers.ConflictError(want, "Apply failed with 2 conflicts"))
	if got := answers.FieldConflicts(err); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := answers.FieldConflicts(invalid("no", "conflict with nobody")); got != nil {
		t.Errorf("an invalid value is a conflict: %v", got)
	}
}

func TestFieldPaths(t *testing.T) {
	for message, want := range map[string][]string{
		`strict decoding error: unknown field "spec.foo"`:                                 {"spec.foo"},
		`Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be`:     {"spec.replicas"},
		`Pod "p" is invalid: [spec.containers[0].image: Required value, spec.x: Required`: {"spec.containers[0].image", "spec.x"},
		"no field": nil,
	} {
		if got := answers.FieldPaths(message); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// A webhook may deny with any reason: no caller reads the object again, and tries again, for it.
func TestWhatAWebhookDeniesIsForbidden(t *testing.T) {
	for code, reason := range map[int32]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict} {
		err := answers.Judge(&apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "no.example.com" denied the request: not now`,
		}})
		if !apierrors.IsForbidden(err) || apierrors.IsConflict(err) || !strings.Contains(err.Error(), "not now") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
