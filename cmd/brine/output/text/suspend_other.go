//go:build !unix

package text

import "os"

// suspensions never sends: there is no job control here.
func suspensions() (<-chan os.Signal, func()) { return nil, func() {} }

func suspend() {}
