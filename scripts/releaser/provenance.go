package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// provenance writes where the files come from, as an in-toto statement (v1) with the
// predicate of SLSA (provenance v1): commit, builder, inputs. The same commit makes the
// same bytes, so it says nothing of the machine and the hour: whoever doubts builds again.
func (r *release) provenance() error {
	sums, err := sumsOf(r.Out)
	if err != nil {
		return err
	}
	var subjects []object
	for _, s := range sums {
		subjects = append(subjects, object{"name": s.Name, "digest": object{"sha256": s.Hex}})
	}
	inputs := []object{{"uri": "git+" + homepage, "digest": object{"gitCommit": r.Commit}}}
	for _, name := range []string{"go.mod", "go.sum", "scripts/releaser/go.mod", "scripts/releaser/go.sum"} {
		data, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		inputs = append(inputs, object{"uri": name, "digest": object{"sha256": fmt.Sprintf("%x", sha256.Sum256(data))}})
	}
	var platforms []string
	for _, p := range r.Platforms {
		platforms = append(platforms, p.OS+"/"+p.Arch)
	}
	text, err := json.MarshalIndent(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            homepage + "/scripts/release/v1",
				"externalParameters":   object{"version": r.Version, "platforms": platforms, "url": r.URL},
				"internalParameters":   object{"go": strings.TrimPrefix(runtime.Version(), "go"), "tags": r.Tags, "flags": strings.Split(r.Flags, "\n"), "cgo": false},
				"resolvedDependencies": inputs,
			},
			"runDetails": object{"builder": object{"id": homepage + "/scripts/release", "version": object{"brine": r.Version}}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(platform{}, "_provenance.intoto.json")), append(text, '\n'), 0o644)
}
