package read

import (
	"strings"
	"testing"

	"brine/bundle"
)

func TestAnnotations(t *testing.T) {
	annotated := func(key, value string) string {
		return cm("  annotations:\n    example.com/other: anything\n    " + key + ": " + value + "\n")
	}
	onTemplate := strings.Replace(strings.Replace(deployment("a", ""), ": n\n", ": ns\n", 1), "    spec:\n", "    metadata: {annotations: {brine.dev/digest: x, brine.dev/timeout: 5m}}\n    spec:\n", 1)
	tests := []struct {
		name, text string
		problem    string // all of it but the object; "" for none
		warning    string
	}{
		{"on-remove", annotated("cli-utils.sigs.k8s.io/on-remove", "keep"), "", ""},
		{"on-remove misspelt", annotated("cli-utils.sigs.k8s.io/on-remove", "kep"), `-:7: ConfigMap default/a: metadata.annotations[cli-utils.sigs.k8s.io/on-remove]: invalid value "kep": use keep, or remove the annotation`, ""},
		{"in other letters", annotated("cli-utils.sigs.k8s.io/on-remove", "Keep"), `-:7: ConfigMap default/a: metadata.annotations[cli-utils.sigs.k8s.io/on-remove]: invalid value "Keep": use keep, or remove the annotation`, ""},
		{"empty", annotated("cli-utils.sigs.k8s.io/on-remove", `""`), `-:7: ConfigMap default/a: metadata.annotations[cli-utils.sigs.k8s.io/on-remove]: invalid value "": use keep, or remove the annotation`, ""},
		{"deletion", annotated("client.lifecycle.config.k8s.io/deletion", "detach"), "", ""},
		{"deletion misspelt", annotated("client.lifecycle.config.k8s.io/deletion", "detatch"), `-:7: ConfigMap default/a: metadata.annotations[client.lifecycle.config.k8s.io/deletion]: invalid value "detatch": use detach, or remove the annotation`, ""},
		{"mutation", annotated("client.lifecycle.config.k8s.io/mutation", "ignore"), "", ""},
		{"mutation misspelt", annotated("client.lifecycle.config.k8s.io/mutation", "ignored"), `-:7: ConfigMap default/a: metadata.annotations[client.lifecycle.config.k8s.io/mutation]: invalid value "ignored": use ignore, or remove the annotation`, ""},
		{"on-immutable", annotated("brine.dev/on-immutable", "recreate"), "", ""},
		{"on-immutable misspelt", annotated("brine.dev/on-immutable", "recreat"), `-:7: ConfigMap default/a: metadata.annotations[brine.dev/on-immutable]: invalid value "recreat": use recreate or orphan, or remove the annotation`, ""},
		{"on-immutable orphan", annotated("brine.dev/on-immutable", "orphan"), "", ""},
		{"on-immutable orphan of a Job", strings.Replace(annotated("brine.dev/on-immutable", "orphan"), "apiVersion: v1\nkind: ConfigMap", "apiVersion: batch/v1\nkind: Job", 1), "-:7: Job.batch default/a: metadata.annotations[brine.dev/on-immutable]: a new Job does not adopt the pods of the old one: use recreate", ""},
		{"a key misspelt", annotated("brine.dev/time-out", "5m"), "", "-:7: ConfigMap default/a: metadata.annotations[brine.dev/time-out]: unknown annotation brine.dev/time-out: did you mean brine.dev/timeout?"},
		{"a key of nobody's", annotated("brine.dev/sync-waves-and-more", "last"), "", "-:7: ConfigMap default/a: metadata.annotations[brine.dev/sync-waves-and-more]: unknown annotation brine.dev/sync-waves-and-more: brine has brine.dev/digest-of, brine.dev/fail-after, brine.dev/failed-when, brine.dev/ignore-fields, brine.dev/on-immutable, brine.dev/on-stored-version, brine.dev/ready-when, brine.dev/run, brine.dev/status-timeout, brine.dev/timeout, brine.dev/wait"},
		{"other tools' keys", annotated("helm.sh/hook", "pre-instal") + "---\n" + strings.Replace(annotated("config.kubernetes.io/local-config", "maybe"), "name: a", "name: b", 1), "", ""},
		{"in capitals", annotated("config.kubernetes.io/Depends-On", "x"), "", "-:7: ConfigMap default/a: metadata.annotations[config.kubernetes.io/Depends-On]: unknown annotation config.kubernetes.io/Depends-On: did you mean config.kubernetes.io/depends-on?"},
		{"cli-utils' key misspelt", annotated("cli-utils.sigs.k8s.io/on-removal", "keep"), "", "did you mean cli-utils.sigs.k8s.io/on-remove?"},
		{"a prefix misspelt", annotated("client.lifecycle.config.k8s.oi/deletion", "detach"), "", "did you mean client.lifecycle.config.k8s.io/deletion?"},
		{"another tool's key misspelt", annotated("helm.sh/resource-polcy", "keep"), "", "did you mean helm.sh/resource-policy?"},
		{"another tool's value misspelt", annotated("helm.sh/resource-policy", "kepe"), "", `-:7: ConfigMap default/a: metadata.annotations[helm.sh/resource-policy]: "kepe" does not keep the object from deletion: did you mean keep?`},
		{"an option in small letters", annotated("argocd.argoproj.io/sync-options", "Replace=true,prune=false"), "", `"Replace=true,prune=false" does not keep the object from deletion: did you mean Prune=false?`},
		{"other tools' options", annotated("argocd.argoproj.io/sync-options", "Prune=true") + "    argocd.argoproj.io/sync-wave: '1'\n    kapp.k14s.io/create-strategy: x\n    kustomize.toolkit.fluxcd.io/force: enabled\n    kustomize.toolkit.fluxcd.io/prune: enabled\n    kustomize.toolkit.fluxcd.io/ssa: merge\n", "", ""},
		{"as a label", cm("  labels:\n    cli-utils.sigs.k8s.io/on-remove: keep\n"), "", "-:6: ConfigMap default/a: metadata.labels[cli-utils.sigs.k8s.io/on-remove]: cli-utils.sigs.k8s.io/on-remove is read as an annotation: it is ignored as a label"},
		{"a label that is read", cm("  labels:\n    kustomize.toolkit.fluxcd.io/prune: disabled\n"), "", ""},
		{"on a pod template", onTemplate, "", "-:8: Deployment.apps ns/a: spec.template.metadata.annotations[brine.dev/timeout]: brine.dev/timeout is read on the object itself, not on its pod template: it is ignored here"},
		{"the same document twice", annotated("brine.dev/on-immutable", "no") + "---\n" + annotated("brine.dev/on-immutable", "no"), `-:7: ConfigMap default/a: metadata.annotations[brine.dev/on-immutable]: invalid value "no": use recreate or orphan, or remove the annotation`, "the same document is also"},
		{"in two objects", annotated("brine.dev/timout", "5m") + "---\n" + strings.Replace(annotated("brine.dev/timout", "5m"), "name: a", "name: b", 1), "", "did you mean brine.dev/timeout? (2 objects; this is the first)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustRead(t, strings.ReplaceAll(tt.text, ": no\n", ": \"no\"\n"))
			got := ""
			if err := Resolve(b, Resolver{}); err != nil {
				got = err.Error()
			}
			if got != tt.problem {
				t.Errorf("problems\n%s\nwant\n%s", got, tt.problem)
			}
			warnings := bundle.Problems(b.Warnings).Error()
			if (warnings == "") != (tt.warning == "") || !strings.Contains(warnings, tt.warning) || strings.Contains(warnings, "\n") {
				t.Errorf("warnings\n%s\nwant\n%s", warnings, tt.warning)
			}
		})
	}
}
