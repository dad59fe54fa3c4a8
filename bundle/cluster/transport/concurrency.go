package transport

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// How many writes are sent at once: as many as the server takes without becoming slower.

// MaxConcurrency is how many writes are under way at most, however fast the server.
const MaxConcurrency = 64

const (
	firstWidth = 32
	leastWidth = 2
	// Twice the time of the fastest window means that about as many requests wait at
	// the server as are worked on: more are likely to wait as well.
	slowed = 2
	// A trial that was in vain is repeated after so many windows: what is sent
	// by then may be of another kind.
	trialRest = 8
)

// concurrency bounds the writes (PATCH and DELETE, dry runs too) that are under way at
// once. It grows while answers come about as fast as ever. When they do not, it
// tries whether more requests still get more answers, as behind a slow
// webhook, and takes that back if they do not, as where they wait for a
// processor. On 429 (too many requests) it halves.
type concurrency struct {
	fixed bool

	mu      sync.Mutex
	width   int
	busy    int
	waiting []chan struct{}

	begun    time.Time     // the window: as many answers as the width
	answers  int           // in it
	took     time.Duration // by them together
	full     bool          // all that was allowed was under way
	fastest  time.Duration // a window's mean
	quietTil time.Time     // after a 429 it does not grow for a while

	trial  bool    // the last growth was one
	fresh  bool    // requests sent before it still count
	before float64 // answers a second before the trial
	back   int     // the width before it
	rest   int     // windows until the next
}

func newConcurrency(width int) *concurrency {
	if width > 0 {
		return &concurrency{width: width, fixed: true}
	}
	return &concurrency{width: firstWidth}
}

func (c *concurrency) enter(ctx context.Context) error {
	c.mu.Lock()
	if c.busy < c.width && len(c.waiting) == 0 {
		c.busy++
		c.full = c.full || c.busy == c.width
		c.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	c.waiting = append(c.waiting, turn)
	c.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.waiting, turn); at >= 0 {
		c.waiting = slices.Delete(c.waiting, at, at+1)
		return ctx.Err()
	}
	c.busy-- // its turn came at the same moment
	c.next()
	return ctx.Err()
}

// leave gives the place back, with the status of the answer (0 for none) and the
// time that it took.
func (c *concurrency) leave(now time.Time, took time.Duration, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if !c.fixed {
		c.learn(now, took, status)
	}
	c.next()
}

func (c *concurrency) next() {
	for c.busy < c.width && len(c.waiting) > 0 {
		close(c.waiting[0])
		c.waiting = c.waiting[1:]
		c.busy++
	}
	c.full = c.full || c.busy >= c.width
}

func (c *concurrency) learn(now time.Time, took time.Duration, status int) {
	switch {
	case status == http.StatusTooManyRequests:
		if now.After(c.quietTil) { // those under way were sent before we knew
			c.width = max(c.width/2, leastWidth)
			c.quietTil = now.Add(time.Second)
			c.trial = false
		}
		c.window(now)
		return
	case status == 0:
		return
	case c.answers == 0 && c.begun.IsZero():
		c.begun = now.Add(-took)
	}
	c.answers++
	c.took += took
	if c.answers < c.width {
		return
	}
	mean, rate := c.took/time.Duration(c.answers), float64(c.answers)/max(now.Sub(c.begun), time.Microsecond).Seconds()
	if c.fastest == 0 || mean < c.fastest {
		c.fastest = mean
	}
	switch {
	case !c.full, !now.After(c.quietTil):
	case c.fresh:
		c.fresh = false
	case c.trial && rate < 1.05*c.before:
		c.width, c.trial, c.rest = c.back, false, trialRest
	case c.rest > 0:
		c.rest--
	default:
		c.trial = mean >= slowed*c.fastest
		c.fresh, c.before, c.back = c.trial, rate, c.width
		c.width = min(c.width+c.width/2, MaxConcurrency)
	}
	c.window(now)
}

func (c *concurrency) window(now time.Time) {
	c.begun, c.answers, c.took, c.full = now, 0, 0, c.busy >= c.width
}
