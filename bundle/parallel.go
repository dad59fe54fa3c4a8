package bundle

import (
	"runtime"
	"sync"
	"sync/atomic"
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
