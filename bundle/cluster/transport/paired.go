package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// pairedDiscovery asks for /apis as soon as /api is asked for: client-go asks for one
// after the other (GroupsAndMaybeResources in its discovery package), which costs
// every run a round trip.
type pairedDiscovery struct {
	next  http.RoundTripper
	mu    sync.Mutex
	ahead *answer // to /apis
}

// answer is one that was not asked for yet.
type answer struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed when what follows is there
	response *http.Response
	err      error
}

func (p *pairedDiscovery) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/api"):
		second := p.start(r)
		response, err := p.next.RoundTrip(r)
		if err != nil {
			second.cancel()
		}
		return response, err //nolint:wrapcheck // a transport
	case strings.HasSuffix(r.URL.Path, "/apis"):
		if second := p.take(nil); second != nil {
			return second.wait(r.Context())
		}
	}
	return p.next.RoundTrip(r) //nolint:wrapcheck // a transport
}

// discovering finds the context of the whole discovery: client-go ends that of the first
// request with its answer.
type discovering struct{}

// WithDiscovery is a context for the whole discovery.
func WithDiscovery(ctx context.Context) context.Context {
	return context.WithValue(ctx, discovering{}, ctx)
}

// DiscoveryClient is a client that asks for both lists of groups at once, reads older servers'
// answers, and keeps answers in dir.
func DiscoveryClient(client *http.Client, dir string) *http.Client {
	older := *client
	older.Transport = betaDiscovery{client.Transport}
	asked := *cached(dir, &older)
	asked.Transport = &pairedDiscovery{next: asked.Transport}
	return &asked
}

// start asks for /apis as r asks for /api.
func (p *pairedDiscovery) start(r *http.Request) *answer {
	whole, ok := r.Context().Value(discovering{}).(context.Context) //nolint:contextcheck // the whole discovery's, from the request's own context
	if !ok {
		whole = context.WithoutCancel(r.Context())
	}
	ctx, cancel := context.WithCancel(whole)
	r = r.Clone(ctx)
	r.URL.Path += "s"
	a := &answer{cancel: cancel, done: make(chan struct{})}
	if old := p.take(a); old != nil {
		old.cancel()
	}
	go func() {
		defer close(a.done)
		if a.response, a.err = p.next.RoundTrip(r); a.err != nil { //nolint:bodyclose // readAll closes it
			return
		}
		a.err = readAll(a.response)
	}()
	return a
}

// take puts an answer into the place of the one that is under way.
func (p *pairedDiscovery) take(next *answer) *answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.ahead
	p.ahead = next
	return a
}

func (a *answer) wait(ctx context.Context) (*http.Response, error) {
	defer a.cancel()
	select {
	case <-a.done:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // a transport
	}
}

// readAll reads a body, so that it can be had after its request has ended.
func readAll(r *http.Response) error {
	text, err := io.ReadAll(r.Body)
	if closeErr := r.Body.Close(); err == nil {
		err = closeErr
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.Request.URL.Path, err)
	}
	return nil
}
