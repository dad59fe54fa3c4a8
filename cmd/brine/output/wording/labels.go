package wording

import (
	"encoding/json"
	"fmt"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// ReadingOrder puts what takes something away first, as in the text.
var ReadingOrder = []plan.Action{plan.Failed, plan.Pruned, plan.Recreated, plan.Detached, plan.Configured, plan.Created, plan.Skipped, plan.Unchanged}

// ActionTile is how often an action is done: the summary, and a filter.
type ActionTile struct {
	Action plan.Action
	Label  string
	Count  int
}

// TilesOf are the actions of a result with how often each is done, in reading order.
func TilesOf(r *report.Result) (tiles []ActionTile) {
	counts := map[plan.Action]int{}
	for _, o := range r.Objects {
		counts[o.Action]++
	}
	for _, a := range ReadingOrder {
		if n := counts[a]; n > 0 {
			tiles = append(tiles, ActionTile{a, ActionLabel(r, a), n})
		}
	}
	return tiles
}

// FullKind is "Deployment.apps".
func FullKind(o *report.ObjectResult) string { return o.ID().GroupKind.String() }

// IsUnverified says that no server has checked the object of a preview.
func IsUnverified(o *report.ObjectResult) bool { return strings.HasPrefix(o.Verified, "not verified") }

// InNamespace is an object's name, after that of its namespace.
func InNamespace(o *report.ObjectResult) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// longestValue is how much of a value stands in the table: the diff has all.
const longestValue = 300

// ValueText is a field's value, shortened, as one text.
func ValueText(v any) string {
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		s = string(text)
	}
	return Clean(bundle.Clip(s, longestValue))
}

// ManyNames is how many objects are named at once.
const ManyNames = 5

// FewInline is how many details of a risk stand in the page unfolded.
const FewInline = 2

// changeLabels names what happens to an object from one bundle to another, previewLabels what a
// run would do to it, driftLabels how it differs.
var (
	changeLabels  = map[plan.Action]string{plan.Pruned: "removed", plan.Configured: "changed", plan.Created: "added", plan.Unchanged: "unchanged"}
	previewLabels = map[plan.Action]string{
		plan.Pruned: "to prune", plan.Recreated: "to recreate", plan.Detached: "to detach", plan.Configured: "to configure", plan.Created: "to create",
		plan.Failed: "would fail", plan.Skipped: "would be skipped",
	}
	driftLabels = map[plan.Action]string{
		plan.Pruned: "not wanted", plan.Recreated: "different in a field that cannot be changed", plan.Detached: "", plan.Configured: "different", plan.Created: "missing",
	}
)

// ActionLabel names an action: of a preview, where nothing has been done yet, "to create".
func ActionLabel(r *report.Result, a plan.Action) string {
	labels := previewLabels
	switch {
	case r.Compared != nil:
		return changeLabels[a]
	case !IsPreview(r):
		return string(a)
	case r.Wanted != "":
		labels = driftLabels
	}
	if label, ok := labels[a]; ok {
		return label
	}
	return string(a)
}

// ActionTitle is an action's label above its objects.
func ActionTitle(r *report.Result, a plan.Action) string {
	label := ActionLabel(r, a)
	return strings.ToUpper(label[:min(len(label), 1)]) + label[min(len(label), 1):]
}

// VerifiedBy says who has checked an object, where that is not the server as usual.
func VerifiedBy(o *report.ObjectResult) string {
	switch o.Verified {
	case "server":
		return ""
	case "bundle CRD":
		return "checked by its CRD in the bundle alone"
	}
	return o.Verified
}
