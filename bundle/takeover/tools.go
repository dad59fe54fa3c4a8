package takeover

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What each tool leaves on its objects.

const (
	argoPrefix     = "argocd:"
	argoID         = "argocd.argoproj.io/tracking-id"
	argoInstance   = "argocd.argoproj.io/instance"
	fluxPrefix     = "flux:"
	fluxReleases   = "helm.toolkit.fluxcd.io/"
	fluxKustomizes = "kustomize.toolkit.fluxcd.io/"
	helmPrefix     = "helm:"
	helmName       = "meta.helm.sh/release-name"
	helmNamespace  = "meta.helm.sh/release-namespace"
	kappPrefix     = "kapp:"
	kappLabel      = "kapp.k14s.io/app"
)

// The tools whose names stand behind their text and their token.
var (
	argo = Tool{Text: "Argo CD Application ", Token: argoPrefix, Manager: "argocd-controller", Annotations: []string{argoID}, Labels: []string{argoInstance}}
	// Flux would install a HelmRelease again, so that it cannot be made to let go of single objects.
	fluxRelease       = Tool{Text: "Flux HelmRelease "}
	fluxKustomization = Tool{
		Text: "Flux Kustomization ", Token: fluxPrefix, Manager: "kustomize-controller",
		Labels: []string{fluxKustomizes + "name", fluxKustomizes + "namespace"},
	}
	kapp = Tool{
		Text: "kapp's app ", Token: kappPrefix, Manager: "kapp", Labels: []string{kappLabel, "kapp.k14s.io/association"},
		Annotations: []string{"kapp.k14s.io/identity", "kapp.k14s.io/original", "kapp.k14s.io/original-diff-md5"},
	}
)

// toolsOf are all tools that have left metadata. The first is the one that acts: Flux
// installs through Helm, and charts and Kustomizations carry Argo CD's label of old.
func toolsOf(live *unstructured.Unstructured) (all []Tool) {
	annotations, labels := live.GetAnnotations(), live.GetLabels()
	add := func(left bool, tool Tool, name string) {
		if !left {
			return
		}
		if tool.Text += name; tool.Token != "" {
			tool.Token += name
		}
		all = append(all, tool)
	}
	installed := labels[fluxReleases+"name"] != ""
	add(installed, fluxRelease, labels[fluxReleases+"namespace"]+"/"+labels[fluxReleases+"name"])
	if annotations[helmName] != "" && !installed {
		text := Release{cmp.Or(annotations[helmNamespace], "(unknown)"), annotations[helmName]}.String()
		helm := Tool{Text: text, Token: helmToken(annotations), Manager: "helm", Annotations: []string{helmName, helmNamespace}}
		if labels[managedBy] == "Helm" {
			helm.Labels = []string{managedBy}
		}
		all = append(all, helm)
	}
	application, _, tracked := strings.Cut(annotations[argoID], ":")
	add(tracked, argo, application)
	add(labels[fluxKustomizes+"name"] != "", fluxKustomization, labels[fluxKustomizes+"namespace"]+"/"+labels[fluxKustomizes+"name"])
	// The label is what Argo CD used first, and may stand on what another tool has now.
	add(!tracked && labels[argoInstance] != "", argo, labels[argoInstance])
	add(labels[kappLabel] != "", kapp, labels[kappLabel])
	add(strings.EqualFold(labels[managedBy], "salt"), Tool{}, "Salt's states")
	return all
}
