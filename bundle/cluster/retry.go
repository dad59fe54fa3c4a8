package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// retry calls try until it succeeds, fails for good, or the client's RetryFor
// has passed since it first failed (a stalled server may take a minute to do
// so); the last error is returned as it came.
func (c *Client) retry(ctx context.Context, try func(context.Context) error) error {
	return c.retryFor(ctx, c.options.RetryFor, try)
}

// firstContact bounds the retries of discovery: whoever gave a wrong address
// does not want to wait long, a server that restarts is back by then.
const firstContact = 20 * time.Second

func (c *Client) retryFor(ctx context.Context, bound time.Duration, try func(context.Context) error) error {
	var deadline time.Time
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := try(ctx)
		if err == nil || ctx.Err() != nil || !Transient(err) {
			return err
		}
		if attempt == 1 {
			deadline = time.Now().Add(bound)
		}
		wait := pause/2 + rand.N(pause/2+1) // a crowd must not come back as a crowd
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = time.Duration(seconds) * time.Second
		}
		if time.Now().Add(wait).After(deadline) {
			return err
		}
		if tell := c.onRetry.Load(); tell != nil {
			(*tell)(ctx, err, attempt)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		pause = min(pause*2, lastPause)
	}
}

// Transient says whether an answer may be another one soon: too many requests,
// a server error (a webhook that is not up yet is one), a lost connection, a
// race with another writer, a namespace that is still being deleted.
func Transient(err error) bool {
	var lost *lostRace
	switch {
	case errors.As(err, &lost), apierrors.IsUnauthorized(err), undecodable(err), isTooLarge(err):
		return false
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return true
	case apierrors.IsConflict(err):
		return len(FieldConflicts(err)) == 0 && !preconditionFailed(err)
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500
	}
	return Unreachable(err)
}

// Unreachable says whether the server could not be spoken to at all.
func Unreachable(err error) bool {
	var netErr net.Error
	var urlErr *url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), Misdirected(err):
		return false
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsHTTP2ConnectionLost(err),
		utilnet.IsProbableEOF(err), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &netErr):
		return true
	case errors.As(err, &urlErr):
		return true
	}
	// client-go's own words where the connection went while an answer was read;
	// what went wrong has no type then.
	return strings.Contains(err.Error(), "unexpected error when reading response body")
}

// Misdirected says whether the server cannot be spoken to for a reason that
// stays: its name is unknown, or its certificate is not the expected one.
func Misdirected(err error) bool {
	var dns *net.DNSError
	var verification *tls.CertificateVerificationError
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &verification) || err != nil && strings.Contains(err.Error(), "x509: ")
}

// Conflict is a field that another manager owns.
type Conflict struct {
	Manager string // as the server says it: "kubectl" using apps/v1 at …
	Field   string // .spec.replicas
}

// FieldConflicts are the fields for which a server-side apply was refused.
func FieldConflicts(err error) []Conflict {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var conflicts []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			conflicts = append(conflicts, Conflict{Manager: strings.TrimPrefix(cause.Message, "conflict with "), Field: cause.Field})
		}
	}
	return conflicts
}

// preconditionFailed: a UID or resourceVersion that we insisted on is not the
// live one, in the words of apiserver's registry/rest/delete.go, of its
// storage/interfaces.go, and of an apply (endpoints/handlers/patch.go). Asking again
// changes nothing.
func preconditionFailed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "in the precondition (") || strings.Contains(text, "Precondition failed") || strings.Contains(text, "uid mismatch")
}

// undecodable: the server calls it its own error (500) when it cannot read what
// was applied, as a Secret whose data is not base64 or a number that is text
// (apiserver's handlers/patch.go and fieldmanager). It never will.
func undecodable(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	for _, words := range []string{
		"unable to convert unstructured object", "failed to create typed patch object", "failed to create typed live object",
		"illegal base64 data", "field not declared in schema", "strict decoding error",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// isTooLarge: the API server reads no larger request (413), or etcd stores no
// larger object, which the server calls its own error (500); in the words of
// etcd's server and of its client.
func isTooLarge(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(text, "etcdserver: request is too large") ||
		strings.Contains(text, "trying to send message larger than max")
}

// sized says how large an object is that is too large.
func sized(err error, size func() int) error {
	if !isTooLarge(err) {
		return err
	}
	return fmt.Errorf("the object is too large: it has %d bytes; the API server takes requests of up to 3145728 bytes, and etcd stores up to 1572864 unless its --max-request-bytes says otherwise: %w", size(), err)
}

// gone says that the object, or its kind, is not there.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsGone(err) }

func setOf(s ...string) sets.String { return sets.NewString(s...) } //nolint:staticcheck // RequestInfoFactory's own type
