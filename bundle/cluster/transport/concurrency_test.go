package transport

import (
	"context"
	"errors"
	"testing"
	"time"
)

// played lets a pace write to a server that works on so many requests at once,
// each for so long, at the end of a wire; the rest of them wait there. It
// returns the time when all are answered.
func played(p *concurrency, now time.Time, requests, workers int, work, wire time.Duration) time.Time {
	type request struct{ sent, answered time.Time }
	var under []request
	free := make([]time.Time, workers)
	for requests > 0 || len(under) > 0 {
		for requests > 0 && p.enter(expired) == nil {
			first := 0
			for i := range free {
				if free[i].Before(free[first]) {
					first = i
				}
			}
			begin := now.Add(wire / 2)
			if free[first].After(begin) {
				begin = free[first]
			}
			free[first] = begin.Add(work)
			under = append(under, request{now, free[first].Add(wire / 2)})
			requests--
		}
		first := 0
		for i := range under {
			if under[i].answered.Before(under[first].answered) {
				first = i
			}
		}
		done := under[first]
		under = append(under[:first], under[first+1:]...)
		now = done.answered
		p.leave(now, done.answered.Sub(done.sent), 200)
	}
	return now
}

// expired makes enter say at once that there is no place.
var expired = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func TestPaceGrowsWhileItIsWorthSomething(t *testing.T) {
	for _, c := range []struct {
		name          string
		workers       int
		work, wire    time.Duration
		atLeast, most int
	}{
		{"a long wire and a large server", 64, 2 * time.Millisecond, 50 * time.Millisecond, MaxConcurrency, MaxConcurrency},
		{"a long wire and two cores", 2, 2 * time.Millisecond, 20 * time.Millisecond, 22, MaxConcurrency},
		{"no wire and two cores: it waits in line", 2, 2 * time.Millisecond, 0, firstWidth, 2*firstWidth + firstWidth},
		{"a slow webhook", 1000, 300 * time.Millisecond, time.Millisecond, MaxConcurrency, MaxConcurrency},
	} {
		p := newConcurrency(0)
		// Not so slow yet: what was fast once must not keep it from growing.
		now := played(p, time.Unix(0, 0), 100, c.workers, c.work/4, c.wire)
		played(p, now, 2000, c.workers, c.work, c.wire)
		if p.width < c.atLeast || p.width > c.most {
			t.Errorf("%s: %d writes at once, %d to %d expected", c.name, p.width, c.atLeast, c.most)
		}
	}
}

func TestPaceHalvesWhenToldTo(t *testing.T) {
	p := newConcurrency(0)
	now := time.Unix(0, 0)
	for range firstWidth { // sent at the same time, refused at the same time
		if err := p.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range firstWidth {
		p.leave(now, time.Millisecond, 429)
	}
	if p.width != firstWidth/2 {
		t.Errorf("%d at once after a refusal, %d expected", p.width, firstWidth/2)
	}
	for i := range 10 {
		p.busy++
		p.leave(now.Add(time.Duration(i)*2*time.Second), time.Millisecond, 429)
	}
	if p.width != leastWidth {
		t.Errorf("%d at once after many, %d expected", p.width, leastWidth)
	}
	played(p, now.Add(time.Minute), 500, 64, time.Millisecond, 20*time.Millisecond)
	if p.width <= leastWidth {
		t.Error("it never recovers")
	}
}

func TestPaceOfAFixedWidthStays(t *testing.T) {
	p := newConcurrency(3)
	played(p, time.Unix(0, 0), 100, 64, time.Millisecond, 20*time.Millisecond)
	p.busy++
	p.leave(time.Unix(9, 0), time.Millisecond, 429)
	if p.width != 3 {
		t.Errorf("%d at once, 3 were asked for", p.width)
	}
}

func TestPaceLetsWaitersIn(t *testing.T) {
	p := newConcurrency(1)
	if err := p.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.enter(expired); !errors.Is(err, context.Canceled) {
		t.Errorf("no place, and the context has ended: %v", err)
	}
	entered := make(chan error)
	go func() { entered <- p.enter(t.Context()) }()
	for {
		p.mu.Lock()
		waiting := len(p.waiting)
		p.mu.Unlock()
		if waiting == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	p.leave(time.Now(), time.Millisecond, 200)
	if err := <-entered; err != nil {
		t.Error(err)
	}
	if p.busy != 1 || len(p.waiting) != 0 {
		t.Errorf("%d under way, %d waiting", p.busy, len(p.waiting))
	}
}
