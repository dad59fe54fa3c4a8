// Package write carries out one step of a plan: an apply, a creation, a
// recreation, a deletion or a detachment. The input is a step, the output an
// Outcome. A preview and an apply use the same code: a dry run sends the same
// requests with dryRun=All, and differs only where one request would have to see
// what another one stored.
package write

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/surrogate"
	"brine/inventory"
)

// Mode says whether the server stores what is sent.
type Mode int

// The modes.
const (
	Persist Mode = iota
	DryRun       // dryRun=All: the server does everything but store it
)

// Options are what a user says about single writes.
type Options struct {
	Policy       plan.Policy
	TakeOverFrom []string // see takeover.Of
	Conflicts    fields.ConflictRules
	Cascade      metav1.DeletionPropagation
}

// Writer carries out the steps of one plan. Its methods may be called from
// several goroutines.
type Writer struct {
	Mode      Mode
	Options   Options
	Client    *cluster.Client
	Plan      *plan.Plan
	Inventory *inventory.Inventory
	// Deadline ends the waiting for an object that is still being deleted; zero
	// is none.
	Deadline time.Time
	// Namespace is the inventory's namespace where this run has made it, else nil.
	Namespace *unstructured.Unstructured
	// BeforeDelete is called before an object is deleted; not by a dry run.
	BeforeDelete func(bundle.ID)
	// Adopting is called before an object is applied that another client created since
	// the plan was made; not by a dry run.
	Adopting func(ctx context.Context, id bundle.ID, live *unstructured.Unstructured) error
	// Owners, unless nil, tells the guard what owns the objects of the plan by now.
	Owners func(context.Context) error
	// Retrying is called when a refusal may come from a server that is behind.
	Retrying func(s *plan.Step, err error)
	// Waiting, unless nil, is called when a step waits for something else than the answer
	// to a request.
	Waiting func(s *plan.Step, what string)
	// Quotes is called where messages about an object may quote a Secret.
	Quotes func(id bundle.ID, secret *unstructured.Unstructured)
	// NewAccount says whether this run makes a ServiceAccount. A dry run needs
	// another one for the Pods that use it; nil otherwise.
	NewAccount func(namespace, name string) bool

	owners   bundle.Once[struct{}, struct{}]
	changes  changes
	deleted  cluster.Deleted
	searches searches
	schemas  bundle.Once[schema.GroupVersion, managedfields.TypeConverter]
}

// Deleted are the objects that were deleted.
func (w *Writer) Deleted() *cluster.Deleted { return &w.deleted }

// Outcome is how a step ended.
type Outcome struct {
	Action   plan.Action
	Resource cluster.Resource
	// Stored is the object as the server answered, without managed fields; nil
	// where there is none.
	Stored *unstructured.Unstructured
	Before *unstructured.Unstructured // the object that was written to, as it was
	Gone   bool                       // a deletion or detachment that needs no waiting
	// Immutable: the server keeps a field as it is, and the object may not be recreated.
	Immutable bool
	Reason    string // why it came to something else than was planned
	Wrote     bool   // a write of the step was stored, whatever came after it
	Warnings  []string
	// Fingerprint is of Stored, where HasFingerprint.
	Fingerprint    inventory.Fingerprint
	HasFingerprint bool
	// Claims are those of a recreated StatefulSet whose templates ask for other sizes.
	Claims []plan.Claim
	// Body is what was sent last, or what a recreation creates.
	Body []byte
	// The rest but Err only of a dry run: where it took place, whether the server
	// was asked about an update in place of an apply, whether the object would be
	// recreated, and what the server was not asked about.
	Place      surrogate.Place
	Update     bool
	Recreates  bool
	Unverified string
	Err        error
}

func failed(err error) Outcome { return Outcome{Action: plan.Failed, Err: err} }

// Do carries out a step where it belongs.
func (w *Writer) Do(ctx context.Context, s *plan.Step) Outcome {
	switch s.Action {
	case plan.Pruned:
		return w.Delete(ctx, s)
	case plan.Detached:
		return w.Detach(ctx, s)
	}
	resource, err := w.resourceOf(ctx, s)
	if err != nil {
		return failed(err)
	}
	body, err := w.Mutate(ctx, s)
	if err != nil {
		return failed(err)
	}
	o := w.Apply(ctx, s, resource, body, surrogate.Place{Namespace: s.ID.Namespace, Name: s.ID.Name})
	o.Resource = resource
	return o
}
