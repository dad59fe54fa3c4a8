package answers

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
)

func TestExplainReach(t *testing.T) {
	unknown := &url.Error{Op: "Get", URL: "https://no.example:6443/api", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "no.example", IsNotFound: true}}}
	for want, err := range map[string]error{
		"reach the cluster at h: the name no.example does not resolve: check the server's address in the kubeconfig, and DNS": unknown,
		"discover what h serves: another": errors.New("another"),
	} {
		if got := ExplainReach("h", err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
	if !Unreachable(fmt.Errorf("x: %w", ExplainReach("h", unknown))) {
		t.Error("exit code 6")
	}
}
