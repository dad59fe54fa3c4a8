package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/check"
	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/takeover/helm"
	"brine/bundle/validate"
	"brine/bundle/write"
	"brine/inventory"
	"brine/inventory/store"
)

// From the bundle and the cluster to the plan: target, situation, intent.

// target is what the cluster must match: the bundle in its order.
type target struct {
	bundle *bundle.Bundle
	graph  *order.Graph
	rules  map[bundle.ID]*ready.Rules // of readiness, where an object or its kind has its own
	kinds  ready.Table
	chosen map[*bundle.Object]bool // the objects of a partial run; nil is all of them
	// definitions compiles the bundle's CRDs of which it holds resources, once.
	definitions func() *validate.CRDs
}

// takes says whether the run applies an object.
func (t target) takes(o *bundle.Object) bool { return t.chosen == nil || t.chosen[o] }

// situation is all that a plan follows from, as it was read.
type situation struct {
	target
	inventory *store.Inventory
	live      *cluster.Snapshot
	outside   map[bundle.ID]outsideObject // objects outside the bundle
	// namespaces outside the bundle in which Jobs of it run that their TTL removes
	namespaces map[string]types.UID
}

// intent is what a run is going to do. The live objects are not kept with it, but for
// those of the plan's steps: they take memory as long as it is carried out.
type intent struct {
	target
	inventory *store.Inventory
	plan      *plan.Plan
	releases  []helm.Release // of Helm, to be taken over
	hints     ready.Hints
	number    int                                      // of the run: of the revision that it saves, or would save
	returns   map[inventory.Origin]sets.Set[bundle.ID] // what is given back to other inventories after it
	before    map[bundle.ID]*unstructured.Unstructured // what it adopts or takes over, as it was, for its revision
	back      *rollbackTarget                          // where it is rolled back to if it fails; nil is nowhere
	begun     bool                                     // the inventory is extended: the plan is carried out
}

func (in intent) needsNoWrite() bool {
	return in.inventory.Exists() && len(in.releases) == 0 && in.plan.ChangesNothing() &&
		!slices.ContainsFunc(in.plan.Steps, func(s *plan.Step) bool { return in.isLate(s, in.hints) })
}

// isLate says whether an object that stays as it is has to be waited for.
func (t target) isLate(s *plan.Step, hints ready.Hints) bool {
	return !s.Completed && !s.Deletes() && ready.Waits(s.GVK, t.rules[s.ID]) && ready.Of(s.Live, t.rules[s.ID], hints).State != ready.Ready
}

// prepare orders the bundle, reads the cluster, and makes the plan.
func prepare(ctx context.Context, s *session, o *Options, b *bundle.Bundle, inv *store.Inventory) (intent, error) {
	in := intent{inventory: inv}
	s.record.Result.Inventory.ID = inv.ID
	if err := inv.StillLast(o.Undoes); err != nil {
		return in, err
	}
	if o.Mode == Apply || o.Mode == Rollback {
		if err := inv.RefuseSharedID(ctx); err != nil {
			return in, err
		}
	}
	if o.Mode != Destroy && inv.OnlyAuxiliary() {
		s.record.Warn(inv.Lost())
	}
	if o.Mode == Destroy {
		if err := hasAnything(ctx, s.client, inv); err != nil {
			return in, err
		}
	}
	t, err := orderBundle(s.record, o, b, inv)
	if err != nil {
		return in, err
	}
	now, err := readSituation(ctx, s, o, t, inv)
	if err != nil {
		return in, err
	}
	if in.releases, err = readReleases(ctx, s, o, now); err != nil {
		return in, err
	}
	if inv.Key == nil && holdsSecrets(o, b) { // a slot asks for a Secret that is not in the bundle
		if inv.Key, err = store.LoadKey(ctx, s.client, inv.Namespace, inv.Name); err != nil {
			return in, err
		}
	}
	keyDigests(s.record, o, b, inv.Key, now.live.Live)
	if in.target, in.plan, err = makePlan(ctx, s, o, now); err != nil {
		return in, err
	}
	if err := errors.Join(checkRemoved(ctx, s, o, in), checkAbsent(ctx, o, in)); err != nil {
		return in, err
	}
	if o.RollbackOnFailure {
		if in.back, err = findRollbackTarget(ctx, s, o, in); err != nil {
			return in, err
		}
	}
	if len(in.plan.Refused) > 0 && o.DryRun == report.None {
		return in, refusePlan(ctx, s, o, in)
	}
	if o.Mode != Drift { // nothing of that is carried out
		reportPlan(s.record, inv, in.plan)
	}
	for _, object := range b.Objects { // what the bundle's CRDs will define
		for _, resource := range cluster.Defined(object.Content) {
			s.client.Learn(resource)
		}
	}
	reportFormat(s.record, o, inv)
	in.number, in.returns = nextNumber(in, o.Mode == Rollback), returnsOf(&inv.Inventory, in.plan)
	in.before = keepBefore(o, inv, in.plan.Adopts())
	if o.DryRun != report.None {
		return in, nil
	}
	return in, knowOwners(ctx, s, o, in.plan.Origins)
}

// orderBundle makes the graph and compiles the rules of readiness. Where that finds invalid
// objects, and they are left out, those that depend on them are next.
func orderBundle(record *report.Recorder, o *Options, b *bundle.Bundle, inv *store.Inventory) (target, error) {
	for {
		if problem := plan.Emptied(len(b.Objects), b.Absent, &inv.Inventory, o.Planning); problem != nil {
			return target{}, report.BadBundle(*problem)
		}
		g, problems := order.Build(b.Objects, order.Options{})
		problems = append(problems, inventory.Reserved(inv.Namespace, inv.Name, b)...)
		rules, kinds, wrong := check.Rules(b.Objects, o.Readiness)
		if problems = append(problems, wrong...); len(problems) > 0 {
			if err := skipInvalid(record, o, b, problems); err != nil {
				return target{}, err
			}
			continue
		}
		for _, notice := range g.Notices {
			record.Warn(notice.Error())
		}
		chosen, problems := plan.Choose(g, o.Only, o.WithNeeds)
		if len(problems) > 0 {
			return target{}, report.BadBundle(problems...)
		}
		if chosen != nil {
			record.Warn(fmt.Sprintf("partial run: %d of %s, nothing is pruned", len(chosen), bundle.Count(len(g.Objects), "object")))
		}
		return target{
			bundle: b, graph: g, rules: rules, kinds: kinds, chosen: chosen,
			definitions: sync.OnceValue(func() *validate.CRDs { return check.Definitions(b.Objects) }),
		}, nil
	}
}

// readSituation reads the live objects of the inventory and of the bundle, and of those
// outside that it depends on.
func readSituation(ctx context.Context, s *session, o *Options, t target, inv *store.Inventory) (situation, error) {
	members, absent := slices.Collect(maps.Keys(inv.Members)), bundle.Each(t.bundle.Absent, func(a *bundle.Absent) bundle.ID { return a.ID })
	var others []bundle.ID
	for _, object := range t.bundle.Objects {
		if _, ok := inv.Members[object.ID]; !ok && object.ID.Name != "" { // generateName: there is none yet
			others = append(others, object.ID)
		}
	}
	now := situation{target: t, inventory: inv}
	var reading errgroup.Group
	reading.Go(func() error {
		now.outside = readAllOutside(ctx, s.client, o, t, inv)
		return nil
	})
	reading.Go(func() error {
		now.namespaces = inspect.ReadNamespacesOfJobs(ctx, s.client, t.bundle, inv)
		return nil
	})
	reading.Go(func() error { // the history of one that is there, and says how far that goes, is read with the first write
		return inv.Forgets(ctx, bundle.IDs(bundle.Where(t.bundle.Objects, t.takes)), !inv.Exists() || inv.Last().Number == 0 && o.HistoryLimit > 0 || o.Mode != Apply || o.DryRun != report.None)
	})
	reading.Go(func() (err error) {
		now.live, err = s.client.Snapshot(ctx, members, append(others, absent...), absent, inv.Selector())
		return err
	})
	if err := reading.Wait(); err != nil {
		return now, err
	}
	now.noteUnservedAbsent(s)
	if _, member := inv.Members[inventoryNamespace(o)]; s.namespace != nil && !member { // a run that had the lock first may have made it one
		delete(now.live.Live, inventoryNamespace(o)) // so that it is reported as created
	}
	return now, inspect.ReadInOwnVersion(ctx, s.client, t.bundle, now.live)
}

// makePlan makes the plan. Where it finds objects that are invalid, and they are left out,
// there is another order and another plan.
func makePlan(ctx context.Context, s *session, o *Options, now situation) (target, *plan.Plan, error) {
	if err := checkDerivedName(ctx, o, now); err != nil {
		return target{}, nil, err
	}
	for {
		p, invalid, err := buildPlan(ctx, s, o, now)
		if err != nil || len(invalid) == 0 {
			return now.target, p, err
		}
		if err := skipInvalid(s.record, o, now.bundle, invalid); err != nil {
			return target{}, nil, err
		}
		if now.target, err = orderBundle(s.record, o, now.bundle, now.inventory); err != nil {
			return target{}, nil, err
		}
	}
}

// buildPlan makes a plan, or finds objects that are invalid: each time others.
func buildPlan(ctx context.Context, s *session, o *Options, now situation) (*plan.Plan, []bundle.Problem, error) {
	outside, invalid, err := now.liveOutside(o)
	if err != nil || len(invalid) > 0 {
		return nil, invalid, err
	}
	options := o.planning(now.bundle)
	if options.Before, err = recallBefore(ctx, o, now); err != nil {
		return nil, nil, err
	}
	in := plan.Input{
		Graph: now.graph, Chosen: now.chosen, Absent: now.bundle.Absent, Inventory: &now.inventory.Inventory,
		Namespaces: now.namespaces, Live: now.live.Live, Unknown: now.live.Unknown, Options: options, Outside: outside, Owners: inspect.ReadOwners(ctx, s.client, now.live.Live),
		Invalid: bundle.SetOf(now.bundle.Invalid, func(p bundle.Problem) bundle.ID { return p.ID }),
	}
	if in.Contents, err = contentsOfHolders(ctx, s.client, o, options, now); err != nil {
		return nil, nil, err
	}
	in.Stored = inspect.StoredInOldVersions(ctx, s.client, options, now.graph.Objects, now.live.Live)
	p, problems := plan.Build(in)
	if len(problems) > 0 {
		return nil, nil, report.BadBundle(problems...)
	}
	compileRulesOutside(s.record, now.target, p)
	if o.SkipInvalid || o.DryRun == report.None && len(p.Refused) == 0 { // else they are shown, as failed
		sent, err := preview.CheckSent(ctx, o.previewing(s, intent{target: now.target, inventory: now.inventory, plan: p}))
		return p, sent.Problems(p), err
	}
	return p, invalid, err
}

func reportPlan(record *report.Recorder, inv *store.Inventory, p *plan.Plan) {
	for _, w := range p.Warnings {
		record.Warn(w)
	}
	for _, id := range p.Forget {
		if inv.Fingerprints[id].Completed != "" {
			continue // its TTL removed it
		}
		record.Warn(bundle.Name(id) + " was in the inventory but does not exist: removed from the inventory")
	}
}

// checkDerivedName stops a bundle that has little but its file's name in common with what
// the inventory was made from: /a/bundle.yaml must not prune what /b/bundle.yaml made.
func checkDerivedName(ctx context.Context, o *Options, now situation) error {
	inv, objects := now.inventory, now.bundle.Objects
	shared, own := plan.Shared(inv.Members, objects)
	if !o.Derived || len(objects) == 0 || own && 2*shared >= len(inv.Members) {
		return nil
	}
	last := &inventory.Content{}
	if number := inv.Last().Number; number > 0 {
		var err error
		if last, err = inv.LoadRevision(ctx, number); err != nil {
			return fmt.Errorf("find out whether inventory %s/%s is of this bundle, as its name comes from the bundle's file name: %w", inv.Namespace, inv.Name, err)
		}
	}
	if shared > 0 && slices.Equal(last.Sources, o.Sources) {
		return nil
	}
	from := "another bundle"
	if len(last.Sources) > 0 {
		from = strings.Join(last.Sources, ", ")
	}
	return report.BadBundle(bundle.Problem{Message: fmt.Sprintf(
		"inventory %s/%s, named after the bundle's file, was made from %s: this bundle has %d of its %s, and the others would be pruned. If this is intended, give %s=%s. Otherwise choose another name",
		inv.Namespace, inv.Name, from, shared, bundle.Count(len(inv.Members), "object"), remedy.Name, inv.Name)})
}

// noteUnservedAbsent says of what the bundle wants absent that no server has its kind, where that
// is proven: the kind may be misspelt, or be in another group by now.
func (now situation) noteUnservedAbsent(s *session) {
	all, _ := s.client.Listable()
	for _, a := range now.bundle.Absent {
		gk := a.ID.GroupKind
		comes := func(o *bundle.Object) bool { d, _ := bundle.DefinitionOf(o.Content); return d.Kind == gk }
		if _, err := s.client.Any(gk); err == nil || now.live.Unknown[a.ID] != nil || slices.ContainsFunc(now.bundle.Objects, comes) {
			continue
		}
		message := "the bundle wants it absent: the server serves no " + gk.String()
		for _, r := range all {
			if r.GVK.Kind == gk.Kind {
				message += fmt.Sprintf("; it serves %s of %s: write that apiVersion if it is meant", gk.Kind, r.GVK.GroupVersion())
			}
		}
		s.record.Warn(bundle.Problem{Source: a.Source, ID: a.ID, Message: message}.Error())
	}
}

// contentsOfHolders is what the Namespaces and CRDs hold that might be deleted.
func contentsOfHolders(ctx context.Context, c *cluster.Client, o *Options, options plan.Options, now situation) (map[bundle.ID]bundle.Contents, error) {
	if options.NoPrune || options.ForceNamespaces || now.chosen != nil {
		return nil, nil
	}
	holders, deleted := []*unstructured.Unstructured(nil), &cluster.Deleted{}
	for _, id := range plan.Candidates(now.inventory.Members, now.graph, now.bundle.Absent) {
		u := now.live.Live[id]
		if u == nil {
			continue
		}
		deleted.Add(u)
		if bundle.HoldsObjects(id.GroupKind) {
			holders = append(holders, u)
		}
	}
	if len(holders) == 0 {
		return nil, nil
	}
	return c.Contents(ctx, write.Search(&now.inventory.Inventory, o.Cascade, holders, deleted))
}

// reportFormat says that the run, or the one that is previewed, writes the inventory in
// another format than an older version did. Reading commands do not.
func reportFormat(record *report.Recorder, o *Options, inv *store.Inventory) {
	if o.Mode == Drift || o.Mode == Destroy || !inv.Outdated() {
		return
	}
	who := "this run writes it"
	if o.DryRun != report.None {
		who = "an apply with this version writes it"
	}
	record.Warn(fmt.Sprintf("inventory %s/%s is in the format of an older version (%s wrote it): %s in format %d, even if nothing else changes. "+
		"This needs the rights to update ConfigMaps and to create and update Leases in namespace %s",
		inv.Namespace, inv.Name, inv.Tool(), who, inventory.Format, inv.Namespace))
}
