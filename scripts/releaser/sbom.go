package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom writes what a binary says of itself: its build info, as CycloneDX.
func (r *release) sbom(p platform) error {
	info, err := buildinfo.ReadFile(r.binary(p))
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(r.binary(p))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(binary)
	main := cdx.Component{
		BOMRef: "pkg:generic/brine@" + r.Version, Type: cdx.ComponentTypeApplication, Name: "brine", Version: r.Version, PackageURL: "pkg:generic/brine@" + r.Version,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	supplier := &cdx.OrganizationalEntity{Name: maintainer, URL: &[]string{homepage}}
	main.Supplier, main.Licenses = supplier, &cdx.Licenses{{License: &cdx.License{ID: spdx}}}
	property := func(name, value string) cdx.Property { return cdx.Property{Name: "cdx:golang:" + name, Value: value} }
	properties := []cdx.Property{property("commit", r.Commit)}
	for _, s := range info.Settings {
		properties = append(properties, property("build:"+s.Key, s.Value))
	}
	main.Properties = &properties

	components := []cdx.Component{r.component("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, r.component(m.Path, m.Version, m.Sum))
	}
	needs := []string{}
	for _, c := range components {
		needs = append(needs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	// The same binary has the same document, and so the same number.
	bom.SerialNumber = uuid(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: r.Date.Format(time.RFC3339), Component: &main, Supplier: supplier}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	// 1.7 has a schema that no module brings, so that a test could not hold it against it.
	out, err := os.Create(filepath.Join(r.Out, r.name(p, ".cdx.json")))
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// uuid is one of version 8, which may be made of anything.
func uuid(sum [sha256.Size]byte) string {
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func (r *release) component(path, version, sum string) cdx.Component {
	c := cdx.Component{BOMRef: "pkg:golang/" + path + "@" + version, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: "pkg:golang/" + path + "@" + version}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "cdx:golang:h1", Value: sum}}
	}
	var choices cdx.Licenses
	for _, spdx := range r.Licenses.of(path) {
		choices = append(choices, cdx.LicenseChoice{License: &cdx.License{ID: spdx}})
	}
	if choices != nil {
		c.Licenses = &choices
	}
	return c
}
