package output

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/inspect"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
	"brine/inventory"
	"brine/inventory/admin"
)

// Lists of the commands that read: inventories, orphans, moves, status, history, objects.

// list writes a document as JSON, or as the rows that write gives: cells in columns, and what
// has one cell as a line. No cell can break its line.
func list(w io.Writer, format string, document any, write func(row func(cells ...any))) error {
	if format == "json" {
		return wording.JSON(w, document)
	}
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	write(func(cells ...any) {
		texts := bundle.Each(cells, func(cell any) string { return wording.Line(fmt.Sprint(cell)) })
		fmt.Fprintln(out, strings.Join(texts, "\t"))
	})
	return out.Flush()
}

// inventoryLine begins the last line of what is about one inventory.
func inventoryLine(i report.Inventory) string {
	return fmt.Sprintf("inventory %s (id %s)", wording.InventoryName(i), i.ID)
}

// Inventories lists inventories.
func Inventories(w io.Writer, format string, l *admin.List) error {
	return list(w, format, l, func(row func(...any)) {
		row("INVENTORY", "MEMBERS", "LAST RUN", "REVISION", "RESULT", "VERSION", "LOCKED BY")
		for _, inv := range l.Inventories {
			ran, revision, result, lock := "-", "-", "-", "-"
			if inv.LastRun != nil {
				ran = inv.LastRun.Format(time.RFC3339)
			}
			if inv.Revision != nil {
				revision, result = strconv.Itoa(inv.Revision.Number), inv.Revision.Result
			}
			if inv.Lock != nil {
				lock = inv.Lock.Holder
				if inv.Lock.Ended {
					lock += " (ended)"
				}
			}
			row(inv.Namespace+"/"+inv.Name, inv.Members, ran, revision, result, cmp.Or(inv.Version, "-"), lock)
		}
		for _, inv := range l.Inventories {
			for _, d := range inv.Damage {
				row("damage of " + inv.Namespace + "/" + inv.Name + ": " + d)
			}
			for _, u := range inv.Unknown {
				row("unknown of " + inv.Namespace + "/" + inv.Name + ": " + u)
			}
		}
		row(bundle.Count(len(l.Inventories), "inventory"))
	})
}

// Orphans lists objects of inventories that do not have them.
func Orphans(w io.Writer, format string, o *admin.Orphans) error {
	return list(w, format, o, func(row func(...any)) {
		for _, found := range o.Orphans {
			row("orphan", bundle.Name(found.ID()), found.Inventory, found.Reason)
		}
		for _, u := range o.Unknown {
			row("unknown", bundle.Name(u.ID()), u.Inventory, u.Reason)
		}
		for _, k := range o.NotSearched {
			row("not searched", k.Kind, "", k.Reason)
		}
		parts := []string{bundle.Count(len(o.Orphans), "orphan")}
		if n := len(o.Unknown); n > 0 {
			parts = append(parts, bundle.Count(n, "object")+" unknown")
		}
		if n := len(o.NotSearched); n > 0 {
			parts = append(parts, bundle.Count(n, "kind")+" not searched")
		}
		row(strings.Join(parts, ", "))
	})
}

// Move lists the members that a command moved to another inventory.
func Move(w io.Writer, format string, m *admin.Move) error {
	return list(w, format, m, func(row func(...any)) {
		for _, o := range m.Moved {
			row("moved", bundle.Name(o.ID()))
		}
		for _, o := range m.NotMoved {
			row("not moved", bundle.Name(o.ID()), o.Reason)
		}
		for _, inv := range m.Removed {
			row("deleted", "inventory "+inv.Namespace+"/"+inv.Name, "")
		}
		state := ""
		if m.DryRun {
			state = "; nothing was changed (--dry-run)"
		}
		row(inventoryLine(m.To) + ": " + bundle.Count(len(m.Moved), "member") + " moved to it" + state)
	})
}

// Repair lists the members that were found again.
func Repair(w io.Writer, format string, r *admin.Repair) error {
	return list(w, format, r, func(row func(...any)) {
		for _, d := range r.Damage {
			row("damage: " + d)
		}
		for _, o := range r.Added {
			row("added", bundle.Name(o.ID()))
		}
		for _, o := range r.NotAdded {
			row("not added", bundle.Name(o.ID()), o.Reason)
		}
		for _, k := range r.NotSearched {
			row("not searched", k.Kind, k.Reason)
		}
		state := "it stays damaged: not all kinds could be searched"
		switch {
		case r.DryRun:
			state = "nothing was changed (--dry-run)"
		case r.ExitCode == report.ExitOK:
			state = "it is whole"
		}
		row(fmt.Sprintf("%s: %s held, %d added; %s", inventoryLine(r.Inventory), bundle.Count(r.Members, "member"), len(r.Added), state))
	})
}

// Status lists the objects of an inventory, with the rules that decided where it is verbose.
func Status(w io.Writer, format string, verbose bool, r *report.Result) error {
	return list(w, format, r, func(row func(...any)) {
		columns := func(object, ready, reason, rule any) {
			cells := []any{object, ready, reason, rule}
			if !verbose {
				cells = cells[:3]
			}
			row(cells...)
		}
		columns("OBJECT", "READY", "REASON", "RULE")
		gone := 0
		for _, o := range r.Objects {
			columns(bundle.Name(o.ID()), o.Ready, cmp.Or(o.NotServed, o.Reason), o.Rule)
			if o.Ready == report.StateGone {
				gone++
			}
		}
		row(fmt.Sprintf("%s: %s, %d ready, %d not ready, %d gone", inventoryLine(r.Inventory), bundle.Count(len(r.Objects), "object"), r.Summary.Ready, r.Summary.NotReady, gone))
	})
}

// History lists the revisions of an inventory.
func History(w io.Writer, format string, inv report.Inventory, revisions []inventory.Revision) error {
	document := map[string]any{
		"apiVersion": "brine.dev/v1", "kind": "History", "inventory": inv,
		"revisions": append([]inventory.Revision{}, revisions...), // never null
	}
	return list(w, format, document, func(row func(...any)) {
		row("REVISION", "TIME", "RESULT", "OBJECTS", "WHO", "JID", "DIGEST")
		for _, r := range revisions {
			row(r.Number, r.Time.Format(time.RFC3339), r.Result, r.Objects, r.Who, r.JobID, r.Digest[:min(len(r.Digest), 19)])
		}
	})
}

// Found lists objects, and whether they are ready.
func Found(w io.Writer, format string, found *inspect.Found) error {
	return list(w, format, found, func(row func(...any)) {
		row("OBJECT", "READY", "REASON")
		for i, o := range found.Objects {
			row(bundle.Name(bundle.IDOf(&unstructured.Unstructured{Object: o})), found.Readiness[i].State, found.Readiness[i].Reason)
		}
	})
}
