package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensed is a module that is linked into a binary, or Go's own library.
type licensed struct {
	Module, Version string
	SPDX            []string
	Texts           []string // those of its licences and notices
}

type licenses []*licensed

// licenseFile is a file that has to be passed on with the code beside it.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([-._].*)?$`)

// kinds are the licences that may be in a release, and words that only they
// have. One that is not known stops the release: somebody has to read it first.
var kinds = []struct{ spdx, words string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "names of its contributors may be used to endorse"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
}

// classify gives the licences that a text has; none for notices.
func classify(text string) []string {
	plain := strings.Join(strings.Fields(strings.ReplaceAll(text, "//", " ")), " ")
	var found []string
	for _, k := range kinds {
		if strings.Contains(strings.ToLower(plain), strings.ToLower(k.words)) && !slices.Contains(found, k.spdx) {
			found = append(found, k.spdx)
		}
	}
	if slices.Contains(found, "BSD-3-Clause") { // it has the words of the other, too
		found = slices.DeleteFunc(found, func(s string) bool { return s == "BSD-2-Clause" })
	}
	return found
}

// supported are the platforms that a release may have binaries for. The licences are those
// of all of them: no file depends on what else is released.
var supported = []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}

// collectLicenses finds, for each package that is linked, the licence files in
// its folder and in those above it, up to its module's.
func collectLicenses(r *release) (licenses, error) {
	modules := map[string]*licensed{}
	seen := map[string]bool{}
	for _, p := range supported {
		cmd := exec.Command("go", "list", "-tags", r.Tags, "-deps", "-f",
			"{{if not .Standard}}{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}{{end}}", "./cmd/brine")
		cmd.Dir, cmd.Stderr = r.Root, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS="+p.OS, "GOARCH="+p.Arch, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
			fields := strings.Split(lines.Text(), "\t")
			if len(fields) != 4 {
				continue
			}
			m := modules[fields[0]]
			if m == nil {
				m = &licensed{Module: fields[0], Version: fields[1]}
				modules[fields[0]] = m
			}
			if err := m.add(fields[2], fields[3], seen); err != nil {
				return nil, err
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	env := strings.Fields(string(root))
	library := &licensed{Module: "std", Version: strings.TrimPrefix(env[1], "go")}
	if err := library.add(env[0], env[0], seen); err != nil {
		return nil, err
	}
	modules["std"] = library
	var all licenses
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		if len(m.SPDX) == 0 {
			return nil, fmt.Errorf("%s %s: no licence that is known was found in it", m.Module, m.Version)
		}
		slices.Sort(m.SPDX)
		all = append(all, m)
	}
	return all, nil
}

// add reads the licence files from dir up to top.
func (l *licensed) add(top, dir string, seen map[string]bool) error {
	for ; strings.HasPrefix(dir, top) && !seen[dir]; dir = filepath.Dir(dir) {
		seen[dir] = true
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.IsDir() || !licenseFile.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				return err
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			for _, spdx := range classify(text) {
				if !slices.Contains(l.SPDX, spdx) {
					l.SPDX = append(l.SPDX, spdx)
				}
			}
			if !slices.Contains(l.Texts, text) {
				l.Texts = append(l.Texts, text)
			}
		}
	}
	return nil
}

func (all licenses) of(module string) []string {
	for _, l := range all {
		if l.Module == module {
			return l.SPDX
		}
	}
	return nil
}

// text lists all modules, and then every text once with the modules it is of.
func (all licenses) text() []byte {
	var b bytes.Buffer
	b.WriteString("brine contains these modules, under these licences. Their texts follow.\n\n")
	users := map[string][]string{}
	var order []string
	for _, l := range all {
		fmt.Fprintf(&b, "%-70s %s\n", l.Module+" "+l.Version, strings.Join(l.SPDX, ", "))
		for _, text := range l.Texts {
			if users[text] == nil {
				order = append(order, text)
			}
			users[text] = append(users[text], l.Module)
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), strings.Join(users[text], "\n"), text)
	}
	return b.Bytes()
}
