package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/takeover"
	"brine/inventory"
)

// origins finds the origins that the inventory has to record before the first write.
func (in *Input) origins(p *Plan) {
	p.Origins = map[bundle.ID]inventory.Origin{}
	for _, s := range p.Steps {
		if s.Live == nil || s.Blocked != "" || s.ID.Name == "" {
			continue
		}
		o, known := FoundOrigin(in.Inventory, s.ID, s.Live, in.Options.TakeOverFrom), in.Inventory.Origins[s.ID]
		if o.How == inventory.Unknown && known.BroughtFrom != inventory.ToGiveBack { // a record is of another object, which is gone
			o.BroughtFrom = known.BroughtFrom
		}
		if !o.Equal(known) {
			p.Origins[s.ID] = o
		}
	}
}

// FoundOrigin is the origin of an object that is there before a run applies it. It is
// Unknown for one that carries the inventory's annotation already, if there is no record.
func FoundOrigin(inv *inventory.Inventory, id bundle.ID, live *unstructured.Unstructured, takeOverFrom []string) inventory.Origin {
	owner := live.GetAnnotations()[inventory.OwningInventory]
	_, member := inv.Members[id] // a record of what is another one's is left of a rename that was killed
	if known := inv.OriginOf(id, live); known.How != inventory.Unknown && (member || owner == inv.ID) {
		return known
	}
	if owner == inv.ID {
		return inventory.Origin{}
	}
	o := inventory.Origin{How: inventory.Adopted}
	if tools := takeover.Of(live, takeOverFrom).Tools; owner != "" {
		o = inventory.Origin{How: inventory.Moved, From: owner}
	} else if len(tools) > 0 {
		o = inventory.Origin{How: inventory.TakenOver, From: tools[0].Token}
	}
	return o.Of(live.GetUID())
}

// Was is an object as it was before it became a member.
type Was struct {
	*unstructured.Unstructured

	// Kept: a revision kept it. Others may have changed fields since; else nobody had the time.
	Kept bool
}

// Adopts are the objects that the plan makes members, or keeps as ones that became members
// just now, as they are: what their origins say was there before.
func (p *Plan) Adopts() map[bundle.ID]*unstructured.Unstructured {
	adopted := map[bundle.ID]*unstructured.Unstructured{}
	for _, s := range p.Steps {
		if o := p.Origins[s.ID]; o.How == inventory.Adopted || o.How == inventory.TakenOver {
			adopted[s.ID] = s.Live
		}
	}
	return adopted
}

// otherTools warns of objects that the run would adopt from other tools, which
// know nothing of it: one warning a tool.
func otherTools(steps []*Step, from []string) []string {
	names := map[string][]string{}
	for _, s := range steps {
		if s.Live == nil || s.Member || s.Action == Unchanged {
			continue
		}
		if tool, silent := takeover.Silently(s.Live, from); silent {
			names[tool] = append(names[tool], bundle.Name(s.ID))
		}
	}
	var warnings []string
	for _, tool := range slices.Sorted(maps.Keys(names)) {
		all := names[tool]
		belong := "belong"
		if len(all) == 1 {
			belong = "belongs"
		}
		warnings = append(warnings, fmt.Sprintf("%s %s to %s, which may change or delete what it owns: %s", bundle.Count(len(all), "object"), belong, tool, bundle.Some(all, 10)))
	}
	return warnings
}
