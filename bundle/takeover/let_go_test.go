package takeover

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		if got := Of(live, []string{name}).Tool.Token; (got != "") != letsGo {
			t.Errorf("%q: it lets go: %q", name, got)
		}
	}
}
