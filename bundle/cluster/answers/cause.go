package answers

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle"
)

// Cause is what a refusal depends on besides the refused object itself. An API
// server that has not yet seen a change of it may refuse wrongly. Its text names that, with
// words in capitals for what the refused object says.
type Cause string

// The causes.
const (
	NoCause        Cause = ""                       // the object itself, or unknown
	KindCause      Cause = "kind KIND, group GROUP" // the CRD or APIService that serves the kind
	SchemaCause    Cause = "schema KIND"
	AdmissionCause Cause = "admission by DENIER"   // a policy or webhook; of none: a server that starts
	RBACCause      Cause = "rbac"                  // roles and bindings
	NamespaceCause Cause = "namespace NAMESPACE"   // it is there, with its labels
	LimitsCause    Cause = "limits in NAMESPACE"   // a ResourceQuota or LimitRange
	AccountCause   Cause = "accounts in NAMESPACE" // a ServiceAccount
	ClassCause     Cause = "classes"               // a PriorityClass, RuntimeClass or StorageClass
)

// denials is how admission policies and webhooks begin what they say (apiserver's
// admission/plugin/policy/validating and mutating, and admission/plugin/webhook/errors).
var denials = bundle.Pattern(`(?:Validating|Mutating)AdmissionPolicy '([^']+)'|admission webhook "([^"]+)"`)

// DeniedBy is the admission policy, or the webhook of a configuration, that denied a
// request; both are empty for every other error.
func DeniedBy(err error) (policy, webhook string) {
	if err == nil {
		return "", ""
	}
	if m := denials().FindStringSubmatch(err.Error()); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// CauseOf reads the cause of a refusal from the words of apiserver's handlers
// and of the admission plugins: admission/plugin/webhook, policy/validating,
// resourcequota and namespace/lifecycle; Kubernetes' plugin/pkg/admission/limitranger,
// serviceaccount, priority, runtimeclass and podsecurity; registry/rbac (escalation
// checks, and the role of a binding that is missing).
func CauseOf(err error) Cause {
	switch {
	case err == nil, Overtaken(err), len(FieldConflicts(err)) > 0:
		return NoCause
	case NotServed(err):
		return KindCause
	case Says(err, "ValidatingAdmissionPolicy '", "MutatingAdmissionPolicy '", `admission webhook "`, "not yet ready to handle request"):
		return AdmissionCause
	case UnknownField(err):
		return SchemaCause
	case apierrors.IsInvalid(err) && !Immutable(err, true):
		return SchemaCause // the bundle's own CRD has nothing against it
	case apierrors.IsNotFound(err) && Says(err, `roles.rbac.authorization.k8s.io "`): // also clusterroles
		return RBACCause
	case apierrors.IsNotFound(err) && Says(err, `namespaces "`):
		return NamespaceCause
	case !apierrors.IsForbidden(err):
		return NoCause
	}
	if _, ok := MissingRight(err); ok {
		return RBACCause
	}
	switch {
	case Says(err, "attempting to grant RBAC permissions not currently held"):
		return RBACCause
	case Says(err, "quota", "usage per ", "to requested ratio"):
		return LimitsCause
	case Says(err, "service account", "serviceaccount"):
		return AccountCause
	case Says(err, "violates PodSecurity"):
		return NamespaceCause
	case Says(err, "PriorityClass", "RuntimeClass", "StorageClass"):
		return ClassCause
	}
	return NoCause
}
