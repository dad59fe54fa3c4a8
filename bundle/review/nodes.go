package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"brine/bundle"
	"brine/bundle/images"
	"brine/bundle/plan"
)

// newSelector is the nodeSelector of pods that a change makes, where it is new or changed.
// The operating system is no question.
func newSelector(c *Change) labels.Set {
	path := images.PodSpecPath(c.ID.GroupKind)
	if path == nil || !startsPods(c) {
		return nil
	}
	of := func(object map[string]any) labels.Set {
		selector := bundle.Texts(object, slices.Concat(path, []string{"nodeSelector"})...)
		delete(selector, "kubernetes.io/os")
		return selector
	}
	before, after := of(content(c.Before)), of(content(latest(c)))
	if len(after) == 0 || c.Action != plan.Created && maps.Equal(before, after) {
		return nil
	}
	return after
}

// scheduled notes how many nodes the new nodeSelectors of pods select.
func (r *reviewer) scheduled() {
	for _, c := range r.changes {
		selector := newSelector(c)
		why := r.cluster.NodesUnknown
		if r.cluster.Unread {
			why = unread
		}
		switch {
		case selector == nil:
			continue
		case why != "":
			r.unchecked("whether a node has the labels that the nodeSelector of "+plain(c.ID)+" asks for ("+selector.String()+")", why, Missing)
			continue
		}
		n := 0
		for _, node := range r.cluster.Nodes {
			if labels.SelectorFromSet(selector).Matches(labels.Set(node)) {
				n++
			}
		}
		r.nodes[c.ID] = fmt.Sprintf("its nodeSelector matches %d of %s", n, bundle.Count(len(r.cluster.Nodes), "node"))
		if n > 0 {
			continue
		}
		path := strings.Join(images.PodSpecPath(c.ID.GroupKind), ".") + ".nodeSelector"
		detail := path
		if at := c.place(path); at != "" {
			detail += " (" + at + ")"
		}
		text := "its pods stay Pending"
		if c.ID.GroupKind == bundle.DaemonSetKind {
			text = "it gets no pods"
		}
		r.stuck[c.ID] = true
		r.add(Missing, c, 0, []string{detail}, "%s: no node has the labels of its nodeSelector (%s)", text, selector.String())
	}
}
