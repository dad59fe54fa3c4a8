package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wheel writes the Salt extension as a Python package. It is what pip would
// build of scripts/salt, without a Python: pyproject.toml says what is in it.
func (r *release) wheel() error {
	salt := filepath.Join(r.Root, "scripts", "salt")
	project, err := os.ReadFile(filepath.Join(salt, "pyproject.toml"))
	if err != nil {
		return err
	}
	version := pythonVersion(r.Version)
	var entries []entry
	for _, dir := range []struct{ from, to string }{{"src/saltext/brine", ""}, {"_beacons", "beacons"}, {"_modules", "modules"}, {"_states", "states"}, {"_runners", "runners"}} {
		found, err := folder(filepath.Join(salt, dir.from), join("saltext/brine", dir.to))
		if err != nil {
			return err
		}
		entries = append(entries, found...)
	}
	for i, e := range entries {
		if e.Path == "saltext/brine/__init__.py" {
			entries[i].Data = regexp.MustCompile(`(?m)^__version__ = .*$`).ReplaceAll(e.Data, []byte(`__version__ = "`+version+`"`))
		}
	}
	info := "saltext_brine-" + version + ".dist-info"
	summary, python, point := value(project, "description"), value(project, "requires-python"), value(project, `"saltext.brine"`)
	if summary == "" || python == "" || point == "" {
		return errors.New("scripts/salt/pyproject.toml: description, requires-python or the entry point is missing")
	}
	readme, err := os.ReadFile(filepath.Join(salt, "README.md"))
	if err != nil {
		return err
	}
	license, err := r.license()
	if err != nil {
		return err
	}
	entries = append(entries,
		entry{Path: info + "/METADATA", Data: fmt.Appendf(nil, "Metadata-Version: 2.4\nName: saltext-brine\nVersion: %s\nSummary: %s\nLicense-Expression: %s\nLicense-File: LICENSE\nRequires-Python: %s\nDescription-Content-Type: text/markdown\n\n%s", version, summary, spdx, python, readme)},
		entry{Path: info + "/licenses/LICENSE", Data: license},
		entry{Path: info + "/WHEEL", Data: []byte("Wheel-Version: 1.0\nGenerator: brine-release\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
		entry{Path: info + "/entry_points.txt", Data: []byte("[salt.loader]\nsaltext.brine = " + point + "\n")},
		entry{Path: info + "/top_level.txt", Data: []byte("saltext\n")})
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	var record strings.Builder
	for _, e := range entries {
		sum := sha256.Sum256(e.Data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", e.Path, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.Data))
	}
	entries = append(entries, entry{Path: info + "/RECORD", Data: []byte(record.String() + info + "/RECORD,,\n")})
	data, err := zipped(entries, r.Date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, "saltext_brine-"+version+"-py3-none-any.whl"), data, 0o644)
}

// pythonVersion is a semantic version as Python writes it: 0.3.0-rc.1 is 0.3.0rc1.
func pythonVersion(version string) string {
	if release, local, dirty := strings.Cut(version, "+"); dirty {
		return pythonVersion(release) + "+" + local
	}
	number, pre, ok := strings.Cut(version, "-")
	if !ok {
		return number
	}
	name, n, _ := strings.Cut(pre, ".")
	if short := map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}[name]; short != "" {
		if n == "" {
			n = "0"
		}
		return number + short + n
	}
	return number + ".dev0"
}

// value is that of a key of a TOML file, where it is a text in one line.
func value(toml []byte, key string) string {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + `\s*=\s*"([^"]*)"`).FindSubmatch(toml)
	if m == nil {
		return ""
	}
	return string(m[1])
}
