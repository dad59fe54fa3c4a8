package shutdown

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"brine/bundle/report"
)

// On a clock of its own, so that no machine is too slow for it.
func TestARunEndsWithinItsGraceAfterASignal(t *testing.T) {
	for name, signalAfter := range map[string]time.Duration{"while it works": time.Second, "after its time ran out": 25 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			parent, signal := context.WithCancelCause(context.Background())
			ctx, cancel := WithTimeout(parent, 20*time.Second)
			defer cancel()
			s := New(ctx)
			defer s.Stop()
			time.Sleep(signalAfter)
			signal(report.ErrTerminated)
			sent := time.Now()
			for what, part := range map[string]Grace{"diagnosis": s.Diagnosis, "records": s.Records, "release": s.Release} {
				<-part
				if took := time.Since(sent); took >= report.Grace {
					t.Errorf("%s: %s ended %s after the signal", name, what, took)
				}
			}
		})
	}
}

func TestARunEndsWithinItsGraceAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s := New(ctx)
		defer s.Stop()
		<-ctx.Done()
		ranOut := time.Now()
		if !errors.Is(context.Cause(ctx), report.ErrTimeout) {
			t.Fatal(context.Cause(ctx))
		}
		for _, part := range []Grace{s.Diagnosis, s.Records, s.Release} {
			<-part
		}
		if took := time.Since(ranOut); took >= report.Grace {
			t.Errorf("the last part ended %s after the time ran out", took)
		}
	})
}
