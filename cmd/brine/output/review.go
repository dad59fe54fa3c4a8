package output

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
)

// reviewed is what a change is about, for the top of a preview: what is dangerous,
// then images and versions.
func (t *text) reviewed(r *review.Review) string {
	if r.Empty() {
		return ""
	}
	var b strings.Builder
	if len(r.Risks) > 0 {
		b.WriteString("\n" + t.out.paint.in(red, "Dangerous:") + "\n")
	}
	for _, g := range risksByType(r.Risks) {
		b.WriteString("  " + t.out.paint.in(bold, riskTitle(g)) + "\n")
		for _, risk := range g {
			b.WriteString("    " + riskLine(risk) + "\n")
			for _, line := range t.details(risk) {
				b.WriteString("      " + Line(line) + "\n")
			}
		}
	}
	list := func(title string, n int, line func(int) string) {
		if n == 0 {
			return
		}
		b.WriteString("\n" + t.out.paint.in(bold, fmt.Sprintf("%s (%d):", title, n)) + "\n")
		for i := range n {
			b.WriteString("  " + line(i) + "\n")
		}
	}
	list("Images", len(r.Images), func(i int) string { return imageLine(r.Images[i]) })
	list("Versions", len(r.Versions), func(i int) string { return versionLine(r.Versions[i]) })
	return b.String()
}

// fewDetails is how many details of a risk are shown at first.
const fewDetails = 4

// details are those of a risk that are shown. The rules of new roles are only where
// that is asked for.
func (t *text) details(r review.Risk) []string {
	switch {
	case t.o.Verbose:
		return r.Details
	case r.Type == review.Rights && strings.HasPrefix(r.Text, "new"):
		return nil
	case len(r.Details) > fewDetails+1:
		return append(slices.Clone(r.Details[:fewDetails]), fmt.Sprintf("and %d more: -v shows them", len(r.Details)-fewDetails))
	}
	return r.Details
}

func risksByType(risks []review.Risk) [][]review.Risk {
	var groups [][]review.Risk
	for i, risk := range risks {
		if i == 0 || risks[i-1].Type != risk.Type {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], risk)
	}
	return groups
}

// riskTitle is "Pods restart: 5 objects, 12 pods".
func riskTitle(group []review.Risk) string {
	objects, pods := 0, 0
	for _, r := range group {
		objects += len(r.Objects)
		pods += r.Pods
	}
	title := fmt.Sprintf("%s: %s", group[0].Type.Title(), bundle.Count(objects, "object"))
	if pods > 0 {
		title += ", " + bundle.Count(pods, "pod")
	}
	return title
}

// riskLine is a risk without its details.
func riskLine(r review.Risk) string {
	if len(r.Objects) == 1 {
		return objectName(r.Objects[0]) + ": " + Line(r.Text)
	}
	return Line(r.Text) + ": " + names(r.Objects, 3)
}

// objectName is "Deployment shop/web". Kinds of Kubernetes itself go without their group.
func objectName(o review.Object) string {
	id := o.ID()
	if !strings.Contains(o.Group, ".") || strings.HasSuffix(o.Group, ".k8s.io") {
		id.GroupKind.Group = ""
	}
	return Line(bundle.Name(id))
}

func names(objects []review.Object, most int) string {
	var list []string
	for _, o := range objects {
		list = append(list, objectName(o))
	}
	return bundle.Some(list, most)
}

// imageLine is "quay.io/dexidp/dex v2.37.0 → v2.41.1: Deployment.apps auth/dex".
func imageLine(m review.ImageChange) string {
	text := Line(m.Image + " " + arrow(m.From, m.To))
	if m.Guess {
		text += " (perhaps an image)"
	}
	return text + ": " + names(m.Objects, 3)
}

// arrow is a change of a version: "1 → 2", "new: 2", "1, no longer used".
func arrow(from, to string) string {
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

// versionLine is "loki: chart 5.38.0 → 5.48.0, version 2.9.2 → 2.9.6 (11 objects)".
func versionLine(v review.VersionChange) string {
	var parts []string
	if v.ChartFrom+v.ChartTo != "" {
		parts = append(parts, "chart "+change(v, v.ChartFrom, v.ChartTo))
	}
	if v.From+v.To != "" {
		parts = append(parts, "version "+change(v, v.From, v.To))
	}
	text := v.Component + ": " + strings.Join(parts, ", ")
	switch v.Action {
	case plan.Created:
		text = v.Component + ": new, " + strings.Join(parts, ", ")
	case plan.Pruned:
		text = v.Component + ": removed, " + strings.Join(parts, ", ")
	}
	return Line(text) + " (" + bundle.Count(v.Objects, "object") + ")"
}

func change(v review.VersionChange, from, to string) string {
	if v.Action != plan.Configured {
		return cmp.Or(from, to)
	}
	return arrow(cmp.Or(from, "none"), cmp.Or(to, "none"))
}

// sameLine is "9 objects: only labels["helm.sh/chart"] dex-0.15.3 → dex-0.19.1".
func sameLine(s review.Same) string {
	var parts []string
	for i, f := range s.Fields {
		if i == fewDetails && len(s.Fields) > fewDetails+1 {
			parts = append(parts, fmt.Sprintf("and %d more fields", len(s.Fields)-i))
			break
		}
		parts = append(parts, fieldLine(f))
	}
	text := strings.Join(parts, ", ")
	switch {
	case s.Labels:
		text = "only " + text
	default:
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
	shown := func(v any) string { return shorter(Line(value(v)), 60) }
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

func shorter(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// kinds is "ServiceAccount 3, ClusterRole 2".
func kinds(objects []review.Object) string {
	counts := map[string]int{}
	for _, o := range objects {
		counts[o.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	return Line(strings.Join(parts, ", "))
}

// folded are the objects that are shown with others that change alike.
func folded(r *report.Result) map[bundle.ID]bool {
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
