package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/ready"
)

func (n *node) noteChange(live *unstructured.Unstructured) {
	n.seen = time.Now()
	if n.Latest == nil || !sameButTimes(n.Latest.Object, live.Object) {
		n.changed = n.seen
	}
}

// sameButTimes: a controller that only says that it still lives changes nothing.
func sameButTimes(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for name := range b {
			_, had := a[name]
			ok = ok && (had || isVersion(name))
		}
		for name := range a {
			ok = ok && (isVersion(name) || sameButTimes(a[name], b[name]))
		}
		return ok
	case []any:
		b, ok := b.([]any)
		ok = ok && len(a) == len(b)
		for i := range a {
			ok = ok && sameButTimes(a[i], b[i])
		}
		return ok
	case string:
		b, ok := b.(string)
		return ok && (a == b || isTime(a) && isTime(b))
	}
	return a == b
}

func isVersion(field string) bool { return field == "resourceVersion" || field == "managedFields" }

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// stuck looks, at one moment, for objects that are not ready and do not change any more.
type stuck struct {
	e    *scheduler
	now  time.Time
	open map[*node]bool // whether something that it needs is in progress
	late map[schema.GroupVersionResource][]*node
}

// after is how long n has not changed, if it is not waited for any longer; otherwise 0.
// A watch may be behind, so that its object is read before that.
func (s *stuck) after(n *node) time.Duration {
	limit := s.e.FailAfter
	if n.rules != nil && n.rules.FailAfter != nil {
		limit = *n.rules.FailAfter
	}
	if limit == 0 || n.state != waiting || n.Deletes() || n.probing || s.now.Sub(n.changed) <= limit || s.awaits(n) {
		return 0
	}
	if n.seen.After(n.changed.Add(limit)) {
		return limit
	}
	if s.now.Sub(n.checked) > time.Second {
		n.checked = s.now
		if s.late == nil {
			s.late = map[schema.GroupVersionResource][]*node{}
		}
		s.late[n.resource.GVR] = append(s.late[n.resource.GVR], n)
	}
	return 0
}

// ask reads those that no watch has seen of late.
func (s *stuck) ask() {
	for _, nodes := range s.late {
		s.e.read(nodes[0].resource, nodes, nil)
	}
}

// awaits says whether something is in progress that n waits for: its first status, or
// what it needs. What has failed is not.
func (s *stuck) awaits(n *node) bool {
	if n.Latest != nil && !n.statusBy.IsZero() && ready.Of(n.Latest, n.rules, s.e.Hints).State == ready.Ready {
		return true
	}
	open, known := s.open[n]
	if known {
		return open
	}
	if s.open == nil {
		s.open = map[*node]bool{}
	}
	for _, on := range s.e.needs(n) {
		if open = on.state < failing || s.awaits(on); open {
			break
		}
	}
	s.open[n] = open
	return open
}
