package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/transport"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/rights"
)

// MissingRights asks for every right that the plan needs whether the user has
// it, and records those that are missing. readOnly: the user may write nothing at
// all, and so is meant to preview the plan, not to apply it.
func MissingRights(ctx context.Context, c *cluster.Client, p *plan.Plan, namespace string, rec *report.Recorder) (readOnly bool, err error) {
	used := uses(c, p)
	wanted := slices.DeleteFunc(rights.Of(used, namespace, false), func(r rights.Right) bool {
		return optional(r) && !slices.ContainsFunc(used, func(u rights.Use) bool {
			return u.Resource == r.Resource && u.ID.Namespace == r.Namespace && slices.Contains(u.Verbs, r.Verb)
		})
	})
	missing, err := rights.Missing(ctx, c, wanted)
	if err != nil {
		return false, fmt.Errorf("find out which rights are missing: %w", err)
	}
	lacks := map[rights.Right]bool{}
	for _, m := range missing {
		lacks[m] = true
		rec.Result.MissingRights = append(rec.Result.MissingRights, m.String())
	}
	readOnly = !slices.ContainsFunc(wanted, func(r rights.Right) bool { return transport.Writes(r.Verb) && !lacks[r] })
	for _, r := range rights.Of(used, namespace, true) {
		if lacks[r] && !transport.Writes(r.Verb) {
			readOnly = false
		}
	}
	if readOnly {
		rec.Warn(fmt.Sprintf("read-only preview: nothing was dry-run, and %d rights are missing to apply this", len(missing)))
	}
	return readOnly, nil
}

// Stop is the error of a run that lacks rights, or nil.
func Stop(missing []string, cause ...error) error {
	if len(missing) == 0 {
		return nil
	}
	return &report.Stop{Code: report.ExitUnreachable, Errors: append(cause, bundle.Each(missing, func(m string) error { return errors.New("missing right: " + m) })...)}
}

// optional rights let a run report more, wait with fewer requests, or keep a history,
// unless they are rights on the plan's own objects.
func optional(r rights.Right) bool {
	switch r.Resource.Resource {
	case "pods/log", "events", "replicasets", "secrets", "poddisruptionbudgets":
		return true
	case "storageclasses", "nodes":
		return r.Verb == "list"
	}
	return r.Verb == "watch" || r.Resource.Resource == "namespaces" && r.Namespace == "" && transport.Writes(r.Verb)
}

// uses are what the plan does, as package rights takes it.
func uses(c *cluster.Client, p *plan.Plan) []rights.Use {
	var uses []rights.Use
	for _, s := range p.Steps {
		resource, err := c.Resource(s.GVK)
		if err != nil {
			if resource, err = c.Any(s.ID.GroupKind); err != nil {
				continue
			}
		}
		u := rights.Use{ID: s.ID, Resource: schema.GroupResource{Group: resource.GVR.Group, Resource: resource.GVR.Resource}}
		switch {
		case s.Action == plan.Skipped, s.Blocked != "":
			continue
		case s.Action == plan.Pruned:
			u.Verbs = []string{"get", "list", "delete"}
		case s.Action == plan.Unchanged:
			u.Content, u.Verbs = s.Object.Content, []string{"get", "list"}
		case s.Action == plan.Detached:
			u.Verbs = []string{"get", "list", "patch"}
		default:
			u.Content = s.Object.Content
			u.Verbs = []string{"get", "list", "patch"}
			if s.Live == nil {
				u.Verbs = append(u.Verbs, "create")
			}
			if u.Recreates = s.Recreate != plan.NoRecreation; u.Recreates {
				u.Verbs = append(u.Verbs, "delete", "create")
			}
		}
		uses = append(uses, u)
	}
	return uses
}
