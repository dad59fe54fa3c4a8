package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"brine/bundle/remedy"
)

// How long a request may take. A server that answers HTTP/2 pings only, or sends a
// byte a minute, would otherwise hold up a run for ever.
const (
	ReadLimit  = 30 * time.Second  // without a byte
	WriteLimit = 75 * time.Second  // in all: webhooks answer one after the other, and the server's own limit is 60 s
	watchLimit = 150 * time.Second // without an event or a bookmark, which comes every minute
)

// silent is the error of a request that took too long. Of a write the outcome is
// unknown: callers read the object again.
type silent struct {
	limit time.Duration
	verb  string
}

func (s *silent) Error() string {
	if Writes(s.verb) {
		return fmt.Sprintf("the server did not answer within %s (%s): whether it stored anything is unknown", s.limit, remedy.RequestTimeout)
	}
	return fmt.Sprintf("the server sent nothing for %s (%s)", s.limit, remedy.RequestTimeout)
}

// Timeout and Temporary make it a net.Error.
func (s *silent) Timeout() bool   { return true }
func (s *silent) Temporary() bool { return true }

// limitOf is the limit of a request; with override, that of --request-timeout. 0 is none.
func limitOf(verb string, override time.Duration) time.Duration {
	switch {
	case override != 0:
		return max(override, 0)
	case Writes(verb):
		return WriteLimit
	case verb == "watch":
		return watchLimit
	}
	return ReadLimit
}

// bounded sends a request, and ends it when its limit is over.
func bounded(next http.RoundTripper, r *http.Request, verb string, limit time.Duration) (*http.Response, error) {
	if limit == 0 {
		return next.RoundTrip(r) //nolint:wrapcheck // a transport
	}
	over := &silent{limit, verb}
	ctx, cancel := context.WithCancelCause(r.Context())
	body := &boundedBody{over: over, cancel: cancel}
	body.timer = time.AfterFunc(limit, func() {
		if ctx.Err() == nil {
			body.isOver.Store(true)
			cancel(over)
		}
	})
	response, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = body.judge(err)
		body.end()
		return nil, err
	}
	body.ReadCloser, response.Body = response.Body, body
	body.heard()
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	over   *silent
	timer  *time.Timer
	isOver atomic.Bool // the limit ended the request
	cancel context.CancelCauseFunc
}

// heard notes that the server sent something: a write has to be through by then.
func (b *boundedBody) heard() {
	if !Writes(b.over.verb) {
		b.timer.Reset(b.over.limit)
	}
}

// judge is the error of a request: that it took too long, if it did.
func (b *boundedBody) judge(err error) error {
	if b.isOver.Load() {
		return b.over
	}
	return err
}

func (b *boundedBody) end() {
	b.timer.Stop()
	b.cancel(nil)
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil && n > 0:
		b.heard()
	case err != nil && !errors.Is(err, io.EOF):
		if err = b.judge(err); errors.Is(err, b.over) && b.over.verb == "watch" {
			err = io.EOF // the next watch takes over, as after any that the server ends
		}
	}
	return n, err //nolint:wrapcheck // a reader
}

func (b *boundedBody) Close() error {
	b.end()
	return b.ReadCloser.Close() //nolint:wrapcheck // a closer
}

// abandoning returns when a request's context ends, whatever holds the request up:
// client-go calls a credential plugin without a context, and it may wait for a person.
type abandoning struct{ next http.RoundTripper }

// Abandoning wraps what may hang.
func Abandoning(next http.RoundTripper) http.RoundTripper { return abandoning{next} }

func (a abandoning) RoundTrip(r *http.Request) (*http.Response, error) {
	var response *http.Response
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err = a.next.RoundTrip(r) //nolint:bodyclose // the caller closes it
	}()
	select {
	case <-done:
		return response, err
	case <-r.Context().Done():
		go func() {
			if <-done; err == nil {
				_ = response.Body.Close()
			}
		}()
		return nil, fmt.Errorf("no credentials yet, or no answer: %w", r.Context().Err())
	}
}

// once is a REST client whose requests client-go does not retry: retry.go does.
type once struct{ rest.Interface }

// WithoutRetries is a client that asks once.
func WithoutRetries(client rest.Interface) rest.Interface { return once{client} }

func (o once) Get() *rest.Request    { return o.Interface.Get().MaxRetries(0) }
func (o once) Post() *rest.Request   { return o.Interface.Post().MaxRetries(0) }
func (o once) Put() *rest.Request    { return o.Interface.Put().MaxRetries(0) }
func (o once) Delete() *rest.Request { return o.Interface.Delete().MaxRetries(0) }
func (o once) Patch(kind types.PatchType) *rest.Request {
	return o.Interface.Patch(kind).MaxRetries(0)
}
