package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle/cluster/answers"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// firstContact is Options.FirstContact where that is zero.
const firstContact = 20 * time.Second

// retry calls try until it succeeds, fails for good, or the client's RetryFor
// has passed since it first failed (a stalled server may take a minute to do
// so); the last answer of the server is returned as it came. It is the only place
// that retries: client-go's own retries are switched off.
func (c *Client) retry(ctx context.Context, try func(context.Context) error) error {
	return c.retryFor(ctx, c.options.RetryFor, try)
}

func (c *Client) retryFor(ctx context.Context, bound time.Duration, try func(context.Context) error) (last error) {
	var answer error // the last one of the server
	stored := false  // perhaps, by a try before the last one
	defer func() {
		if last != nil && stored {
			last = answers.Unsure(last)
		}
	}()
	var failed time.Time
	pause, began := firstPause, time.Now()
	for attempt := 1; ; attempt++ {
		err := answers.Judge(try(ctx))
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return answers.LastAnswer(answer, err)
		}
		if again := answers.Transient(err); !again {
			if again, err = c.JudgeRefusal(err); !again {
				return c.explain(err)
			}
		}
		if attempt == fewTries && answers.WebhookFailed(err) && ctx.Value(briefly{}) != nil {
			return err
		}
		if attempt == 1 {
			failed = time.Now()
		}
		left := time.Until(failed.Add(bound))
		if !c.Answered() {
			left = min(left, time.Until(began.Add(c.options.FirstContact)))
		}
		wait := pause/2 + c.options.Jitter(pause/2) // many clients must not retry at the same moment
		if seconds, _ := apierrors.SuggestsClientDelay(err); seconds > 0 {
			asked := time.Duration(seconds) * time.Second
			if asked > lastPause { // long enough to be noticed
				err = fmt.Errorf("%w (it asks to wait for %s: Retry-After)", err, asked)
			}
			wait = min(asked, max(left, firstPause)) // a proxy may ask for a day: it is asked again before the time is over
		}
		if wait > left {
			return c.explain(err)
		}
		if report := c.onRetry.Load(); report != nil {
			told := err
			if answers.IsExplained(c.explain(err)) { // the sentence comes at the end
				told = fmt.Errorf("%s cannot be reached yet", c.config.Host)
			}
			(*report)(ctx, told, attempt)
		}
		if answer = err; !Sleep(ctx, wait) {
			return err
		}
		stored = stored || !answers.Refused(err)
		pause = min(pause*2, lastPause)
	}
}

// explain is the error of a request to a server that has never answered, in one sentence
// where that is known.
func (c *Client) explain(err error) error {
	if explained := answers.ExplainReach(c.config.Host, err); !c.Answered() && answers.IsExplained(explained) {
		return explained
	}
	return err
}

// fewTries is how often a webhook that cannot be reached is asked for where no waiting
// brings it up: in a dry run, and before the run writes anything.
const fewTries = 3

// Briefly is a context in which a webhook that cannot be reached is asked for a few times
// only, not until the time for retries is over.
func Briefly(ctx context.Context) context.Context { return context.WithValue(ctx, briefly{}, true) }

type briefly struct{}

type endKey struct{}

// WithEnd is a context in which no pause outlasts run, and no request is repeated after
// it: only requests under way live as long as ctx.
func WithEnd(ctx, run context.Context) context.Context {
	return context.WithValue(ctx, endKey{}, run)
}

// Outliving is a context for what has to be done also once ctx, or the run of WithEnd, has ended: until limit
// is over, or grace after that end.
func Outliving(ctx context.Context, limit, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	soon := func() { time.AfterFunc(grace, cancel) }
	stop, stopRun := context.AfterFunc(ctx, soon), context.AfterFunc(runOf(ctx), soon)
	return WithEnd(late, late), func() { _, _ = stop(), stopRun(); cancel() }
}

// Ended says whether ctx, or the run of WithEnd, has ended.
func Ended(ctx context.Context) bool { return WhyEnded(ctx) != nil }

// WhyEnded is why ctx, or the run of WithEnd, has ended; nil: it has not.
func WhyEnded(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return context.Cause(runOf(ctx))
}

// runOf is the run of WithEnd, otherwise ctx itself.
func runOf(ctx context.Context) context.Context {
	if run, ok := ctx.Value(endKey{}).(context.Context); ok {
		return run
	}
	return ctx
}

// Sleep waits for a while. It returns false if ctx, or the run of WithEnd, ended before.
func Sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-runOf(ctx).Done():
		return false
	case <-time.After(pause):
		return true
	}
}
