package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/validate"
	"brine/inventory"
	"brine/inventory/store"
)

// Options are what a user says about a run.
type Options struct {
	Command     string // apply, preview, destroy: for the Result
	Inventory   report.Inventory
	DryRun      string // none, client, server
	Plan        plan.Options
	WaitApplied bool          // --wait=applied: readiness counts only where an object needs another
	PruneAnyway bool          // --prune-anyway: prune although something is not ready
	Timeout     time.Duration // of the whole run; 0: none
	LockTimeout time.Duration // how long to wait for a live holder of the lock
	SkipInvalid bool          // --validation=skip-invalid
	Cascade     metav1.DeletionPropagation
	Heartbeat   time.Duration
	Version     string // brine's, for the inventory
	Namespace   string // for namespaced objects that name none
	// HistoryLimit is how many revisions are kept; 0 saves none.
	HistoryLimit int
	Who, JobID   string // for the history
	// Derived: the inventory's name comes from the bundle's file name.
	Derived  bool
	Detailed bool // exit with 2 when there are changes
	// RevisionOptions are those that a revision, which is applied again, was
	// applied with, as flags name them.
	RevisionOptions map[string]string
	// PlanOut is given the plan of a dry run that finds nothing wrong.
	PlanOut func(*plan.Saved) error
	// Bound is the plan to carry out, and no other.
	Bound *plan.Saved
}

func (o Options) header() report.Header {
	return report.Header{Command: o.Command, Inventory: o.Inventory, DryRun: o.DryRun, Detailed: o.Detailed}
}

// run is one run, from the bundle to the result.
type run struct {
	Options
	client *cluster.Client
	bundle *bundle.Bundle
	record *report.Recorder
	after  shutdown

	inv *store.Inventory
	key *inventory.Key // of the hashes of Secrets; nil where none is needed
	// secretive: the bundle holds Secrets, so a key is needed.
	secretive bool
	lock      *store.Lock
	held      context.Context //nolint:containedctx // with the lock: ends when it is lost; each attempt of the run goes on with it
	began     bool            // the plan is being carried out: nothing is done again
	graph     *order.Graph
	rules     map[bundle.ID]*ready.Rules
	view      *cluster.Snapshot
	plan      *plan.Plan
	made      bundle.ID                  // the inventory's namespace, if this run made it
	home      *unstructured.Unstructured // that namespace, as it was made
	told      int                        // of the bundle's invalid objects
	crds      *validate.CRDs

	readOnly bool // a dry run whose user may write nothing at all
}

// Run makes the cluster match the bundle and returns what came of it; every
// error is in the result. What happens is told to emit, from one goroutine at a
// time; the last event holds the result.
func Run(ctx context.Context, c *cluster.Client, b *bundle.Bundle, o Options, emit func(report.Event)) *report.Result {
	r := &run{Options: o, client: c, bundle: b, record: report.New(o.header(), emit), after: newShutdown(ctx)}
	defer r.after.stop()
	c.OnRetry(r.record.Retrying)
	c.OnSecret(r.record.Secrets.Read)
	err := r.run(ctx)
	if o.DryRun == "server" && apierrors.IsForbidden(err) {
		err = r.unreadable(ctx, err)
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, report.ErrTimeout) && !errors.Is(err, report.ErrTimeout) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if r.held != nil {
		r.release()
	}
	return r.record.Finish(ctx, ExitCode(err), err, c.Requests.Counts())
}

func (r *run) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.otherOptions()
	for attempt, races := 1, 0; ; {
		err := r.attempt(ctx)
		switch {
		case errors.Is(err, store.ErrTaken) && races < 10:
			r.inv = nil // another run was first: all it did has to be read
			races++
		case errors.Is(err, store.ErrConflict) && attempt < 3 && !r.began:
			// Somebody else wrote the inventory since it was read: look again.
			r.inv = nil
			attempt++
		default:
			return err
		}
	}
}

// begin asks what the server serves, and reads the inventory meanwhile.
func (r *run) begin(ctx context.Context) error {
	r.secretive = r.needsKey() // before anybody changes the bundle
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan error, 1)
	go func() { read <- r.read(reading) }()
	err := r.client.Discover(ctx)
	if err == nil {
		err = r.resolve(ctx)
	}
	if err != nil {
		cancel()
		<-read
		return err
	}
	return <-read
}

// read waits until nobody else is at work, and reads the inventory.
func (r *run) read(ctx context.Context) error {
	if r.DryRun == "none" && r.held == nil {
		lock, err := store.Await(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, store.Wait{
			Until:  r.record.Begin.Add(r.LockTimeout),
			Report: func(message string) { r.record.Emit(report.Event{Type: report.Warning, Message: message}) },
		})
		if err != nil {
			return err
		}
		r.lock = lock
	}
	return r.load(ctx)
}

// attempt reads, orders, looks, plans, locks, and carries the plan out. Up to
// the inventory's own write it can be done again.
func (r *run) attempt(ctx context.Context) error { //nolint:contextcheck // the held context comes from it
	if r.held != nil {
		ctx = r.held
	}
	err := r.goThrough(ctx)
	if r.held != nil {
		if cause := context.Cause(r.held); errors.Is(cause, store.ErrLockLost) {
			return cause // and not what broke because of it
		}
	}
	return err
}

func (r *run) load(ctx context.Context) error {
	var inv *store.Inventory
	both, reading := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		inv, err = store.Load(reading, r.client, r.Inventory.Namespace, r.Inventory.Name, r.Inventory.ID, r.Version)
		return err
	})
	if r.secretive {
		both.Go(func() error { return r.loadKey(reading) })
	}
	if err := both.Wait(); err != nil {
		return err
	}
	r.inv = inv
	if !r.Plan.Destroy && inv.OnlyAuxiliary() {
		r.record.Warn(fmt.Sprintf("ConfigMap %s/%s is missing, though other parts of the inventory are there: members that only it named are not known, and not pruned; \"brine inventory repair --inventory %s/%s\" finds them",
			inv.Namespace, inv.Name, inv.Namespace, inv.Name))
	}
	return nil
}

// nothingToDestroy: neither an inventory nor a remainder of one, as a run that
// was killed or another tool leaves it.
func (r *run) nothingToDestroy(ctx context.Context) (bool, error) {
	if !r.Plan.Destroy || r.inv.Exists() || len(r.inv.Members) > 0 {
		return false, nil
	}
	if remains, err := r.inv.Remains(ctx); remains || err != nil {
		return false, err
	}
	r.record.Warn(fmt.Sprintf("there is no inventory %s/%s: nothing to destroy", r.inv.Namespace, r.inv.Name))
	r.record.Start(&plan.Plan{})
	return true, nil
}

// goThrough goes the whole way. All that can be known, and refused, before the
// first write is; the lock is the first write, and proves that what was read
// is still true.
func (r *run) goThrough(ctx context.Context) error {
	if r.inv == nil {
		if err := r.read(ctx); err != nil {
			return err
		}
	}
	r.record.Result.Inventory.ID = r.inv.ID
	if nothing, err := r.nothingToDestroy(ctx); nothing || err != nil {
		return err
	}
	if err := r.order(); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	if err := r.keyDigests(ctx); err != nil {
		return err
	}
	if err := r.makePlan(ctx); err != nil {
		return err
	}
	r.learnKinds()
	switch r.DryRun {
	case "none":
	case "server":
		return r.preview(ctx)
	default:
		return fmt.Errorf("--dry-run=%s is not for a cluster: nothing was changed", r.DryRun)
	}
	if err := r.confirm(ctx); err != nil {
		return err
	}
	if err := r.take(ctx); err != nil {
		return err
	}
	if !r.Plan.Destroy {
		if err := r.persistBeginning(r.held); err != nil { //nolint:contextcheck // it is ctx, with the lock
			return err
		}
	}
	r.began = true
	return r.carryOut(r.held) //nolint:contextcheck // as above
}

// order makes the graph and compiles the rules of readiness.
func (r *run) order() error {
	if problem := plan.Emptied(len(r.bundle.Objects), r.bundle.Absent, &r.inv.Inventory, r.Plan); problem != nil {
		return report.BadBundle(*problem)
	}
	g, problems := order.Build(r.bundle.Objects, order.Options{External: func(id bundle.ID) bool {
		_, ok := r.inv.Members[id]
		return ok
	}})
	problems = append(problems, inventory.Reserved(r.inv.Namespace, r.inv.Name, r.bundle)...)
	r.rules = map[bundle.ID]*ready.Rules{}
	for _, o := range r.bundle.Objects {
		rules, wrong := ready.Compile(o)
		problems = append(problems, wrong...)
		if rules != nil {
			r.rules[o.ID] = rules
		}
	}
	if len(problems) > 0 {
		if rest := r.skipInvalid(problems); !r.SkipInvalid || len(rest) > 0 {
			return report.BadBundle(rest...)
		}
		return r.order() // without them; whoever depends on them is next
	}
	for _, notice := range g.Notices {
		r.record.Warn(notice.Error())
	}
	r.graph = g
	r.tellInvalid()
	return nil
}
