package inspect

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/bundle/sls"
	"brine/inventory"
	"brine/inventory/store"
)

// Side is one of two bundles that are compared: of a revision, or of files.
type Side struct {
	Name   string // like "revision 3"
	Bundle *bundle.Bundle
}

// Compare is what changes from one bundle to another, without the state of any
// cluster.
func Compare(ctx context.Context, from, to Side, h report.Header) *report.Result {
	h.DryRun = report.Client
	rec := report.New(h, func(report.Event) {})
	rec.Result.Compared = &report.Compared{From: from.Name, To: to.Name}
	rec.Secrets.Bundle(from.Bundle.Objects)
	rec.Secrets.Bundle(to.Bundle.Objects)
	for _, w := range to.Bundle.Warnings {
		rec.Warn(w.Error())
	}
	before := bundle.GroupBy(from.Bundle.Objects, func(o *bundle.Object) bundle.ID { return o.ID }).Of // of generateName there may be several
	var changes []review.Change
	add := func(o *bundle.Object, action plan.Action, a, b *unstructured.Unstructured) {
		r := &report.ObjectResult{
			Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind, Namespace: o.ID.Namespace, Name: o.ID.Name,
			Source: o.Source, Action: action, Needs: []report.Need{},
		}
		d := rec.Secrets.Diff(a, b)
		r.Changes, r.Schema = d.Changes, diff.Schemas(a, b)
		changes = append(changes, review.Change{ID: o.ID, Action: action, Object: o, Before: a, After: b, Fields: d.Changes})
		r.Diff = strings.Replace(strings.Replace(d.Unified, "--- live\n", "--- "+from.Name+"\n", 1), "+++ applied\n", "+++ "+to.Name+"\n", 1)
		rec.Result.Objects = append(rec.Result.Objects, r)
	}
	for _, o := range to.Bundle.Objects {
		old := before[o.ID]
		if len(old) == 0 {
			add(o, plan.Created, nil, o.Content)
			continue
		}
		before[o.ID] = old[1:]
		if diff.Equal(old[0].Content, o.Content) {
			add(o, plan.Unchanged, old[0].Content, o.Content)
		} else {
			add(o, plan.Configured, old[0].Content, o.Content)
		}
	}
	for _, o := range from.Bundle.Objects {
		if slices.Contains(before[o.ID], o) {
			add(o, plan.Pruned, o.Content, nil)
		}
	}
	rec.Result.Review = review.Of(changes, review.Cluster{Unread: true})
	return rec.Finish(ctx, report.ExitOK, nil, map[string]int{})
}

// Comparable settles what the objects of a bundle are, so that it can be compared
// with a revision, without asking a server: kinds are as the revision knows them.
func Comparable(ctx context.Context, inv *store.Inventory, b *bundle.Bundle, with *inventory.Content, namespace string) error {
	scopes := map[schema.GroupKind]read.Scope{}
	for _, o := range with.Bundle.Objects {
		scopes[o.ID.GroupKind] = read.ScopeCluster
		if o.ID.Namespace != "" {
			scopes[o.ID.GroupKind] = read.ScopeNamespaced
		}
	}
	known := read.Resolver{Namespace: namespace, Quiet: true, Scope: func(gvk schema.GroupVersionKind) read.Scope { return scopes[gvk.GroupKind()] }}
	problems := bundle.ProblemsOf(read.Resolve(b, known))
	if len(problems) == 0 { // and the built-in kinds that are not in the revision
		problems = bundle.ProblemsOf(read.Resolve(b, read.Resolver{Namespace: namespace, Quiet: true}))
	}
	problems = append(problems, bundle.ProblemsOf(sls.FillSlots(b, nil))...)
	problems = append(problems, read.FillDigests(b)...)
	if len(problems) > 0 {
		return report.BadBundle(problems...)
	}
	if !b.HasSecretDigests() {
		return nil
	}
	key, err := inv.ReadKey(ctx)
	if err != nil {
		return err
	}
	digest := key.Digest
	if key.Fresh() {
		digest = func(string) string { return "unknown: the inventory has no key" }
	}
	there := map[bundle.ID]*unstructured.Unstructured{}
	for _, o := range with.Bundle.Objects {
		there[o.ID] = o.Content
	}
	b.KeySecretDigests(digest, func(id bundle.ID) *unstructured.Unstructured { return there[id] }, func(*bundle.Object, string, string) {})
	return nil
}
