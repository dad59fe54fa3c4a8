package inventory

import _ "embed"

//go:embed README.md
var readme string

// Readme is README.md, whose sections are topics of brine's help.
func Readme() string { return readme }
