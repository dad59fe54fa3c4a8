package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

// krew writes the manifest with which kubectl's plugin manager installs brine.
func (r *release) krew() error {
	var platforms []object
	for _, p := range r.Platforms {
		file, binary, plugin := r.name(p, ".tar.gz"), "brine", "kubectl-brine"
		if p.OS == "windows" {
			file, binary, plugin = r.name(p, ".zip"), "brine.exe", "kubectl-brine.exe"
		}
		data, err := os.ReadFile(filepath.Join(r.Out, file))
		if err != nil {
			return err
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": p.OS, "arch": p.Arch}},
			"uri":      r.URL + "/" + file,
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(data)),
			"bin":      plugin,
			"files": []object{
				{"from": r.name(p, "") + "/" + binary, "to": plugin},
				{"from": r.name(p, "") + "/LICENSE", "to": "."},
				{"from": r.name(p, "") + "/THIRD-PARTY-LICENSES.txt", "to": "."},
			},
		})
	}
	text, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": "brine"},
		"spec": object{
			"version": "v" + r.Version, "homepage": homepage, "platforms": platforms,
			"shortDescription": "Apply, prune and wait for a whole bundle",
			"description":      about + "\n",
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(platform{}, "_krew.yaml")), text, 0o644)
}
