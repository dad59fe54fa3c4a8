package transport

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/util/flowcontrol"
)

// defaultLimit limits the client's rate only where the server cannot look after
// itself: one with priority and fairness says so in every answer.
type defaultLimit struct {
	limited atomic.Pointer[flowcontrol.RateLimiter]
}

const (
	defaultQPS = 50 // as kubectl does
	// DefaultBurst is how many requests may go out at once before the limit counts.
	DefaultBurst = 300
)

// learn is called with the first good answer's headers (a load balancer's own
// say nothing of the server), before there is traffic worth limiting.
func (l *defaultLimit) learn(header http.Header) {
	if header.Get("X-Kubernetes-PF-FlowSchema-UID") == "" {
		limiter := flowcontrol.NewTokenBucketRateLimiter(defaultQPS, DefaultBurst)
		l.limited.Store(&limiter)
	}
}

func (l *defaultLimit) limiter() flowcontrol.RateLimiter {
	if limiter := l.limited.Load(); limiter != nil {
		return *limiter
	}
	return unlimited
}

var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

func (l *defaultLimit) TryAccept() bool                { return l.limiter().TryAccept() }
func (l *defaultLimit) Accept()                        { l.limiter().Accept() }
func (l *defaultLimit) Stop()                          {}
func (l *defaultLimit) QPS() float32                   { return l.limiter().QPS() }
func (l *defaultLimit) Wait(ctx context.Context) error { return l.limiter().Wait(ctx) }
