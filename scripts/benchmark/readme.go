package main

import (
	"fmt"
	"os"
	"strings"
)

// The part of a README between such lines is scripts/bench's.
const (
	sectionBegin = "<!-- scripts/bench --readme writes from here -->"
	sectionEnd   = "<!-- to here -->"
)

func replaceSection(path, begin, section string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, sectionEnd)
	if !ok || !ended {
		return fmt.Errorf("%s: it has no lines %q and %q", path, begin, sectionEnd)
	}
	return os.WriteFile(path, []byte(before+begin+"\n"+section+sectionEnd+after), 0o666)
}
