//go:build unix

package main

import "syscall"

// dropCores has a crash write no core file, nor one of what brine starts.
func dropCores() { _ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) }
