package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// ToolOf is the tool that a live object belongs to by its ownership metadata, like
// "Helm release web in namespace shop"; "" if there is none.
func ToolOf(live *unstructured.Unstructured) string {
	annotations, labels := live.GetAnnotations(), live.GetLabels()
	if name := annotations["meta.helm.sh/release-name"]; name != "" {
		return fmt.Sprintf("Helm release %s in namespace %s", name, cmp.Or(annotations["meta.helm.sh/release-namespace"], "(unknown)"))
	}
	if application, _, ok := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":"); ok {
		return "Argo CD Application " + application
	}
	for _, flux := range []struct{ kind, prefix string }{{"HelmRelease", "helm.toolkit.fluxcd.io/"}, {"Kustomization", "kustomize.toolkit.fluxcd.io/"}} {
		if name := labels[flux.prefix+"name"]; name != "" {
			return fmt.Sprintf("Flux %s %s/%s", flux.kind, labels[flux.prefix+"namespace"], name)
		}
	}
	switch {
	case labels["argocd.argoproj.io/instance"] != "":
		return "Argo CD Application " + labels["argocd.argoproj.io/instance"]
	case labels["kapp.k14s.io/app"] != "":
		return "kapp's app " + labels["kapp.k14s.io/app"]
	case strings.EqualFold(labels["app.kubernetes.io/managed-by"], "salt"):
		return "Salt's states"
	}
	return ""
}

// otherTools warns of objects that the run would adopt from other tools, which
// know nothing of it: one warning a tool.
func otherTools(steps []*Step) []string {
	names := map[string][]string{}
	for _, s := range steps {
		if s.Live == nil || s.Member || s.Action == Unchanged {
			continue
		}
		if tool := ToolOf(s.Live); tool != "" {
			names[tool] = append(names[tool], bundle.Name(s.ID))
		}
	}
	var warnings []string
	for _, tool := range slices.Sorted(maps.Keys(names)) {
		all := names[tool]
		belong := "belong"
		if len(all) == 1 {
			belong = "belongs"
		}
		warnings = append(warnings, fmt.Sprintf("%s %s to %s, which may change or delete what it owns: %s", bundle.Count(len(all), "object"), belong, tool, bundle.Some(all, shownFields)))
	}
	return warnings
}
