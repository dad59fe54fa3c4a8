package main

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/sassoftware/go-rpmutils"
)

func TestPythonVersions(t *testing.T) {
	for version, want := range map[string]string{
		"0.2.0": "0.2.0", "0.3.0-rc.1": "0.3.0rc1", "0.3.0-alpha": "0.3.0a0", "0.3.0-beta.2": "0.3.0b2", "0.3.0-dev.4": "0.3.0.dev4", "0.3.0-preview": "0.3.0.dev0",
		"0.3.0+dirty": "0.3.0+dirty", "0.3.0-rc.1+dirty": "0.3.0rc1+dirty",
	} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s is %s in Python, want %s", version, got, want)
		}
	}
}

// What is found decides whether a release is made: none stops it.
func TestLicencesAreRecognized(t *testing.T) {
	redistribution := "// Redistribution and use in source and binary forms, with or without\n// modification, are permitted provided that the following conditions are met:\n"
	for text, want := range map[string][]string{
		"Apache License\n   Version 2.0, January 2004\n": {"Apache-2.0"},
		redistribution: {"BSD-2-Clause"},
		redistribution + "// Neither the name of Google Inc. nor":                                                                   {"BSD-3-Clause"},
		"Permission is hereby granted, free of charge, to any person obtaining a copy\n\nApache License\nVersion 2.0, January 2004": {"Apache-2.0", "MIT"},
		"This software may be used on Sundays.":                                                                                     nil,
		"Copyright 2026 Somebody":                                                                                                   nil,
	} {
		if got := classify(text); !slices.Equal(got, want) {
			t.Errorf("%q has the licences %v, want %v", text, got, want)
		}
	}
}

// scripts/release empties the folder it writes to. One that is no release is left alone.
func TestOtherFoldersAreNotEmptied(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join("..", "release"), "99.0.0", "--allow-dirty", "--out", dir)
	out, _ := cmd.CombinedOutput()
	if says(t, string(out), dir+" has files, and no SHA256SUMS"); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("it ends with %s", cmd.ProcessState)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
}

// What is missing is said before minutes of compiling.
func TestVersionWithoutChangesIsRefusedAtOnce(t *testing.T) {
	cmd := exec.Command(filepath.Join("..", "release"), "98.7.6", "--allow-dirty", "--out", filepath.Join(t.TempDir(), "out"))
	cmd.Env = append(os.Environ(), "GOCACHE=/nonexistent") // nothing can be compiled
	out, _ := cmd.CombinedOutput()
	if says(t, string(out), `scripts/CHANGELOG.md has no heading "## 98.7.6"`); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("it ends with %s", cmd.ProcessState)
	}
}

// Whoever has the public key can verify an RPM package.
func TestSignedRPM(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{"in/linux_amd64/brine", "in/man/brine.1", "in/completions/brine.bash", "in/completions/_brine", "in/completions/brine.fish", "out/nothing"} {
		write(name, name)
	}
	signer, err := openpgp.NewEntity("Release", "", "release@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.Create(filepath.Join(dir, "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := armor.Encode(key, openpgp.PrivateKeyType, nil)
	if err == nil {
		err = errors.Join(signer.SerializePrivate(text, nil), text.Close(), key.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &release{Version: "0.2.0", Date: time.Unix(1_700_000_000, 0), Root: filepath.Join("..", ".."), In: filepath.Join(dir, "in"), Out: filepath.Join(dir, "out"), Key: key.Name()}
	if err := r.distroPackage(platform{"linux", "amd64"}, "rpm"); err != nil {
		t.Fatal(err)
	}
	verify := func(known openpgp.EntityList) error {
		file, err := os.Open(filepath.Join(r.Out, "brine-0.2.0-1.x86_64.rpm"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		_, signatures, err := rpmutils.Verify(file, known)
		if err == nil && len(signatures) == 0 {
			return errors.New("it has no signature")
		}
		return err
	}
	if err := verify(openpgp.EntityList{signer}); err != nil {
		t.Errorf("the package does not verify: %v", err)
	}
	other, err := openpgp.NewEntity("Other", "", "other@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(openpgp.EntityList{other}); err == nil {
		t.Error("the package verifies with the key of somebody else")
	}
}

// What else is released, and in which order, changes nothing of a file: only those that list
// all platforms know of it. A zip holds no links, so that it has the plugin as a file.
func TestFilesDoNotDependOnThePlatforms(t *testing.T) {
	in := t.TempDir()
	source := filepath.Join(in, "main.go")
	for name, text := range map[string]string{"main.go": "package main\n\nfunc main() {}\n", "man/brine.1": "page", "completions/brine.bash": "bash", "completions/_brine": "zsh", "completions/brine.fish": "fish"} {
		path := filepath.Join(in, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	linux, windows := platform{"linux", "amd64"}, platform{"windows", "amd64"}
	var outs []string
	var files []map[string]string
	for _, platforms := range [][]platform{{linux}, {windows, linux}} {
		r := &release{Version: "0.2.0", Commit: "c", Date: time.Unix(1_700_000_000, 0), Root: filepath.Join("..", ".."), In: in, Out: t.TempDir(), Tags: "grpcnotrace", Platforms: platforms}
		for _, p := range platforms {
			run(t, exec.Command("go", "build", "-o", r.binary(p), source))
		}
		if err := r.pack(); err != nil {
			t.Fatal(err)
		}
		sums, err := sumsOf(r.Out)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, s := range sums {
			all[s.Name] = s.Hex
		}
		outs, files = append(outs, r.Out), append(files, all)
	}
	for name, sum := range files[0] {
		lists := name == "SHA256SUMS" || strings.HasSuffix(name, "_krew.yaml") || strings.HasSuffix(name, "_provenance.intoto.json")
		if got := files[1][name]; got != sum && !lists {
			t.Errorf("%s is another one where Windows is released, too", name)
		}
	}
	archive, err := zip.OpenReader(filepath.Join(outs[1], "brine_0.2.0_windows_amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}
	for _, want := range []string{"brine.exe", "kubectl-brine.exe", "LICENSE", "THIRD-PARTY-LICENSES.txt"} {
		if !slices.Contains(names, "brine_0.2.0_windows_amd64/"+want) {
			t.Errorf("the zip has no %s: %v", want, names)
		}
	}
}
