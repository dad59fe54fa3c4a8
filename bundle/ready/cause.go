package ready

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"brine/bundle"
)

// What keeps pods from being ready: containers, scheduling, claims, nodes.

// cause is what keeps a pod.
type cause struct {
	pod   object
	lines []string
	// kind is the same for pods that are kept by the same.
	kind string
	rank int // worst first
	// unscheduled: it may be its claims that keep it. placed: it may be its node.
	unscheduled, placed bool
	troubles            []trouble
}

// The order in which causes are reported.
const (
	broken = iota
	unscheduled
	starting
	leaving
)

// causeOf is what keeps a pod, if something does.
func causeOf(o object) (cause, bool) {
	c := cause{pod: o}
	phase := o.text("status", "phase")
	ready, known := o.condition("Ready")
	scheduled, isScheduled := o.condition("PodScheduled")
	c.troubles = containerTroubles(o)
	switch {
	case o.text("metadata", "deletionTimestamp") != "":
		c.rank, c.kind, c.lines = leaving, "leaving", []string{deleting(o)}
	case phase == "Succeeded", phase == "Running" && known && ready.status == "True":
		return c, false
	case phase == "Failed":
		c.kind, c.lines = "failed "+o.text("status", "reason")+signature(c.troubles), []string{podFailure(o)}
	case isScheduled && scheduled.status == "False":
		c.rank, c.kind, c.unscheduled, c.lines = unscheduled, "unscheduled "+scheduled.reason, true, []string{scheduled.String()}
	case len(c.troubles) > 0:
		c.kind = signature(c.troubles)
		c.lines = bundle.Each(c.troubles[:min(len(c.troubles), maxCauses)], trouble.String)
		c.placed = strings.HasPrefix(c.troubles[0].state, "running")
	default:
		c.rank, c.kind, c.placed, c.lines = starting, "starting", true, []string{pod(o).Reason}
	}
	return c, true
}

func signature(troubles []trouble) string {
	var s strings.Builder
	for _, t := range troubles {
		s.WriteString(" " + t.container + "/" + t.state + "/" + t.reason)
	}
	return s.String()
}

// pods adds what keeps them, once for all that are kept by the same.
func (c *chain) pods(ctx context.Context, all []object, isItself bool) {
	var causes []cause
	for _, o := range all {
		if found, ok := causeOf(o); ok {
			causes = append(causes, found)
		}
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Compare(a.rank, b.rank) })
	same := map[string]int{}
	var distinct []cause
	for _, found := range causes {
		if same[found.kind]++; same[found.kind] == 1 {
			distinct = append(distinct, found)
		}
	}
	for _, found := range distinct[:min(len(distinct), maxCauses)] {
		name := "Pod"
		if !isItself {
			name += " " + found.pod.text("metadata", "name")
		}
		for _, line := range found.lines {
			c.add("%s: %s", name, line)
		}
		if more := same[found.kind] - 1; more > 0 {
			c.add("and %s with the same cause as %s", bundle.Count(more, "more pod"), found.pod.text("metadata", "name"))
		}
		c.beyond(ctx, found)
	}
	if more := len(distinct) - maxCauses; more > 0 {
		c.add("and pods with %d more causes", more)
	}
}

// beyond goes on to what keeps the pod itself: its claims, its node, its program.
func (c *chain) beyond(ctx context.Context, found cause) {
	o := found.pod
	c.involved = append(c.involved, o)
	if found.unscheduled && strings.Contains(strings.ToLower(strings.Join(found.lines, " ")), "persistentvolumeclaim") {
		c.claims(ctx, o)
	}
	if found.placed {
		c.node(ctx, o.text("spec", "nodeName"))
	}
	for _, t := range found.troubles {
		if t.logged() {
			c.logs = append(c.logs, written{o, t})
			return // one container's log is enough to read
		}
	}
}

// claims adds the claims that a pod waits for.
func (c *chain) claims(ctx context.Context, pod object) {
	namespace := pod.text("metadata", "namespace")
	shown := 0
	for _, volume := range pod.objects("spec", "volumes") {
		name := volume.text("persistentVolumeClaim", "claimName")
		if name == "" && volume.field("ephemeral") != nil {
			name = pod.text("metadata", "name") + "-" + volume.text("name")
		}
		o, found, known := c.get(ctx, claimGVK, namespace, name)
		if !known || found && o.text("status", "phase") == "Bound" {
			continue
		}
		if shown++; shown > maxCauses {
			return
		}
		if !found {
			c.add("PersistentVolumeClaim %s does not exist", name)
			continue
		}
		c.involved = append(c.involved, o)
		c.claim(ctx, o, "PersistentVolumeClaim "+name)
	}
}

func (c *chain) node(ctx context.Context, name string) {
	o, found, known := c.get(ctx, nodeGVK, "", name)
	if !known {
		return
	}
	if !found {
		c.add("Node %s does not exist", name)
		return
	}
	for _, condition := range o.conditions() {
		if condition.abnormal() {
			c.add("Node %s: %s", name, condition)
		}
	}
}
