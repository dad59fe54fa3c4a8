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
		{"on-remove misspelt", annotated("cli-utils.sigs.k8s.io/on-remove", "kep"), `-:7: ConfigMap default/a: metadata.annotations[cli-utils.sigs.k8s.io/on-remove]: "kep" means nothing here: write keep, or leave the annotation out`, ""},
		{"in other letters", annotated("cli-utils.sigs.k8s.io/on-remove", "Keep"), `-:7: ConfigMap default/a: metadata.annotations[cli-utils.sigs.k8s.io/on-remove]: "Keep" means nothing here: write keep, or leave the annotation out`, ""},
		{"empty", annotated("cli-utils.sigs.k8s.io/on-remove", `""`), `-:7: ConfigMap default/a: metadata.annotations[cli-utils.sigs.k8s.io/on-remove]: "" means nothing here: write keep, or leave the annotation out`, ""},
		{"deletion", annotated("client.lifecycle.config.k8s.io/deletion", "detach"), "", ""},
		{"deletion misspelt", annotated("client.lifecycle.config.k8s.io/deletion", "detatch"), `-:7: ConfigMap default/a: metadata.annotations[client.lifecycle.config.k8s.io/deletion]: "detatch" means nothing here: write detach, or leave the annotation out`, ""},
		{"mutation", annotated("client.lifecycle.config.k8s.io/mutation", "ignore"), "", ""},
		{"mutation misspelt", annotated("client.lifecycle.config.k8s.io/mutation", "ignored"), `-:7: ConfigMap default/a: metadata.annotations[client.lifecycle.config.k8s.io/mutation]: "ignored" means nothing here: write ignore, or leave the annotation out`, ""},
		{"on-immutable", annotated("brine.dev/on-immutable", "recreate"), "", ""},
		{"on-immutable misspelt", annotated("brine.dev/on-immutable", "recreat"), `-:7: ConfigMap default/a: metadata.annotations[brine.dev/on-immutable]: "recreat" means nothing here: write recreate, or leave the annotation out`, ""},
		{"a key misspelt", annotated("brine.dev/time-out", "5m"), "", "-:7: ConfigMap default/a: metadata.annotations[brine.dev/time-out]: brine knows no annotation brine.dev/time-out: is brine.dev/timeout meant?"},
		{"a key of nobody's", annotated("brine.dev/sync-waves-and-more", "last"), "", "-:7: ConfigMap default/a: metadata.annotations[brine.dev/sync-waves-and-more]: brine knows no annotation brine.dev/sync-waves-and-more: it knows brine.dev/digest-of, brine.dev/failed-when, brine.dev/on-immutable, brine.dev/ready-when, brine.dev/timeout"},
		{"other tools' keys", annotated("helm.sh/hook", "pre-instal") + "---\n" + strings.Replace(annotated("config.kubernetes.io/local-config", "maybe"), "name: a", "name: b", 1), "", ""},
		{"on a pod template", onTemplate, "", "-:8: Deployment.apps ns/a: spec.template.metadata.annotations[brine.dev/timeout]: brine.dev/timeout is read on the object itself, not on its pod template: nothing is done about it"},
		{"the same document twice", annotated("brine.dev/on-immutable", "no") + "---\n" + annotated("brine.dev/on-immutable", "no"), `-:7: ConfigMap default/a: metadata.annotations[brine.dev/on-immutable]: "no" means nothing here: write recreate, or leave the annotation out`, "the same document stands"},
		{"in two objects", annotated("brine.dev/timout", "5m") + "---\n" + strings.Replace(annotated("brine.dev/timout", "5m"), "name: a", "name: b", 1), "", "is brine.dev/timeout meant? (2 objects; this is the first)"},
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
