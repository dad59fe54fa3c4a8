package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/cluster"
	"brine/bundle/helm"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
)

// takenFrom is the annotation of a release that was taken over: the inventory.
const takenFrom = "brine.dev/taken-over-by"

// release is a Helm release to take over from, which Helm still knows.
type release struct {
	namespace, name string
	version         int // the newest stored one
}

func (r *release) String() string {
	return fmt.Sprintf("Helm release %s in namespace %s", r.name, r.namespace)
}

// readReleases finds what Helm stores of the releases to take over from. "helm
// uninstall" would delete all objects of a release: one that has more than the bundle
// is refused.
func (r *run) readReleases(ctx context.Context, live map[bundle.ID]*unstructured.Unstructured) error {
	r.releases = nil
	var wrong []error
	for _, token := range r.Planning.TakeOverFrom {
		text, ok := strings.CutPrefix(token, plan.HelmPrefix)
		if !ok {
			continue
		}
		rel := &release{}
		rel.namespace, rel.name, _ = strings.Cut(text, "/")
		stored, err := r.storedRelease(ctx, rel)
		if err != nil {
			return err
		}
		if len(stored) == 0 {
			if err := r.notStored(rel, token, live); err != nil {
				wrong = append(wrong, err)
			}
			continue
		}
		if err := r.managed(rel, token, live); err != nil {
			wrong = append(wrong, err)
			continue
		}
		newest := stored[len(stored)-1]
		left, err := r.left(ctx, rel, newest)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			wrong = append(wrong, fmt.Errorf("%s has %s that the bundle does not contain, and \"helm uninstall\" would delete all or none: %s. Add them to the bundle, or have Helm drop them first",
				rel, bundle.Count(len(left), "object"), bundle.Some(left, 10)))
			continue
		}
		rel.version = helm.Version(newest)
		r.releases = append(r.releases, rel)
		r.record.Warn(fmt.Sprintf("%s is taken over: when all of its objects are applied, Helm forgets it (label %s of what it stores)", rel, helm.Owner))
	}
	if len(r.Only) > 0 && len(r.releases) > 0 {
		wrong = append(wrong, fmt.Errorf("%s cannot be taken over with %s: all of its objects have to be applied", r.releases[0], remedy.Only))
	}
	if r.RollbackOnFailure && len(r.releases) > 0 {
		wrong = append(wrong, fmt.Errorf("%s cannot be taken over with %s: a rollback would delete its objects, which the earlier revision does not contain", r.releases[0], remedy.RollbackOnFailure))
	}
	if len(wrong) > 0 {
		return &report.Stop{Code: report.ExitBadBundle, Errors: wrong}
	}
	return nil
}

// storedRelease is what Helm stores of a release in Secrets or ConfigMaps, the newest last.
func (r *run) storedRelease(ctx context.Context, rel *release) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, resource := range []cluster.Resource{cluster.Secrets, cluster.ConfigMaps} {
		items, err := r.client.List(ctx, resource, rel.namespace, helm.Selector(rel.name), "")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", rel, err)
		}
		for i := range items {
			items[i].SetGroupVersionKind(resource.GVK)
			all = append(all, &items[i])
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return helm.Version(a) - helm.Version(b) })
	return all, nil
}

// notStored is an error if objects belong to a release that is not found. Otherwise it
// was taken over before, or is none.
func (r *run) notStored(rel *release, token string, live map[bundle.ID]*unstructured.Unstructured) error {
	for _, o := range r.bundle.Objects {
		if u := live[o.ID]; u != nil && plan.ToolOf(u).Token == token {
			return fmt.Errorf("%s belongs to %s, and no Secret or ConfigMap of that release is found: if Helm stores it elsewhere (HELM_DRIVER), remove it there without deleting its objects, and take over from the field manager: %s=helm",
				bundle.Name(o.ID), rel, remedy.TakeOverFrom)
		}
	}
	return nil
}

// managed is an error if a controller would install the release again.
func (r *run) managed(rel *release, token string, live map[bundle.ID]*unstructured.Unstructured) error {
	for _, o := range r.bundle.Objects {
		u := live[o.ID]
		if u == nil || plan.HelmRelease(u) != token {
			continue
		}
		if tool := plan.ToolOf(u); tool.Token != token {
			return fmt.Errorf("%s belongs to %s: suspend and remove it there first, because it would install %s again", bundle.Name(o.ID), tool.Text, rel)
		}
	}
	return nil
}

// left are the objects of a release that exist, and that the bundle neither contains
// nor names as absent.
func (r *run) left(ctx context.Context, rel *release, newest *unstructured.Unstructured) ([]string, error) {
	objects, err := helm.Objects(newest)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, o := range objects {
		id := bundle.ID{GroupKind: o.GVK.GroupKind(), Namespace: o.Namespace, Name: o.Name}
		resource, served, err := r.client.AnyOrAbsent(ctx, id.GroupKind)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: whether %s exists is unknown: %w", rel, bundle.Name(id), err)
		case !served:
			continue
		case !resource.Namespaced:
			id.Namespace = ""
		case id.Namespace == "":
			id.Namespace = rel.namespace
		}
		if r.names(id) {
			continue
		}
		u, err := r.client.Get(ctx, resource, id)
		if err != nil {
			return nil, fmt.Errorf("%s: whether %s exists is unknown: %w", rel, bundle.Name(id), err)
		}
		if u != nil {
			left = append(left, bundle.Name(id))
		}
	}
	return left, nil
}

// names says whether the bundle contains an object, or names it as absent.
func (r *run) names(id bundle.ID) bool {
	return slices.ContainsFunc(r.bundle.Objects, func(o *bundle.Object) bool { return o.ID == id }) ||
		slices.ContainsFunc(r.bundle.Absent, func(a *bundle.Absent) bool { return a.ID == id })
}

// releaseObjects makes Helm forget the releases, once all of their objects are applied.
// The release stays as it is, but for a label. Helm looks at the newest one that it
// finds: so that one goes last.
func (r *run) releaseObjects(ctx context.Context, outcomes []apply.Outcome) {
	for _, rel := range r.releases {
		err := r.forgetRelease(ctx, rel, outcomes)
		if err != nil {
			r.record.Warn(fmt.Sprintf("%s is not forgotten by Helm, and \"helm uninstall\" would still delete its objects: %v. The next run with %s tries again", rel, err, remedy.TakeOverFrom))
		}
	}
}

func (r *run) forgetRelease(ctx context.Context, rel *release, outcomes []apply.Outcome) error {
	for i := range outcomes {
		if a := outcomes[i].Result.Action; a == plan.Failed || a == plan.Skipped && !outcomes[i].Deletes() {
			return fmt.Errorf("%s was %s", bundle.Name(outcomes[i].ID), a)
		}
	}
	stored, err := r.storedRelease(ctx, rel)
	if err != nil {
		return err
	}
	if len(stored) > 0 && helm.Version(stored[len(stored)-1]) != rel.version {
		return errors.New("it was changed by Helm during this run")
	}
	for _, u := range stored {
		id := bundle.ID{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
		resource := cluster.Secrets
		if id.GroupKind == bundle.ConfigMapKind {
			resource = cluster.ConfigMaps
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": u.GetUID(), "resourceVersion": u.GetResourceVersion(),
			"labels":      map[string]any{helm.Owner: bundle.FieldManager},
			"annotations": map[string]any{takenFrom: r.Inventory.Namespace + "/" + r.Inventory.Name},
		}})
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		if _, err := r.client.Patch(ctx, resource, id, types.MergePatchType, patch, cluster.Write{}); err != nil {
			return fmt.Errorf("%s: %w", bundle.Name(id), err)
		}
	}
	return nil
}
