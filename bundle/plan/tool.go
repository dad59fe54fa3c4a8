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

// Tool is another tool that an object belongs to by its ownership metadata.
type Tool struct {
	// Text names it, like "Helm release web in namespace shop".
	Text string
	// Token is how it is named to be taken over from, like "helm:shop/web"; "" where
	// it cannot be made to let go.
	Token string
	// Manager is its field manager.
	Manager string
	// Annotations and Labels are the ownership metadata: the tool lets go of an object
	// that does not carry it.
	Annotations, Labels []string
}

// The ownership metadata of other tools.
const (
	helmName      = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	helmManaged   = "app.kubernetes.io/managed-by"
	argoID        = "argocd.argoproj.io/tracking-id"
	argoInstance  = "argocd.argoproj.io/instance"
	fluxRelease   = "helm.toolkit.fluxcd.io/"
	fluxApps      = "kustomize.toolkit.fluxcd.io/"
	kappApp       = "kapp.k14s.io/app"
)

// ToolOf is the tool that a live object belongs to; the zero Tool if there is none.
func ToolOf(live *unstructured.Unstructured) Tool {
	annotations, labels := live.GetAnnotations(), live.GetLabels()
	argo := Tool{Manager: "argocd-controller", Annotations: []string{argoID}, Labels: []string{argoInstance}}
	tracked, _, byID := strings.Cut(annotations[argoID], ":")
	switch {
	case labels[fluxRelease+"name"] != "":
		return Tool{Text: fmt.Sprintf("Flux HelmRelease %s/%s", labels[fluxRelease+"namespace"], labels[fluxRelease+"name"])}
	case annotations[helmName] != "":
		t := Tool{
			Text:    fmt.Sprintf("Helm release %s in namespace %s", annotations[helmName], cmp.Or(annotations[helmNamespace], "(unknown)")),
			Token:   HelmRelease(live),
			Manager: "helm", Annotations: []string{helmName, helmNamespace},
		}
		if labels[helmManaged] == "Helm" {
			t.Labels = []string{helmManaged}
		}
		return t
	case byID:
		argo.Text, argo.Token = "Argo CD Application "+tracked, "argocd:"+tracked
		return argo
	case labels[fluxApps+"name"] != "":
		name := labels[fluxApps+"namespace"] + "/" + labels[fluxApps+"name"]
		return Tool{
			Text: "Flux Kustomization " + name, Token: "flux:" + name,
			Manager: "kustomize-controller", Labels: []string{fluxApps + "name", fluxApps + "namespace"},
		}
	case labels[argoInstance] != "":
		argo.Text, argo.Token = "Argo CD Application "+labels[argoInstance], "argocd:"+labels[argoInstance]
		return argo
	case labels[kappApp] != "":
		return Tool{
			Text: "kapp's app " + labels[kappApp], Token: "kapp:" + labels[kappApp], Manager: "kapp", Labels: []string{kappApp, "kapp.k14s.io/association"},
			Annotations: []string{"kapp.k14s.io/identity", "kapp.k14s.io/original", "kapp.k14s.io/original-diff-md5"},
		}
	case strings.EqualFold(labels[helmManaged], "salt"):
		return Tool{Text: "Salt's states"}
	}
	return Tool{}
}

// HelmRelease is the Helm release that a live object belongs to, like
// "helm:shop/web", also if Flux manages that release.
func HelmRelease(live *unstructured.Unstructured) string {
	annotations := live.GetAnnotations()
	return HelmPrefix + annotations[helmNamespace] + "/" + annotations[helmName]
}

// HelmPrefix begins the name of a Helm release to take over from.
const HelmPrefix = "helm:"

// tools are the prefixes of tools to take over from; all other names are of field
// managers.
var tools = []string{HelmPrefix, "argocd:", "flux:", "kapp:"}

// Qualified is what is taken over from, with the namespace of releases and
// Kustomizations that name none.
func Qualified(from []string, namespace string) []string {
	var all []string
	for _, name := range from {
		if prefix, rest, ok := strings.Cut(name, ":"); ok && (prefix == "helm" || prefix == "flux") && !strings.Contains(rest, "/") {
			name = prefix + ":" + namespace + "/" + rest
		}
		all = append(all, name)
	}
	return all
}

// TakeOver is what is taken over of one object.
type TakeOver struct {
	Managers []string // whose fields are taken
	Tool     Tool     // that lets go; the zero Tool if none does
}

// Taking is what is taken over of a live object from the field managers and tools.
func Taking(live *unstructured.Unstructured, from []string) TakeOver {
	var t TakeOver
	if len(from) == 0 {
		return t
	}
	tool := ToolOf(live)
	for _, name := range from {
		switch {
		case name == tool.Token && name != "":
			t.Tool = tool
			t.Managers = append(t.Managers, tool.Manager)
		case !slices.ContainsFunc(tools, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			t.Managers = append(t.Managers, name)
		}
	}
	return t
}

// Needed says whether there is anything to take over.
func (t TakeOver) Needed(live *unstructured.Unstructured) bool {
	return t.Tool.Token != "" || Manages(live, t.Managers)
}

// otherTools warns of objects that the run would adopt from other tools, which
// know nothing of it: one warning a tool.
func otherTools(steps []*Step, from []string) []string {
	names := map[string][]string{}
	for _, s := range steps {
		if s.Live == nil || s.Member || s.Action == Unchanged {
			continue
		}
		if tool := ToolOf(s.Live); tool.Text != "" && (tool.Token == "" || !slices.Contains(from, tool.Token)) {
			names[tool.Text] = append(names[tool.Text], bundle.Name(s.ID))
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
