//go:build !unix

package main

func dropCores() {}
