package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// collectFrom keeps the garbage collector from running while the heap is smaller than
// floor, in bytes. It would run from 4 MB on, ten times in a command that needs 24 MB at
// its end. Larger heaps are collected as Go does by default, and as GOGC says if it is set.
func collectFrom(floor uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(int(100 * float64(floor) / (4 << 20))) // of the 4 MB that the runtime begins with
	afterCollection(func() bool {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		percent := 100
		if size := live[0].Value.Uint64(); size > 0 {
			percent = max(percent, int(100*float64(floor)/float64(size))-100)
		}
		debug.SetGCPercent(percent)
		return percent > 100
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
