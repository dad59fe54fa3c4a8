package ready

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/remedy"
)

// Reader is how a Diagnosis reads from a cluster. Functions may be nil: what
// they would say is left out.
type Reader struct {
	// Get reads one object; nil and no error where it is not there.
	Get func(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	// List reads the objects of a namespace that both selectors match.
	List func(ctx context.Context, gvk schema.GroupVersionKind, namespace, labelSelector, fieldSelector string) ([]unstructured.Unstructured, error)
	// Logs reads the last lines of a container's log, of its previous run if so.
	Logs func(ctx context.Context, namespace, pod, container string, previous bool, tail int64) (string, error)
	// Commands are how reasons show commands.
	Commands remedy.Commands
}

// Diagnosis finds out why objects are not ready. It remembers what it has
// read, so a later diagnosis needs a new one.
type Diagnosis struct {
	reader Reader
	now    func() time.Time

	known bundle.Once[lookup, []object]
}

const (
	parallel = 8
	// detailed is how many of the objects get more than what the lists of their
	// namespace tell: single objects, logs, ordinary events.
	detailed   = 20
	maxCauses  = 3  // reported of one object's pods
	maxEvents  = 3  // reported of one object and what belongs to it
	maxLogTail = 20 // lines of one container
)

// NewDiagnosis makes a Diagnosis that has not read anything yet.
func NewDiagnosis(r Reader) *Diagnosis {
	return &Diagnosis{reader: r, now: time.Now}
}

// Explain gives of each live object the chain down to the cause, outermost first:
// its conditions, what it owns or needs, the containers, the events, the last
// lines of the log. Each line stands for itself: "Pod web-5d-x: container app:
// waiting ImagePullBackOff: …". What could not be read is a line too.
//
// All late objects are to be given together: pods, replica sets and warnings
// are listed once a namespace, and only the first objects cost more than that.
func (d *Diagnosis) Explain(ctx context.Context, objs []*unstructured.Unstructured) map[bundle.ID][]string {
	objs = slices.DeleteFunc(slices.Clone(objs), func(u *unstructured.Unstructured) bool { return u == nil || u.Object == nil })
	only := narrow(objs)
	lines := make([][]string, len(objs))
	slots := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, u := range objs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c := &chain{d: d, object: object{u.Object}, detailed: i < detailed, narrow: only}
			c.follow(ctx)
			lines[i] = c.lines
		})
	}
	all.Wait()
	why := make(map[bundle.ID][]string, len(objs))
	for i, u := range objs {
		why[bundle.IDOf(u)] = lines[i]
	}
	return why
}

// narrow finds the namespaces in which one workload alone is late: there its
// own selector saves reading everybody's pods.
func narrow(objs []*unstructured.Unstructured) map[string]string {
	selectors := map[string][]string{}
	for _, u := range objs {
		if ownsPods(u.GroupVersionKind().GroupKind()) || u.GetKind() == "Pod" {
			selectors[u.GetNamespace()] = append(selectors[u.GetNamespace()], selector(object{u.Object}))
		}
	}
	only := map[string]string{}
	for namespace, all := range selectors {
		if len(all) == 1 {
			only[namespace] = all[0]
		}
	}
	return only
}

// selector is a workload's, as a query; "" is everything.
func selector(o object) string {
	spec, ok := o.field("spec", "selector").(map[string]any)
	if !ok {
		return ""
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &s); err != nil {
		return ""
	}
	query, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil || query.String() == labels.Nothing().String() {
		return ""
	}
	return query.String()
}

func ownsPods(gk schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{bundle.DeploymentKind, bundle.StatefulSetKind, bundle.DaemonSetKind, bundle.ReplicaSetKind, controllerKind, bundle.JobKind}, gk)
}
