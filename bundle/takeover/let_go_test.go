package takeover

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
)

// A tool lets go of an object only where it is named itself, not another release or kind of it.
func TestOfNamesTheTool(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "a", "namespace": "shop", "labels": map[string]any{"app.kubernetes.io/managed-by": "Helm"},
		"annotations": map[string]any{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
	}}}
	token := ToolOf(live).Token
	if token == "" {
		t.Fatal("the release is not known")
	}
	for name, letsGo := range map[string]bool{token: true, "helm:shop/other": false, "kubectl-edit": false, "": false} {
		if got := Of(live, []string{name}).Tools; (len(got) > 0) != letsGo {
			t.Errorf("%q: it lets go: %v", name, got)
		}
	}
}

// Of an object that several tools have, those let go that are named, and of the others is warned.
// What Flux installs through Helm is Flux's alone, and a label of Argo CD does not count beside its annotation.
func TestOfNamesSeveralTools(t *testing.T) {
	t.Parallel()
	all := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop,
  annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop, argocd.argoproj.io/tracking-id: "web:/ConfigMap:shop/a"},
  labels: {argocd.argoproj.io/instance: old, kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: flux, kapp.k14s.io/app: "1"LABELS}}}`
	several, installed := bundletest.Object(t, strings.Replace(all, "LABELS", "", 1)), bundletest.Object(t, strings.Replace(all, "LABELS", ", helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: flux", 1))
	for _, c := range []struct {
		live           *unstructured.Unstructured
		from           []string
		letGo, adopted string
	}{
		{several, []string{"helm:shop/web", "argocd:web", "flux:flux/web", "kapp:1"}, "helm:shop/web argocd:web flux:flux/web kapp:1", ""},
		{several, []string{"flux:flux/web", "flux:flux/web"}, "flux:flux/web", "Helm release web in namespace shop"},
		{several, []string{"helm:shop/web", "argocd:web"}, "helm:shop/web argocd:web", "Flux Kustomization flux/web"},
		{several, []string{"argocd:old"}, "", "Helm release web in namespace shop"},
		{installed, []string{"helm:shop/web", "kapp:1"}, "kapp:1", "Flux HelmRelease flux/web"},
	} {
		t.Run(strings.Join(c.from, " "), func(t *testing.T) {
			t.Parallel()
			takes := Of(c.live, c.from)
			if got := strings.Join(bundle.Each(takes.Tools, func(tool Tool) string { return tool.Token }), " "); got != c.letGo {
				t.Errorf("these let go: %s", got)
			}
			if got, _ := Silently(c.live, c.from); got != c.adopted {
				t.Errorf("it is adopted silently from %q", got)
			}
			patch, err := takes.Patch(c.live)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range takes.Tools {
				for _, key := range slices.Concat(tool.Annotations, tool.Labels) {
					there := c.live.GetAnnotations()[key]+c.live.GetLabels()[key] != ""
					if n := strings.Count(string(patch), strings.ReplaceAll(key, "/", "~1")+`"`); n > 1 || there != (n == 1) {
						t.Errorf("%s is removed %d times: %s", key, n, patch)
					}
				}
			}
		})
	}
}
