package apply

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// settling is how long after a change the API servers, and the controllers that
// write what they go by, may still answer as if it had not been made. Each
// server hears of it through a watch of its own.
const settling = 30 * time.Second

// recent is what this run changed that refusals depend on, with the time.
type recent struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// note notes the change of an object.
func (r *recent) note(o *bundle.Object, action plan.Action) { r.touch(topicsOf(o, action)...) }

func (r *recent) touch(topics ...string) {
	if len(topics) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.when == nil {
		r.when = map[string]time.Time{}
	}
	for _, topic := range topics {
		r.when[topic] = time.Now()
	}
}

// explains says whether a refusal may come from a server that has not heard of
// a change of this run.
func (r *recent) explains(id bundle.ID, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, topic := range topicsOfRefusal(id, err) {
		if at, ok := r.when[topic]; ok && time.Since(at) < settling {
			return true
		}
	}
	return false
}

// newSchema says whether this run has just changed the schema of a kind.
func (r *recent) newSchema(kind schema.GroupKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.when["schema "+kind.String()]
	return ok && time.Since(at) < settling
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
		return []string{"admission"}
	case "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io":
		return []string{"classes"}
	case bundle.APIServiceKind.Group:
		group, _, _ := unstructured.NestedString(o.Content.Object, "spec", "group")
		return []string{"group " + group}
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

// topicsOfRefusal are the topics of which a server that is behind may give this
// answer.
func topicsOfRefusal(id bundle.ID, err error) []string {
	kind := id.GroupKind.String()
	switch cluster.CauseOf(err) {
	case cluster.NoCause:
	case cluster.KindCause:
		return []string{"kind " + kind, "group " + id.GroupKind.Group}
	case cluster.SchemaCause:
		return []string{"schema " + kind}
	case cluster.AdmissionCause:
		return []string{"admission"}
	case cluster.RBACCause:
		return []string{"rbac"}
	case cluster.NamespaceCause:
		return []string{"namespace " + id.Namespace}
	case cluster.LimitsCause:
		return []string{"limits in " + id.Namespace}
	case cluster.AccountCause:
		return []string{"accounts in " + id.Namespace}
	case cluster.ClassCause:
		return []string{"classes"}
	}
	return nil
}

// caughtUp sends a request again for as long as its refusal may come from a
// server that is behind.
func (e *execution) caughtUp(ctx context.Context, n *node, send func() error) error {
	begin := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := send()
		late := cluster.NotServed(err) && e.definedHere(n) && time.Since(begin) < lateKind
		if err == nil || ctx.Err() != nil || !late && !e.recent.explains(n.ID, err) {
			return err
		}
		if pause == 50*time.Millisecond {
			e.send(retried{node: n, err: err, attempt: 1})
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
