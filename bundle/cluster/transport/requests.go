// Package transport is what every request passes: the gate of writes, limits of how many and
// how long, counting, discovery's cache. It knows no objects.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/flowcontrol"

	"brine/bundle/cluster/answers"
)

// Counter counts the requests that were sent, by the verb the server's audit
// log would show: get, list, watch, create, update, patch, delete.
type Counter struct {
	mu     sync.Mutex
	byVerb map[string]int
}

// NewCounter has counted nothing yet.
func NewCounter() *Counter { return &Counter{byVerb: map[string]int{}} }

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

// Wire is what all requests of a client pass: the gate of writes, the limits of how many
// and how long, and the count of what was sent.
type Wire struct {
	// LimitsRate limits the rate of requests where the server does not.
	LimitsRate bool

	counter     *Counter
	limiter     atomic.Pointer[flowcontrol.RateLimiter]
	once        sync.Once // finds out whether there has to be one
	concurrency *concurrency
	gate        atomic.Pointer[func(context.Context) error] // what every write waits for
	allowed     allowed
	answered    atomic.Bool
	limit       time.Duration // --request-timeout
}

// NewWire counts in counter, has so many writes under way at once (0: as many as the
// server is quick with), and ends a request after limit (0: by its verb).
func NewWire(counter *Counter, parallel int, limit time.Duration) *Wire {
	return &Wire{counter: counter, concurrency: newConcurrency(parallel), limit: limit, allowed: allowed{rights: map[string]bool{}, refused: map[string]time.Time{}}}
}

// Wrap sends requests over next.
func (w *Wire) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{w, next} }

// limitRate limits the rate of requests, as kubectl does, where the server cannot look after
// itself: one with priority and fairness says so in every answer. It is called with the first
// good answer (a load balancer's own say nothing of the server), before there is traffic worth
// limiting.
func (w *Wire) limitRate(header http.Header) {
	if w.LimitsRate && header.Get("X-Kubernetes-PF-FlowSchema-UID") == "" {
		limiter := flowcontrol.NewTokenBucketRateLimiter(50, 300)
		w.limiter.Store(&limiter)
	}
}

// Answered says whether the server has answered at least once.
func (w *Wire) Answered() bool { return w.answered.Load() }

// JudgeRefusal says whether a refusal contradicts what was allowed, and may be an API
// server's that starts. Where it has stayed for too long, it says so.
func (w *Wire) JudgeRefusal(err error) (retry bool, _ error) { return w.allowed.judge(err) }

// Concurrency is how many writes are worth having under way at the moment.
func (w *Wire) Concurrency() int {
	w.concurrency.mu.Lock()
	defer w.concurrency.mu.Unlock()
	return w.concurrency.width
}

// Gate sets what every write waits for before it is sent (again); nil lets all
// through. Its error is the write's, which is not retried.
func (w *Wire) Gate(wait func(context.Context) error) {
	if wait == nil {
		w.gate.Store(nil)
		return
	}
	w.gate.Store(&wait)
}

// transport is the way of requests over a Wire.
type transport struct {
	*Wire

	next http.RoundTripper
}

// RoundTrip sends a request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := strings.ToLower(r.Method)
	info, err := verbs.NewRequestInfo(r)
	if err == nil {
		verb = info.Verb
	}
	if limiter := t.limiter.Load(); limiter != nil {
		if err := (*limiter).Wait(r.Context()); err != nil {
			closeBody(r)
			return nil, err
		}
	}
	response, err := t.send(r, verb)
	if err != nil {
		return nil, err
	}
	t.allowed.learn(info, response.StatusCode)
	if code := response.StatusCode; code < http.StatusMultipleChoices || code >= http.StatusBadRequest && code < http.StatusInternalServerError {
		t.answered.Store(true)
	}
	if response.StatusCode < http.StatusBadRequest {
		t.once.Do(func() { t.limitRate(response.Header) })
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
	if wait := t.gate.Load(); wait != nil && Writes(verb) {
		if err := (*wait)(r.Context()); err != nil {
			closeBody(r)
			return nil, time.Now(), answers.Permanent(&notSent{err})
		}
		r, body = t.hold(r)
	}
	if confirm, ok := r.Context().Value(confirmation{}).(func(context.Context) error); ok && Writes(verb) {
		if err := confirm(r.Context()); err != nil {
			closeBody(r)
			return nil, time.Now(), answers.Permanent(&notSent{err})
		}
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

// notSent is why a request was held back, in its own words.
type notSent struct{ error }

func (n *notSent) Unwrap() []error { return []error{n.error, answers.ErrNotSent} }

type confirmation struct{}

// WithConfirmation is a context whose writes ask confirm after the gate: its error ends them.
func WithConfirmation(ctx context.Context, confirm func(context.Context) error) context.Context {
	return context.WithValue(ctx, confirmation{}, confirm)
}

// errHeldBack: the write can be sent again, and waits then.
var errHeldBack = fmt.Errorf("%w: the lease of the inventory's lock may have run out while a connection was waited for", answers.ErrNotSent)

// hold asks the gate once more when the first byte of the body is to go out, without
// waiting: there may have been no connection until then.
func (w *Wire) hold(r *http.Request) (*http.Request, *heldBody) {
	wait := w.gate.Load()
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
		err = answers.Permanent(err)
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

// Warnings is the client's handler of the server's warnings.
type Warnings struct{}

type warningsKey struct{}

// HandleWarningHeaderWithContext collects the server's Warning headers for the
// call that they answer.
func (Warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if list, ok := ctx.Value(warningsKey{}).(*[]string); ok && code == 299 && text != "" {
		*list = append(*list, text)
	}
}

// CollectWarnings is a context that keeps the warnings of its requests in the list.
func CollectWarnings(ctx context.Context) (context.Context, *[]string) {
	list := &[]string{}
	return context.WithValue(ctx, warningsKey{}, list), list
}

func setOf(s ...string) sets.String { return sets.NewString(s...) } //nolint:staticcheck // RequestInfoFactory's own type
