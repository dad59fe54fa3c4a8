package review

import (
	"fmt"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
)

// removed is about an object that is deleted, for good or to be created again.
func (r *reviewer) removed(c *Change) {
	lost := r.lost(c)
	pods := podsOf(c.Before)
	if c.Action == plan.Recreated {
		text := "deleted and created again"
		if c.Reason != "" {
			text += " (" + strings.TrimSpace(c.Reason) + ")"
		}
		switch {
		case c.Orphans && pods > 0:
			text += fmt.Sprintf(": its %s", plural(pods, "pod stays", "pods stay"))
			if pods = 0; !restarts(c) {
				text += ", and none restarts"
			}
		case pods > 0:
			text += fmt.Sprintf(": its %s before the new ones start", plural(pods, "pod stops", "pods stop"))
		case c.ID.GroupKind == bundle.JobKind:
			text += ": it runs again"
		}
		r.add(Recreated, c, pods, bundle.Each(c.Claims, plan.Claim.String), "%s", text)
		if lost != "" && !c.Orphans {
			r.add(Data, c, pods, nil, "%s", lost)
		}
		return
	}
	switch {
	case lost != "":
		r.add(Data, c, pods, nil, "%s", lost)
	case pods > 0:
		r.add(Deleted, c, pods, r.budgets(c), "deleted with its %s, at the end of the run", plural(pods, "pod", "pods"))
	case isWorkload(c.ID.GroupKind) && r.cluster.Unread:
		r.add(Deleted, c, 0, nil, "deleted with its pods")
	case isWorkload(c.ID.GroupKind):
		r.add(Deleted, c, 0, nil, "deleted; it has no pods now")
	}
}

// gone are the SLS and files of the last run that this one has not. That there is none is
// not said: a run that deletes nothing does not look for them.
func (r *reviewer) gone() {
	for _, one := range r.cluster.Removals {
		r.found = append(r.found, Risk{Type: Removed, Text: one.What, Objects: bundle.Each(one.Objects, bundle.ReferTo)})
	}
	r.open = append(r.open, Removed)
}

// plural is "1 pod", "3 pods".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lost is what data is deleted with an object; "" where there is none.
func (r *reviewer) lost(c *Change) string {
	before := content(c.Before)
	switch c.ID.GroupKind {
	case bundle.PersistentVolumeClaimKind:
		text := "the claim and its data are deleted, unless its volume is retained"
		if size := bundle.At[string](before, "status", "capacity", "storage"); size != "" {
			text = "the claim of " + size + " and its data are deleted, unless its volume is retained"
		}
		return text
	case bundle.NamespaceKind:
		return "the namespace is deleted with all that is in it: " + r.count(c.ID, "PersistentVolumeClaim", "PersistentVolumeClaims")
	case bundle.CRDKind:
		d, _ := bundle.DefinitionOf(c.Before)
		return "the kind " + d.Kind.Kind + " is deleted with all its resources: " + r.count(c.ID, "resource", "resources")
	case bundle.PersistentVolumeKind:
		if bundle.At[string](before, "spec", "persistentVolumeReclaimPolicy") == "Delete" {
			return "the volume and its data are deleted (reclaim policy Delete)"
		}
	case bundle.StatefulSetKind:
		if bundle.At[string](before, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete" {
			return "its claims and their data are deleted with it (persistentVolumeClaimRetentionPolicy)"
		}
	}
	return ""
}
