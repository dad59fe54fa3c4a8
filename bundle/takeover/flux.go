package takeover

const (
	fluxPrefix     = "flux:"
	fluxReleases   = "helm.toolkit.fluxcd.io/"
	fluxKustomizes = "kustomize.toolkit.fluxcd.io/"
)

// fluxRelease is a HelmRelease: Flux would install it again, so that it cannot be made
// to let go of single objects.
func fluxRelease(_, labels map[string]string) Tool {
	if name := labels[fluxReleases+"name"]; name != "" {
		return Tool{Text: "Flux HelmRelease " + labels[fluxReleases+"namespace"] + "/" + name}
	}
	return Tool{}
}

func fluxKustomization(_, labels map[string]string) Tool {
	if labels[fluxKustomizes+"name"] == "" {
		return Tool{}
	}
	name := labels[fluxKustomizes+"namespace"] + "/" + labels[fluxKustomizes+"name"]
	return Tool{
		Text: "Flux Kustomization " + name, Token: fluxPrefix + name, Manager: "kustomize-controller",
		Labels: []string{fluxKustomizes + "name", fluxKustomizes + "namespace"},
	}
}
