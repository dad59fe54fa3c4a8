package main

import (
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// sizes prints how much of a binary each module is, by its symbols. The binary
// has to be one for Linux that was not stripped. The table of functions
// (gopclntab) is shared out by the code it describes.
func sizes(w io.Writer, path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	code, data := map[string]uint64{}, map[string]uint64{}
	var allCode, allData uint64
	for _, s := range symbols {
		if s.Section >= elf.SectionIndex(len(f.Sections)) || s.Size == 0 {
			continue
		}
		section := f.Sections[s.Section]
		switch {
		case section.Type == elf.SHT_NOBITS || section.Name == ".gopclntab":
		case section.Name == ".text":
			code[owner(s.Name)] += s.Size
			allCode += s.Size
		default:
			data[owner(s.Name)] += s.Size
			allData += s.Size
		}
	}
	var table uint64
	if s := f.Section(".gopclntab"); s != nil {
		table = s.Size
	}
	total := map[string]uint64{}
	for name, n := range code {
		total[name] += n + n*table/max(allCode, 1)
	}
	for name, n := range data {
		total[name] += n
	}
	names := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), strings.Compare(a, b))
	})
	fmt.Fprintf(w, "| part | kB | of it code |\n|---|---|---|\n")
	for _, name := range names[:min(len(names), 40)] {
		fmt.Fprintf(w, "| %s | %d | %d |\n", name, total[name]/1000, code[name]/1000)
	}
	fmt.Fprintf(w, "\ncode %d kB, its table %d kB, data %d kB\n", allCode/1000, table/1000, allData/1000)
	return nil
}

// owner is the module, or part of one, that a symbol is of.
func owner(symbol string) string {
	if kind, rest, ok := strings.Cut(symbol, ":"); ok && (kind == "type" || kind == "go") {
		if kind == "go" {
			return "strings, tables of Go"
		}
		symbol = strings.TrimLeft(rest, ".*[]")
	}
	symbol, _, _ = strings.Cut(symbol, "[")
	slash := strings.LastIndex(symbol, "/")
	path := symbol
	if dot := strings.Index(symbol[slash+1:], "."); dot >= 0 {
		path = symbol[:slash+1+dot]
	}
	parts := strings.Split(path, "/")
	if len(parts) < 2 || !strings.Contains(parts[0], ".") {
		if parts[0] == "brine" || symbol == path {
			return parts[0]
		}
		return "Go: " + parts[0]
	}
	keep := 3
	if parts[0] == "k8s.io" || parts[0] == "sigs.k8s.io" || strings.HasPrefix(parts[0], "go") {
		keep = 2
	}
	return strings.Join(parts[:min(keep, len(parts))], "/")
}
