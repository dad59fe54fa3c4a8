package read

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle"
)

func TestLeftovers(t *testing.T) {
	job := func(hook string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  annotations:\n    helm.sh/hook: " + hook + "\nspec: {template: {spec: {containers: [{name: c, image: app}]}}}\n"
	}
	pod := func(fields string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    image: app\n    " + fields + "\n"
	}
	labelled := func(key string) string { return cm("  labels: {" + key + ": shop}\n") }
	for _, tt := range []struct{ name, text, want string }{
		{"a hook", job("pre-install,pre-upgrade"), "-:6: Job.batch default/a: metadata.annotations[helm.sh/hook]: brine applies it as an ordinary object, but it is a hook of Helm: it runs when it is created or its spec changes"},
		{"a deletion hook", job("post-delete"), "a hook that Helm runs only when it deletes a release or rolls it back: leave it out"},
		{"a test", strings.Replace(pod(""), "{name: a}", "{name: a, annotations: {helm.sh/hook: test}}", 1), "a test of Helm, which would run in each apply that creates it"},
		{"an unknown hook", job("crd-install"), ""},
		{"hooks of other kinds", cm("  annotations: {helm.sh/hook: pre-install}\n"), ""},
		{"Helm", cm("  annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: shop}\n"), "meta.helm.sh/release-name says that Helm owns the object, and Helm may change or delete it"},
		{"rendered by Helm", labelled("app.kubernetes.io/managed-by"), ""},
		{"Argo CD", labelled("argocd.argoproj.io/instance"), "-:5: ConfigMap default/a: metadata.labels[argocd.argoproj.io/instance]: argocd.argoproj.io/instance says that Argo CD owns"},
		{"Flux", labelled("kustomize.toolkit.fluxcd.io/name"), "Flux owns the object"},
		{"kapp", labelled("kapp.k14s.io/app") + "---\n" + strings.Replace(labelled("kapp.k14s.io/app"), "name: a", "name: b", 1), "kapp owns the object, and kapp may change or delete it: remove it if brine is to own the object (2 objects; this is the first)"},
		{"a variable", pod("workingDir: /${HOME_OF_APP:-srv}"), "-:8: Pod default/a: spec.containers[0].workingDir: ${HOME_OF_APP:-srv} was not replaced, and brine replaces no variables"},
		{"a template", pod("workingDir: '{{ .Values.home }}'"), "{{ .Values.home }} is left over of a template: render it before"},
		{"a shell's variable", pod("command: [sh, -c, 'echo ${HOME} {{ x }}']"), ""},
		{"an environment variable", pod("env: [{name: A, value: '${HOME}'}]"), ""},
		{"a file in a ConfigMap", cm("") + "data: {run.sh: 'echo ${HOME} {{ .x }}'}\n", ""},
		{"a custom resource", "apiVersion: example.com/v1\nkind: Alert\nmetadata: {name: a}\nspec: {text: '{{ .Value }} ${X}'}\n", ""},
		{"a label of a custom resource", "apiVersion: example.com/v1\nkind: Alert\nmetadata: {name: a, labels: {app: '${APP}'}}\n", "${APP} was not replaced"},
		{"dollars", pod("workingDir: /$HOME/$(X)/${1}/$${"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := mustRead(t, tt.text)
			if err := Resolve(b, Resolver{Quiet: true}); err != nil {
				t.Fatal(err)
			}
			got := bundle.Problems(b.Warnings).Error()
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || strings.Contains(got, "\n") {
				t.Errorf("warnings\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestKustomization(t *testing.T) {
	for _, text := range []string{"resources: [a.yaml]\n", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"} {
		dir := t.TempDir()
		for name, text := range map[string]string{"kustomization.yaml": text, "a.yaml": cm("")} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Bundle(t.Context(), Options{Files: []string{dir}})
		if want := "kustomization.yaml:1: this is a kustomization, not a Kubernetes object: run kustomize build " + dir + " | brine apply -f - --name NAME"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	b := mustRead(t, "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n")
	if len(b.Objects) != 1 {
		t.Error("Flux' Kustomization is an object")
	}
}
