package transport

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"brine/bundle/cluster/answers"
)

// An API server that starts refuses everything but what system:masters ask, until it
// has read the cluster's RBAC objects. It is not ready then, but a TCP balancer may send
// requests to it nevertheless. A refusal of what was allowed before in this run is
// therefore retried for a while.

// StartingFor is for how long the refusal to say what is served is retried: everybody who
// is authenticated may ask that (the ClusterRole system:discovery), and nothing was
// allowed before it. A server that answers it has read the RBAC objects.
const StartingFor = 5 * time.Second

// revokedAfter is for how long such refusals are retried: after that, the right was taken
// away. An API server reads its RBAC objects in a few seconds.
const revokedAfter = 10 * time.Second

// allowed is what the API servers have authorized, by the right as MissingRight names it.
type allowed struct {
	mu      sync.Mutex
	rights  map[string]bool
	refused map[string]time.Time // since when, although it was allowed
	// revoked: rights were taken away. No refusal is retried any more, so that a run
	// without rights ends soon.
	revoked bool
}

// learn notes what an answer says about the right to a request: the server asks for
// it before anything else.
func (a *allowed) learn(info *request.RequestInfo, status int) {
	if info == nil || !info.IsResourceRequest || status >= http.StatusInternalServerError {
		return
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return
	}
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	right := answers.RightText(info.Verb, resource, info.APIGroup, info.Namespace)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rights[right] = true
	if _, ok := a.refused[right]; ok {
		delete(a.refused, right)
		a.revoked = false
	}
}

func (a *allowed) judge(err error) (retry bool, _ error) {
	right, known := answers.MissingRight(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !known || !a.rights[right] || answers.IsPermanent(err) {
		return false, err
	}
	since, ok := a.refused[right]
	if !ok {
		since = time.Now()
		a.refused[right] = since
	}
	if a.revoked = a.revoked || time.Since(since) > revokedAfter; !a.revoked {
		return true, err
	}
	return false, fmt.Errorf("%w (it was allowed earlier in this run: the right was taken away)", err)
}
