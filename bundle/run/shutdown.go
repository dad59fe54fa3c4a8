package run

import (
	"context"
	"errors"
	"fmt"
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

// shutdown holds contexts that outlast the run's own, by less than report.Grace. The
// requests under way, of package apply, have the first part of it.
type shutdown struct {
	diagnosis, records, release context.Context //nolint:containedctx // they are made when the run begins, and count from its end
	stop                        func()
}

func newShutdown(ctx context.Context) shutdown {
	var cancels []context.CancelFunc
	outlasting := func(signalled, timedOut time.Duration) context.Context {
		late, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancels = append(cancels, cancel)
		if parent, ok := ctx.Value(signalledKey{}).(context.Context); ok {
			context.AfterFunc(parent, func() { time.AfterFunc(signalled, cancel) })
		}
		context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), report.ErrTimeout) {
				time.AfterFunc(timedOut, cancel)
			} else {
				time.AfterFunc(signalled, cancel)
			}
		})
		return late
	}
	s := shutdown{
		diagnosis: outlasting(0, report.Grace*6/10),
		records:   outlasting(report.Grace*8/10, report.Grace*8/10),
		release:   outlasting(report.Grace*9/10, report.Grace*9/10),
	}
	s.stop = func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
	return s
}
