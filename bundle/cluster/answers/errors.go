// Package answers is the one place that knows what an API server's answers mean: what may be
// asked again, what was refused and why, in the server's own words.
package answers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"brine/bundle"
	"brine/bundle/remedy"
)

// The server gives many refusals no reason that a program could go by: only its
// English tells them apart. Each
// function names the upstream source of the words.

// Says is whether an error contains one of these texts.
func Says(err error, words ...string) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// ErrNotServed says that a kind is not served, though its objects may be there.
var ErrNotServed = errors.New("its kind is not served by the cluster at the moment")

// NotServed says whether an answer means that there is no such resource, rather
// than no such object (apimachinery's api/errors, NewGenericServerResponse).
func NotServed(err error) bool {
	var judged *notServed
	return errors.As(err, &judged) || apierrors.IsNotFound(err) && (apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		Says(err, "the server could not find the requested resource"))
}

// notServed is a 404 that says nothing of an object: of a server that does not serve the
// resource, or of a proxy before it. It does not unwrap to the answer, so that
// apierrors.IsNotFound is false of it: no caller can take it for an absence.
type notServed struct{ answer error }

// UnservedError is a 404 that says nothing of an object.
func UnservedError(answer error) error { return &notServed{answer} }

func (e *notServed) Error() string { return e.answer.Error() }

// Judge tells a 404 of a resource or a proxy from one of an object, and names what the
// server cannot read of its own storage. A 404, AlreadyExists or Conflict of a webhook is of what it
// looked for: it says nothing of the object but that the request was denied.
func Judge(err error) error {
	if _, webhook := DeniedBy(err); webhook != "" && (apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)) {
		if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
			denied := *status
			denied.ErrStatus.Reason, denied.ErrStatus.Code = metav1.StatusReasonForbidden, http.StatusForbidden
			return &denied
		}
	}
	switch {
	case NotServed(err):
		return UnservedError(err)
	case apierrors.IsStoreReadError(err), apierrors.IsInternalError(err) && Says(err, "StorageError: corrupt object"): // apiserver's storage/errors.go
		where, why := "", "decrypt or decode what it stores (see its --encryption-provider-config)"
		if ConversionFailed(err) {
			why = unconverted
		}
		if stored := bundle.Where(CausesOf(err), func(c metav1.StatusCause) bool { return c.Field != "" }); len(stored) > 0 {
			where = ", in etcd: " + bundle.Some(bundle.Each(stored, func(c metav1.StatusCause) string { return c.Field }), 5)
		}
		return fmt.Errorf("StorageReadError: the API server cannot %s%s: %w", why, where, err)
	case ConversionFailed(err): // of what it has in a cache
		return fmt.Errorf("the API server cannot %s: %w", unconverted, err)
	}
	return err
}

// unconverted is what an API server cannot do with resources in another version than they are asked for.
const unconverted = "convert what it stores, as the conversion webhook of the CRD does not answer"

// ProvesAbsence says whether an answer is a Status of the API server itself that an object of
// this name is not there.
func ProvesAbsence(err error, name string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || NotServed(err) || status.Status().Reason != metav1.StatusReasonNotFound {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}

// permanent is an error that no retry mends, such as a conflict after which the
// caller has to read the object again.
type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// Permanent is an error that is not retried.
func Permanent(err error) error { return &permanent{err} }

// IsPermanent says whether no retry mends an error.
func IsPermanent(err error) bool {
	var final *permanent
	return errors.As(err, &final)
}

// Transient says whether an answer may be another one soon: too many requests,
// a server error (a webhook that is not up yet is one), a lost connection, a
// race with another writer, a namespace that is still being deleted.
func Transient(err error) bool {
	switch {
	case IsPermanent(err), NotServed(err), apierrors.IsUnauthorized(err), undecodable(err), tooLarge(err):
		return false
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return true
	case apierrors.IsConflict(err):
		return len(FieldConflicts(err)) == 0 && !preconditionFailed(err)
	case NamespaceTerminating(err):
		return true
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusRequestTimeout // of a proxy
	}
	return Unreachable(err)
}

// About takes the answer to a request about an object of this name for one of the API server only
// if it is about that: JSON of something else, as of a proxy, says nothing of what was stored.
func About(name string) func(*unstructured.Unstructured, error) (*unstructured.Unstructured, error) {
	return func(u *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
		if err == nil && name != "" && u.GetName() != name {
			return nil, Unsure(fmt.Errorf("the answer is not one of the API server about %s, but has kind %q", name, u.GetKind()))
		}
		return u, err
	}
}

// Refused says whether it is proven that nothing was written, by no try of a request.
func Refused(err error) bool { return !isUnsure(err) && RefusedLast(err) }

// RefusedLast is Refused for the last try of a request. Admission comes before anything is stored.
func RefusedLast(err error) bool {
	if errors.Is(err, ErrNotSent) || utilnet.IsConnectionRefused(err) || Says(err, "failed calling webhook") {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Code == http.StatusRequestTimeout {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 || !IsPermanent(err) && !Transient(err)
}

// ErrNotSent says that a request was held back.
var ErrNotSent = errors.New("not sent")

// MayBeStored says whether a write that ended with err may have been carried out nevertheless.
func MayBeStored(err error) bool { return isUnsure(err) || !Refused(err) && Transient(err) }

// Unreachable says whether the server could not be spoken to at all.
func Unreachable(err error) bool {
	var netErr net.Error
	var explained *unreached
	switch {
	case errors.As(err, &explained):
		return true
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), Misdirected(err):
		return false
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsHTTP2ConnectionLost(err),
		utilnet.IsProbableEOF(err), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &netErr): // a url.Error, too
		return true
	}
	// client-go's rest/request.go, where the connection was lost while an answer was
	// read: the cause has no type then.
	return Says(err, "unexpected error when reading response body")
}

// Misdirected says whether the server cannot be spoken to for a reason that
// stays: its name is unknown, or its certificate is not the expected one
// (crypto/x509).
func Misdirected(err error) bool {
	var dns *net.DNSError
	var verification *tls.CertificateVerificationError
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &verification) || Says(err, "x509: ")
}

// Conflict is a field that another manager owns.
type Conflict struct {
	Manager string // as the server says it: "kubectl" using apps/v1 at …
	Field   string // .spec.replicas
}

// Name is the manager's name (apimachinery's util/managedfields/internal/conflict.go,
// printManager).
func (c Conflict) Name() string {
	quoted, err := strconv.QuotedPrefix(c.Manager)
	if err != nil {
		return c.Manager
	}
	name, _ := strconv.Unquote(quoted)
	return name
}

const conflictWith = "conflict with " // structured-merge-diff's merge/conflict.go

// FieldConflicts are the fields for which a server-side apply was refused.
func FieldConflicts(err error) []Conflict {
	causes := bundle.Where(CausesOf(err), func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeFieldManagerConflict })
	return bundle.Each(causes, func(c metav1.StatusCause) Conflict {
		return Conflict{Manager: strings.TrimPrefix(c.Message, conflictWith), Field: c.Field}
	})
}

// ConflictError is the server's refusal of an apply for conflicts.
func ConflictError(conflicts []Conflict, message string) error {
	return apierrors.NewApplyConflict(bundle.Each(conflicts, func(c Conflict) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: conflictWith + c.Manager, Field: c.Field}
	}), message)
}

// CausesOf is the causes in the details of the server's Status; nil: it has none.
func CausesOf(err error) []metav1.StatusCause {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// Overtaken says whether a write that held for one version of an object only
// was refused because the object is another one by now: the caller has to read
// it again.
func Overtaken(err error) bool {
	return IsPermanent(err) && apierrors.IsConflict(err) && len(FieldConflicts(err)) == 0
}

// preconditionFailed: a UID or resourceVersion that we insisted on is not the
// live one, in the words of apiserver's registry/rest/delete.go, of its
// storage/interfaces.go, and of an apply (endpoints/handlers/patch.go). The
// answer stays the same.
func preconditionFailed(err error) bool {
	return Says(err, "in the precondition (", "Precondition failed", "uid mismatch")
}

// undecodable: the server calls it its own error (500) when it cannot read what
// was applied, as a Secret whose data is not base64 or a number that is text
// (apiserver's endpoints/handlers/patch.go, apimachinery's util/managedfields and
// runtime/scheme.go). It never will.
func undecodable(err error) bool {
	return Says(err, "unable to convert unstructured object", "failed to create typed patch object", "failed to create typed live object",
		"illegal base64 data", "field not declared in schema", "strict decoding error")
}

// Invalid says whether the server refuses an object for what it says, whatever else the
// cluster has.
func Invalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) && !NoDryRun(err) || undecodable(err)
}

// Help is the command that says more about an answer, or "".
func Help(err error) string {
	policy, webhook := DeniedBy(err)
	_, lacks := MissingRight(err)
	switch {
	case err == nil:
		return ""
	case policy+webhook != "", WebhookFailed(err):
		return remedy.HelpWebhook
	case lacks:
		return remedy.HelpForbidden
	case Says(err, "StorageReadError"):
		return remedy.HelpStorage
	case NotServed(err):
		return remedy.HelpUnknownKind
	case Unreachable(err), Misdirected(err), apierrors.IsUnauthorized(err):
		return remedy.HelpConnection
	}
	return ""
}

// UnknownField says whether the server's schema lacks a field of the object
// (structured-merge-diff's typed/validate.go; apiserver's
// endpoints/handlers/patch.go with field validation Strict).
func UnknownField(err error) bool {
	return Says(err, "field not declared in schema", "unknown field", "strict decoding error")
}

// tooLarge: the API server reads no larger request (413), or etcd stores no
// larger object, which the server calls its own error (500); in the words of
// etcd's server and of its client (apiserver's endpoints/handlers/rest.go).
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || Says(err, "etcdserver: request is too large", "trying to send message larger than max")
}

// ExplainSize says how large an object is that is too large.
func ExplainSize(err error, size func() int) error {
	if !tooLarge(err) {
		return err
	}
	return fmt.Errorf("the object is too large: it has %d bytes; the API server takes requests of up to 3145728 bytes, and etcd stores up to 1572864 unless its --max-request-bytes says otherwise: %w", size(), err)
}

// Immutable says whether the server refused an object because a field cannot
// change: as Flux' ssa and Helm do, by the words of apimachinery's
// api/validation, of Kubernetes' pkg/apis/*/validation and of registry/rbac. What an admission
// policy denies it guards; the webhook of a custom resource's operator may be its validation.
func Immutable(err error, custom bool) bool {
	policy, webhook := DeniedBy(err)
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || policy != "" || webhook != "" && !custom {
		return false
	}
	if all := CausesOf(err); len(all) > 0 {
		// Every cause: an object that is wrong besides could not be recreated.
		return !slices.ContainsFunc(all, func(c metav1.StatusCause) bool { return !immutable(errors.New(c.Message)) })
	}
	return immutable(err)
}

func immutable(err error) bool {
	return Says(err, "is immutable", "may not change once set", "may not be changed", "cannot change roleRef",
		"updates to statefulset spec for fields other than", "pod updates may not change fields other than") ||
		err != nil && forbiddenUpdate().MatchString(err.Error())
}

// forbiddenUpdate is what Kubernetes' pkg/apis/storage/validation says of classes, of each field by its name.
var forbiddenUpdate = bundle.Pattern(`updates to \w+ are forbidden`)

// deniedRight is how every authorizer's answer reads.
var deniedRight = bundle.Pattern(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// MissingRight is the right that an answer asks for, like "patch pods in
// namespace shop" (apiserver's endpoints/handlers/responsewriters/errors.go,
// ForbiddenMessage). A refusal by admission is none.
func MissingRight(err error) (right string, ok bool) {
	if !apierrors.IsForbidden(err) {
		return "", false
	}
	m := deniedRight().FindStringSubmatch(err.Error())
	if m == nil {
		return "", false
	}
	return RightText(m[1], m[2], m[3], m[4]), true
}

// RightText names a right as messages do: "patch deployments.apps in namespace shop".
func RightText(verb, resource, group, namespace string) string {
	right := verb + " " + resource
	if group != "" {
		right += "." + group
	}
	if namespace != "" {
		right += " in namespace " + namespace
	}
	return right
}

// NoDryRun says whether a webhook with side effects keeps the server from
// dry-running a request (apiserver's admission/plugin/webhook/errors,
// NewDryRunUnsupportedErr).
func NoDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && Says(err, "does not support dry run")
}

// WebhookFailed says whether a webhook could not be asked (apiserver's
// util/webhook/error.go, ErrCallingWebhook).
func WebhookFailed(err error) bool {
	return Says(err, "failed calling webhook") || ConversionFailed(err)
}

// ConversionFailed says whether the conversion webhook of a CRD could not be asked:
// none of its resources that is stored in another version can be read
// (apiextensions-apiserver's apiserver/conversion/webhook_converter.go).
func ConversionFailed(err error) bool { return Says(err, "conversion webhook for ") }

// NamespaceTerminating says whether a namespace takes no new objects because it
// is being deleted (apiserver's admission/plugin/namespace/lifecycle).
func NamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating")
}

// QuotaExceeded says whether a ResourceQuota leaves no room (apiserver's
// admission/plugin/resourcequota/controller.go).
func QuotaExceeded(err error) bool { return Says(err, "exceeded quota") }

// Allocated says whether another object has the IP address or port that this
// one asks for (Kubernetes' pkg/registry/core/service/ipallocator and
// portallocator, ErrAllocated).
func Allocated(err error) bool { return Says(err, "already allocated") }

// NamespaceRefuses says whether the namespace rather than the object is the
// cause of a refusal: its quota and limits, its pod security, a missing account,
// its deletion, or the user's rights in it.
func NamespaceRefuses(err error) bool {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return false
	}
	if _, ok := MissingRight(err); ok {
		return true
	}
	return NamespaceTerminating(err) || strings.HasPrefix(err.Error(), `namespaces "`) ||
		Says(err, "exceeded quota", "failed quota", "usage per ", "to requested ratio", "violates PodSecurity", "error looking up service account")
}

// unsure is an error after which it is unknown what its request did, unless that was a read.
type unsure struct{ error }

func (u *unsure) Unwrap() error { return u.error }

// Unsure is err where the request, or an earlier try of it, may have been carried out.
func Unsure(err error) error { return &unsure{err} }

func isUnsure(err error) bool {
	_, unknown := errors.AsType[*unsure](err)
	return unknown
}

// LastAnswer is err, or, where that is only that the run ended, the answer that the server
// gave before.
func LastAnswer(answer, err error) error {
	if answer != nil && Cancelled(err) {
		return Unsure(answer)
	}
	return err
}

// Cancelled says whether an error is only that the run ended.
func Cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
