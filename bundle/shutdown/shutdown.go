// Package shutdown says how long a run has: until its timeout, and after its end.
package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"brine/bundle/report"
)

// WithTimeout bounds a whole run, the reading of its bundle included; 0 is no
// bound.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	signalled := context.WithValue(ctx, signalledKey{}, ctx)
	if timeout <= 0 {
		return context.WithCancel(signalled)
	}
	return context.WithTimeoutCause(signalled, timeout, fmt.Errorf("%w after %s", report.ErrTimeout, timeout))
}

// signalledKey finds the context that only a signal ends.
type signalledKey struct{}

// Time is the time that a run has after its end, less than report.Grace, by what it
// is for. The requests under way, of package apply, have the first part of it.
type Time struct {
	Diagnosis, Records, Release Grace
	Stop                        func() // ends the watching for the run's end
}

// Grace is closed when its time is over.
type Grace chan struct{}

// Of is ctx until the time is over, whatever ends ctx.
func (g Grace) Of(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { // ends with late
		select {
		case <-g:
			cancel()
		case <-late.Done():
		}
	}()
	return late, cancel
}

// SignalledOf is the context that signals end, of a run inside of another one; otherwise nil.
func SignalledOf(ctx context.Context) context.Context {
	parent, _ := ctx.Value(signalledKey{}).(context.Context)
	return parent
}

// New is the time of a run, which ends with ctx.
func New(ctx context.Context) Time {
	var stops []func() bool
	outlasting := func(signalled, timedOut time.Duration) Grace {
		g := make(Grace)
		end := sync.OnceFunc(func() { close(g) })
		if parent := SignalledOf(ctx); parent != nil {
			stops = append(stops, context.AfterFunc(parent, func() { time.AfterFunc(signalled, end) }))
		}
		stops = append(stops, context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), report.ErrTimeout) {
				time.AfterFunc(timedOut, end)
			} else {
				time.AfterFunc(signalled, end)
			}
		}))
		return g
	}
	s := Time{
		Diagnosis: outlasting(0, report.Grace*6/10),
		Records:   outlasting(report.Grace*8/10, report.Grace*8/10),
		Release:   outlasting(report.Grace*9/10, report.Grace*9/10),
	}
	s.Stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	return s
}
