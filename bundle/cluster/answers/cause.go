package answers

import (
	"regexp"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Cause is what a refusal depends on besides the refused object itself. An API
// server that has not yet seen a change of it may refuse wrongly.
type Cause int

// The causes.
const (
	NoCause        Cause = iota // the object itself, or unknown
	KindCause                   // the CRD or APIService that serves the kind
	SchemaCause                 // the schema of the kind
	AdmissionCause              // an admission policy or webhook
	RBACCause                   // roles and bindings
	NamespaceCause              // the namespace: there, with its labels
	LimitsCause                 // a ResourceQuota or LimitRange in the namespace
	AccountCause                // a ServiceAccount in the namespace
	ClassCause                  // a PriorityClass, RuntimeClass or StorageClass
)

// denials is how admission policies and webhooks begin what they say (apiserver's
// admission/plugin/policy/validating and mutating, and admission/plugin/webhook/errors).
var denials = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:Validating|Mutating)AdmissionPolicy '([^']+)'|admission webhook "([^"]+)"`)
})

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
	case apierrors.IsInvalid(err) && !Immutable(err):
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
