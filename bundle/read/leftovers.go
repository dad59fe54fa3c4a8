package read

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"brine/bundle"
)

// leftovers are warnings about what another tool was to replace, run or own.
func leftovers(b *bundle.Bundle) bundle.Problems {
	var odd bundle.Problems
	for _, o := range b.Objects {
		odd = append(odd, hooks(o)...)
		odd = append(odd, owners(o)...)
		odd = append(odd, placeholders(o)...)
	}
	return odd
}

const hook = "helm.sh/hook"

// hooks warns of a Job or Pod that Helm would run as a hook.
func hooks(o *bundle.Object) []bundle.Problem {
	if o.ID.GroupKind != bundle.JobKind && o.ID.GroupKind != bundle.PodKind {
		return nil
	}
	value := o.Content.GetAnnotations()[hook]
	advice := ""
	for name := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(name) {
		case "test", "test-success", "test-failure":
			advice = "a test of Helm, which would run in each apply that creates it: leave it out (helm template --skip-tests)"
		case "pre-delete", "post-delete", "pre-rollback", "post-rollback":
			advice = "a hook that Helm runs only when it deletes a release or rolls it back: leave it out"
		case "pre-install", "post-install", "pre-upgrade", "post-upgrade":
			advice = fmt.Sprintf("a hook of Helm: it runs when it is created or its spec changes, in the order of its dependencies. For a run in each apply, annotate a Job with %s: %s. What has to wait for it needs %s", bundle.Run, bundle.RunAlways, bundle.DependsOn)
		default:
			continue
		}
		break
	}
	if advice == "" {
		return nil
	}
	return []bundle.Problem{o.Problem("metadata.annotations["+hook+"]", "brine applies it as an ordinary object, but it is "+advice)}
}

// owned are the labels and annotations by which other tools find their objects, to
// change or prune them.
var owned = map[string]string{
	"meta.helm.sh/release-name":        "Helm",
	"argocd.argoproj.io/instance":      "Argo CD",
	"argocd.argoproj.io/tracking-id":   "Argo CD",
	"kustomize.toolkit.fluxcd.io/name": "Flux",
	"helm.toolkit.fluxcd.io/name":      "Flux",
	"kapp.k14s.io/app":                 "kapp",
	"kapp.k14s.io/association":         "kapp",
	"kapp.k14s.io/identity":            "kapp",
}

var ownedKeys = slices.Sorted(maps.Keys(owned))

func owners(o *bundle.Object) []bundle.Problem {
	var odd []bundle.Problem
	warned := map[string]bool{}
	for _, field := range []string{"labels", "annotations"} {
		values := bundle.At[map[string]any](o.Content.Object, "metadata", field)
		for _, key := range ownedKeys {
			if tool := owned[key]; values[key] != nil && !warned[tool] {
				warned[tool] = true
				odd = append(odd, o.Problem("metadata."+field+"["+key+"]", fmt.Sprintf(
					"%s says that %s owns the object, and %s may change or delete it: remove it if brine is to own the object", key, tool, tool)))
			}
		}
	}
	return odd
}

// variable is ${NAME}, also with a default; template is {{ … }} of Go or Jinja.
var (
	variable = bundle.Pattern(`\$\{[A-Za-z_][A-Za-z0-9_]*(:?[-=+?][^}]*)?\}`)
	template = bundle.Pattern(`\{\{.*?\}\}`)
)

// free are fields whose texts belong to programs that may know both forms.
var free = []string{"annotations", "args", "binaryData", "command", "data", "env", "stringData"}

// placeholders warns of what a template engine was to replace. Of a custom resource
// only the metadata is looked at: its fields may well hold templates.
func placeholders(o *bundle.Object) []bundle.Problem {
	if o.ID.GroupKind == bundle.CRDKind || !bundle.HasText(o.Content.Object, func(text string) bool { return placeholder(text) != "" }) {
		return nil
	}
	content := o.Content.Object
	if !bundle.IsBuiltIn(o.GVK.Group) {
		content = map[string]any{"metadata": content["metadata"]}
	}
	var odd []bundle.Problem
	var walk func(path bundle.Path, v any)
	walk = func(path bundle.Path, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !slices.Contains(free, key) {
					walk(path.Field(key), v[key])
				}
			}
		case []any:
			for i, item := range v {
				walk(path.Item(i), item)
			}
		case string:
			if message := placeholder(v); message != "" {
				odd = append(odd, o.Problem(path.String(), message))
			}
		}
	}
	walk(nil, content)
	return odd
}

// placeholder is what is left over in a text; empty if nothing is.
func placeholder(text string) string {
	if strings.Contains(text, "${") {
		if found := variable().FindString(text); found != "" {
			return found + " was not replaced, and brine replaces no variables: render it before (envsubst)"
		}
	}
	if strings.Contains(text, "{{") {
		if found := template().FindString(text); found != "" {
			return found + " is left over of a template: render it before"
		}
	}
	return ""
}

// isKustomization says whether a document is for kustomize.
func isKustomization(file, apiVersion string) bool {
	if strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/") {
		return true
	}
	return apiVersion == "" && slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(file))
}
