package write

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
)

// Refusals by an API server that has not heard of what this run changed.

// settling is how long after a change the API servers, and the controllers that
// write what they go by, may still answer as if it had not been made. Each
// server hears of it through a watch of its own.
const settling = 30 * time.Second

// admitting is the same for admission, which each server reads again every second.
const admitting = 5 * time.Second

// changes are what this run changed that refusals depend on, with the time.
type changes struct {
	mu   sync.Mutex
	when map[string]time.Time
}

func (c *changes) note(o *bundle.Object, action plan.Action) { c.touch(topicsOf(o, action)...) }

func (c *changes) touch(topics ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.when == nil {
		c.when = map[string]time.Time{}
	}
	for _, topic := range topics {
		c.when[topic] = time.Now()
	}
}

// explain says whether a refusal may come from a server that has not heard of
// a change of this run.
func (c *changes) explain(id bundle.ID, err error) bool {
	return slices.ContainsFunc(topicsOfRefusal(id, err), c.fresh)
}

// fresh says whether a server may not have heard of the change of a topic.
func (c *changes) fresh(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := settling
	if strings.HasPrefix(topic, admission) {
		limit = admitting
	}
	at, ok := c.when[topic]
	return ok && time.Since(at) < limit
}

// topicsOf are what the change of an object may change the answers about.
func topicsOf(o *bundle.Object, action plan.Action) []string {
	if action == plan.Unchanged {
		return nil
	}
	gk := o.ID.GroupKind
	switch gk.Group {
	case "rbac.authorization.k8s.io":
		return []string{"rbac"}
	case "admissionregistration.k8s.io":
		names := append([]string{""}, plan.AdmissionNames(o.ID, o.Content)...) // the first is of a server that is not ready
		return bundle.Each(names, func(name string) string { return admission + name })
	case "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io":
		return []string{"classes"}
	case bundle.APIServiceKind.Group:
		return []string{"group " + bundle.At[string](o.Content.Object, "spec", "group")}
	}
	switch {
	case gk == bundle.CRDKind:
		var topics []string
		for _, r := range cluster.Defined(o.Content) {
			topics = append(topics, "kind "+r.GVK.GroupKind().String())
			if action == plan.Configured { // a new one is not known in an older form
				topics = append(topics, "schema "+r.GVK.GroupKind().String())
			}
		}
		return topics
	case gk == bundle.NamespaceKind:
		return []string{"namespace " + o.ID.Name}
	case gk == bundle.ServiceAccountKind:
		return []string{"accounts in " + o.ID.Namespace}
	case gk.Group == "" && (gk.Kind == "ResourceQuota" || gk.Kind == "LimitRange"):
		return []string{"limits in " + o.ID.Namespace}
	}
	return nil
}

// admission begins the topics of policies and webhooks: only a denial by one that this run
// changed may be wrong.
const admission = "admission by "

// topicsOfRefusal are the topics of which a server that is behind may give this
// answer.
func topicsOfRefusal(id bundle.ID, err error) []string {
	policy, webhook := answers.DeniedBy(err)
	of := strings.NewReplacer("KIND", id.GroupKind.String(), "GROUP", id.GroupKind.Group, "NAMESPACE", id.Namespace, "DENIER", policy+webhook)
	return strings.Split(of.Replace(string(answers.CauseOf(err))), ", ")
}

// caughtUp sends a request again for as long as its refusal may come from a
// server that is behind.
func (w *Writer) caughtUp(ctx context.Context, s *plan.Step, send func() error) error {
	if w.Mode == DryRun {
		return send() // nothing was changed
	}
	begin := time.Now()
	longest := time.Second
	var answer error
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, longest) {
		err := answers.LastAnswer(answer, send())
		if err == nil || cluster.Ended(ctx) {
			return err
		}
		answer = err
		late := answers.NotServed(err) && w.definedHere(s) && time.Since(begin) < kindDelay || w.changes.explain(s.ID, err)
		if !late {
			if late, err = w.allocated(ctx, s, err); !late {
				return err
			}
			longest = 10 * time.Second // it takes minutes, and each time all Services are read
		}
		if pause == 50*time.Millisecond {
			w.Retrying(s, err)
		}
		if !cluster.Sleep(ctx, pause) {
			return err
		}
	}
}
