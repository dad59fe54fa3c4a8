package cluster

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	return maps.Clone(c.byVerb)
}

func (c *Counter) add(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byVerb[verb]++
}

// verbs is the server's own reading of a request's path.
var verbs = request.RequestInfoFactory{APIPrefixes: setOf("api", "apis"), GrouplessAPIPrefixes: setOf("api")}

type transport struct {
	next        http.RoundTripper
	counter     *Counter
	limiter     *defaultLimit
	concurrency *concurrency
	gate        *gate
	allowed     *allowed
	once        sync.Once
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := strings.ToLower(r.Method)
	info, err := verbs.NewRequestInfo(r)
	if err == nil {
		verb = info.Verb
	}
	if Writes(verb) {
		if err := t.gate.pass(r.Context()); err != nil {
			closeBody(r)
			return nil, &permanent{err}
		}
	}
	t.counter.add(verb)
	response, err := t.send(r, verb)
	if err == nil {
		t.allowed.learn(info, response.StatusCode)
	}
	if err == nil && response.StatusCode < http.StatusBadRequest {
		t.once.Do(func() { t.limiter.learn(response.Header) })
	}
	return response, err
}

func (t *transport) send(r *http.Request, verb string) (*http.Response, error) {
	if verb != "patch" && verb != "delete" {
		return t.next.RoundTrip(r)
	}
	if err := t.concurrency.enter(r.Context()); err != nil {
		closeBody(r)
		return nil, err
	}
	begin, status := time.Now(), 0
	response, err := t.next.RoundTrip(r)
	if err == nil {
		status = response.StatusCode
	}
	now := time.Now()
	t.concurrency.leave(now, now.Sub(begin), status)
	return response, err
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // as a RoundTripper has to
	}
}

// gate holds writes back.
type gate struct {
	wait atomic.Pointer[func(context.Context) error]
}

// Gate sets what every write waits for before it is sent (again); nil lets all
// through. Its error is the write's, which is not retried.
func (c *Client) Gate(wait func(context.Context) error) {
	if wait == nil {
		c.gate.wait.Store(nil)
		return
	}
	c.gate.wait.Store(&wait)
}

func (g *gate) pass(ctx context.Context) error {
	if wait := g.wait.Load(); wait != nil {
		return (*wait)(ctx)
	}
	return nil
}

// Writes says whether a verb, as the audit log has it, changes objects.
func Writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
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
