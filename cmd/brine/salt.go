package main

import (
	"os"
	"slices"
	"strings"

	"brine/cmd/brine/output"
)

// saltFormat is the format for Salt that a command line asks for, or "". It
// reads the words themselves: where they cannot be parsed, Salt still waits
// for its JSON object.
func saltFormat(args []string) string {
	format := os.Getenv("BRINE_OUTPUT")
	for i, arg := range args {
		if arg == "--" {
			break
		}
		for _, flag := range []string{"--output=", "-o=", "-o"} {
			if value, ok := strings.CutPrefix(arg, flag); ok && value != "" {
				format = value
				break
			}
		}
		if (arg == "-o" || arg == "--output") && i+1 < len(args) {
			format = args[i+1]
		}
	}
	if !slices.Contains([]string{output.Salt, output.SaltCmd, output.SaltEvents}, format) {
		return ""
	}
	return format
}
