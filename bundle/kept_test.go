package bundle_test

import (
	"testing"

	"brine/bundle"
	"brine/bundle/bundletest"
)

func TestKeptBy(t *testing.T) {
	for _, c := range []struct{ metadata, want string }{
		{"annotations: {cli-utils.sigs.k8s.io/on-remove: keep}", "cli-utils.sigs.k8s.io/on-remove: keep"},
		{"annotations: {cli-utils.sigs.k8s.io/on-remove: delete}", ""},
		{"annotations: {client.lifecycle.config.k8s.io/deletion: detach}", "client.lifecycle.config.k8s.io/deletion: detach"},
		{"annotations: {client.lifecycle.config.k8s.io/deletion: Detach}", ""},
		{"annotations: {helm.sh/resource-policy: keep}", "helm.sh/resource-policy: keep (Helm)"},
		{`annotations: {helm.sh/resource-policy: " Keep "}`, "helm.sh/resource-policy: keep (Helm)"},
		{"annotations: {helm.sh/resource-policy: delete}", ""},
		{"annotations: {argocd.argoproj.io/sync-options: Prune=false}", "argocd.argoproj.io/sync-options: Prune=false (Argo CD)"},
		{`annotations: {argocd.argoproj.io/sync-options: "ServerSideApply=true, Delete=false"}`, "argocd.argoproj.io/sync-options: Delete=false (Argo CD)"},
		{"annotations: {argocd.argoproj.io/sync-options: Prune=confirm}", "argocd.argoproj.io/sync-options: Prune=confirm (Argo CD)"},
		{`annotations: {argocd.argoproj.io/sync-options: "Replace=true,Delete=confirm"}`, "argocd.argoproj.io/sync-options: Delete=confirm (Argo CD)"},
		{"annotations: {argocd.argoproj.io/sync-options: prune=false}", ""},
		{"annotations: {argocd.argoproj.io/sync-options: Prune=true}", ""},
		{"annotations: {argocd.argoproj.io/sync-options: NoPrune=false}", ""},
		{"annotations: {argocd.argoproj.io/compare-options: Prune=false}", ""},
		{"annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}", "kustomize.toolkit.fluxcd.io/prune: disabled (Flux)"},
		{"annotations: {kustomize.toolkit.fluxcd.io/prune: Disabled}", "kustomize.toolkit.fluxcd.io/prune: disabled (Flux)"},
		{"labels: {kustomize.toolkit.fluxcd.io/prune: disabled}", "kustomize.toolkit.fluxcd.io/prune: disabled (a label, Flux)"},
		{"annotations: {kustomize.toolkit.fluxcd.io/prune: enabled}", ""},
		{"annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}", ""},
		{"annotations: {kapp.k14s.io/delete-strategy: orphan}", "kapp.k14s.io/delete-strategy: orphan (kapp)"},
		{`annotations: {kapp.k14s.io/delete-strategy: ""}`, ""},
		{"labels: {helm.sh/resource-policy: keep, kapp.k14s.io/delete-strategy: orphan}", ""},
		{"annotations: {}", ""},
	} {
		o := bundletest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, "+c.metadata+"}}")
		if got := bundle.KeptBy(o); got != c.want {
			t.Errorf("%s: got %q, want %q", c.metadata, got, c.want)
		}
	}
}
