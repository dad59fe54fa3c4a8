package clustertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Request is what a client asked for through a Proxy.
type Request struct {
	Method    string
	Path      string
	Query     url.Values
	UserAgent string
	DryRun    bool
	Time      time.Time // when it came in
	// Type and Body are what a PATCH, PUT or DELETE sends.
	Type string
	Body []byte
}

// IsWrite says whether the request can change what the cluster stores. Access
// and token reviews are POSTs that store nothing.
func (r Request) IsWrite() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	review := strings.HasPrefix(r.Path, "/apis/authorization.k8s.io/") ||
		strings.HasPrefix(r.Path, "/apis/authentication.k8s.io/")
	return !r.DryRun && !review
}

// Action is what a Proxy does with a request; the zero value passes it on.
type Action struct {
	Delay time.Duration // waits first
	// Before and After are a second actor: they run while the client waits for
	// its answer, before the server sees the request, or after it has dealt with
	// it (of a watch: after it began to answer). They use a client of their own,
	// past the proxy.
	Before, After func()
	// Status answers with a metav1.Status of this code in the server's place.
	Status     int
	Message    string
	RetryAfter int  // seconds, with Status
	Acted      bool // with Status: the server has dealt with the request nevertheless
	// Page, unless nil, answers with Status in the server's place, but with this text: as a
	// proxy, a gateway or a login page does. Location is where it redirects to.
	Page     *string
	Location string
	// Half gives the server's answer up to its middle, and resets the connection then.
	Half bool
	// Silent answers nothing as long as the client waits; the connection stays alive.
	Silent bool
	// CutBefore and CutAfter reset the connection: the server never sees the
	// request, or has dealt with it (of a watch: has begun to answer). Every other
	// request on the connection is lost, too, as it is in life.
	CutBefore, CutAfter bool
}

// ProxyOptions are how a Proxy starts.
type ProxyOptions struct {
	// Intercept decides about each request; nil passes them all. It is called
	// concurrently.
	Intercept func(Request) Action
	// User, unless empty, is whom the server takes the client for. Without it the
	// client is what the cluster's own kubeconfig says.
	User string
	// PageSize, unless 0, is the most that the server gives to a LIST that asks
	// for pages.
	PageSize int
}

// Proxy stands between a client and the API server.
type Proxy struct {
	// Kubeconfig is the path of a kubeconfig that leads through the proxy.
	Kubeconfig string

	upstream http.Handler
	token    string
	pageSize int

	mu        sync.Mutex
	intercept func(Request) Action
	requests  []Request
}

// Proxy starts a proxy that lives as long as the test. It speaks HTTP/2 and
// carries watches; it does not carry exec and port-forward.
func (c *Cluster) Proxy(t testing.TB, opts ProxyOptions) *Proxy {
	t.Helper()
	config := c.Config(t)
	config.Impersonate.UserName = opts.User
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		token:     rand.Text(),
		pageSize:  opts.PageSize,
		intercept: opts.Intercept,
		upstream: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     transport,
			FlushInterval: -1, // a watch event that waits for a buffer to fill is no event
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
				panic(http.ErrAbortHandler) // an answer that the server did not give would mislead
			},
		},
	}
	server := httptest.NewUnstartedServer(p)
	server.EnableHTTP2 = true
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections() // a watch would keep Close waiting
		server.Close()
	})
	p.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(p.config(server), p.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

type connKey struct{}

// config lets in whoever has the file: behind the proxy everyone is what the
// cluster's own kubeconfig says.
func (p *Proxy) config(server *httptest.Server) clientcmdapi.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	config.AuthInfos["proxy"] = &clientcmdapi.AuthInfo{Token: p.token}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	config.CurrentContext = "proxy"
	return *config
}

// Config is like Cluster's.
func (p *Proxy) Config(t testing.TB) *rest.Config {
	t.Helper()
	return loadConfig(t, p.Kubeconfig)
}

// Intercept takes the place of the hook that the proxy was started with.
func (p *Proxy) Intercept(hook func(Request) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept = hook
}

// Requests returns what was asked so far, in the order it came in.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Writes returns those of Requests that could change the cluster.
func (p *Proxy) Writes() []Request {
	return slices.DeleteFunc(p.Requests(), func(r Request) bool { return !r.IsWrite() })
}

// Forget starts the count again.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// ServeHTTP records a request and does with it what the hook says.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+p.token {
		http.Error(w, "this proxy wants the token in its kubeconfig", http.StatusUnauthorized)
		return
	}
	r.Header.Del("Authorization") // the transport sets the cluster's own
	action := p.record(r)
	if query := r.URL.Query(); p.pageSize > 0 && query.Has("limit") {
		query.Set("limit", strconv.Itoa(p.pageSize))
		r.URL.RawQuery = query.Encode()
	}
	select {
	case <-time.After(action.Delay):
	case <-r.Context().Done():
		return
	}
	if action.Before != nil {
		action.Before()
	}
	switch {
	case action.CutBefore:
		cut(r)
	case action.Silent:
		<-r.Context().Done()
	case action.Page != nil:
		page(w, action)
	case action.Half:
		p.half(w, r)
	case action.Status != 0:
		if action.Acted {
			p.upstream.ServeHTTP(httptest.NewRecorder(), r)
		}
		answer(w, action)
	case action.CutAfter || action.After != nil:
		p.answered(w, r, func() {
			if action.After != nil {
				action.After()
			}
			if action.CutAfter {
				cut(r)
			}
		})
	default:
		p.upstream.ServeHTTP(w, r)
	}
}

// half sends the first half of the server's answer.
func (p *Proxy) half(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	p.upstream.ServeHTTP(answer, r)
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	cut(r)
}

// page answers what no API server does.
func page(w http.ResponseWriter, a Action) {
	w.Header().Set("Content-Type", "text/html")
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, *a.Page)
}

// answered calls a function between the server's answer and the client's sight
// of it.
func (p *Proxy) answered(w http.ResponseWriter, r *http.Request, then func()) {
	if r.URL.Query().Has("watch") {
		p.upstream.ServeHTTP(&watchWriter{ResponseWriter: w, then: then}, r)
		return
	}
	answer := httptest.NewRecorder()
	p.upstream.ServeHTTP(answer, r)
	then()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// watchWriter calls a function when the answer begins, as that of a watch has
// no end.
type watchWriter struct {
	http.ResponseWriter
	then func()
}

func (w *watchWriter) WriteHeader(code int) {
	w.then()
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the events of a watch be flushed.
func (w *watchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bodyOf is the body of a request that changes or deletes an object.
func bodyOf(r *http.Request) []byte {
	if r.Body == nil || r.Method != http.MethodDelete && r.Method != http.MethodPatch && r.Method != http.MethodPut {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// dryDelete says whether a DELETE asks for a dry run in its body, where
// DeleteOptions may stand instead of in the query.
func dryDelete(method string, body []byte) bool {
	var options metav1.DeleteOptions
	return method == http.MethodDelete && json.Unmarshal(body, &options) == nil && len(options.DryRun) > 0
}

func (p *Proxy) record(r *http.Request) Action {
	query, body := r.URL.Query(), bodyOf(r)
	request := Request{
		Method:    r.Method,
		Path:      r.URL.Path,
		Query:     query,
		UserAgent: r.UserAgent(),
		DryRun:    query.Has("dryRun") || dryDelete(r.Method, body),
		Time:      time.Now(),
		Type:      r.Header.Get("Content-Type"),
		Body:      body,
	}
	p.mu.Lock()
	p.requests = append(p.requests, request)
	hook := p.intercept
	p.mu.Unlock()
	if hook == nil {
		return Action{}
	}
	return hook(request)
}

// cut makes the client see "connection reset by peer": without lingering, Close
// sends a reset.
func cut(r *http.Request) {
	if conn, ok := r.Context().Value(connKey{}).(*tls.Conn); ok {
		if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
	panic(http.ErrAbortHandler)
}

func answer(w http.ResponseWriter, a Action) {
	w.Header().Set("Content-Type", "application/json")
	if a.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.RetryAfter))
	}
	w.WriteHeader(a.Status)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(a.Status), //nolint:gosec // a status has three digits
		Reason:   reason(a.Status),
		Message:  a.Message,
	})
}

// reason is the one that the API server gives for a code, since clients look at
// the reason first.
func reason(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		return metav1.StatusReasonInternalError
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	}
	return metav1.StatusReasonUnknown
}
