package main

import (
	"fmt"
	"os"
	"strings"
)

// The part of README.md between these lines is scripts/bench's.
const (
	sectionBegin = "<!-- scripts/bench --readme writes from here -->"
	sectionEnd   = "<!-- to here -->"
)

func replaceSection(path, section string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), sectionBegin)
	_, after, ended := strings.Cut(rest, sectionEnd)
	if !ok || !ended {
		return fmt.Errorf("%s: it has no lines %q and %q", path, sectionBegin, sectionEnd)
	}
	return os.WriteFile(path, []byte(before+sectionBegin+"\n"+section+sectionEnd+after), 0o666)
}
