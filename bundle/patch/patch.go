// Package patch writes single objects, or only some of their fields. They become members of
// no inventory.
package patch

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/bundle/sls"
	"brine/inventory"
)

// Options say what Run does with each object of a bundle.
type Options struct {
	report.Header
	// Namespace is that of objects that name none.
	Namespace string
	// Manager is the field manager: fields that it set before and that are not in
	// the bundle any more are removed.
	Manager string
	// Create creates an object that does not exist. Without it that is an error.
	Create bool
	// Remove removes the manager's fields, Delete the object.
	Remove, Delete bool
}

// tries is how often a write is decided again that another client overtook.
const tries = 10

// Run writes the objects of a bundle by server-side apply, one after another. An object that
// fails does not stop the others.
func Run(ctx context.Context, c *cluster.Client, b *bundle.Bundle, o Options, emit func(report.Event)) *report.Result {
	r := report.New(o.Header, emit)
	c.OnSecret(r.Secrets.Read)
	r.Emit(report.Started{Result: r.Result})
	err := c.Discover(ctx)
	if err == nil {
		err = o.resolve(ctx, c, b)
		r.Secrets.Bundle(b.Objects)
		for _, w := range b.Warnings {
			r.Warn(w.Error())
		}
	}
	if err != nil {
		return r.Finish(ctx, run.ExitCode(err), err, c.Requests.Counts())
	}
	code := report.ExitOK
	for _, object := range b.Objects {
		result := &report.ObjectResult{
			Group: object.GVK.Group, Version: object.GVK.Version, Kind: object.GVK.Kind, Namespace: object.ID.Namespace, Name: object.ID.Name,
			Source: object.Source, Needs: []report.Need{}, StartedAt: r.Seconds(),
		}
		r.Result.Objects = append(r.Result.Objects, result)
		if err := o.patch(ctx, c, r, object, result); err != nil {
			result.Action, result.Error = plan.Failed, r.Secrets.Text(err.Error())
			r.Fail(result.About(result.Error))
			code = run.ExitCode(err)
		}
		result.ActedAt = r.Seconds()
		r.Emit(report.Acted{Object: result})
	}
	return r.Finish(ctx, code, nil, c.Requests.Counts())
}

// resolve settles which object each document is about, and what slots stand for, as an apply does: of
// two documents of one object, the second would remove the fields of the first.
func (o *Options) resolve(ctx context.Context, c *cluster.Client, b *bundle.Bundle) error {
	err := read.Resolve(b, read.Resolver{Namespace: o.Namespace, Scope: c.Scope, Versions: c.Versions, Quiet: true})
	if err == nil && len(b.Absent) > 0 {
		a := b.Absent[0]
		err = bundle.Problem{Source: a.Source, ID: a.ID, Message: "the bundle wants it absent: brine patch deletes what a bundle contains, with " + remedy.Flag("delete")}
	}
	if err != nil {
		return &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
	}
	return sls.FillSlots(b, func(id bundle.ID) (*unstructured.Unstructured, error) { return c.Find(ctx, id) })
}

func (o *Options) patch(ctx context.Context, c *cluster.Client, r *report.Recorder, object *bundle.Object, result *report.ObjectResult) error {
	resource, err := c.Resource(object.GVK)
	if err != nil {
		return fmt.Errorf("find kind %s of %s: %w", object.GVK.Kind, object.GVK.GroupVersion(), err)
	}
	id := object.ID
	switch {
	case !resource.Namespaced:
		id.Namespace = ""
	case id.Namespace == "":
		id.Namespace = o.Namespace
	}
	result.Namespace = id.Namespace
	r.Secrets.Public(id.Name, id.Namespace)
	for try := 0; ; {
		live, err := c.Get(ctx, resource, id)
		if err != nil {
			return err
		}
		if live != nil && live.GetDeletionTimestamp() != nil && o.Create && inventory.OwnerOf(live) == "" { // what is applied to it would go with it
			r.Warn(result.About("it is being deleted, and is created again once it is gone: it " + ready.Terminating(live)))
			switch {
			case o.DryRun != report.None:
				result.Action = plan.Created
				return nil
			case !cluster.Sleep(ctx, time.Second):
				return fmt.Errorf("wait until it is gone, to create it again: it %s: %w", ready.Terminating(live), cluster.WhyEnded(ctx))
			}
			continue
		}
		try++
		err = o.write(ctx, c, r, resource, id, object, live, result)
		if !answers.Overtaken(err) || try == tries {
			return err
		}
	}
}

// write does what is to be done with the very object that was read.
func (o *Options) write(ctx context.Context, c *cluster.Client, r *report.Recorder, resource cluster.Resource, id bundle.ID, object *bundle.Object, live *unstructured.Unstructured, result *report.ObjectResult) error {
	owner := ""
	if live != nil {
		owner = inventory.OwnerOf(live)
	}
	dry := o.DryRun != report.None
	sent := func(err error) error {
		result.Unknown = !dry && answers.MayBeStored(err)
		return err
	}
	switch {
	case live == nil && (o.Remove || o.Delete):
		result.Action, result.Reason = plan.Unchanged, "it does not exist"
		return nil
	case live == nil && !o.Create:
		return fmt.Errorf("it does not exist: only an existing object can be patched")
	case owner != "" && (o.Create || o.Delete):
		return fmt.Errorf("it belongs to inventory %q: change the bundle of that inventory instead", owner)
	case o.Delete:
		if err := holdsMembers(ctx, c, live); err != nil {
			return err
		}
		result.Action = plan.Pruned
		if _, err := c.Delete(ctx, resource, live, cluster.Deletion{DryRun: dry, Confirm: func(ctx context.Context) error { return holdsMembers(ctx, c, live) }}); err != nil {
			return fmt.Errorf("delete: %w", sent(err))
		}
		return nil
	}
	content := object.Content.DeepCopy()
	if o.Remove {
		content = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
		content.SetGroupVersionKind(object.GVK)
		content.SetName(id.Name)
	}
	content.SetNamespace(id.Namespace)
	body, err := content.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	stored, warnings, err := c.Apply(ctx, resource, id, body, cluster.Write{Live: live, DryRun: dry, Manager: o.Manager})
	if err != nil {
		return fmt.Errorf("apply: %w", sent(err))
	}
	for _, w := range warnings {
		r.Warn(result.About(w))
	}
	found := r.Secrets.Diff(live, stored)
	result.Diff, result.Changes = found.Unified, found.Changes
	switch {
	case live == nil:
		result.Action, result.Diff, result.Changes = plan.Created, found.Unified, nil
	case len(found.Changes) > 0:
		result.Action = plan.Configured
	default:
		result.Action = plan.Unchanged
	}
	return nil
}

// holdsMembers is why a Namespace or CRD is not deleted: it holds what belongs to an inventory,
// or may do so, as it cannot be read.
func holdsMembers(ctx context.Context, c *cluster.Client, live *unstructured.Unstructured) error {
	id := bundle.IDOf(live)
	if !bundle.HoldsObjects(id.GroupKind) {
		return nil
	}
	all, err := c.Contents(ctx, cluster.Search{
		Holders: []*unstructured.Unstructured{live}, Deleted: &cluster.Deleted{}, Strict: true,
		Counts:    func(m metav1.ObjectMeta) bool { return inventory.OwnerOf(&m) != "" },
		Keeps:     func(o metav1.Object) bool { return metav1.GetControllerOf(o) == nil }, // of what counts: it is a member, or a part
		Auxiliary: func(bundle.ID, map[string]string) bool { return false },
	})
	switch found := all[id]; {
	case err != nil:
		return err
	case len(found.Unmanaged) > 0:
		return fmt.Errorf("it holds what belongs to an inventory (%s): change the bundle of that inventory, or destroy it, first", bundle.Some(found.Unmanaged, 5))
	case len(found.Unknown) > 0:
		return fmt.Errorf("it may hold what belongs to an inventory, as this cannot be read: %s", bundle.Some(found.Unknown, 5))
	}
	return nil
}
