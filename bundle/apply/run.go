package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/inventory"
)

// Exit codes of a run, as the developers' guide fixes them.
const (
	ExitOK          = 0
	ExitFailed      = 1 // some object failed
	ExitChanges     = 2 // changes exist (--detailed-exitcode)
	ExitBadBundle   = 3 // bad bundle or usage
	ExitNotReady    = 4 // applied, but not ready in time, or failed
	ExitLocked      = 5 // another run holds the lock
	ExitUnreachable = 6 // cluster unreachable, or not permitted
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// Options are what a user says about a run.
type Options struct {
	Command     string // apply, preview, destroy: for the Result
	Inventory   Inventory
	DryRun      string // none, client, server
	Plan        plan.Options
	WaitApplied bool          // --wait=applied: readiness counts only where an object needs another
	Timeout     time.Duration // of the whole run; 0: none
	Parallel    int           // appliers
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
	// PlanOut is given the plan of a dry run that finds nothing wrong.
	PlanOut func(*plan.Bound) error
	// Bound is the plan to carry out, and no other.
	Bound *plan.Bound
}

// run is one run, from the bundle to the result.
type run struct {
	Options
	client *cluster.Client
	bundle *bundle.Bundle
	record *recorder

	inv   *inventory.Inventory
	lock  *inventory.Lock
	held  context.Context //nolint:containedctx // ends when the lock is lost; each attempt of the run goes on with it
	began bool            // the plan is being carried out: nothing is done again
	graph *order.Graph
	rules map[bundle.ID]*ready.Rules
	view  *cluster.View
	plan  *plan.Plan
	made  bundle.ID // the inventory's namespace, if this run made it
	told  int       // of the bundle's invalid objects

	readOnly bool // a dry run whose user may write nothing at all
}

// Run makes the cluster match the bundle and returns what came of it; every
// error is in the result. What happens is told to emit, from one goroutine at a
// time; the last event holds the result.
func Run(ctx context.Context, c *cluster.Client, b *bundle.Bundle, o Options, emit func(Event)) *Result {
	r := &run{Options: o, client: c, bundle: b, record: newRecorder(o, emit)}
	c.OnRetry(r.record.retrying)
	err := r.run(ctx)
	if o.DryRun == "server" && apierrors.IsForbidden(err) {
		err = r.unreadable(ctx, err)
	}
	if r.lock != nil {
		// The lock is given back also when the run was interrupted.
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		if lockErr := r.lock.Release(release); lockErr != nil {
			r.record.warn(lockErr.Error())
		}
		cancel()
	}
	return r.record.finish(ctx, err, c.Requests.Counts())
}

// lastWords is the time that an interrupted run takes to leave things in order.
const lastWords = 10 * time.Second

// stop is an error that ends a run before its first write, with its exit code.
type stop struct {
	code   int
	errors []error
}

func (s *stop) Error() string   { return errors.Join(s.errors...).Error() }
func (s *stop) Unwrap() []error { return s.errors }

func badBundle(problems []bundle.Problem) error {
	s := &stop{code: ExitBadBundle}
	for _, p := range problems {
		s.errors = append(s.errors, p)
	}
	return s
}

func (r *run) run(ctx context.Context) error {
	if err := r.client.Discover(ctx); err != nil {
		return err
	}
	if err := r.resolve(ctx); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := r.prepare(ctx)
		if err == nil {
			break
		}
		// Somebody wrote the inventory since it was read: look again.
		if !errors.Is(err, inventory.ErrConflict) || attempt == 3 || r.began {
			return err
		}
	}
	return nil
}

// resolve settles what the bundle's objects are, with the server's help.
func (r *run) resolve(ctx context.Context) error {
	resolver := bundle.Resolver{
		Namespace: r.Namespace,
		Scope:     r.scope,
		Hint:      r.hint,
		Strict:    true,
	}
	err := r.bundle.Resolve(resolver)
	var problems bundle.Problems
	if r.SkipInvalid && errors.As(err, &problems) {
		if problems = r.skipInvalid(problems); len(problems) == 0 {
			err = r.bundle.Resolve(resolver)
		}
	}
	if err == nil {
		if problems := r.skipInvalid(r.bundle.Digests()); len(problems) > 0 {
			return badBundle(problems)
		}
		if slotErr := r.bundle.FillSlots(r.live(ctx)); slotErr != nil {
			return slotErr
		}
	}
	for _, w := range r.bundle.Warnings {
		r.record.warn(w.Error())
	}
	if err != nil {
		return &stop{code: ExitBadBundle, errors: []error{err}}
	}
	for _, o := range r.bundle.Objects {
		r.client.Prefer(o.GVK)
	}
	return nil
}

// live reads an object that a slot names.
func (r *run) live(ctx context.Context) func(bundle.ID) (*unstructured.Unstructured, error) {
	return func(id bundle.ID) (*unstructured.Unstructured, error) {
		resource, err := r.client.Any(id.GroupKind)
		if err != nil {
			return nil, nil //nolint:nilerr // a kind that nobody serves has no objects
		}
		return r.client.Get(ctx, resource, id)
	}
}

func (r *run) scope(gvk schema.GroupVersionKind) bundle.Scope {
	resource, err := r.client.Resource(gvk)
	switch {
	case err == nil && resource.Namespaced:
		return bundle.ScopeNamespaced
	case err == nil:
		return bundle.ScopeCluster
	case r.client.Failed(gvk.Group) != nil:
		return bundle.ScopeLater
	}
	return bundle.ScopeUnknown
}

func (r *run) hint(gvk schema.GroupVersionKind) string {
	versions := r.client.Versions(gvk.GroupKind())
	if len(versions) == 0 {
		return ""
	}
	for i, v := range versions {
		versions[i] = schema.GroupVersion{Group: gvk.Group, Version: v}.String()
	}
	return "the server serves it as " + strings.Join(versions, ", ")
}

// prepare reads, orders, locks, looks, plans, and carries the plan out. Up to
// the inventory's own write it can be done again.
func (r *run) prepare(ctx context.Context) error { //nolint:contextcheck // the held context comes from it
	if r.DryRun == "none" {
		if done, err := r.lockUp(ctx); done || err != nil {
			return err
		}
		ctx = r.held
	}
	err := r.underLock(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, inventory.ErrLockLost) {
		return cause // and not what broke because of it
	}
	return err
}

// lockUp takes the lock, unless this run has it. An inventory that cannot be
// read, and a bundle that is wrong, are found before: nothing is written for
// them, not even the lock. It returns true where there is nothing to be done.
func (r *run) lockUp(ctx context.Context) (bool, error) {
	if r.lock != nil {
		return false, nil
	}
	if err := r.load(ctx); err != nil {
		return false, err
	}
	if r.nothingToDestroy() {
		return true, nil
	}
	if err := r.order(); err != nil {
		return false, err
	}
	lock, held, err := r.acquire(ctx)
	if err != nil {
		return false, err
	}
	r.lock, r.held = lock, held
	return false, nil
}

func (r *run) load(ctx context.Context) error {
	inv, err := inventory.Load(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, r.Inventory.ID, r.Version)
	if err != nil {
		return err
	}
	r.inv = inv
	r.record.result.Inventory.ID = r.inv.ID
	return nil
}

func (r *run) nothingToDestroy() bool {
	if !r.Plan.Destroy || r.inv.Exists() || len(r.inv.Members) > 0 {
		return false
	}
	r.record.warn(fmt.Sprintf("there is no inventory %s/%s: nothing to destroy", r.inv.Namespace, r.inv.Name))
	r.record.start(&plan.Plan{})
	return true
}

// underLock does what has to see the inventory as the last run left it.
func (r *run) underLock(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	if r.nothingToDestroy() {
		return nil
	}
	if err := r.order(); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
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
	if !r.Plan.Destroy {
		if err := r.inv.Add(ctx, r.plan.Add); err != nil {
			return err
		}
	}
	r.began = true
	return r.carryOut(ctx)
}

// order makes the graph and compiles the rules of readiness.
func (r *run) order() error {
	if len(r.bundle.Objects) == 0 && len(r.bundle.Absent) == 0 && len(r.inv.Members) > 0 && !r.Plan.AllowEmpty && !r.Plan.Destroy {
		// Before the lock, so that nothing at all is written.
		_, problems := plan.Build(plan.Input{Graph: &order.Graph{}, Inventory: r.inv, Options: r.Plan})
		return badBundle(problems)
	}
	g, problems := order.Build(r.bundle.Objects, order.Options{External: func(id bundle.ID) bool {
		_, ok := r.inv.Members[id]
		return ok
	}})
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
			return badBundle(rest)
		}
		return r.order() // without them; whoever depends on them is next
	}
	for _, notice := range g.Notices {
		r.record.warn(notice.Error())
	}
	r.graph = g
	r.tellInvalid()
	return nil
}

// acquire takes the lock. Where its namespace is not there yet, that is made
// first: from the bundle, if the bundle has it.
func (r *run) acquire(ctx context.Context) (*inventory.Lock, context.Context, error) {
	lock, held, err := inventory.Acquire(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, r.LockTimeout)
	if !apierrors.IsNotFound(err) || r.Plan.Destroy {
		return lock, held, err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{}}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(r.Inventory.Namespace)
	for _, o := range r.bundle.Objects {
		if o.ID.GroupKind == namespaces.GVK.GroupKind() && o.ID.Name == r.Inventory.Namespace {
			namespace = o.Content.DeepCopy()
			// There is no inventory where there is no namespace.
			inventory.Empty(r.Inventory.Namespace, r.Inventory.Name, r.Inventory.ID).Brand(namespace)
		}
	}
	body, err := namespace.MarshalJSON()
	if err != nil {
		return nil, nil, fmt.Errorf("encode namespace %s: %w", r.Inventory.Namespace, err)
	}
	id := bundle.ID{GroupKind: namespaces.GVK.GroupKind(), Name: r.Inventory.Namespace}
	r.made = id
	if _, _, err := r.client.Apply(ctx, namespaces, id, body, cluster.Write{}); err != nil {
		return nil, nil, fmt.Errorf("create the inventory's namespace %s: %w", r.Inventory.Namespace, err)
	}
	return inventory.Acquire(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, r.LockTimeout)
}

// namespaces is known without discovery.
var namespaces = cluster.Resource{
	GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
}

func (r *run) look(ctx context.Context) error {
	var members, others []bundle.ID
	for id := range r.inv.Members {
		members = append(members, id)
	}
	for _, o := range r.bundle.Objects {
		if _, ok := r.inv.Members[o.ID]; !ok {
			others = append(others, o.ID)
		}
	}
	for _, a := range r.bundle.Absent {
		others = append(others, a.ID)
	}
	view, err := r.client.Look(ctx, members, others, r.inv.Selector())
	if err != nil {
		return err
	}
	if err := r.lookInOwnVersion(ctx, view); err != nil {
		return err
	}
	delete(view.Live, r.made) // so that it is told as created
	r.view = view
	return nil
}

// sameBundle stops a bundle that shares nothing but its file's name with what
// the inventory holds: /a/bundle.yaml must not prune what /b/bundle.yaml made.
func (r *run) sameBundle() error {
	if !r.Derived || len(r.inv.Members) == 0 || len(r.bundle.Objects) == 0 || r.Plan.NoPrune {
		return nil
	}
	for _, o := range r.bundle.Objects {
		if _, ok := r.inv.Members[o.ID]; ok {
			return nil
		}
	}
	return badBundle([]bundle.Problem{{Message: fmt.Sprintf(
		"inventory %s/%s, named after the bundle's file, holds %d objects, and none of them is in this bundle, so all of them would be pruned: if it is the same bundle say so with --name=%s, otherwise choose another name",
		r.inv.Namespace, r.inv.Name, len(r.inv.Members), r.inv.Name)}})
}

// lookInOwnVersion reads again, one by one, objects of a kind that the bundle
// writes in several versions: live is compared in the version that is sent.
func (r *run) lookInOwnVersion(ctx context.Context, view *cluster.View) error {
	for _, o := range r.bundle.Objects {
		live := view.Live[o.ID]
		if live == nil || live.GroupVersionKind() == o.GVK {
			continue
		}
		resource, err := r.client.Resource(o.GVK)
		if err != nil {
			continue // a version that this run's CRD is to bring
		}
		if live, err = r.client.Get(ctx, resource, o.ID); err != nil {
			return fmt.Errorf("read %s: %w", bundle.Name(o.ID), err)
		}
		view.Live[o.ID] = live
	}
	return nil
}

func (r *run) makePlan(ctx context.Context) error {
	if err := r.sameBundle(); err != nil {
		return err
	}
	in := plan.Input{
		Graph: r.graph, Absent: r.bundle.Absent, Inventory: r.inv,
		Live: r.view.Live, Unsure: r.view.Unsure, Options: r.Plan,
	}
	if !r.Plan.NoPrune && !r.Plan.ForceNamespaces {
		doomed := plan.Candidates(r.inv.Members, r.graph, r.bundle.Absent)
		foreign, err := r.client.Foreign(ctx, doomed, r.view.Live, r.ownSide)
		if err != nil {
			return err
		}
		in.Foreign = foreign
	}
	p, problems := plan.Build(in)
	if len(problems) > 0 {
		return badBundle(problems)
	}
	for _, w := range p.Warnings {
		r.record.warn(w)
	}
	for _, id := range p.Forget {
		r.record.warn(bundle.Name(id) + " was in the inventory but is gone from the cluster: forgotten")
	}
	r.plan = p
	return nil
}

// ownSide says whether labels are those of our own inventory's ConfigMaps and
// Secrets.
func (r *run) ownSide(labels map[string]string) bool {
	return labels[inventory.Side] == r.inv.ID || labels["cli-utils.sigs.k8s.io/inventory-id"] == r.inv.ID
}

// learnKinds makes known what the bundle's CRDs will define.
func (r *run) learnKinds() {
	for _, o := range r.bundle.Objects {
		for _, resource := range definedBy(o) {
			r.client.Learn(resource)
		}
	}
}

// definedBy are the resources that a CustomResourceDefinition defines.
func definedBy(o *bundle.Object) []cluster.Resource {
	if o.ID.GroupKind.Kind != "CustomResourceDefinition" {
		return nil
	}
	spec, _, _ := unstructured.NestedMap(o.Content.Object, "spec")
	group, _, _ := unstructured.NestedString(spec, "group")
	plural, _, _ := unstructured.NestedString(spec, "names", "plural")
	kind, _, _ := unstructured.NestedString(spec, "names", "kind")
	scope, _, _ := unstructured.NestedString(spec, "scope")
	versions, _, _ := unstructured.NestedSlice(spec, "versions")
	var resources []cluster.Resource
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] == false {
			continue
		}
		name, _ := version["name"].(string)
		gv := schema.GroupVersion{Group: group, Version: name}
		resources = append(resources, cluster.Resource{
			GVR: gv.WithResource(plural), GVK: gv.WithKind(kind), Namespaced: scope == "Namespaced",
			Verbs: []string{"delete", "get", "list", "patch", "watch"},
		})
	}
	return resources
}

// exitCode is what an error that ended a run early stands for.
func exitCode(err error) int {
	var s *stop
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &s):
		return s.code
	case errors.Is(err, inventory.ErrLocked), errors.Is(err, inventory.ErrLockLost), errors.Is(err, inventory.ErrConflict):
		return ExitLocked
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), cluster.Unreachable(err), cluster.Misdirected(err), errors.Is(err, context.DeadlineExceeded):
		return ExitUnreachable
	}
	return ExitFailed
}

// Lines are the messages of an error, one each.
func Lines(err error) []string {
	var lines []string
	var s *stop
	var problems bundle.Problems
	switch {
	case errors.As(err, &s):
		for _, e := range s.errors {
			lines = append(lines, Lines(e)...)
		}
	case errors.As(err, &problems):
		for _, p := range problems {
			lines = append(lines, p.Error())
		}
	default:
		lines = []string{err.Error()}
	}
	return lines
}
