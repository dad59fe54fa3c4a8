package plan

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/order"
	"brine/bundle/remedy"
)

// Partial runs: which objects are chosen, and what they need.

// Choose are the objects of a partial run: those that one of the words selects, and
// withNeeds, all that these need. A word is a label selector (app=web), a kind and a
// name (Deployment/web, Deployment/shop/web, with * for any text), a file or folder
// of the bundle, or an SLS. Each has to select something.
func Choose(g *order.Graph, only []string, withNeeds bool) (map[*bundle.Object]bool, []bundle.Problem) {
	if len(only) == 0 {
		return nil, nil
	}
	chosen := map[*bundle.Object]bool{}
	var problems []bundle.Problem
	for _, word := range only {
		selects, err := selector(word)
		if err != nil {
			problems = append(problems, bundle.Problem{Message: fmt.Sprintf("%s %q: %v", remedy.Only, word, err)})
			continue
		}
		found := false
		for _, o := range g.Objects {
			if selects(o) {
				chosen[o], found = true, true
			}
		}
		if !found {
			problems = append(problems, bundle.Problem{Message: fmt.Sprintf("%s %q selects nothing. The bundle contains %s", remedy.Only, word, whatThereIs(g.Objects))})
		}
	}
	if withNeeds {
		for _, i := range slices.Backward(g.Sorted) {
			if chosen[g.Objects[i]] {
				for _, e := range g.Needs[i] {
					chosen[g.Objects[e.To]] = true
				}
			}
		}
	}
	return chosen, problems
}

// selector reads a word.
func selector(word string) (func(*bundle.Object) bool, error) {
	if strings.TrimSpace(word) == "" {
		return nil, errors.New("it is empty")
	}
	if strings.Contains(word, "=") || strings.Contains(word, " ") {
		match, err := labels.Parse(word)
		if err != nil {
			return nil, fmt.Errorf("it is no label selector: %w", err)
		}
		return func(o *bundle.Object) bool { return match.Matches(labels.Set(o.Content.GetLabels())) }, nil
	}
	parts := strings.Split(word, "/")
	return func(o *bundle.Object) bool {
		return isNamed(parts, o.ID) || inFile(path.Clean(word), o.Source.File) || o.Source.SLS != "" && fields.Like(word, o.Source.SLS)
	}, nil
}

// isNamed says whether parts are the kind and the name of an object, and its namespace
// between them.
func isNamed(parts []string, id bundle.ID) bool {
	kind, gk := strings.ToLower(parts[0]), id.GroupKind
	last := parts[len(parts)-1]
	return len(parts) > 1 && len(parts) < 4 &&
		(fields.Like(kind, strings.ToLower(gk.Kind)) || fields.Like(kind, strings.ToLower(gk.String()))) &&
		(len(parts) == 2 || fields.Like(parts[1], id.Namespace)) && fields.Like(last, id.Name)
}

// inFile says whether a word is the end of a file's path, or of a folder above it.
func inFile(word, file string) bool {
	at := "/" + strings.TrimPrefix(path.Clean(file), "/") + "/"
	return strings.Contains(at, "/"+strings.TrimPrefix(word, "/")+"/")
}

// whatThereIs names the objects of a bundle, its files and its SLS.
func whatThereIs(objects []*bundle.Object) string {
	var names, files []string
	for _, o := range objects {
		names = append(names, bundle.Name(o.ID))
		for _, from := range []string{o.Source.File, o.Source.SLS} {
			if from != "" && !slices.Contains(files, from) {
				files = append(files, from)
			}
		}
	}
	return bundle.Some(names, 10) + "; from " + bundle.Some(files, 10)
}

// missingNeeds are what chosen objects need and neither the run nor the cluster has.
func (in *Input) missingNeeds(p *Plan) (problems []bundle.Problem) {
	for i, o := range in.Graph.Objects {
		if !in.Chosen[o] {
			continue
		}
		for _, e := range in.Graph.Needs[i] {
			on := in.Graph.Objects[e.To]
			if in.Chosen[on] || in.Live[on.ID] != nil {
				continue
			}
			problem := o.Problem("", fmt.Sprintf("it needs %s (%s), which is neither chosen nor on the cluster: choose it as well, or use %s", bundle.Name(on.ID), e.Reason, remedy.WithNeeds))
			if !e.Weak || bundle.HoldsObjects(on.ID.GroupKind) || on.ID.GroupKind == bundle.APIServiceKind {
				problems = append(problems, problem)
			} else {
				p.Warnings = append(p.Warnings, problem.Error())
			}
		}
	}
	return problems
}

// Merged is an earlier bundle with the objects of a partial run in place of its own.
func Merged(earlier *bundle.Bundle, chosen []*bundle.Object) *bundle.Bundle {
	now := bundle.ByID(chosen)
	merged := &bundle.Bundle{Invalid: earlier.Invalid, Rendering: earlier.Rendering}
	for _, o := range earlier.Objects {
		if newer := now[o.ID]; newer != nil {
			delete(now, o.ID)
			o = newer
		}
		merged.Objects = append(merged.Objects, o)
	}
	merged.Objects = append(merged.Objects, bundle.Where(chosen, func(o *bundle.Object) bool { return now[o.ID] == o })...)
	present := bundle.IDs(chosen)
	merged.Absent = bundle.Where(earlier.Absent, func(a *bundle.Absent) bool { return !present.Has(a.ID) })
	merged.Digest = merged.ContentDigest()
	return merged
}
