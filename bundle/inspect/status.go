// Package inspect is what the commands do that only read (status, get, history show and
// diff), and what runs read of live objects. It imports nothing that writes to a cluster.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/validate"
	"brine/inventory/store"
)

// Status reads an inventory and the state that its members are in now. Its exit
// code is 4 if one of them is not ready, or gone. Members with brine.dev/wait: skip
// do not count. Where kubernetes is a version of Kubernetes, the exit code is 3 if that
// does not serve a member in the version in which it was applied.
//
// Where see is not nil, it reads them again and again until every member is ready, nothing
// is left to wait for but members that failed or are gone, or ctx's time has run out. See is
// given every result that is not the last.
func Status(ctx context.Context, c *cluster.Client, where report.Inventory, version, kubernetes string, kinds ready.Table, see func(*report.Result)) (*report.Result, error) {
	var secrets report.Secrets
	c.OnSecret(secrets.Read)
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	var last *report.Result
	begin, tolerance := time.Now(), time.Duration(0)
	if see != nil {
		tolerance = clockTolerance
	}
	for {
		result, err := status(ctx, c, where, version, kubernetes, kinds, &secrets, begin, tolerance)
		switch {
		case err != nil && last != nil && errors.Is(context.Cause(ctx), report.ErrTimeout):
			return last, nil
		case err != nil:
			return nil, err
		case see == nil || !slices.ContainsFunc(result.Objects, func(o *report.ObjectResult) bool { return o.Ready == report.StateNotReady }):
			return result, nil
		}
		last = result
		see(result)
		if !cluster.Sleep(ctx, statusPause) {
			if errors.Is(context.Cause(ctx), report.ErrTimeout) {
				return last, nil
			}
			return nil, context.Cause(ctx)
		}
	}
}

const (
	// statusPause is the time between two looks of Status.
	statusPause = 2 * time.Second
	// clockTolerance is by how much this machine's clock may be ahead of the server's.
	clockTolerance = 10 * time.Minute
)

func status(ctx context.Context, c *cluster.Client, where report.Inventory, version, kubernetes string, kinds ready.Table, secrets *report.Secrets, begin time.Time, tolerance time.Duration) (*report.Result, error) {
	inv, err := store.Load(ctx, c, where.Namespace, where.Name, where.ID, version)
	if err != nil {
		return nil, err
	}
	if !inv.Exists() {
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{fmt.Errorf("there is no inventory %s/%s", where.Namespace, where.Name)}}
	}
	ids := bundle.SortedIDs(inv.Members)
	view, err := c.Snapshot(ctx, ids, nil, nil, inv.Selector())
	if err != nil {
		return nil, err
	}
	hints := ReadHints(ctx, c, ids, nil)
	var members []*bundle.Object
	said := ready.SaidBy{}
	for id, live := range view.Live {
		said.Hear(id.GroupKind, live)
		said.Defined(live)
		members = append(members, &bundle.Object{ID: id, GVK: live.GroupVersionKind(), Content: live})
	}
	rules, _, _ := ready.Compile(members, kinds) // what is invalid there does not count
	where.ID = inv.ID
	result := report.New(report.Header{Command: "status", Inventory: where, DryRun: report.None}, func(report.Event) {}).Result
	refused, namespaces := false, uidsOf(ctx, c)
	for _, id := range ids {
		secrets.Public(id.Name, id.Namespace)
		o := &report.ObjectResult{Group: id.GroupKind.Group, Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Needs: []report.Need{}}
		result.Objects = append(result.Objects, o)
		live, completed := view.Live[id], inv.Fingerprints[id]
		switch {
		case view.Unknown[id] != nil:
			o.Ready, o.Reason = report.StateNotReady, "cannot be read: "+view.Unknown[id].Error()
		case live == nil && completed.Completed != "" && stillCompleted(inv, view, id, namespaces):
			o.Ready, o.Reason = report.StateReady, "completed"
		case live == nil && completed.Completed != "":
			o.Ready, o.Reason = report.StateGone, "it completed in a namespace of this name that was deleted since: it runs again"
			result.ExitCode = report.ExitNotReady
			continue
		case live == nil:
			o.Ready, o.Reason = report.StateGone, "not on the cluster"
			result.ExitCode = report.ExitNotReady
			continue
		default:
			o.Version = live.GroupVersionKind().Version
			if o.NotServed, err = notServed(live, kubernetes); err != nil {
				return nil, err
			}
			refused = refused || o.NotServed != ""
			status := ready.Of(live, rules[id], hints)
			if inv.Members[id].Reconcile != "Succeeded" { // no run has seen it ready, or has waited long enough
				status = firstStatus(c, said, live, rules[id], status, begin, tolerance)
			}
			o.Ready, o.Reason, o.Rule = string(status.State), status.Reason, status.Rule
			if status.State != ready.Ready && rules[id] != nil && rules[id].Skip {
				o.Ready, o.Reason = "", "not waited for: "+status.Reason
			}
		}
		switch o.Ready {
		case "":
		case report.StateReady:
			result.Summary.Ready++
		default:
			result.Summary.NotReady++
			result.ExitCode = report.ExitNotReady
		}
	}
	if refused {
		result.ExitCode = report.ExitBadBundle
	}
	result.Summary.Requests = c.Requests.Counts()
	result = secrets.Result(result)
	return result, nil
}

// firstStatus is the status of an object that may have been written a moment ago, by the rule of an
// apply. begin is when the command began: by this machine's clock, an object may be of later. One that was
// written within tolerance before counts from then on, so that no clock ends the waiting too early.
func firstStatus(c *cluster.Client, said ready.SaidBy, live *unstructured.Unstructured, rules *ready.Rules, status ready.Status, begin time.Time, tolerance time.Duration) ready.Status {
	resource, _ := c.Resource(live.GroupVersionKind())
	written := live.GetCreationTimestamp().Time
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == bundle.FieldManager && entry.Subresource == "" && entry.Time != nil && entry.Time.After(written) {
			written = entry.Time.Time
		}
	}
	if begin.Sub(written) < tolerance {
		written = begin
	}
	gk := live.GroupVersionKind().GroupKind()
	return said.Of(gk).Since(written, time.Now(), gk.Group, resource.Status, rules, status)
}

// notServed says why a version of Kubernetes does not serve an object in the version
// in which brine applied it.
func notServed(live *unstructured.Unstructured, kubernetes string) (string, error) {
	if kubernetes == "" {
		return "", nil
	}
	gvk := live.GroupVersionKind()
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == bundle.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			gvk = schema.FromAPIVersionAndKind(entry.APIVersion, gvk.Kind)
		}
	}
	return validate.NotServed(gvk, kubernetes)
}
