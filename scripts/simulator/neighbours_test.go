package simulator

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/scripts/simulator/apiserver"
)

// What others have beside a bundle: objects that are leaving, dependents, an inventory in the
// same namespaces, fields of controllers, and other tools.

// leave: when a step begins, some of what bundles have is being deleted, slowly.
func leave(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		if r.IntN(2) == 0 {
			one.step.around.leaving = []string{"configmaps", "extra-app", "extra-app", "app", "widgets", "customresourcedefinitions", "deployments", "secrets"}[r.IntN(8)]
		}
	}
}

// somebodyDeletesSlowly has all objects of a resource, or a namespace with what is in it, deleted
// by a person; finalizers keep it for a while.
func (w *World) somebodyDeletesSlowly(what string) {
	if what == home {
		return
	}
	how := []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground}[w.rand.IntN(2)]
	var leaving []apiserver.Place
	for _, p := range w.server.Places() {
		within := p.Namespace == what && p.Resource == "configmaps" || what == "customresourcedefinitions" && p.Resource == "widgets"
		if (p.Resource != what || p.Namespace == "" && what != "customresourcedefinitions") && !within && (p.Resource != "namespaces" || p.Name != what) || keepsBooks(p.Namespace, p.Name) || !w.happens() {
			continue
		}
		w.note("%s has %s %s/%s deleted slowly, which begins", person, p.Resource, p.Namespace, p.Name)
		if p.Namespace != "" {
			w.edit(w.server.KindAt(p), w.server.Objects[p], func(u *unstructured.Unstructured) { u.SetFinalizers(append(u.GetFinalizers(), apiserver.Slow)) })
		}
		leaving = append(leaving, p)
	}
	for _, p := range leaving {
		_, _ = w.server.Delete(person, w.server.KindAt(p), p, metav1.DeleteOptions{PropagationPolicy: &how}, false)
	}
	w.server.Step()
}

// haveDependents: objects have dependents, which go with them or stay.
func haveDependents(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		one.step.around.dependents = r.IntN(2) == 0
		if one.step.isAdministrative() || one.step.secret {
			return
		}
		one.step.options.cascade = []string{"", "", string(metav1.DeletePropagationOrphan), string(metav1.DeletePropagationForeground), string(metav1.DeletePropagationOrphan)}[r.IntN(5)]
		one.step.options.forceNamespaces = r.IntN(3) == 0
	}
}

// somebodyOwns is an operator that makes dependents, with the labels of what owns them.
func (w *World) somebodyOwns() {
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "ConfigMap" })
	for _, p := range slices.Clone(w.server.Places()) {
		if !slices.Contains([]string{"configmaps", "deployments", "widgets", "persistentvolumeclaims"}, p.Resource) || !strings.HasSuffix(p.Namespace, "app") || keepsBooks(p.Namespace, p.Name) || strings.HasPrefix(p.Name, "child-") || w.rand.IntN(2) == 0 || !w.happens() {
			continue
		}
		owns := w.server.Objects[p]
		u := bundle.V1(bundle.ID{Namespace: p.Namespace, Name: "child-of-" + p.Resource, GroupKind: bundle.ConfigMapKind}, map[string]any{})
		u.SetLabels(owns.GetLabels())
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owns.GetAPIVersion(), Kind: owns.GetKind(), Name: owns.GetName(), UID: owns.GetUID()}})
		if _, err := w.server.Create(person, k, u, false); err == nil {
			w.note("%s creates configmaps %s/%s, a dependent of %s", person, p.Namespace, u.GetName(), p.Name)
		}
	}
}

// orphansStay: with --cascade=orphan, no dependent goes with what the run deletes, unless it became one later.
func (o *oracle) orphansStay() (wrong []string) {
	if o.d.options.cascade != string(metav1.DeletePropagationOrphan) {
		return nil
	}
	deleted, owns := map[types.UID]bool{}, map[types.UID]bool{}
	for _, w := range o.server.Log[o.d.from:o.d.to] {
		if w.Actor == person && w.After != nil {
			for _, owner := range w.After.GetOwnerReferences() {
				owns[owner.UID] = deleted[owner.UID]
			}
		}
		if w.Actor == o.d.actor && w.Verb == "delete" && !o.bookkeeping(w) {
			deleted[w.Before.GetUID()] = w.Before.GetDeletionTimestamp() == nil
		}
		if w.Verb != "collect" || w.Before.GetDeletionTimestamp() != nil {
			continue
		}
		for _, owner := range w.Before.GetOwnerReferences() {
			if deleted[owner.UID] && !owns[owner.UID] {
				wrong = append(wrong, fmt.Sprintf("it goes with %s %s: %s", owner.Kind, owner.Name, w))
			}
		}
	}
	return wrong
}

// shareNamespaces: the other inventory has what it has in namespaces, and of a kind, of the first.
func shareNamespaces(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if s.inventory == "shop" && s.command == "apply" && !s.secret && r.IntN(4) == 0 {
			s.inventory = "other"
		}
		if s.inventory != "other" || s.secret || s.isAdministrative() || s.carriesOut {
			return
		}
		s.text, s.options.skipInvalid = sharing(r), false
		if one.too != nil {
			one.too.inventory, one.too.text = "other", sharing(r)
		}
	}
}

func sharing(r *rand.Rand) string {
	var b strings.Builder
	for _, name := range []string{"e", "f", "g"} {
		namespace := []string{"app", "extra-app"}[r.IntN(2)]
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: \"%d\"}\n", name, namespace, r.IntN(3))
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "---\napiVersion: app.example.com/v1\nkind: Widget\nmetadata: {name: v, namespace: app}\nspec: {size: %d}\n", r.IntN(2))
	}
	return b.String()
}

// planAtOnce: applies are planned before, and carried out by two processes at once, too late, or
// when what they are about has changed.
func planAtOnce(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		if one.step.command == "apply" && !one.step.secret && r.IntN(3) > 0 {
			one.step.around.planned = true
			one.step.lifetime = []time.Duration{0, time.Minute, time.Hour}[r.IntN(3)]
			one.step.later = []time.Duration{0, 0, 2 * time.Minute}[r.IntN(3)]
			one.step.around.twice = r.IntN(2) == 0
			if moves := rand.New(rand.NewPCG(one.chance, 1)); moves.IntN(3) == 0 {
				one.step.around.moved, one.step.force = true, moves.IntN(2) == 0
			}
		}
	}
}

// leaveFields: controllers write fields that bundles have, too.
func leaveFields(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		s.around.controlled = r.IntN(3) > 0
		if s.isAdministrative() || s.secret || s.carriesOut {
			return
		}
		switch r.IntN(5) {
		case 0, 1:
			s.text = strings.ReplaceAll(s.text, "{name: web, namespace: app}", "{name: web, namespace: app, annotations: {brine.dev/ignore-fields: /spec/replicas}}")
			s.text = strings.ReplaceAll(s.text, "{name: a, namespace: app}", "{name: a, namespace: app, annotations: {brine.dev/ignore-fields: /data/value}}")
		case 2:
			s.options.conflicts = []string{controller + "=leave"}
		case 3:
			s.options.conflicts = []string{controller + "=take", "*=fail"}
		default:
			s.force = r.IntN(2) == 0
		}
	}
}

const (
	controller = "autoscaler"
	// What only it writes.
	controlled, controlledReplicas = "theirs", int64(3)
)

// somethingControls is a controller that writes the replicas of Deployments, and a value of ConfigMaps.
func (w *World) somethingControls() {
	for _, p := range slices.Clone(w.server.Places()) {
		live := w.server.Objects[p]
		if p.Namespace != "app" || p.Name != "web" && p.Name != "a" && p.Name != "b" || live.Object["immutable"] == true || w.rand.IntN(3) == 0 || !w.happens() {
			continue
		}
		u := live.DeepCopy()
		switch p.Resource {
		case "deployments":
			_ = unstructured.SetNestedField(u.Object, controlledReplicas, "spec", "replicas")
		case "configmaps":
			_ = unstructured.SetNestedField(u.Object, controlled, "data", "value")
		default:
			continue
		}
		w.note("%s writes %s %s/%s", controller, p.Resource, p.Namespace, p.Name)
		_, _ = w.server.Put(person, "update", controller, w.server.KindAt(p), live, u, false)
	}
}

// isLeft says whether the bundle, or a rule of the step, leaves to the controller what it writes.
func (o *oracle) isLeft(id bundle.ID) bool {
	if slices.Contains(o.d.options.conflicts, controller+"=leave") {
		return true
	}
	return o.d.bundle != nil && slices.ContainsFunc(o.d.bundle.Objects, func(object *bundle.Object) bool {
		return object.ID == id && object.Content.GetAnnotations()[bundle.IgnoreFields] != ""
	})
}

// isControlled says whether an object has a value that only the controller writes.
func isControlled(u *unstructured.Unstructured) bool {
	if u == nil {
		return false
	}
	value, _, _ := unstructured.NestedString(u.Object, "data", "value")
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return value == controlled || u.GetKind() == "Deployment" && replicas == controlledReplicas
}

// fieldsStay: what is left to a controller keeps the value that this wrote.
func (o *oracle) fieldsStay() (wrong []string) {
	if o.d.result == nil || o.d.result.Rollback != nil || o.d.force {
		return nil
	}
	for _, w := range o.own() {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if w.After != nil && isControlled(w.Before) && !isControlled(w.After) && o.isLeft(id) && !isOverridden(w.After) {
			wrong = append(wrong, "a field of a controller is written: "+w.String())
		}
	}
	return wrong
}

// tool is one that has objects before brine.
type tool struct {
	manager, token      string
	names               string // the mark without which an object names nothing of the tool
	annotations, labels map[string]string
}

var tools = map[string]tool{
	"helm": {"helm", "helm:app/web", "meta.helm.sh/release-name", map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "app"}, map[string]string{"app.kubernetes.io/managed-by": "Helm"}},
	"argo": {"argocd-controller", "argocd:web", "argocd.argoproj.io/tracking-id", map[string]string{"argocd.argoproj.io/tracking-id": "web:/ConfigMap:app/a"}, nil},
	"flux": {"kustomize-controller", "flux:flux-system/web", "kustomize.toolkit.fluxcd.io/name", nil, map[string]string{"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
	"kapp": {"kapp", "kapp:web", "kapp.k14s.io/app", map[string]string{"kapp.k14s.io/identity": "x", "kapp.k14s.io/original": "{}"}, map[string]string{"kapp.k14s.io/app": "web", "kapp.k14s.io/association": "v1.x"}},
}

// has says whether an object has a mark of the tool.
func (t tool) has(u *unstructured.Unstructured) bool { return len(t.marksOf(u)) > 0 }

// marksOf are the fields of an object's metadata by which the tool has it.
func (t tool) marksOf(u *unstructured.Unstructured) (marks [][]string) {
	if u == nil {
		return nil
	}
	for field, is := range map[string][2]map[string]string{"annotations": {t.annotations, u.GetAnnotations()}, "labels": {t.labels, u.GetLabels()}} {
		for key := range is[0] {
			if _, ok := is[1][key]; ok {
				marks = append(marks, []string{"f:metadata", "f:" + field, "f:" + key})
			}
		}
	}
	return marks
}

// holds says whether it has a mark of the tool that brine does not apply. Brine applies one only
// after it was taken over: where the run that did so was killed, the next one removes it.
func (t tool) holds(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(t.marksOf(u), func(mark []string) bool {
		return !slices.ContainsFunc(u.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			fields := map[string]any{}
			if entry.Manager != bundle.FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
				return false
			}
			_, applied, _ := unstructured.NestedFieldNoCopy(fields, mark...)
			return applied
		})
	})
}

// useTools: a tool, or two, have objects that bundles have, and runs take them over from it, or do not.
func useTools(r *rand.Rand) func(*rand.Rand, *scene) {
	names := []string{"helm", "helm", "argo", "flux", "kapp"}
	n := r.IntN(2 * len(names))
	used := []string{names[n/2], names[(n/2+2*(n%2))%len(names)]} // the same one twice, or two
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if n := r.IntN(4); n%2 == 0 {
			s.around.tool = used[n/2]
		}
		if s.command != "apply" && s.command != "preview" || s.secret {
			return
		}
		if r.IntN(2) == 0 {
			s.policy = plan.AdoptIfNoInventory
		}
		n := r.IntN(8)
		from := tools[used[n/4]]
		switch n % 4 {
		case 0:
			s.options.takeOver = []string{from.token}
		case 1:
			s.options.takeOver = slices.Compact([]string{tools[used[0]].token, tools[used[1]].token})
		case 2:
			s.options.takeOver = []string{from.manager}
		}
	}
}

// somebodyUsesTool has a tool apply some ConfigMaps, whoever has them.
func (w *World) somebodyUsesTool(name string) {
	t := tools[name]
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "ConfigMap" })
	secrets, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "Secret" })
	if w.server.Get(bundle.NamespaceKind, "", "app") == nil {
		namespaces, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "Namespace" })
		_, _ = w.server.Create(person, namespaces, bundle.V1(bundle.ID{Name: "app", GroupKind: bundle.NamespaceKind}, map[string]any{}), false)
	}
	var manifest strings.Builder
	for _, one := range []string{"a", "b"} {
		if w.rand.IntN(3) == 0 || !w.happens() {
			continue
		}
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: app}\n", one)
		w.note("%s applies configmaps app/%s", name, one)
		mark := func(u *unstructured.Unstructured) {
			annotations, labels := maps.Clone(u.GetAnnotations()), maps.Clone(u.GetLabels())
			if annotations == nil {
				annotations = map[string]string{}
			}
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(annotations, t.annotations)
			maps.Copy(labels, t.labels)
			u.SetAnnotations(annotations)
			u.SetLabels(labels)
			_ = unstructured.SetNestedField(u.Object, "tool", "data", name)
		}
		if live := w.server.Objects[apiserver.At(k, "app", one)]; live != nil {
			u := live.DeepCopy()
			if live.Object["immutable"] != true {
				mark(u)
			}
			_, _ = w.server.Put(person, "update", t.manager, k, live, u, false)
			continue
		}
		u := bundle.V1(bundle.ID{Namespace: "app", Name: one, GroupKind: bundle.ConfigMapKind}, map[string]any{})
		mark(u)
		_, _ = w.server.Create(person, k, u, false)
	}
	if name != "helm" || manifest.Len() == 0 {
		return
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_ = json.NewEncoder(z).Encode(map[string]any{"name": "web", "namespace": "app", "version": 1, "manifest": manifest.String()})
	_ = z.Close()
	release := bundle.V1(bundle.ID{Namespace: "app", Name: "sh.helm.release.v1.web.v1", GroupKind: bundle.SecretKind}, map[string]any{
		"type": "helm.sh/release.v1", "data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(zipped.Bytes())))},
	})
	release.SetLabels(map[string]string{"owner": "helm", "name": "web", "version": "1", "status": "deployed"})
	at := apiserver.At(secrets, "app", release.GetName())
	if w.server.Objects[at] != nil {
		_, _ = w.server.Delete(person, secrets, at, metav1.DeleteOptions{}, false)
	}
	_, _ = w.server.Create(person, secrets, release, false)
}

// isRelease says whether a write has Helm forget a release that the user named.
func (o *oracle) isRelease(w *apiserver.Write) bool {
	return w.Kind == bundle.SecretKind && strings.HasPrefix(w.Name, "sh.helm.release.") && w.Before != nil && w.After != nil &&
		slices.Contains(o.d.options.takeOver, tools["helm"].token) && apiserver.Same(content(w.Before), content(w.After))
}

// toolsLetGo: the marks of a tool go only where the user says so; with exit code 0, they are gone.
func (o *oracle) toolsLetGo() (wrong []string) {
	for _, t := range tools {
		asked := slices.Contains(o.d.options.takeOver, t.token)
		removes := asked || slices.Contains(o.d.options.takeOver, t.manager) // fields that the bundle does not set
		for _, w := range o.own() {
			if w.After != nil && w.Before != nil && t.holds(w.Before) && !t.holds(w.After) && !removes && w.After.GetUID() == w.Before.GetUID() {
				wrong = append(wrong, "marks of "+t.manager+" are gone: "+w.String())
			}
		}
		for _, w := range o.own() {
			if o.isRelease(w) && t.manager == "helm" && w.After.GetLabels()["owner"] != "helm" {
				wrong = append(wrong, o.notApplied(w)...)
			}
		}
		if !asked || !o.alone || o.d.command != "apply" || o.d.result == nil || o.d.result.ExitCode != 0 || o.d.bundle == nil || o.d.only != nil {
			continue
		}
		for _, object := range o.d.bundle.Objects {
			if o.isLeftAlone(object.ID) {
				continue
			}
			was := o.liveAt(o.d.from, object.ID) // a person may have removed what names the tool
			if live := o.server.Get(object.ID.GroupKind, object.ID.Namespace, object.ID.Name); t.has(live) && slices.ContainsFunc(t.marksOf(was), func(mark []string) bool { return mark[2] == "f:"+t.names }) {
				wrong = append(wrong, bundle.Name(object.ID)+" still has marks of "+t.manager)
			}
		}
		if stored := o.server.Get(bundle.SecretKind, "app", "sh.helm.release.v1.web.v1"); t.manager == "helm" && stored != nil && stored.GetLabels()["owner"] == "helm" && !strings.Contains(fmt.Sprint(o.d.result.Warnings), "is not forgotten by Helm") {
			wrong = append(wrong, "Helm still has the release")
		}
	}
	return wrong
}

// notApplied are the objects that the tool still has when Helm forgets them.
func (o *oracle) notApplied(forgets *apiserver.Write) (wrong []string) {
	for _, one := range []string{"a", "b"} {
		live := o.liveAt(forgets.Seq, bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "app", Name: one})
		if in := func(object *bundle.Object) bool { return object.ID == bundle.IDOf(live) }; tools["helm"].has(live) && owner(live) != o.id() && !o.isLeftAlone(bundle.IDOf(live)) && slices.ContainsFunc(o.d.bundle.Objects, in) {
			wrong = append(wrong, fmt.Sprintf("Helm forgets ConfigMap %s, which is not taken over: %s", one, forgets))
		}
	}
	return wrong
}

// liveAt is an object after the first writes of the log.
func (o *oracle) liveAt(writes int, id bundle.ID) (live *unstructured.Unstructured) {
	for _, w := range o.server.Log[:writes] {
		if w.Kind == id.GroupKind && w.Namespace == id.Namespace && w.Name == id.Name {
			live = w.After
		}
	}
	return live
}
