package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/transport"
)

var someMap = bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "shop", Name: "a"}

func mapObject() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "1"}}}
}

// calls are one call of each way to send a request.
var calls = map[string]func(context.Context, *Client) error{
	"get": func(ctx context.Context, c *Client) error { _, err := c.Get(ctx, ConfigMaps, someMap); return err },
	"list": func(ctx context.Context, c *Client) error {
		_, err := c.List(ctx, ConfigMaps, "shop", "", "")
		return err
	},
	"metadata": func(ctx context.Context, c *Client) error {
		_, err := c.ListMetadata(ctx, ConfigMaps, "shop", "")
		return err
	},
	"count": func(ctx context.Context, c *Client) error { _, err := c.Count(ctx, ConfigMaps, "shop"); return err },
	"schemas": func(ctx context.Context, c *Client) error {
		_, err := c.Types(ctx, schema.GroupVersion{Version: "v1"})
		return err
	},
	"served": func(ctx context.Context, c *Client) error {
		_, err := c.Serves(ctx, ConfigMaps.GVR)
		return err
	},
	"apply": func(ctx context.Context, c *Client) error {
		_, _, err := c.Apply(ctx, ConfigMaps, someMap, []byte(`{"metadata":{"name":"a"}}`), Write{Live: mapObject()})
		return err
	},
	"patch": func(ctx context.Context, c *Client) error {
		_, err := c.Patch(ctx, ConfigMaps, someMap, types.MergePatchType, []byte(`{}`), Write{})
		return err
	},
	"create": func(ctx context.Context, c *Client) error {
		_, err := c.Create(ctx, ConfigMaps, mapObject(), Write{})
		return err
	},
	"update": func(ctx context.Context, c *Client) error {
		_, err := c.Update(ctx, ConfigMaps, mapObject())
		return err
	},
	"delete": func(ctx context.Context, c *Client) error {
		_, err := c.Delete(ctx, ConfigMaps, mapObject(), Deletion{})
		return err
	},
}

func isWrite(call string) bool {
	return transport.Writes(call) || call == "apply"
}

func fakeClient(t *testing.T, o Options, transport roundTripper) *Client {
	t.Helper()
	o.Jitter = func(most time.Duration) time.Duration { return most / 2 } // no chance in a test
	c, err := New(&rest.Config{Host: "https://sim", Transport: transport}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answerOf(r *http.Request, code int, header http.Header, body io.Reader) *http.Response {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	if header == nil {
		header = http.Header{}
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(body), Request: r, ProtoMajor: 2}
}

// client-go retries by itself what has the header Retry-After, and reads whose connection
// was lost: up to ten times, and without a word.
func TestOnlyOurOwnRetriesAreMade(t *testing.T) {
	for name, call := range calls {
		for fault, transport := range map[string]func(*http.Request) (*http.Response, error){
			"429": func(r *http.Request) (*http.Response, error) {
				return answerOf(r, 429, http.Header{"Retry-After": {"1"}}, strings.NewReader("later")), nil
			},
			"503": func(r *http.Request) (*http.Response, error) {
				return answerOf(r, 503, http.Header{"Retry-After": {"86400"}}, strings.NewReader("later")), nil
			},
			"reset": func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET },
		} {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				c := fakeClient(t, Options{RetryFor: time.Nanosecond}, func(r *http.Request) (*http.Response, error) { requests++; return transport(r) })
				if err := call(t.Context(), c); err == nil || requests != 1 {
					t.Errorf("%s, %s: %d requests, error %v", name, fault, requests, err)
				}
			})
		}
	}
}

func TestRetryAfterIsBoundedByTheTimeForRetries(t *testing.T) {
	for _, seconds := range []string{"20", "86400", "99999999999999999"} {
		for name, call := range calls {
			if name == "served" { // asked again by who waits for it
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				requests, begin := 0, time.Now()
				c := fakeClient(t, Options{RetryFor: 5 * time.Second, FirstContact: 5 * time.Second}, func(r *http.Request) (*http.Response, error) {
					requests++
					return answerOf(r, 429, http.Header{"Retry-After": {seconds}}, strings.NewReader("<html>later")), nil
				})
				var told error
				c.OnRetry(func(_ context.Context, err error, _ int) { told = err })
				err := call(t.Context(), c)
				if took := time.Since(begin); err == nil || took > 5*time.Second || requests != 2 {
					t.Errorf("%s, %s: %s, %d requests, error %v", name, seconds, took, requests, err)
				}
				if told == nil || !strings.Contains(told.Error(), "it asks to wait for") {
					t.Errorf("%s, %s: told %v", name, seconds, told)
				}
			})
		}
	}
}

// A server that never answers, also one whose connection is alive.
func TestEachRequestHasALimit(t *testing.T) {
	for name, call := range calls {
		for given, want := range map[time.Duration]time.Duration{0: transport.ReadLimit, 7 * time.Second: 7 * time.Second} {
			if given == 0 && isWrite(name) {
				want = transport.WriteLimit
			}
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				c := fakeClient(t, Options{RetryFor: time.Nanosecond, RequestTimeout: given}, func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				err := call(t.Context(), c)
				if took := time.Since(begin); took != want || !answers.Unreachable(err) || answers.Refused(err) {
					t.Errorf("%s: %s, want %s; error %v", name, took, want, err)
				}
				if isWrite(name) && !strings.Contains(err.Error(), "unknown") {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
}

// slowly is a body that comes one byte at a time.
type slowly struct {
	ctx   context.Context //nolint:containedctx // of the request
	text  *strings.Reader
	pause time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	if !Sleep(s.ctx, s.pause) {
		return 0, s.ctx.Err()
	}
	return s.text.Read(p[:1])
}

func TestADripIsASilence(t *testing.T) {
	for pause, ok := range map[time.Duration]bool{time.Minute: false, 20 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			c := fakeClient(t, Options{RetryFor: time.Nanosecond}, func(r *http.Request) (*http.Response, error) {
				text, _ := json.Marshal(mapObject())
				return answerOf(r, 200, nil, &slowly{r.Context(), strings.NewReader(string(text)), pause}), nil
			})
			begin := time.Now()
			_, err := c.Get(t.Context(), ConfigMaps, someMap)
			if ok && err != nil || !ok && (!answers.Unreachable(err) || time.Since(begin) != transport.ReadLimit) {
				t.Errorf("a byte every %s: after %s error %v", pause, time.Since(begin), err)
			}
		})
	}
}

// A watch that says nothing is begun again; one with bookmarks goes on.
func TestASilentWatchIsBegunAgain(t *testing.T) {
	for _, bookmarks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var watches atomic.Int32
			c := fakeClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
				if r.URL.Query().Get("watch") == "" {
					return answerOf(r, 200, nil, strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[]}`)), nil
				}
				if r.URL.Query().Get("sendInitialEvents") == "true" {
					return answerOf(r, 400, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","code":422,"reason":"Invalid"}`)), nil
				}
				watches.Add(1)
				body, w := io.Pipe()
				context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
				if bookmarks {
					go func() { //nolint:contextcheck // the request has it
						for Sleep(r.Context(), time.Minute) {
							_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"2"}}}`)
						}
					}()
				}
				return answerOf(r, 200, nil, body), nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			w := c.Watches("", func(any) {})
			w.Start(ctx, ConfigMaps, "shop")
			time.Sleep(4 * time.Minute) // client-go ends watches after five to ten
			synctest.Wait()
			if n := watches.Load(); bookmarks && n != 1 || !bookmarks && n != 2 {
				t.Errorf("bookmarks %v: %d watches", bookmarks, n)
			}
			cancel()
			w.Stop()
		})
	}
}

// A server that was never reached is not waited for as long as one that answered.
func TestFirstContactIsShort(t *testing.T) {
	for name, c := range map[string]struct {
		first int // answers before the server is away
		o     Options
		least time.Duration
		most  time.Duration
	}{
		"never":            {0, Options{RetryFor: time.Minute, FirstContact: 5 * time.Second}, 2 * time.Second, 5 * time.Second},
		"never, writing":   {0, Options{RetryFor: time.Minute}, 15 * time.Second, 20 * time.Second},
		"away for a while": {1, Options{RetryFor: time.Minute, FirstContact: 5 * time.Second}, 50 * time.Second, time.Minute},
	} {
		for fault, transport := range map[string]func(*http.Request) (*http.Response, error){
			"closed port": func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED },
			"502": func(r *http.Request) (*http.Response, error) {
				return answerOf(r, 502, nil, strings.NewReader("<html>")), nil
			},
			"redirect": func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "closed" {
					return nil, syscall.ECONNREFUSED
				}
				return answerOf(r, 302, http.Header{"Location": {"https://closed/"}}, strings.NewReader("")), nil
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				client := fakeClient(t, c.o, func(r *http.Request) (*http.Response, error) {
					if n++; n <= c.first {
						return answerOf(r, 404, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"a","kind":"configmaps"}}`)), nil
					}
					return transport(r)
				})
				for range c.first {
					if live, err := client.Get(t.Context(), ConfigMaps, someMap); live != nil || err != nil {
						t.Fatal(live, err)
					}
				}
				begin := time.Now()
				_, err := client.Get(t.Context(), ConfigMaps, someMap)
				if took := time.Since(begin); err == nil || took < c.least || took > c.most {
					t.Errorf("%s, %s: %s, error %v", name, fault, took, err)
				}
			})
		}
	}
}

// A credential plugin that asks a person is ended by the run's time, or by a signal.
func TestAPluginThatNeverReturnsDoesNotHoldUpTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		a := transport.Abandoning(roundTripper(func(r *http.Request) (*http.Response, error) {
			<-answer
			return answerOf(r, 200, nil, strings.NewReader("")), nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // nothing else ends it
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://sim", http.NoBody)
		begin := time.Now()
		if _, err := a.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour { //nolint:bodyclose // there is none
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		close(answer)
	})
}

// The gate is asked when the write is about to go out: not before it waits for its turn.
func TestTheGateIsAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("the lock is lost")
		first := make(chan struct{})
		var sent atomic.Int32
		c := fakeClient(t, Options{Parallel: 1}, func(r *http.Request) (*http.Response, error) {
			sent.Add(1)
			<-first
			return answerOf(r, 200, nil, strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)), nil
		})
		var isLost atomic.Bool
		c.Gate(func(context.Context) error {
			if isLost.Load() {
				return lost
			}
			return nil
		})
		results := make(chan error, 2)
		for range 2 {
			go func() { results <- calls["apply"](t.Context(), c) }()
		}
		synctest.Wait() // one is under way, one waits for its place
		isLost.Store(true)
		close(first)
		// Either may end first.
		if got := errors.Join(<-results, <-results); sent.Load() != 1 || !errors.Is(got, lost) {
			t.Errorf("%d were sent: %v", sent.Load(), got)
		}
	})
}

// A connection may take its time: no byte of the body goes out when the lease has run out
// meanwhile.
func TestAWriteThatWaitedForItsConnectionIsHeldBack(t *testing.T) {
	for _, second := range []bool{false, true} { // HTTP/2
		var whole atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				return
			}
			whole.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
		}))
		server.EnableHTTP2 = second
		server.StartTLS()
		var closed atomic.Bool
		var asked atomic.Int32
		config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			closed.Store(true) // the lease runs out while the connection is made
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
		c, err := New(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		reopened := errors.New("the lock is lost")
		c.Gate(func(ctx context.Context) error {
			if asked.Add(1); closed.Load() {
				if ctx.Err() != nil {
					return ctx.Err() // who does not wait
				}
				return reopened // who waits: the next try, and the end of the test
			}
			return nil
		})
		if err := calls["apply"](t.Context(), c); !errors.Is(err, reopened) || whole.Load() != 0 || asked.Load() != 3 {
			t.Errorf("HTTP/2 %v: %d writes arrived, the gate was asked %d times, error %v", second, whole.Load(), asked.Load(), err)
		}
		c.Close()
		server.CloseClientConnections()
		server.Close()
	}
}

// The last answer of the server wins over the end of the run.
func TestTheLastAnswerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		n := 0
		c := fakeClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
			if n++; n > 2 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return answerOf(r, 500, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"no backend for webhook x"}`)), nil
		})
		err := calls["apply"](ctx, c)
		if err == nil || !strings.Contains(err.Error(), "no backend for webhook x") || answers.Refused(err) {
			t.Error(err)
		}
	})
}
