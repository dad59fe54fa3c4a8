// Package cluster is the client of the API server, and the only one: discovery,
// reads, server-side apply, deletions, watches. Objects and ids come in; objects
// and errors that its predicates explain go out. Each request is counted, transient
// answers are retried, writes are limited in their concurrency.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"brine/bundle/cluster/jsontree"
	"brine/bundle/cluster/transport"
	"brine/bundle/remedy"
)

// Options are what a run may change about how it speaks to the server.
type Options struct {
	UserAgent string
	// Commands are how messages show commands for this cluster.
	Commands remedy.Commands
	// RetryFor bounds how long one request's transient answers (429, 5xx,
	// connection errors, a webhook that is not up yet) are retried. Zero: a
	// minute.
	RetryFor time.Duration
	// FirstContact bounds the retries until the server has answered for the first time,
	// counted from the first request: a wrong address is not worth a long wait. Zero: 20
	// seconds, in which a server that restarts is back.
	FirstContact time.Duration
	// RequestTimeout, unless zero, takes the place of the limits of each request;
	// negative is none.
	RequestTimeout time.Duration
	// ForceConflicts takes fields that other managers own.
	ForceConflicts bool
	// CacheDir is where discovery is kept between runs, as kubectl does; none if
	// it is not absolute.
	CacheDir string
	// Parallel is how many writes are under way at once. Zero: as many as the
	// server is quick with, up to MaxConcurrency.
	Parallel int
	// FieldValidation is Strict (the default), Warn or Ignore.
	FieldValidation string
	// Jitter is what a pause before a retry is longer, at most by its argument. Nil:
	// by chance.
	Jitter func(time.Duration) time.Duration
	// Wall is the wall clock. Nil: that of this machine.
	Wall func() time.Time
	// Listed, unless nil, is told what the objects of each list share.
	Listed func(*jsontree.Shared)
}

type wire = transport.Wire

// Client speaks to one API server. It is safe for use by many goroutines.
type Client struct {
	*wire // Concurrency and Gate are its

	Requests *transport.Counter

	config   *rest.Config
	http     *http.Client
	onRetry  atomic.Pointer[func(ctx context.Context, err error, attempt int)]
	onSecret atomic.Pointer[func(*unstructured.Unstructured)]
	options  Options
	dynamic  dynamic.Interface
	metadata rest.Interface
	disco    rest.Interface
	raw      rest.Interface
	kinds    kinds
	sizes    sync.Map // by GVR: how many objects of a kind there were at least when all were read last
	polls    flowcontrol.RateLimiter
	started  chan error // the answer to StartDiscovery
}

// Commands are how messages show commands for this cluster.
func (c *Client) Commands() remedy.Commands { return c.options.Commands }

// New makes a client for config; it sends nothing yet.
func New(config *rest.Config, o Options) (*Client, error) {
	return newClient(config, o, transport.NewCounter())
}

func newClient(config *rest.Config, o Options, counter *transport.Counter) (*Client, error) {
	given := config
	o.RetryFor, o.FirstContact = cmp.Or(o.RetryFor, time.Minute), cmp.Or(o.FirstContact, firstContact)
	o.RequestTimeout, o.FieldValidation = cmp.Or(o.RequestTimeout, config.Timeout), cmp.Or(o.FieldValidation, metav1.FieldValidationStrict)
	if o.Jitter == nil {
		o.Jitter = func(most time.Duration) time.Duration { return rand.N(most + 1) }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	config = rest.CopyConfig(config)
	config.UserAgent = o.UserAgent
	config.Timeout = 0 // it would also end watches that go on well
	config.WarningHandlerWithContext = transport.Warnings{}
	wire := transport.NewWire(counter, o.Parallel, o.RequestTimeout)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS, wire.LimitsRate = -1, true
	}
	c := &Client{
		Requests: counter, config: given, options: o, wire: wire, kinds: kinds{learned: sets.Set[schema.GroupVersionKind]{}},
		polls: flowcontrol.NewTokenBucketRateLimiter(pollQPS, pollBurst),
	}
	config.Wrap(wire.Wrap)
	// One http.Client for all, so that they share connections.
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", config.Host, err)
	}
	if config.ExecProvider != nil || config.AuthProvider != nil {
		shared.Transport = transport.Abandoning(shared.Transport)
	}
	c.http = shared
	if err := c.restClients(config); err != nil {
		return nil, fmt.Errorf("set up the client for %s: %w", config.Host, err)
	}
	return c, nil
}

func (c *Client) restClients(config *rest.Config) error {
	untyped := dynamic.ConfigFor(config)
	untyped.NegotiatedSerializer = jsontree.Serializers{NegotiatedSerializer: untyped.NegotiatedSerializer}
	partial := metadata.ConfigFor(config)
	partial.GroupVersion = &schema.GroupVersion{} // for the options of a list
	plain := rest.CopyConfig(config)
	plain.GroupVersion = &metav1.SchemeGroupVersion // any does
	plain.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	asked := transport.Cached(c.options.CacheDir, c.http)
	var made [4]rest.Interface
	for i, of := range []struct {
		config *rest.Config
		http   *http.Client
	}{{untyped, c.http}, {partial, c.http}, {plain, c.http}, {rest.CopyConfig(plain), asked}} {
		of.config.APIPath = "/"
		client, err := rest.UnversionedRESTClientForConfigAndClient(of.config, of.http)
		if err != nil {
			return err
		}
		made[i] = transport.WithoutRetries(client)
	}
	c.dynamic, c.metadata, c.raw, c.disco = dynamic.New(made[0]), made[1], made[2], made[3]
	return nil
}

// Separate is a client for the same server, and of the same Requests, with
// connections of its own: what hangs on the client's does not hang on them. It
// retries nothing, and has no Gate.
func (c *Client) Separate() *Client {
	config, o := rest.CopyConfig(c.config), c.options
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment // the default; but client-go shares no connection where it is set
	}
	o.RetryFor = time.Nanosecond
	apart, err := newClient(config, o, c.Requests)
	if err != nil {
		return c // as it was made from the same, this cannot be
	}
	return apart
}

// Server is the URL of the API server, without credentials.
func (c *Client) Server() string {
	at, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// OnSecret sets the function that gets every object that was read and may hold a Secret:
// Secrets, and custom resources.
func (c *Client) OnSecret(take func(*unstructured.Unstructured)) { c.onSecret.Store(&take) }

func (c *Client) secret(u *unstructured.Unstructured) {
	if take := c.onSecret.Load(); take != nil && u != nil {
		if builtIn := u.GroupVersionKind().Group; u.GetKind() == "Secret" || strings.Contains(builtIn, ".") && !strings.HasSuffix(builtIn, ".k8s.io") {
			(*take)(u)
		}
	}
}

// OnRetry sets the function that every transient answer is reported to, before
// the pause that follows it. ctx is that of the call.
func (c *Client) OnRetry(report func(ctx context.Context, err error, attempt int)) {
	c.onRetry.Store(&report)
}

// Wall is the time by the wall clock alone, which counts while the machine is suspended.
func (c *Client) Wall() time.Time { return c.options.Wall().Round(0) }

// Forces says whether applies take fields that other managers own.
func (c *Client) Forces() bool { return c.options.ForceConflicts }

// Lenient says whether the server is to let unknown fields pass, and drop them.
func (c *Client) Lenient() bool {
	return c.options.FieldValidation != metav1.FieldValidationStrict
}
