package takeover

import "strings"

const (
	argoPrefix   = "argocd:"
	argoID       = "argocd.argoproj.io/tracking-id"
	argoInstance = "argocd.argoproj.io/instance"
)

// argoTracked finds an Application by the annotation, argoLabelled by the label, which
// Argo CD used first and which may stand on what another tool has now.
func argoTracked(annotations, _ map[string]string) Tool {
	if application, _, ok := strings.Cut(annotations[argoID], ":"); ok {
		return argoApplication(application)
	}
	return Tool{}
}

func argoLabelled(annotations, labels map[string]string) Tool {
	if application := labels[argoInstance]; application != "" && argoTracked(annotations, nil).Text == "" {
		return argoApplication(application)
	}
	return Tool{}
}

func argoApplication(name string) Tool {
	return Tool{
		Text: "Argo CD Application " + name, Token: argoPrefix + name, Manager: "argocd-controller",
		Annotations: []string{argoID}, Labels: []string{argoInstance},
	}
}
