package bundle

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Parallel calls do for 0 to n-1 on all processors, and returns when all are done. Few
// goroutines do all the work: the stack of each grows once, not once a call.
func Parallel(n int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	group.Wait()
}

// AtOnce calls do for each one, at most limit at the same time, and returns when all are
// done. The first error is returned, and ends the context of the others.
func AtOnce[T any](ctx context.Context, limit int, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}
