package answers

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"brine/bundle"
)

// longestValue is how much of a value of a field is still worth reading.
const longestValue = 120

// Message is the text of an error without the long values and the regular expressions that the
// server quotes in it: a Job whose template changed comes back as two kilobytes of Go.
func Message(err error) string {
	text := err.Error()
	for _, c := range CausesOf(err) {
		if short := withoutValue(c.Message); short != c.Message {
			text = strings.ReplaceAll(text, c.Message, short)
		}
	}
	return bundle.InWords(text)
}

// withoutValue takes a long value out of what field.Error (apimachinery's
// util/validation/field) says of one field: "Invalid value: VALUE: field is
// immutable", "Unsupported value: VALUE: …".
func withoutValue(message string) string {
	what, rest, ok := strings.Cut(message, " value: ")
	if !ok || strings.Contains(what, ":") {
		return message
	}
	for _, end := range []string{"}: ", "]: ", `": `} {
		at := strings.LastIndex(rest, end)
		if at < longestValue {
			continue
		}
		return what + " value: " + rest[at+len(end):]
	}
	return message
}

// FieldPaths are what may be paths of fields in a server's message: unknown
// field "spec.foo" (strict decoding), spec.replicas: Invalid value (field.Error).
func FieldPaths(message string) []string {
	var paths []string
	if _, rest, ok := strings.Cut(message, `unknown field "`); ok {
		path, _, _ := strings.Cut(rest, `"`)
		paths = append(paths, path)
	}
	for word := range strings.FieldsSeq(message) {
		if path, ok := strings.CutSuffix(word, ":"); ok && strings.ContainsAny(path, ".[") {
			paths = append(paths, strings.TrimPrefix(path, "[")) // the first of several
		}
	}
	return paths
}

// unreached is why the first request of a command had no answer of a Kubernetes API
// server, and what the user can do.
type unreached struct {
	host, why string
	err       error
}

func (u *unreached) Error() string { return fmt.Sprintf("reach the cluster at %s: %s", u.host, u.why) }
func (u *unreached) Unwrap() error { return u.err }

// IsExplained says whether an error is a sentence of ExplainReach.
func IsExplained(err error) bool {
	_, is := errors.AsType[*unreached](err)
	return is
}

// ExplainReach says in one sentence what is wrong with the way to the server, where that
// is known.
func ExplainReach(host string, err error) error {
	var why string
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var syntax *json.SyntaxError
	var record tls.RecordHeaderError
	switch {
	case IsExplained(err):
		return err
	case errors.As(err, &dns) && dns.IsNotFound:
		why = fmt.Sprintf("the name %s does not resolve: check the server's address in the kubeconfig, and DNS", dns.Name)
	case utilnet.IsConnectionRefused(err):
		why = "the connection was refused, no API server listens there: check the server's address in the kubeconfig, and that the API server runs"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		why = "what answers there does not speak TLS: check the port of the server in the kubeconfig, or write http:// there for a proxy (kubectl proxy)"
	case slices.ContainsFunc(CausesOf(err), func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "HTTP request to an HTTPS server") // net/http, server.go
	}):
		why = "it speaks TLS only: write https:// before the server's address in the kubeconfig"
	case errors.As(err, &authority):
		why = "its certificate is not signed by the CA of the kubeconfig: the kubeconfig is of another cluster, or something else answers there"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		why = "its certificate is not valid now, renew it, or set the clock of this machine: " + invalid.Error()
	case errors.As(err, &name):
		why = "its certificate is of another server, give tls-server-name in the kubeconfig if that is right: " + name.Error()
	case apierrors.IsUnauthorized(err), Says(err, "remote error: tls: "): // crypto/tls, alert.go
		why = "it does not accept the credentials of the kubeconfig: the token or the client certificate has expired, or is of another cluster"
	case errors.As(err, &syntax), Says(err, "invalid character '<'", "unexpected end of JSON input"): // encoding/json
		why = "what answers there is no Kubernetes API server, its answer is no JSON: is it a proxy, or a login page?"
	default:
		return fmt.Errorf("discover what %s serves: %w", host, err)
	}
	return &unreached{host, why, err}
}
