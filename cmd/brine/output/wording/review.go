package wording

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
)

// What a preview would change and what is dangerous in it, in the words of all formats.

// Headlines are which components come and go, and what happens to how many pods.
func Headlines(r *review.Review) []string {
	return slices.DeleteFunc([]string{componentsLine(r), podsLine(r)}, func(line string) bool { return line == "" })
}

// podsLine is "Pods: 11 restart, 3 are new, 1 is deleted"; "" where none is touched.
func podsLine(r *review.Review) string {
	pods, fresh, stuck := map[review.Type]int{}, 0, 0
	for _, risk := range r.Risks {
		if pods[risk.Type] += risk.Pods; risk.Type == review.Restart && risk.Stuck {
			stuck += risk.Pods
		}
	}
	nodes := 0
	for _, s := range r.Starts {
		if fresh += s.Pods; s.Pods == 0 && s.Object.Kind == "DaemonSet" {
			nodes++
		}
	}
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(pods[review.Restart], "restarts", "restart")
	if stuck > 0 {
		parts[0] += fmt.Sprintf(" (%d of them in rollouts that stop, as new pods do not start while what they name is missing)", stuck)
	}
	add(pods[review.Recreated], "stops before its successor starts", "stop before their successors start")
	add(fresh, "is new", "are new")
	add(pods[review.Deleted], "is deleted", "are deleted")
	add(nodes, "new DaemonSet has one on each of its nodes", "new DaemonSets have one on each of their nodes")
	if len(parts) == 0 {
		return ""
	}
	return "Pods: " + strings.Join(parts, ", ")
}

// componentsLine is "Components: cert-manager v1.15.3 is new (46 objects)"; "" where none
// comes or goes.
func componentsLine(r *review.Review) string {
	var parts []string
	for _, v := range r.Versions {
		name := Line(v.Component + " " + cmp.Or(v.To, v.ChartTo, v.From, v.ChartFrom))
		switch v.Action {
		case plan.Created:
			parts = append(parts, fmt.Sprintf("%s is new (%s)", name, bundle.Count(v.Objects, "object")))
		case plan.Pruned:
			parts = append(parts, fmt.Sprintf("%s is removed (%s)", name, bundle.Count(v.Objects, "object")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Components: " + strings.Join(parts, ", ")
}

// StartsTitle is "New pods: 3 workloads, 3 pods".
func StartsTitle(starts []review.Start) string {
	pods := 0
	for _, s := range starts {
		pods += s.Pods
	}
	return fmt.Sprintf("New pods: %s, %s", bundle.Count(len(starts), "workload"), bundle.Count(pods, "pod"))
}

// StartLine is "Deployment shop/web: 3 pods".
func StartLine(s review.Start) string { return ObjectName(s.Object) + ": " + StartText(s) }

// StartText is "3 pods, only on nodes with a label".
func StartText(s review.Start) string {
	var parts []string
	if s.Pods > 0 {
		parts = append(parts, bundle.Count(s.Pods, "pod"))
	}
	if s.Note != "" {
		parts = append(parts, Line(s.Note))
	}
	return strings.Join(parts, ", ")
}

// ClearLine are types of risks of which there is none.
func ClearLine(r *review.Review) string {
	none := bundle.Each(r.Clear, review.Type.Absence)
	if r.NoBudget {
		none = append(none, "PodDisruptionBudgets of the pods that restart or are deleted")
	}
	return strings.Join(none, ", ")
}

// BackTitle is above what going back would lose.
func BackTitle(b *review.GoingBack) string {
	switch {
	case b == nil:
		return ""
	case b.Revision == 0:
		return "Going back after this change:"
	}
	title := fmt.Sprintf("Going back to revision %d after this change:", b.Revision)
	if len(b.Losses) == 0 && b.Unknown == "" {
		title += " nothing that would be lost was found"
	}
	return title
}

// BackLines are what going back would lose or meet, and what is not known of it.
func BackLines(b *review.GoingBack) []string {
	if b == nil {
		return nil
	}
	var lines []string
	for what, same := range bundle.GroupBy(b.Losses, func(l review.Loss) string { return l.Text }).All() {
		names := bundle.Each(same, func(l review.Loss) string { return ObjectName(l.Object) })
		line := names[0] + ": " + what
		if len(names) > 1 { // what it is comes before whom it is of
			line = fmt.Sprintf("for each of %d objects: %s: %s", len(names), what, bundle.Some(names, 10))
		}
		lines = append(lines, Line(line))
	}
	if b.Unknown != "" {
		lines = append(lines, Line("not all of it is known: "+b.Unknown))
	}
	return append(lines, "not known: "+b.NotKnown)
}

// UncheckedLine is what could not be checked, and why.
func UncheckedLine(u review.Unchecked) string { return Line(u.What + ": " + u.Why) }

// UnversionedLine are the objects that the versions do not count.
func UnversionedLine(r *review.Review) string {
	return fmt.Sprintf("%s: changed, but with no version, or with the same one", bundle.Count(r.Unversioned, "other object"))
}

// FoldRisks are the risks of a type that are shown, and those that are folded: rights of
// somebody that do not lead to others, where there are many.
func FoldRisks(group []review.Risk) (shown, rest []review.Risk) {
	for _, r := range group {
		if r.Subject != "" && !r.Severe {
			rest = append(rest, r)
		} else {
			shown = append(shown, r)
		}
	}
	if len(rest) < 2 || len(rest) <= FewDetails && len(shown) == 0 {
		return group, nil
	}
	return shown, rest
}

// FoldTitle is "4 others, with lesser rights".
func FoldTitle(rest []review.Risk) string {
	return bundle.Count(len(rest), "other") + ", with lesser rights"
}

// RisksByType are risks in groups of one type, in their order.
func RisksByType(risks []review.Risk) iter.Seq2[review.Type, []review.Risk] {
	return bundle.GroupBy(risks, func(r review.Risk) review.Type { return r.Type }).All()
}

// RiskTitle is "Pods restart: 5 objects, 12 pods".
func RiskTitle(group []review.Risk) string {
	pods, subjects, severe := 0, 0, 0
	objects := sets.Set[bundle.Reference]{}
	for _, r := range group {
		objects.Insert(r.Objects...)
		pods += r.Pods
		if r.Subject != "" {
			subjects++
		}
		if r.Severe {
			severe++
		}
	}
	title := group[0].Type.Title() + ": "
	if subjects > 0 {
		title += fmt.Sprintf("%s, %d with dangerous rights", bundle.Count(len(group), "subject"), severe)
	} else {
		title += bundle.Count(len(objects), "object")
	}
	if pods > 0 {
		title += ", " + bundle.Count(pods, "pod")
	}
	return title
}

// RiskLine is a risk without its details.
func RiskLine(r review.Risk) string {
	switch {
	case r.Subject != "":
		return Line(r.Subject+" "+r.Text) + " (by " + ObjectNames(r.Objects, 3) + ")"
	case len(r.Objects) == 1:
		return ObjectName(r.Objects[0]) + ": " + Line(r.Text)
	}
	return Line(r.Text) + ": " + ObjectNames(r.Objects, 3)
}

// ObjectName is "Deployment shop/web". Kinds of Kubernetes itself go without their group.
func ObjectName(o bundle.Reference) string {
	id := o.ID()
	if !strings.Contains(o.Group, ".") || strings.HasSuffix(o.Group, ".k8s.io") {
		id.GroupKind.Group = ""
	}
	return Line(bundle.Name(id))
}

// ObjectNames is at most so many names, and how many more there are.
func ObjectNames(objects []bundle.Reference, most int) string {
	return bundle.Some(bundle.Each(objects, ObjectName), most)
}

// ImageLine is "quay.io/dexidp/dex v2.37.0 → v2.41.1: Deployment.apps auth/dex".
func ImageLine(m review.ImageChange) string {
	return Line(m.Image+" "+ImageVersions(m)) + ": " + ObjectNames(m.Objects, 3)
}

// ImageVersions are those of an image, and whether it may be none.
func ImageVersions(m review.ImageChange) string {
	text := VersionArrow(m.From, m.To)
	if m.Guess {
		text += " (named in an argument or a similar field, not as the image of a container)"
	}
	return text
}

// VersionArrow is a change of a version: "1 → 2", "new: 2", "1, no longer used".
func VersionArrow(from, to string) string {
	switch {
	case from == to:
		return to
	case from == "":
		return "new: " + to
	case to == "":
		return from + ", no longer used"
	}
	return from + " → " + to
}

// VersionLines are the versions that change, and how many objects have none.
func VersionLines(r *review.Review) []string {
	lines := bundle.Each(r.Versions, VersionLine)
	if len(lines) > 0 && r.Unversioned > 0 {
		lines = append(lines, UnversionedLine(r))
	}
	return lines
}

// VersionLine is "loki: chart 5.38.0 → 5.48.0, version 2.9.2 → 2.9.6 (11 objects)".
func VersionLine(v review.VersionChange) string {
	var parts []string
	if v.ChartFrom+v.ChartTo != "" {
		parts = append(parts, "chart "+change(v, v.ChartFrom, v.ChartTo))
	}
	if v.From+v.To != "" {
		parts = append(parts, "version "+change(v, v.From, v.To))
	}
	what := map[plan.Action]string{plan.Created: "new, ", plan.Pruned: "removed, "}[v.Action]
	return Line(v.Component+": "+what+strings.Join(parts, ", ")) + " (" + bundle.Count(v.Objects, "object") + ")"
}

func change(v review.VersionChange, from, to string) string {
	if v.Action != plan.Configured {
		return cmp.Or(from, to)
	}
	return VersionArrow(cmp.Or(from, "none"), cmp.Or(to, "none"))
}

// SameLine is "9 objects: only labels["helm.sh/chart"] dex-0.15.3 → dex-0.19.1".
func SameLine(s review.Same) string {
	var parts []string
	for i, f := range s.Fields {
		if i == FewDetails && len(s.Fields) > FewDetails+1 {
			parts = append(parts, fmt.Sprintf("and %d more fields", len(s.Fields)-i))
			break
		}
		parts = append(parts, fieldLine(f))
	}
	text := strings.Join(parts, ", ")
	if s.Labels {
		text = "only " + text
	} else {
		text += " (besides labels of versions)"
	}
	return fmt.Sprintf("%s: %s", bundle.Count(len(s.Objects), "object"), text)
}

// fieldLine is a changed field; labels and annotations go without the way to them.
func fieldLine(f diff.Change) string {
	path := f.Place()
	for _, prefix := range []string{`metadata.labels["`, `metadata.annotations["`} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			path = strings.TrimSuffix(key, `"]`)
		}
	}
	shown := func(v any) string { return bundle.Clip(Line(ValueText(v)), 60) }
	switch {
	case f.Moved != "" && shown(f.Old) == shown(f.New):
		return path + ": " + shown(f.Old)
	case f.Old == nil:
		return path + " → " + shown(f.New)
	case f.New == nil:
		return path + " removed (" + shown(f.Old) + ")"
	}
	return path + " " + shown(f.Old) + " → " + shown(f.New)
}

// KindCounts is "ServiceAccount 3, ClusterRole 2".
func KindCounts(objects []bundle.Reference) string {
	var parts []string
	for kind, of := range bundle.GroupBy(objects, func(o bundle.Reference) string { return o.Kind }).All() {
		parts = append(parts, fmt.Sprintf("%s %d", kind, len(of)))
	}
	slices.Sort(parts) // no kind has a space in it
	return Line(strings.Join(parts, ", "))
}

// FoldedObjects are the objects that are shown with others that change alike.
func FoldedObjects(r *report.Result) map[bundle.ID]bool {
	in := map[bundle.ID]bool{}
	if r.Review == nil {
		return in
	}
	for _, s := range r.Review.Same {
		for _, o := range s.Objects {
			in[o.ID()] = true
		}
	}
	for _, o := range r.Objects {
		if o.Action != plan.Configured {
			delete(in, o.ID())
		}
	}
	return in
}

// FewDetails is how many details of a risk are shown at first.
const FewDetails = 4
