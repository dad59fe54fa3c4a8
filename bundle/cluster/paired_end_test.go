package cluster

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A discovery that is cancelled leaves no request behind: synctest waits for every
// goroutine of the bubble, and says if one never ends.
func TestACancelledDiscoveryEndsBothRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the two requests end at the same time
		var ended []string
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, r.URL.Path)
			return nil, r.Context().Err()
		})
		c, err := New(&rest.Config{Host: "https://sim", Transport: transport}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Discover(ctx); err == nil {
			t.Error("a discovery without an answer succeeded")
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(ended, " "); got != "/api /apis" && got != "/apis /api" {
			t.Errorf("ended: %s, want both requests", got)
		}
	})
}
