// Package readtest reads bundles for tests.
package readtest

import (
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/read"
)

// Bundle is a text, as brine reads it, without a server.
func Bundle(t testing.TB, text string) *bundle.Bundle {
	t.Helper()
	b, err := read.Bundle(t.Context(), read.Options{Files: []string{read.Stdin}, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Objects are those of a text, with the identities that they have without a server.
func Objects(t testing.TB, text string) []*bundle.Object {
	t.Helper()
	b := Bundle(t, text)
	if err := read.Resolve(b, read.Resolver{}); err != nil {
		t.Fatal(err)
	}
	return b.Objects
}
