package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/remedy"
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
	if len(topics) == 0 {
		return
	}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, topic := range topicsOfRefusal(id, err) {
		limit := settling
		if strings.HasPrefix(topic, admission) {
			limit = admitting
		}
		if at, ok := c.when[topic]; ok && time.Since(at) < limit {
			return true
		}
	}
	return false
}

func (c *changes) newSchema(kind schema.GroupKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.when["schema "+kind.String()]
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
		return admissionTopics(o)
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

// admission begins the topics of policies and webhooks: only a denial by one that this run
// changed may be wrong.
const admission = "admission by "

func admissionTopics(o *bundle.Object) []string {
	topics := []string{admission} // of a server that is not ready
	for _, name := range plan.AdmissionNames(o.ID, o.Content) {
		topics = append(topics, admission+name)
	}
	return topics
}

// topicsOfRefusal are the topics of which a server that is behind may give this
// answer.
func topicsOfRefusal(id bundle.ID, err error) []string {
	kind := id.GroupKind.String()
	switch answers.CauseOf(err) {
	case answers.NoCause:
	case answers.KindCause:
		return []string{"kind " + kind, "group " + id.GroupKind.Group}
	case answers.SchemaCause:
		return []string{"schema " + kind}
	case answers.AdmissionCause:
		policy, webhook := answers.DeniedBy(err)
		return []string{admission + policy + webhook} // of none: a server that starts
	case answers.RBACCause:
		return []string{"rbac"}
	case answers.NamespaceCause:
		return []string{"namespace " + id.Namespace}
	case answers.LimitsCause:
		return []string{"limits in " + id.Namespace}
	case answers.AccountCause:
		return []string{"accounts in " + id.Namespace}
	case answers.ClassCause:
		return []string{"classes"}
	}
	return nil
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

// allocated judges the refusal of a Service because an IP address or port that it asks
// for is taken. If another Service has it, the answer names that. If none has, an API
// server ended after it had deleted a Service and before it freed what that had; then
// the refusal stands until Kubernetes' repair loop frees it. Up to 1.33, which still keeps
// all addresses in one record, that takes about ten minutes
// (pkg/registry/core/service/ipallocator/controller/repair.go). The run waits as long as
// it has time.
func (w *Writer) allocated(ctx context.Context, s *plan.Step, err error) (wait bool, refusal error) {
	if s.ID.GroupKind != bundle.ServiceKind || !answers.Allocated(err) {
		return false, err
	}
	resource, unknown := w.Client.Resource(s.GVK)
	if unknown != nil {
		return false, err
	}
	services, unknown := w.Client.List(ctx, resource, "", "", "")
	if unknown != nil { // no right to list them: who has it is not known
		return false, err
	}
	asked, text := allocations(s.Object.Content.Object), w.Explain(s, err).Error()
	for i := range services {
		other := &services[i]
		if other.GetNamespace() == s.ID.Namespace && other.GetName() == s.ID.Name {
			continue
		}
		for _, taken := range allocations(other.Object) {
			if slices.Contains(asked, taken) {
				return false, &answer{text: fmt.Sprintf("%s. Service %s/%s has %s", text, other.GetNamespace(), other.GetName(), taken), err: err}
			}
		}
	}
	if !w.Deadline.IsZero() && time.Now().After(w.Deadline) {
		return false, &answer{text: text + ". No Service has it: an API server that ended has not freed it. Kubernetes does so, up to 1.33 after about 10 minutes: run this again then", err: err}
	}
	return true, fmt.Errorf("%w, but no Service has it: waiting until Kubernetes frees it, up to 1.33 for about 10 minutes", err)
}

// allocations are the IP addresses and node ports that a Service has or asks for.
func allocations(service map[string]any) []string {
	all := append(bundle.Items[string](service, "spec", "clusterIPs"), bundle.At[string](service, "spec", "clusterIP"))
	for _, port := range bundle.Items[map[string]any](service, "spec", "ports") {
		if port["nodePort"] != nil {
			all = append(all, fmt.Sprintf("nodePort %v/%v", port["nodePort"], cmp.Or(port["protocol"], any("TCP"))))
		}
	}
	if port := bundle.At[any](service, "spec", "healthCheckNodePort"); port != nil {
		all = append(all, fmt.Sprintf("nodePort %v/TCP", port))
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" || text == "None" })
}

// Explain adds to the server's answer what the user can do: the remedy of a
// conflict or of a denial, the line of a field.
func (w *Writer) Explain(s *plan.Step, err error) error {
	if conflict, ok := errors.AsType[*answer](err); ok {
		return conflict
	}
	if reported := answers.FieldConflicts(err); len(reported) > 0 { // where there was no object before
		return conflictError(err, bundle.Each(reported, func(c answers.Conflict) fields.Conflict { return fields.Conflict{Field: c.Field, Manager: c.Name()} }), false)
	}
	text := answers.Message(err)
	if field := stays(s.Object, s.Live, err); field != "" {
		text += fmt.Sprintf(" (%s is not in the bundle; the object on the cluster has it, and a server-side apply leaves it there)", field)
	} else if hint := lineOf(s.Object, text); hint != "" {
		text += " (" + hint + ")"
	}
	if denier := w.denier(err); denier != nil && !denier.First {
		text = strings.TrimRight(text, ".") + fmt.Sprintf(". %s is a member that the bundle no longer has: %s=%s/%s prunes it before anything is applied", bundle.Name(denier.ID), remedy.PruneFirst, denier.ID.GroupKind.Kind, denier.ID.Name)
	}
	return &answer{text: text, err: err}
}

func (w *Writer) denier(err error) *plan.Step {
	policy, webhook := answers.DeniedBy(err)
	return w.Plan.Denier(policy + webhook)
}

// PrunedFirst is the object that denied a request of a dry run, and that the run itself
// prunes before.
func (w *Writer) PrunedFirst(err error) (bundle.ID, bool) {
	if denier := w.denier(err); denier != nil && denier.First {
		return denier.ID, true
	}
	return bundle.ID{}, false
}

// answer is a server's answer as it is shown; the error itself is kept for
// errors.As.
type answer struct {
	text string
	err  error
}

func (a *answer) Error() string { return a.text }
func (a *answer) Unwrap() error { return a.err }

// lineOf finds the line of a field that the server names.
func lineOf(o *bundle.Object, text string) string {
	for _, path := range answers.FieldPaths(text) {
		if line := o.Line(path); line > o.Source.Line {
			return fmt.Sprintf("%s is at %s:%d", path, o.Source.File, line)
		}
	}
	return ""
}

// stays is a field of the live object for which the server refuses an apply, though the
// bundle does not have it: it belongs to nobody, so no apply takes it away. A Deployment
// keeps the rollingUpdate that the server filled in when its strategy becomes Recreate.
func stays(o *bundle.Object, live *unstructured.Unstructured, err error) string {
	if live == nil {
		return ""
	}
	field := ""
	for _, cause := range answers.CausesOf(err) {
		path := strings.Split(cause.Field, ".")
		_, there, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		if _, given, _ := unstructured.NestedFieldNoCopy(o.Content.Object, path...); given || !there {
			return ""
		}
		field = cause.Field
	}
	return field
}

func needsRecreate(s *plan.Step, err error) error {
	return fmt.Errorf("%w. To have it deleted and created again, annotate it with %s: %s (or %s, which keeps its pods and other dependents), or use %s=%s (see %s)", err, bundle.OnImmutable, bundle.Recreate, bundle.Orphan, remedy.Recreate, s.ID.GroupKind, remedy.HelpImmutable)
}
