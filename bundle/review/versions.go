package review

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/images"
	"brine/bundle/plan"
	"brine/bundle/redact"
)

// Images and versions that change, and objects that change alike.

// imagesOf are the images that change, in the order of their names.
func imagesOf(changes []*Change) []ImageChange {
	var all []*unstructured.Unstructured
	for _, c := range changes {
		all = append(all, c.Before, c.After)
	}
	definitions := images.Define(all)
	var found []ImageChange
	add := func(c *Change, m ImageChange) {
		i := slices.IndexFunc(found, func(f ImageChange) bool { return f.Image == m.Image && f.From == m.From && f.To == m.To })
		if i < 0 {
			i = len(found)
			found = append(found, m)
		}
		found[i].Guess = found[i].Guess && m.Guess
		if o := bundle.ReferTo(c.ID); !slices.Contains(found[i].Objects, o) {
			found[i].Objects = append(found[i].Objects, o)
		}
	}
	for _, c := range changes {
		switch c.Action {
		case plan.Created, plan.Configured, plan.Recreated, plan.Pruned:
		default:
			continue
		}
		before, after := definitions.Of(c.Before), definitions.Of(c.After)
		if c.Action == plan.Pruned {
			after = nil
		}
		for _, p := range paired(before, after) {
			if p[0].Image != p[1].Image {
				add(c, pair(p[0], p[1]))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b ImageChange) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Image, b.Image), strings.Compare(a.From, b.From))
	})
	return found
}

// rank puts images that change before those that come, and these before those that
// go.
func rank(m ImageChange) int {
	switch {
	case m.From == "":
		return 1
	case m.To == "":
		return 2
	}
	return 0
}

// pair is the change between two images, either of which may be missing.
func pair(from, to images.Found) ImageChange {
	before, was := images.Split(from.Image)
	after, is := images.Split(to.Image)
	m := ImageChange{Image: cmp.Or(after, before), From: was, To: is, Guess: from.Guess || to.Guess}
	switch {
	case from.Image == "":
		m.To = cmp.Or(is, "latest")
	case to.Image == "":
		m.From = cmp.Or(was, "latest")
	case before != after:
		m.From, m.To = from.Image, to.Image
	default:
		m.From, m.To = cmp.Or(was, "latest"), cmp.Or(is, "latest")
	}
	return m
}

// paired are the images of an object before and after: those at the same path, then
// those of the same name, then the others alone.
func paired(before, after []images.Found) [][2]images.Found {
	var out [][2]images.Found
	left := slices.Clone(before)
	take := func(same func(images.Found) bool) images.Found {
		if i := slices.IndexFunc(left, same); i >= 0 {
			f := left[i]
			left = slices.Delete(left, i, i+1)
			return f
		}
		return images.Found{}
	}
	rest := after
	for _, same := range []func(a, b images.Found) bool{
		func(a, b images.Found) bool { return a.Path == b.Path && base(a.Image) == base(b.Image) },
		func(a, b images.Found) bool { return base(a.Image) == base(b.Image) },
		func(a, b images.Found) bool { return a.Path == b.Path },
	} {
		var still []images.Found
		for _, a := range rest {
			if f := take(func(b images.Found) bool { return same(a, b) }); f.Image != "" {
				out = append(out, [2]images.Found{f, a})
				continue
			}
			still = append(still, a)
		}
		rest = still
	}
	return slices.Concat(out, bundle.Each(rest, func(a images.Found) [2]images.Found { return [2]images.Found{{}, a} }),
		bundle.Each(left, func(b images.Found) [2]images.Found { return [2]images.Found{b, {}} }))
}

// base is the last word of an image's repository.
func base(image string) string {
	repository, _ := images.Split(image)
	return repository[strings.LastIndex(repository, "/")+1:]
}

// chart is a label like ingress-nginx-4.7.1.
var chart = bundle.Pattern(`^(.+?)-(v?\d+\.\d.*)$`)

// version is what an object's labels say about its component.
type version struct{ component, chart, app string }

func versionOf(u *unstructured.Unstructured) version {
	if u == nil {
		return version{}
	}
	labels := u.GetLabels()
	var v version
	if m := chart().FindStringSubmatch(cmp.Or(labels["helm.sh/chart"], labels["chart"])); m != nil {
		v.component, v.chart = m[1], m[2]
	}
	v.app = labels["app.kubernetes.io/version"]
	v.component = cmp.Or(v.component, labels["app.kubernetes.io/name"], labels["app.kubernetes.io/instance"], labels["app"], labels["k8s-app"])
	if v.component == "" || v.chart == "" && v.app == "" {
		return version{}
	}
	return v
}

// versionsOf are the components whose versions change, those that come, and those
// that go, and how many objects change besides.
func versionsOf(changes []*Change) (found []VersionChange, others int) {
	counts := map[VersionChange]int{}
	before, after := map[string]bool{}, map[string]bool{}
	var whole []version // objects that come or go, of components that stay
	for _, c := range changes {
		if v := versionOf(c.Before); c.Before != nil {
			before[v.component] = true
		}
		if v := versionOf(c.After); c.After != nil && c.Action != plan.Pruned {
			after[v.component] = true
		}
	}
	for _, c := range changes {
		was, is := versionOf(c.Before), versionOf(c.After)
		switch c.Action {
		case plan.Pruned:
			is = version{}
		case plan.Created, plan.Configured, plan.Recreated:
		default:
			continue
		}
		switch {
		case c.Action == plan.Pruned && was.component != "" && !after[was.component]:
			counts[VersionChange{Component: was.component, ChartFrom: was.chart, From: was.app, Action: plan.Pruned}]++
		case c.Action == plan.Pruned:
			whole = append(whole, was)
		case is.component != "" && was.component == is.component && was != is:
			counts[VersionChange{Component: is.component, ChartFrom: was.chart, ChartTo: is.chart, From: was.app, To: is.app, Action: plan.Configured}]++
		case is.component != "" && was != is && !before[is.component]:
			counts[VersionChange{Component: is.component, ChartTo: is.chart, To: is.app, Action: plan.Created}]++
		case c.Action == plan.Created:
			whole = append(whole, is)
		default:
			others++
		}
	}
	for v, n := range counts {
		v.Objects = n
		found = append(found, v)
	}
	order := []plan.Action{plan.Configured, plan.Created, plan.Pruned}
	slices.SortFunc(found, func(a, b VersionChange) int {
		return cmp.Or(slices.Index(order, a.Action)-slices.Index(order, b.Action), strings.Compare(a.Component, b.Component), b.Objects-a.Objects,
			strings.Compare(a.ChartFrom+a.From+a.To, b.ChartFrom+b.From+b.To))
	})
	for _, w := range whole {
		i := slices.IndexFunc(found, func(v VersionChange) bool {
			from, to := version{v.Component, v.ChartFrom, v.From}, version{v.Component, v.ChartTo, v.To}
			return w.component != "" && (w == from || w == to)
		})
		if i < 0 {
			others++
			continue
		}
		found[i].Objects++
	}
	return found, others
}

// versionField finds labels and annotations that say nothing but a version.
var versionField = bundle.Pattern(`^metadata\.(?:labels|annotations)(?:\["(?:helm\.sh/chart|[\w.-]+/version)"\]|\.chart)$`)

// fewest is how many objects have to change alike to be one line.
const fewest = 3

// sameOf are the changes that are the same in many objects, the largest first: of
// nothing but their versions, or besides these of the same fields.
func sameOf(changes []*Change) []Same {
	groups := map[string]*Same{}
	for _, c := range changes {
		if c.Action != plan.Configured || len(c.Fields) == 0 || len(c.Taken) > 0 || masked(c) {
			continue
		}
		s := Same{Labels: true}
		for _, f := range c.Fields {
			if !versionField().MatchString(f.Path) {
				s.Labels = false
				s.Fields = append(s.Fields, f)
			}
		}
		if s.Labels {
			s.Fields = c.Fields
		}
		key := fingerprint(s.Fields)
		if groups[key] == nil {
			groups[key] = &s
		}
		groups[key].Objects = append(groups[key].Objects, bundle.ReferTo(c.ID))
	}
	var found []Same
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if s := groups[key]; len(s.Objects) >= fewest || s.Labels {
			found = append(found, *s)
		}
	}
	slices.SortStableFunc(found, func(a, b Same) int { return len(b.Objects) - len(a.Objects) })
	return found
}

// fingerprint is the same for the same changes.
func fingerprint(fields []diff.Change) string {
	text, _ := json.Marshal(fields) // they come from JSON
	return string(text)
}

// masked says whether values of Secrets are masked in a change: what looks the same
// then need not be.
func masked(c *Change) bool { return strings.Contains(fingerprint(c.Fields), redact.Mask) }
