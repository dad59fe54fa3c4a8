// Package run is the pipeline of a run: it reads the inventory and the live state,
// orders, plans, takes the lock, and has the plan previewed or carried out, and
// recorded. The input is a bundle, the output a Result. Every stage hands its
// values to the next.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/fields"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/takeover"
	"brine/bundle/takeover/helm"
	"brine/bundle/validate"
	"brine/bundle/write"
	"brine/inventory"
	"brine/inventory/store"
)

// Options are what a user says about a run.
type Options struct {
	report.Header
	Planning    plan.Options
	WaitApplied bool          // readiness counts only where an object needs another
	PruneAnyway bool          // prune although something is not ready
	Timeout     time.Duration // of the whole run; 0: none
	FailAfter   time.Duration // how long what is not ready may stay as it is; 0: as long as the run
	Readiness   ready.Table   // rules of kinds
	Deny        report.Deny   // rules that stop the run before its first write
	LockTimeout time.Duration // how long to wait for a live holder of the lock
	SkipInvalid bool          // apply the others where an object is invalid
	Cascade     metav1.DeletionPropagation
	Heartbeat   time.Duration
	Version     string // brine's, for the inventory
	Namespace   string // for namespaced objects that name none
	// HistoryLimit is how many revisions are kept; 0 saves none.
	HistoryLimit int
	Who, JobID   string // for the history
	// Derived: the inventory's name comes from the bundle's file name.
	Derived bool
	Sources []string // as inventory.Content has them
	// Revision is the number of the revision that is applied again. The run keeps
	// it, so that the same rollback can be repeated. RevisionOptions are those that
	// it was applied with, as flags name them.
	Revision        int
	RevisionOptions map[string]string
	// Only selects the objects of a partial run, WithNeeds adds what these need.
	Only      []string
	WithNeeds bool
	// RollbackOnFailure: if objects fail or are not ready, the last good revision is
	// applied again.
	RollbackOnFailure bool
	// PlanOut is called with the plan of a dry run that finds nothing wrong.
	PlanOut func(*plan.Saved) error
	// SavedPlan is the plan to carry out, and no other.
	SavedPlan *plan.Saved
}

// run is what does not change while a run goes on, and what it has on the cluster.
type run struct {
	Options
	client *cluster.Client
	bundle *bundle.Bundle
	record *report.Recorder
	after  shutdown

	inv  *store.Inventory
	key  *inventory.Key // of the hashes of Secrets; nil where none is needed
	lock *store.Lock
	held context.Context //nolint:containedctx // with the lock: ends when it is lost; each attempt of the run continues with it

	releases []helm.Release // of Helm, to be taken over
	outside  map[bundle.ID]seen

	number    int                                      // of the run; see nextNumber
	origins   chan struct{}                            // who holds it may write the inventory's origins
	needsKey  bool                                     // the bundle holds Secrets
	began     bool                                     // the plan is being carried out: nothing is repeated
	namespace *unstructured.Unstructured               // the inventory's, if this run made it
	reported  int                                      // of the bundle's invalid objects
	chosen    map[*bundle.Object]bool                  // of a partial run
	before    map[bundle.ID]*unstructured.Unstructured // what the run adopts or takes over, as it was
	returns   map[string]sets.Set[bundle.ID]           // what is given back to other inventories after the run
	back      *wayBack                                 // where a run that fails is rolled back
	crds      *validate.CRDs                           // of the bundle, once they are compiled
}

// target is what the cluster is to match.
type target struct {
	graph *order.Graph
	rules map[bundle.ID]*ready.Rules // of readiness, where an object or its kind has its own
	kinds ready.Table
	// chosen are the objects of a partial run; nil is all of them.
	chosen map[*bundle.Object]bool
}

// Run makes the cluster match the bundle and returns the result, which holds
// every error. Events go to emit, one at a time; the last holds the result.
func Run(ctx context.Context, c *cluster.Client, b *bundle.Bundle, o Options, emit func(report.Event)) *report.Result {
	r := &run{Options: o, client: c, bundle: b, record: report.New(o.Header, emit), origins: make(chan struct{}, 1)}
	whole := ctx
	if o.RollbackOnFailure && o.DryRun == report.None {
		r.back = &wayBack{}
		var stop context.CancelFunc
		ctx, stop = r.back.keepTime(ctx, o.Timeout)
		defer stop()
	}
	r.after = newShutdown(ctx)
	defer func() { r.after.stop() }()
	r.record.Result.Server = c.Server()
	c.OnRetry(r.record.Retrying)
	c.OnSecret(r.record.Secrets.Read)
	err := r.run(ctx)
	if o.DryRun == report.Server && apierrors.IsForbidden(err) {
		err = r.unreadable(ctx, err)
	}
	if exit := r.record.Conclude(ctx, ExitCode(err), timedOut(ctx, err)); r.mayGoBack(exit) {
		defer r.after.stop()
		r.goBack(o, emit)
	}
	if r.held != nil {
		r.release()
		if code := r.record.Result.ExitCode; code == report.ExitOK || code == report.ExitRolledBack {
			r.giveBack(whole)
		}
	}
	return r.record.End(c.Requests.Counts())
}

// timedOut is an error that says so where time ran out.
func timedOut(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, report.ErrTimeout) && !errors.Is(err, report.ErrTimeout) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (r *run) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.Planning.TakeOverFrom = takeover.Qualified(r.Planning.TakeOverFrom, r.Namespace)
	r.Planning.Undo = r.Command == inventory.Rollback
	r.otherOptions()
	for attempt, races := 1, 0; ; {
		err := r.attempt(ctx)
		switch {
		case errors.Is(err, store.ErrTaken) && races < 10:
			r.inv = nil // another run was first: all it did has to be read
			races++
		case errors.Is(err, store.ErrConflict) && attempt < 3 && !r.began:
			r.inv = nil // another client wrote the inventory since it was read
			attempt++
		default:
			return err
		}
	}
}

// begin asks what the server serves, and reads the inventory meanwhile.
func (r *run) begin(ctx context.Context) error {
	r.needsKey = r.holdsSecrets() // before the bundle is changed
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan error, 1)
	go func() { read <- r.read(reading) }()
	err := r.client.Discover(ctx)
	if err == nil {
		r.client.AskFailed(ctx, func(group string) bool {
			return slices.ContainsFunc(r.bundle.Objects, func(o *bundle.Object) bool { return o.GVK.Group == group })
		})
		err = r.resolve(ctx)
	}
	if err != nil {
		cancel()
		<-read
		return err
	}
	return <-read
}

// read waits until no other run has the lock, and reads the inventory.
func (r *run) read(ctx context.Context) error {
	if r.DryRun == report.None && r.held == nil {
		lock, err := store.Await(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, store.Wait{
			Until:  r.record.Begin.Add(r.LockTimeout),
			Report: func(message string) { r.record.Emit(report.Warning{Message: message}) },
			Who:    r.holder(),
		})
		if err != nil {
			return err
		}
		r.lock = lock
	}
	return r.load(ctx)
}

func (r *run) load(ctx context.Context) error {
	var inv *store.Inventory
	both, reading := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		inv, err = store.Load(reading, r.client, r.Inventory.Namespace, r.Inventory.Name, r.Inventory.ID, r.Version)
		return err
	})
	if r.needsKey {
		both.Go(func() error { return r.loadKey(reading) })
	}
	if err := both.Wait(); err != nil {
		return err
	}
	r.inv = inv
	if !r.Planning.Destroy && inv.OnlyAuxiliary() {
		r.record.Warn(fmt.Sprintf("ConfigMap %s/%s is missing, but other parts of the inventory exist: members that only it listed are unknown, and are not pruned. %q finds them",
			inv.Namespace, inv.Name, remedy.RepairInventory(inv.Namespace, inv.Name)))
	}
	return nil
}

// attempt runs the pipeline once. Up to the inventory's own write it can be
// repeated.
func (r *run) attempt(ctx context.Context) error { //nolint:contextcheck // the held context comes from it
	if r.held != nil {
		ctx = r.held
	}
	err := r.pipeline(ctx)
	if r.held != nil {
		if cause := context.Cause(r.held); errors.Is(cause, store.ErrLockLost) {
			return cause // and not what failed because of it
		}
	}
	return err
}

// many is from how many objects memory is scarcer than time.
const many = 10_000

// pipeline does all stages. All that can be known, and refused, before the first
// write is. The lock is the first write, and proves that what was read is still
// true. A run that has nothing to write does without: what it says was true when it
// was read.
func (r *run) pipeline(ctx context.Context) error {
	if r.inv == nil {
		if err := r.read(ctx); err != nil {
			return err
		}
	}
	r.record.Result.Inventory.ID = r.inv.ID
	if max(len(r.bundle.Objects), len(r.inv.Members)) > many && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // the default lets the heap double
	}
	if nothing, err := r.nothingToDestroy(ctx); nothing || err != nil {
		return err
	}
	t, err := r.order()
	if err != nil {
		return err
	}
	live, err := r.readLive(ctx, t)
	if err != nil {
		return err
	}
	if err := r.readReleases(ctx, live.Live); err != nil {
		return err
	}
	if err := r.keyDigests(ctx, live); err != nil {
		return err
	}
	t, p, err := r.plan(ctx, t, live)
	if err != nil {
		return err
	}
	r.learnKinds()
	r.reportFormat()
	r.number, r.returns, r.before = r.nextNumber(), returnsOf(&r.inv.Inventory, p), nil
	r.keepBefore(p.Adopts())
	if r.DryRun == report.Server {
		return r.preview(ctx, t, p)
	}
	if err := r.confirm(ctx, p); err != nil {
		return err
	}
	if err := r.askDeny(ctx, p); err != nil {
		return err
	}
	hints := r.hints(ctx, p)
	if !r.Planning.Destroy && r.inv.Exists() && len(r.releases) == 0 && p.ChangesNothing() && t.isReady(p, hints) {
		return r.carryOut(ctx, t, p, hints)
	}
	if err := r.takeFor(ctx); err != nil {
		return err
	}
	if !r.Planning.Destroy {
		if err := r.persistBeginning(r.held, p); err != nil { //nolint:contextcheck // it is ctx, with the lock
			return err
		}
	}
	r.began = true
	return r.carryOut(r.held, t, p, hints) //nolint:contextcheck // as above
}

// isReady says whether nothing of a plan that changes nothing has to be waited for.
func (t target) isReady(p *plan.Plan, hints ready.Hints) bool {
	return !slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return t.isLate(s, hints) })
}

// isLate says whether an object that stays as it is has to be waited for.
func (t target) isLate(s *plan.Step, hints ready.Hints) bool {
	return !s.Completed && ready.Waits(s.GVK, t.rules[s.ID]) && ready.Of(s.Live, t.rules[s.ID], hints).State != ready.Ready
}

// nothingToDestroy: there is neither an inventory nor a part of one, as a run
// that was killed or another tool leaves it.
func (r *run) nothingToDestroy(ctx context.Context) (bool, error) {
	if !r.Planning.Destroy || r.inv.Exists() || len(r.inv.Members) > 0 {
		return false, nil
	}
	if remains, err := r.inv.Remains(ctx); remains || err != nil {
		return false, err
	}
	r.record.Warn(fmt.Sprintf("there is no inventory %s/%s: nothing to destroy", r.inv.Namespace, r.inv.Name))
	r.record.Start(&plan.Plan{})
	return true, nil
}

// compileRules are the objects' rules of readiness with those of kinds, and what is wrong
// with these and with what every kind has, whatever the server is.
func compileRules(objects []*bundle.Object, kinds ready.Table) (map[bundle.ID]*ready.Rules, ready.Table, []bundle.Problem) {
	metadata := make([][]bundle.Problem, len(objects))
	bundle.Parallel(len(objects), func(i int) { metadata[i] = validate.Metadata(objects[i]) })
	rules, kinds, problems := ready.Compile(objects, kinds)
	for i, o := range objects {
		problems = append(append(problems, fields.Check(o)...), metadata[i]...)
	}
	return rules, kinds, problems
}

// order makes the graph and compiles the rules of readiness.
func (r *run) order() (target, error) {
	if problem := plan.Emptied(len(r.bundle.Objects), r.bundle.Absent, &r.inv.Inventory, r.Planning); problem != nil {
		return target{}, report.BadBundle(*problem)
	}
	g, problems := order.Build(r.bundle.Objects, order.Options{})
	problems = append(problems, inventory.Reserved(r.inv.Namespace, r.inv.Name, r.bundle)...)
	rules, kinds, wrong := compileRules(r.bundle.Objects, r.Readiness)
	t := target{graph: g, rules: rules, kinds: kinds}
	if problems = append(problems, wrong...); len(problems) > 0 {
		if rest := r.skipInvalid(problems); !r.SkipInvalid || len(rest) > 0 {
			return target{}, report.BadBundle(rest...)
		}
		return r.order() // without them; those that depend on them are next
	}
	for _, notice := range g.Notices {
		r.record.Warn(notice.Error())
	}
	r.reportInvalid()
	if t.chosen, problems = plan.Choose(g, r.Only, r.WithNeeds); len(problems) > 0 {
		return target{}, report.BadBundle(problems...)
	}
	if r.chosen = t.chosen; t.chosen != nil {
		r.record.Warn(fmt.Sprintf("partial run: %d of %s, nothing is pruned", len(t.chosen), bundle.Count(len(g.Objects), "object")))
	}
	return t, nil
}

func (r *run) writing() write.Options {
	return write.Options{Policy: r.Planning.Policy, TakeOverFrom: r.Planning.TakeOverFrom, Conflicts: r.Planning.Conflicts, Cascade: r.Cascade}
}
