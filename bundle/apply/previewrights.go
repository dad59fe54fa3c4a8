package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/rights"
)

// missingRights asks for every right that the plan needs whether we have it, so
// that all that are missing are told at once.
func (r *run) missingRights(ctx context.Context) error {
	wanted := rights.Of(r.uses(), r.Inventory.Namespace, false)
	wanted = slices.DeleteFunc(wanted, optional)
	missing, err := rights.Missing(ctx, r.client, wanted)
	if err != nil {
		return fmt.Errorf("find out which rights are missing: %w", err)
	}
	lacks := map[rights.Right]bool{}
	for _, m := range missing {
		lacks[m] = true
		r.record.Result.MissingRights = append(r.record.Result.MissingRights, m.String())
	}
	// Who may write nothing at all is not meant to apply this, only to look.
	r.readOnly = !slices.ContainsFunc(wanted, func(w rights.Right) bool { return cluster.Writes(w.Verb) && !lacks[w] })
	for _, m := range rights.Of(r.uses(), r.Inventory.Namespace, true) {
		if lacks[m] && !cluster.Writes(m.Verb) {
			r.readOnly = false
		}
	}
	if r.readOnly {
		r.record.Warn(fmt.Sprintf("previewed with rights to read only: the server was asked about nothing, %d rights are missing to apply this", len(missing)))
	}
	return nil
}

// optional rights make a run say more, or wait more cheaply.
func optional(r rights.Right) bool {
	switch r.Resource.Resource {
	case "pods/log", "events", "replicasets", "storageclasses", "secrets":
		return true
	}
	return r.Verb == "watch" || r.Resource.Resource == "namespaces" && r.Namespace == "" && cluster.Writes(r.Verb)
}

// lacking ends a preview whose user lacks rights for some of the plan only.
func (r *run) lacking() error {
	if len(r.record.Result.MissingRights) == 0 || r.readOnly {
		return nil
	}
	s := &report.Stop{Code: report.ExitUnreachable}
	for _, m := range r.record.Result.MissingRights {
		s.Errors = append(s.Errors, errors.New("missing right: "+m))
	}
	return s
}

// unreadable is the error of a dry run that was not let read what is there:
// all that is missing, not only what the run fell over.
func (r *run) unreadable(ctx context.Context, cause error) error {
	if r.plan == nil {
		r.plan = &plan.Plan{}
		for _, o := range r.bundle.Objects {
			r.plan.Steps = append(r.plan.Steps, &plan.Step{ID: o.ID, GVK: o.GVK, Object: o, Action: plan.Configured})
		}
	}
	if err := r.missingRights(ctx); err != nil || len(r.record.Result.MissingRights) == 0 {
		return cause
	}
	r.readOnly = false
	err := &report.Stop{}
	ok := errors.As(r.lacking(), &err)
	if !ok {
		return cause
	}
	err.Errors = append([]error{cause}, err.Errors...)
	return err
}

// uses are what the plan does, as rights see it.
func (r *run) uses() []rights.Use {
	var uses []rights.Use
	for _, s := range r.plan.Steps {
		resource, err := r.client.Resource(s.GVK)
		if err != nil {
			if resource, err = r.client.Any(s.ID.GroupKind); err != nil {
				continue
			}
		}
		u := rights.Use{ID: s.ID, Resource: schema.GroupResource{Group: resource.GVR.Group, Resource: resource.GVR.Resource}}
		switch {
		case s.Action == plan.Skipped, s.Blocked != "":
			continue
		case s.Action == plan.Pruned:
			u.Verbs = []string{"get", "list", "delete"}
		case s.Action == plan.Detached:
			u.Verbs = []string{"get", "list", "patch"}
		default:
			u.Content = s.Object.Content
			u.Verbs = []string{"get", "list", "patch"}
			if s.Live == nil {
				u.Verbs = append(u.Verbs, "create")
			}
			if s.Recreate {
				u.Verbs = append(u.Verbs, "delete", "create")
			}
		}
		uses = append(uses, u)
	}
	return uses
}
