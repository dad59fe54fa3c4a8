package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/ready"
	"brine/inventory"
)

// Gone is the readiness, in a Status, of a member that is not on the cluster.
const Gone = "gone"

// Status reads an inventory and the state that its members are in now. Its exit
// code is 4 if one of them is not ready, or gone.
func Status(ctx context.Context, c *cluster.Client, where Inventory, version string) (*Result, error) {
	var read secrets
	c.OnSecret(read.read)
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	inv, err := inventory.Load(ctx, c, where.Namespace, where.Name, where.ID, version)
	if err != nil {
		return nil, err
	}
	if !inv.Exists() {
		return nil, &stop{code: ExitBadBundle, errors: []error{fmt.Errorf("there is no inventory %s/%s", where.Namespace, where.Name)}}
	}
	ids := slices.SortedFunc(maps.Keys(inv.Members), func(a, b bundle.ID) int { return strings.Compare(a.String(), b.String()) })
	view, err := c.Look(ctx, ids, nil, nil, inv.Selector())
	if err != nil {
		return nil, err
	}
	hints := storageHints(ctx, c, ids, nil)
	where.ID = inv.ID
	result := newRecorder(Options{Command: "status", Inventory: where, DryRun: "none"}, func(Event) {}).result
	for _, id := range ids {
		read.Public(id.Name, id.Namespace)
	}
	for _, id := range ids {
		o := &ObjectResult{Group: id.GroupKind.Group, Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Needs: []Need{}}
		result.Objects = append(result.Objects, o)
		live := view.Live[id]
		switch {
		case view.Unsure[id] != nil:
			o.Ready, o.Reason = notReady, "cannot be asked for: "+view.Unsure[id].Error()
		case live == nil:
			o.Ready, o.Reason = Gone, "not on the cluster"
			result.ExitCode = ExitNotReady
			continue
		default:
			o.Version = live.GroupVersionKind().Version
			rules, _ := ready.Compile(&bundle.Object{ID: id, GVK: live.GroupVersionKind(), Content: live})
			status := ready.Of(live, rules, hints)
			o.Ready, o.Reason = string(status.State), status.Reason
		}
		if o.Ready == isReady {
			result.Summary.Ready++
		} else {
			result.Summary.NotReady++
			result.ExitCode = ExitNotReady
		}
	}
	result.Summary.Requests = c.Requests.Counts()
	read.event(&Event{Result: result})
	return result, nil
}

// ExitCode is what an error that ended a run early stands for.
func ExitCode(err error) int { return exitCode(err) }

// Refuse is the result of a run that could not begin.
func Refuse(ctx context.Context, o Options, code int, err error, emit func(Event)) *Result {
	r := newRecorder(o, emit)
	return r.finish(ctx, &stop{code: code, errors: []error{err}}, map[string]int{})
}
