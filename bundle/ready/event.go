package ready

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"brine/bundle"
)

// happened is an event as it is reported.
type happened struct {
	at              time.Time
	reason, message string
	warning         bool
	times           int64
}

// events adds the newest of the events of the objects of the chain:
// warnings, or where there is none and time for it, ordinary ones.
func (c *chain) events(ctx context.Context) {
	namespace := cmp.Or(c.object.text("metadata", "namespace"), "default") // where those of cluster-scoped objects are
	var found []happened
	for _, in := range c.namespaces(namespace) {
		// Ordinary events are many, so they are not among those listed.
		found = append(found, c.about(c.list(ctx, eventGVK, in, "", "type!=Normal"))...)
	}
	if len(found) == 0 && c.detailed {
		last := c.involved[len(c.involved)-1] // the innermost
		if uid := last.text("metadata", "uid"); uid != "" {
			in := cmp.Or(last.text("metadata", "namespace"), "default")
			found = c.about(c.list(ctx, eventGVK, in, "", "involvedObject.uid="+uid))
		}
	}
	slices.SortStableFunc(found, func(a, b happened) int {
		if a.warning != b.warning {
			return map[bool]int{true: -1, false: 1}[a.warning]
		}
		return b.at.Compare(a.at)
	})
	shown := 0
	for _, e := range found {
		if shown == maxEvents {
			return
		}
		if c.has(e.message) {
			continue
		}
		shown++
		c.add("%s", e.text(c.d.now()))
	}
}

// namespaces are those of the objects of the chain.
func (c *chain) namespaces(own string) []string {
	all := []string{own}
	for _, o := range c.involved {
		if ns := o.text("metadata", "namespace"); ns != "" && !slices.Contains(all, ns) {
			all = append(all, ns)
		}
	}
	return all
}

// about are the events that regard the objects of the chain.
func (c *chain) about(events []object) []happened {
	return bundle.Each(bundle.Where(events, func(e object) bool {
		return slices.ContainsFunc(c.involved, func(o object) bool { return regards(e, o) })
	}), happening)
}

// regards goes by UID, so that events of an earlier object of the name are not
// taken for this one's.
func regards(event, o object) bool {
	uid, its := event.text("involvedObject", "uid"), o.text("metadata", "uid")
	if uid != "" && its != "" {
		return uid == its
	}
	return event.text("involvedObject", "kind") == o.text("kind") &&
		event.text("involvedObject", "name") == o.text("metadata", "name") &&
		event.text("involvedObject", "namespace") == o.text("metadata", "namespace")
}

func happening(e object) happened {
	h := happened{reason: e.text("reason"), message: e.text("message"), warning: e.text("type") == "Warning"}
	h.times = max(e.count(0, "count"), e.count(0, "series", "count"))
	for _, at := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"firstTimestamp"}, {"metadata", "creationTimestamp"}} {
		if t, err := time.Parse(time.RFC3339, e.text(at...)); err == nil && t.After(h.at) {
			h.at = t
		}
	}
	return h
}

// text is "event Warning FailedMount 12 s ago, 5 times: …".
func (h happened) text(now time.Time) string {
	kind := "Normal"
	if h.warning {
		kind = "Warning"
	}
	s := "event " + kind + " " + h.reason
	if !h.at.IsZero() {
		s += " " + ago(now.Sub(h.at))
	}
	if h.times > 1 {
		s += fmt.Sprintf(", %d times", h.times)
	}
	return s + ": " + h.message
}

func ago(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(d.Hours()))
}
