package cluster

import (
	"cmp"
	"context"
	"errors"
	"io"
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
	answered    *atomic.Bool
	limit       time.Duration // --request-timeout
	once        sync.Once
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := strings.ToLower(r.Method)
	info, err := verbs.NewRequestInfo(r)
	if err == nil {
		verb = info.Verb
	}
	response, err := t.send(r, verb)
	if err != nil {
		return nil, err
	}
	noteRetryAfter(r.Context(), response.Header)
	t.allowed.learn(info, response.StatusCode)
	if code := response.StatusCode; code < http.StatusMultipleChoices || code >= http.StatusBadRequest && code < http.StatusInternalServerError {
		t.answered.Store(true)
	}
	if response.StatusCode < http.StatusBadRequest {
		t.once.Do(func() { t.limiter.learn(response.Header) })
	}
	return response, nil
}

// send waits for a place, of which there are few.
func (t *transport) send(r *http.Request, verb string) (*http.Response, error) {
	if verb != "patch" && verb != "delete" {
		response, _, err := t.sendNow(r, verb)
		return response, err
	}
	if err := t.concurrency.enter(r.Context()); err != nil {
		closeBody(r)
		return nil, err
	}
	status := 0
	response, begin, err := t.sendNow(r, verb)
	if err == nil {
		status = response.StatusCode
	}
	now := time.Now()
	t.concurrency.leave(now, now.Sub(begin), status)
	return response, err
}

// sendNow asks the gate, last of all: by then the lock may be lost.
func (t *transport) sendNow(r *http.Request, verb string) (response *http.Response, begin time.Time, err error) {
	var body *heldBody
	if Writes(verb) {
		if err := t.gate.pass(r.Context()); err != nil {
			closeBody(r)
			return nil, time.Now(), &permanent{err}
		}
		r, body = t.gate.hold(r)
	}
	t.counter.add(verb)
	begin = time.Now()
	response, err = bounded(t.next, r, verb, limitOf(verb, t.limit))
	if err != nil {
		err = body.judge(err)
	}
	return response, begin, err
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

// errHeldBack: the write can be sent again, and waits then.
var errHeldBack = errors.New("not sent: the lease of the inventory's lock may have run out while a connection was waited for")

// hold asks the gate once more when the first byte of the body is to go out, without
// waiting: there may have been no connection until then.
func (g *gate) hold(r *http.Request) (*http.Request, *heldBody) {
	wait := g.wait.Load()
	if wait == nil || r.Body == nil {
		return r, nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	ask := &gateAnswer{pass: func() error { return (*wait)(ctx) }}
	held := &heldBody{ReadCloser: r.Body, answer: ask}
	r = r.Clone(r.Context())
	r.Body = held
	if again := r.GetBody; again != nil { // net/http repeats a request that the server did not take
		r.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			return &heldBody{ReadCloser: body, answer: ask}, err
		}
	}
	return r, held
}

// gateAnswer is the gate's last answer about a write.
type gateAnswer struct {
	pass func() error
	mu   sync.Mutex
	err  error
}

func (a *gateAnswer) ask() error {
	err := a.pass()
	switch {
	case errors.Is(err, context.Canceled):
		err = errHeldBack
	case err != nil:
		err = &permanent{err}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	return err
}

type heldBody struct {
	io.ReadCloser
	answer *gateAnswer
	asked  bool
}

func (h *heldBody) Read(p []byte) (int, error) {
	if !h.asked {
		h.asked = true
		if err := h.answer.ask(); err != nil {
			return 0, err
		}
	}
	return h.ReadCloser.Read(p) //nolint:wrapcheck // a reader
}

// judge is the error of a write: that it was held back, if it was.
func (h *heldBody) judge(err error) error {
	if h == nil {
		return err
	}
	h.answer.mu.Lock()
	defer h.answer.mu.Unlock()
	return cmp.Or(h.answer.err, err)
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
