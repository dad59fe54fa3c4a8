// Package collector says when the garbage collector runs, from before most libraries are
// initialised, which takes 4 MB: so it imports none of them. It is imported for that alone.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// floor is the heap, in bytes, from which on it runs.
const floor = 24 << 20

// crowded is the size of a heap, in bytes, from which on it may grow by a half only.
const crowded = 120 << 20

// init keeps the garbage collector from running while the heap is smaller than floor: it
// would run from 4 MB on, ten times in a command that needs 24 MB at its end. Larger heaps are
// collected as Go does by default, and as GOGC says if it is set; from crowded on, which
// 10,000 objects fill, memory is scarcer than time.
func init() { //nolint:gochecknoinits // nothing else is early enough
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(100 * floor / (4 << 20)) // of the 4 MB that the runtime begins with
	afterCollection(func() bool {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		size := live[0].Value.Uint64()
		if size > crowded {
			debug.SetGCPercent(50)
			return false
		}
		debug.SetGCPercent(max(100, int(100*float64(floor)/float64(max(size, 1)))-100))
		return true
	})
}

// afterCollection calls do after each collection, until it returns false.
func afterCollection(do func() bool) {
	type mark struct{ _ *byte } // with a pointer, so that it is no part of a larger block
	runtime.AddCleanup(&mark{}, func(do func() bool) {
		if do() {
			afterCollection(do)
		}
	}, do)
}
