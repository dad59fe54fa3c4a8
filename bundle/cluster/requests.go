package cluster

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// Counter counts the requests that were sent, by the verb the server's audit
// log would show: get, list, watch, create, update, patch, delete.
type Counter struct {
	mu     sync.Mutex
	byVerb map[string]int
}

// Counts is a copy of the numbers so far.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := maps.Clone(c.byVerb)
	if counts == nil {
		counts = map[string]int{}
	}
	return counts
}

func (c *Counter) add(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byVerb == nil {
		c.byVerb = map[string]int{}
	}
	c.byVerb[verb]++
}

// verbs is the server's own reading of a request's path.
var verbs = request.RequestInfoFactory{APIPrefixes: setOf("api", "apis"), GrouplessAPIPrefixes: setOf("api")}

type transport struct {
	next    http.RoundTripper
	counter *Counter
	limiter *courtesy
	pace    *pace
	once    sync.Once
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := strings.ToLower(r.Method)
	if info, err := verbs.NewRequestInfo(r); err == nil {
		verb = info.Verb
	}
	t.counter.add(verb)
	response, err := t.send(r, verb)
	if err == nil && response.StatusCode < http.StatusBadRequest {
		t.once.Do(func() { t.limiter.learn(response.Header) })
	}
	return response, err
}

func (t *transport) send(r *http.Request, verb string) (*http.Response, error) {
	if verb != "patch" && verb != "delete" {
		return t.next.RoundTrip(r)
	}
	if err := t.pace.enter(r.Context()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, err
	}
	begin, status := time.Now(), 0
	response, err := t.next.RoundTrip(r)
	if err == nil {
		status = response.StatusCode
	}
	now := time.Now()
	t.pace.leave(now, now.Sub(begin), status)
	return response, err
}

type warnings struct{}

type warningsKey struct{}

// HandleWarningHeaderWithContext collects the server's Warning headers for the
// call that they answer.
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if list, ok := ctx.Value(warningsKey{}).(*[]string); ok && code == 299 && text != "" {
		*list = append(*list, text)
	}
}

func collectWarnings(ctx context.Context) (context.Context, *[]string) {
	list := &[]string{}
	return context.WithValue(ctx, warningsKey{}, list), list
}
