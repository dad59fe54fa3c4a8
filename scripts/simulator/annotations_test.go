package simulator

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/scripts/simulator/apiserver"
)

// Annotations by which a bundle says that an object is kept, left as it is, or not waited for.

// haveAnnotations: some objects of bundles have annotations, mostly for the whole history.
func haveAnnotations(history *rand.Rand) func(*rand.Rand, *scene) {
	always := map[string]string{}
	mutates := history.IntN(3)
	annotate := func(r *rand.Rand, text string) string {
		if mutates > 0 && r.IntN(4) > 0 {
			text = copies.ReplaceAllString(text, copied)
		}
		return annotated.ReplaceAllStringFunc(text, func(object string) string {
			m := annotated.FindStringSubmatch(object)
			kind, name, rest := m[1], m[2], m[3]
			key := kind + " " + name
			if _, ok := always[key]; !ok {
				always[key] = annotationOf(history, kind)
			}
			says := always[key]
			switch r.IntN(8) {
			case 0:
				says = ""
			case 1:
				says = annotationOf(r, kind)
			}
			switch {
			case says == "":
				return object
			case strings.Contains(rest, ", annotations: {"):
				return fmt.Sprintf("kind: %s\nmetadata: {name: %s%s", kind, name, strings.Replace(rest, ", annotations: {", ", annotations: {"+says+", ", 1))
			}
			return fmt.Sprintf("kind: %s\nmetadata: {name: %s%s, annotations: {%s}}\n", kind, name, strings.TrimSuffix(rest, "}\n"), says)
		})
	}
	return func(r *rand.Rand, one *scene) {
		if one.step.isAdministrative() || one.step.secret || one.step.carriesOut {
			return
		}
		one.step.text = annotate(r, one.step.text)
		if one.too != nil {
			one.too.text = annotate(r, one.too.text)
		}
	}
}

// copies is ConfigMap d; copied, d into which the value of ConfigMap a is written.
var copies = regexp.MustCompile(`(metadata: \{name: d, namespace: (\S+?))((?:, annotations: \{[^}]*)?)\}?\}\ndata: \{`)

const copied = `${1}, annotations: {config.kubernetes.io/apply-time-mutation: "- {sourceRef: {kind: ConfigMap, name: a, namespace: ${2}}, sourcePath: $$.data.value, targetPath: $$.data.copied}"}}
data: {copied: none, `

var annotated = regexp.MustCompile(`kind: (\S+)\nmetadata: \{name: ([^,}\n]+)([^\n]*\}\n)`)

// keeping are annotations that keep an object: written down again, as the tools' documents say.
var keeping = []string{
	bundle.LifecycleDeletion + ": detach", "helm.sh/resource-policy: keep", "argocd.argoproj.io/sync-options: 'Replace=true, Prune=false'",
	"argocd.argoproj.io/sync-options: Delete=confirm", "kustomize.toolkit.fluxcd.io/prune: disabled", "kapp.k14s.io/delete-strategy: orphan",
}

// isKept says whether the bundle keeps an object.
func (o *oracle) isKept(id bundle.ID) bool {
	return o.says(id, bundle.OnRemove) != "" || slices.ContainsFunc(keeping, func(text string) bool {
		key, value, _ := strings.Cut(text, ": ")
		return o.says(id, key) == strings.Trim(value, "'")
	})
}

// annotationOf is one of an object of a kind, or none.
func annotationOf(r *rand.Rand, kind string) string {
	which := r.IntN(10 * len(keeping))
	switch n := which / len(keeping); {
	case n < 2:
		return bundle.OnRemove + ": keep"
	case n < 4:
		return keeping[which%len(keeping)]
	case n < 6 && (kind == "ConfigMap" || kind == "Secret" || kind == "Deployment" || kind == "Widget"):
		return bundle.LifecycleMutation + ": ignore"
	case n < 8 && kind == "Deployment":
		return bundle.Wait + ": " + bundle.WaitSkip
	}
	return ""
}

// says is what the bundle of a step has as an annotation of an object.
func (o *oracle) says(id bundle.ID, key string) string {
	if o.d.bundle == nil {
		return ""
	}
	for _, object := range o.d.bundle.Objects {
		if object.ID == id {
			return object.Content.GetAnnotations()[key]
		}
	}
	return ""
}

// isLeftAlone says whether the bundle has an object that is never changed.
func (o *oracle) isLeftAlone(id bundle.ID) bool { return o.says(id, bundle.LifecycleMutation) != "" }

// annotationsHold: what the bundle leaves alone is not changed, what it keeps is not recreated, and
// what is said to be detached is there, and not ours.
func (o *oracle) annotationsHold() (wrong []string) {
	if o.d.result == nil || o.d.result.Rollback != nil {
		return nil
	}
	for _, w := range o.own() {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if w.Before == nil || o.bookkeeping(w) || o.goesBack() {
			continue
		}
		switch {
		case w.Verb == "delete" && o.isKept(id):
			wrong = append(wrong, "the bundle keeps it: "+w.String())
		case o.isLeftAlone(id) && w.Before.GetDeletionTimestamp() == nil && !o.isRelease(w) && !isRewritten(w):
			wrong = append(wrong, "the bundle leaves it alone: "+w.String())
		}
	}
	for _, object := range o.d.result.Objects {
		if object.Action != plan.Detached || o.d.result.DryRun != "none" || !o.alone {
			continue
		}
		leaves := slices.ContainsFunc(o.server.Log[o.d.from:o.d.to], func(w *apiserver.Write) bool { // or somebody else deleted it, its owner or its namespace
			return w.Actor == "system" && (w.After == nil || w.After.GetDeletionTimestamp() != nil) && w.Kind == object.ID().GroupKind && w.Namespace == object.ID().Namespace && w.Name == object.Name
		}) && !slices.ContainsFunc(o.own(), func(w *apiserver.Write) bool {
			return w.Verb == "delete" && w.Kind == bundle.NamespaceKind && w.Name == object.ID().Namespace
		})
		for _, id := range []bundle.ID{object.ID(), {GroupKind: bundle.NamespaceKind, Name: object.ID().Namespace}} {
			was := o.liveAt(o.d.from, id)
			leaves = leaves || was != nil && was.GetDeletionTimestamp() != nil
		}
		if live := o.server.Get(object.ID().GroupKind, object.ID().Namespace, object.ID().Name); !leaves && (live == nil || owner(live) == o.id()) {
			wrong = append(wrong, bundle.Name(object.ID())+" is said to be detached, and is gone or ours")
		}
	}
	if o.d.result.ExitCode != 0 || o.d.command != "apply" || !o.alone || o.d.bundle == nil {
		return wrong
	}
	for _, object := range o.d.bundle.Objects {
		if object.Content.GetAnnotations()[bundle.ApplyTimeMutation] == "" || o.isLeftAlone(object.ID) {
			continue
		}
		value := func(name, key string) (text string) {
			if live := o.server.Get(bundle.ConfigMapKind, object.ID.Namespace, name); live != nil {
				text, _, _ = unstructured.NestedString(live.Object, "data", key)
			}
			return text
		}
		if from, to := value("a", "value"), value(object.ID.Name, "copied"); from != to && !isOverridden(o.server.Get(bundle.ConfigMapKind, object.ID.Namespace, "a")) {
			wrong = append(wrong, fmt.Sprintf("%s has %q of ConfigMap a, which has %q", bundle.Name(object.ID), to, from))
		}
	}
	return wrong
}
