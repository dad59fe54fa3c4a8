package cluster

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// MaxConcurrency is how many writes are under way at most, however fast the server.
const MaxConcurrency = 64

const (
	firstWidth = 32
	leastWidth = 2
	// Twice the time that an unhurried server takes means that about as many
	// requests wait there as are worked on: more are likely to wait as well.
	hurried = 2
	// A trial that was in vain is repeated after so many windows: what is sent
	// by then may be of another kind.
	patience = 8
)

// pace bounds the writes (PATCH and DELETE, dry runs too) that are under way at
// once. It grows while answers come about as fast as ever. When they do not, it
// tries whether more requests get more answers all the same, as behind a slow
// webhook, and takes that back if they do not, as where they wait for a
// processor. Told to slow down (429), it halves.
type pace struct {
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

func newPace(width int) *pace {
	if width > 0 {
		return &pace{width: width, fixed: true}
	}
	return &pace{width: firstWidth}
}

// Concurrency is how many writes are worth having under way at the moment.
func (c *Client) Concurrency() int {
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	return c.pace.width
}

// enter waits for a place.
func (p *pace) enter(ctx context.Context) error {
	p.mu.Lock()
	if p.busy < p.width && len(p.waiting) == 0 {
		p.busy++
		p.full = p.full || p.busy == p.width
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, turn); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return ctx.Err()
	}
	p.busy-- // its turn came at the same moment
	p.next()
	return ctx.Err()
}

// leave gives the place back, with what the request tells of the server: its
// status (0 where there was no answer) and the time it took.
func (p *pace) leave(now time.Time, took time.Duration, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	if !p.fixed {
		p.learn(now, took, status)
	}
	p.next()
}

// next lets in who waits.
func (p *pace) next() {
	for p.busy < p.width && len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		p.busy++
	}
	p.full = p.full || p.busy >= p.width
}

func (p *pace) learn(now time.Time, took time.Duration, status int) {
	switch {
	case status == http.StatusTooManyRequests:
		if now.After(p.quietTil) { // those under way were sent before we knew
			p.width = max(p.width/2, leastWidth)
			p.quietTil = now.Add(time.Second)
			p.trial = false
		}
		p.window(now)
		return
	case status == 0:
		return
	case p.answers == 0 && p.begun.IsZero():
		p.begun = now.Add(-took)
	}
	p.answers++
	p.took += took
	if p.answers < p.width {
		return
	}
	mean, rate := p.took/time.Duration(p.answers), float64(p.answers)/max(now.Sub(p.begun), time.Microsecond).Seconds()
	if p.fastest == 0 || mean < p.fastest {
		p.fastest = mean
	}
	switch {
	case !p.full, !now.After(p.quietTil):
	case p.fresh:
		p.fresh = false
	case p.trial && rate < 1.05*p.before:
		p.width, p.trial, p.rest = p.back, false, patience
	case p.rest > 0:
		p.rest--
	default:
		p.trial = mean >= hurried*p.fastest
		p.fresh, p.before, p.back = p.trial, rate, p.width
		p.width = min(p.width+p.width/2, MaxConcurrency)
	}
	p.window(now)
}

// window begins the next.
func (p *pace) window(now time.Time) {
	p.begun, p.answers, p.took, p.full = now, 0, 0, p.busy >= p.width
}
