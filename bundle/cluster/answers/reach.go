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
)

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
