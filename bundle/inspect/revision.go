package inspect

import (
	"context"
	"fmt"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/report"
	"brine/inventory"
)

// Show is a revision as it is shown.
func Show(ctx context.Context, c *inventory.Content, info inventory.Revision, in report.Inventory) *report.Revision {
	r := &report.Revision{
		APIVersion: "brine.dev/v1", Kind: "Revision", Inventory: in, Revision: info, Namespace: c.Namespace, Options: c.Options, Rendering: c.Bundle.Rendering,
		Objects: []report.RevisionObject{},
	}
	var secrets report.Secrets
	secrets.Bundle(c.Bundle.Objects)
	for _, o := range c.Bundle.Objects {
		r.Objects = append(r.Objects, report.RevisionObject{
			Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind, Namespace: o.ID.Namespace, Name: o.ID.Name,
			Source: o.Source, Content: diff.Shown(o.Content, secrets.Text),
		})
	}
	for _, a := range c.Bundle.Absent {
		r.Absent = append(r.Absent, bundle.Name(a.ID))
	}
	for _, p := range c.Bundle.Invalid {
		r.Invalid = append(r.Invalid, secrets.About(bundle.Name(p.ID), p.Error()))
	}
	from, to := Side{Name: "nothing", Bundle: &bundle.Bundle{}}, Side{Name: fmt.Sprintf("revision %d", info.Number), Bundle: c.Bundle}
	r.Result = Compare(ctx, from, to, report.Header{Command: "history show", Inventory: in})
	return r
}
