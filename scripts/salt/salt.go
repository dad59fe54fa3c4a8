// Package salt gives brine's help the documentation of the Salt modules.
package salt

import _ "embed"

//go:embed README.md
var readme string

// Readme is README.md.
func Readme() string { return readme }
