package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// retry calls try until it succeeds, fails for good, or the client's RetryFor
// has passed since it first failed (a stalled server may take a minute to do
// so); the last error is returned as it came.
func (c *Client) retry(ctx context.Context, try func(context.Context) error) error {
	return c.retryFor(ctx, c.options.RetryFor, try)
}

// firstContact bounds the retries of discovery: with a wrong
// address nobody wants to wait long, and a server that restarts is back by then.
const firstContact = 20 * time.Second

func (c *Client) retryFor(ctx context.Context, bound time.Duration, try func(context.Context) error) error {
	var deadline time.Time
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := judged(try(ctx))
		if err == nil || ctx.Err() != nil {
			return err
		}
		if again := Transient(err); !again {
			if again, err = c.allowed.judge(err); !again {
				return err
			}
		}
		if attempt == fewTries && WebhookFailed(err) && ctx.Value(briefly{}) != nil {
			return err
		}
		if attempt == 1 {
			deadline = time.Now().Add(bound)
		}
		wait := pause/2 + c.options.Jitter(pause/2) // many clients must not retry at the same moment
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = time.Duration(seconds) * time.Second
		}
		if time.Now().Add(wait).After(deadline) {
			return err
		}
		if report := c.onRetry.Load(); report != nil {
			(*report)(ctx, err, attempt)
		}
		if !Sleep(ctx, wait) {
			return err
		}
		pause = min(pause*2, lastPause)
	}
}

// fewTries is how often a webhook that cannot be reached is asked for where no waiting
// brings it up: in a dry run, and before the run writes anything.
const fewTries = 3

// Briefly is a context in which a webhook that cannot be reached is asked for a few times
// only, not until the time for retries is over.
func Briefly(ctx context.Context) context.Context { return context.WithValue(ctx, briefly{}, true) }

type briefly struct{}

// Sleep waits for a while. It returns false if ctx ended before.
func Sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

func setOf(s ...string) sets.String { return sets.NewString(s...) } //nolint:staticcheck // RequestInfoFactory's own type
