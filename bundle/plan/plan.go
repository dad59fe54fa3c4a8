package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/order"
	"brine/bundle/remedy"
	"brine/inventory"
)

// The plan: its input, its steps, and how applies come into it.

// Options are what a user may say about a plan.
type Options struct {
	Policy  Policy
	NoPrune bool
	// NoPruneReason says why nothing is pruned; the flag if empty.
	NoPruneReason string
	AllowEmpty    bool
	// MaxPrune is "" (no limit), a number of objects, or a share of the
	// inventory's members like "10%".
	MaxPrune string
	// Recreate are the kinds (as kubectl names them: Job, Deployment.apps) that may
	// be recreated. With ":orphan" behind a kind, the dependents stay.
	Recreate []string
	// ForceNamespaces: delete Namespaces and CRDs whatever they contain.
	ForceNamespaces bool
	// MigrateStoredVersions: objects are rewritten when a CRD's version goes in which
	// they may be stored.
	MigrateStoredVersions bool
	// VerifyFull asks the server about every object, whatever its fingerprint.
	VerifyFull bool
	// TakeOverFrom are the field managers and tools from which brine takes over; see
	// Taking.
	TakeOverFrom []string
	// IgnoreFields are rules about fields that are left to others.
	IgnoreFields []fields.Rule
	// Conflicts are rules about fields that other managers own with other values.
	Conflicts fields.ConflictRules
	// PruneFirst names admission policies and webhook configurations that are pruned before
	// anything is applied, as --only names objects.
	PruneFirst []string
	// Removed are SLS and files that are meant to be gone; RefuseRemoved refuses a run where
	// others are, also if Salt does not have them any more.
	Removed       []string
	RefuseRemoved bool
	// Undo: the run undoes earlier ones. It deletes only what these created.
	Undo bool `json:"-"`
	// Before are objects as they were before the runs that are undone adopted them, where
	// that is known.
	Before map[bundle.ID]*Was `json:"-"`
	// NamespaceNamed: the user, or a revision, names the namespace of objects that name none.
	NamespaceNamed bool `json:"-"`
	// Commands are how reasons show commands.
	Commands remedy.Commands `json:"-"`
	// Orphans: what is deleted leaves its dependents.
	Orphans bool `json:"-"`
	// Destroy: everything goes. Graph is empty then.
	Destroy bool
}

// Input is all that a plan follows from.
type Input struct {
	Graph     *order.Graph
	Absent    []*bundle.Absent
	Inventory *inventory.Inventory // read only
	Live      map[bundle.ID]*unstructured.Unstructured
	// Unknown are objects of which nothing can be known, with the reason.
	Unknown map[bundle.ID]error
	// Contents are what the Namespaces and CRDs hold that might be deleted.
	Contents map[bundle.ID]bundle.Contents
	// Owners are what owns the live objects, upwards.
	Owners Owners
	// Outside are the live objects outside the bundle that it depends on explicitly.
	Outside map[bundle.ID]*unstructured.Unstructured
	// Stored are the objects of the CRDs that have a Migration.
	Stored map[bundle.ID]Stored
	// Invalid are objects of the bundle that were left out of it: they are
	// not changed, and are reported elsewhere.
	Invalid sets.Set[bundle.ID]
	// Namespaces are the UIDs of namespaces outside the bundle in which Jobs of it run that
	// their TTL removes.
	Namespaces map[string]types.UID
	// Chosen are the objects of a partial run; nil is all of them.
	Chosen  map[*bundle.Object]bool
	Options Options

	ignored map[bundle.ID]fields.Pointers
}

// Need is an edge of the plan: Step has to be applied or ready (or, between
// deletions, asked for or gone).
type Need struct {
	Step   int
	Want   order.Want
	Reason string
	Weak   bool
	// Timing: the edge is about when only; what becomes of Step is the same to
	// this one.
	Timing bool
	// Owner: Step owns this one, and both leave the inventory.
	Owner bool
}

// Step is what is to be done with one object.
type Step struct {
	ID     bundle.ID
	GVK    schema.GroupVersionKind
	Object *bundle.Object             // nil for what is not in the bundle
	Live   *unstructured.Unstructured // nil for what is not there
	// Terminating is the object that is being deleted, to be created again.
	Terminating *unstructured.Unstructured
	Action      Action
	Reason      string
	// Unread is why nothing can be known of it; nil where that is not so.
	Unread error
	Needs  []Need
	// Awaits are the needs of objects outside the bundle: Step is an index into
	// Plan.Outside.
	Awaits []Need
	Member bool // the inventory held it before
	// Body is what is sent, nil where nothing is; Desired its hash. Only of objects in the bundle.
	Body    []byte
	Desired string
	// key keys the hashes of an object that holds a Secret; hashless says that it
	// has none that may be kept.
	key      *inventory.Key
	hashless bool
	// Ignored are the fields that are left to others once the object exists.
	Ignored fields.Pointers
	// conflicts are the rules about those that are left to their managers.
	conflicts string
	// Recreate says how it may be deleted and created again.
	Recreate Recreation
	// Migration: objects of a CRD are rewritten in another version.
	Migration *Migration
	// Always: a Job that runs in each apply: a standing one is deleted and created
	// again.
	Always bool
	// Completed: a Job that has run to its end for this spec, and was removed by its
	// TTL. spec is the hash of the spec.
	Completed bool
	spec      string
	runsIn    string // the UID of its namespace, where that is not of the bundle
	// Blocked says why an object of the bundle cannot be applied (policy).
	Blocked string
	// GiveBack: the member is given back to the inventory that it came from, after the run.
	GiveBack bool
	// Restore is what a detached object is set back to; nil where it stays as it is.
	Restore *Was
	// Kept: a skipped deletion that leaves the run incomplete.
	Kept bool
	// First: a deletion that comes before every write; it is undone where pruning does not
	// follow.
	First bool
	// Shared: Live is an object of the bundle as well, under another group.
	Shared bool
	// Priority is the length of the longest chain of objects that wait for this
	// one: long chains go first.
	Priority int
}

// Deletes says whether the step takes an object off the cluster or out of the
// inventory.
func (s *Step) Deletes() bool { return s.Object == nil }

// Plan is what a run does. Steps are in an order in which they could be done
// one after another: applies first, deletions after them.
type Plan struct {
	Steps []*Step
	// Outside are objects that are not in the bundle and have to be ready before an
	// object of it is applied. They are never written, and are no members.
	Outside []*Step
	// Add are the ids that the inventory has to hold before the first write.
	Add []bundle.ID
	// Origins are of objects that are there, where the inventory has another record, or
	// none: it has to have them before the first write. Run is not set where it is this run.
	Origins map[bundle.ID]inventory.Origin
	// Forget are members that do not exist, or belong to another inventory.
	Forget   []bundle.ID
	Warnings []string
	// Removals are what an earlier run was rendered from, and this one is not.
	Removals []Removal
	// Refused is why the plan may be shown, but not carried out (MaxPrune, Migration,
	// NamespaceNamed).
	Refused []bundle.Problem
	// Guard decides about deletions, again before each of them.
	Guard *Guard
}

// ChangesNothing says whether the cluster matches the bundle, so that no step sends
// a write, and the inventory has all its members. What left the bundle and stays on purpose is
// as it was.
func (p *Plan) ChangesNothing() bool {
	return len(p.Forget) == 0 && !slices.ContainsFunc(p.Steps, func(s *Step) bool {
		if s.Deletes() {
			return s.Action != Skipped || s.Kept || s.GiveBack
		}
		return s.Action != Unchanged || s.Blocked != "" || !s.Member
	})
}

// Build plans. It returns problems that must stop the run before its first
// write; the plan is nil then. So must Plan.Refused, of which there is a plan.
func Build(in Input) (*Plan, []bundle.Problem) {
	p := &Plan{}
	var problems []bundle.Problem
	if problem := Emptied(len(in.Graph.Objects), in.Absent, in.Inventory, in.Options); problem != nil {
		return nil, []bundle.Problem{*problem}
	}
	in.ignored = fields.Of(in.Graph.Objects, in.Options.IgnoreFields)
	if note := fields.Summary(fields.Left(in.Graph.Objects, in.Options.IgnoreFields)); note != "" {
		p.Warnings = append(p.Warnings, note)
	}
	applied := in.applyAll()
	at := make([]int, len(in.Graph.Objects)) // graph's index -> step's
	priority := in.Graph.CriticalPath()
	for _, i := range in.Graph.Sorted {
		if in.Chosen != nil && !in.Chosen[in.Graph.Objects[i]] {
			at[i] = -1
			continue
		}
		at[i] = len(p.Steps) + len(problems)
		step, err := applied[i].step, applied[i].err
		if err == nil && step.Live != nil && step.Blocked == "" && !LeavesAlone(step.Object) && in.migrate(p, step) {
			step.Action = Configured
		}
		if err != nil {
			problems = append(problems, bundle.Problem{Source: in.Graph.Objects[i].Source, ID: in.Graph.Objects[i].ID, Message: err.Error()})
			continue
		}
		if step.Action == Unchanged {
			step.Body = nil
		}
		for _, e := range in.Graph.Needs[i] {
			if at[e.To] < 0 {
				continue
			}
			step.Needs = append(step.Needs, Need{Step: at[e.To], Want: e.Want, Reason: e.Reason, Weak: e.Weak})
		}
		step.Priority = priority[i]
		in.await(p, step, in.Graph.External[i])
		p.Steps = append(p.Steps, step)
		if step.Blocked == "" && step.ID.Name != "" {
			p.Add = append(p.Add, step.ID)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	in.origins(p)
	p.Warnings = append(p.Warnings, otherTools(p.Steps, in.Options.TakeOverFrom)...)
	if in.Chosen != nil {
		p.Guard = newGuard(&in, p)
		if problems := append(in.missingNeeds(p), in.pruneFirst(p)...); len(problems) > 0 {
			return nil, problems
		}
		return p, nil // nothing is pruned
	}
	in.prune(p)
	in.otherNamespace(p)
	if problems := append(in.tooMany(p), in.pruneFirst(p)...); len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

type applied struct {
	step *Step
	err  error
}

// applyAll plans each object of the graph, on all processors: objects are encoded and
// hashed. Of unchanged objects the body is not kept: of 50,000 that is much memory. A CRD may
// still have to be written, as its objects are.
func (in *Input) applyAll() []applied {
	all := make([]applied, len(in.Graph.Objects))
	bundle.Parallel(len(all), func(i int) {
		o := in.Graph.Objects[i]
		if in.Chosen != nil && !in.Chosen[o] {
			return
		}
		s, err := in.apply(o)
		if all[i] = (applied{s, err}); s != nil && s.Action == Unchanged && o.ID.GroupKind != bundle.CRDKind {
			s.Body = nil
		}
	})
	return all
}

// await adds the objects outside the bundle that a step has to wait for.
func (in *Input) await(p *Plan, s *Step, external []order.External) {
	if s.Action == Unchanged || s.Blocked != "" {
		return
	}
	for _, e := range external {
		live := in.Outside[e.On]
		if live == nil {
			continue
		}
		at := slices.IndexFunc(p.Outside, func(o *Step) bool { return o.ID == e.On })
		if at < 0 {
			at = len(p.Outside)
			p.Outside = append(p.Outside, &Step{
				ID: e.On, GVK: live.GroupVersionKind(), Live: live, Action: Awaited, Reason: "not in the bundle",
				Object: &bundle.Object{ID: e.On, GVK: live.GroupVersionKind(), Content: live},
			})
		}
		s.Awaits = append(s.Awaits, Need{Step: at, Want: order.Ready, Reason: e.Reason})
	}
}

// Emptied refuses a bundle without objects where members would be pruned that
// it does not name as absent: most likely nothing was rendered. It is nil for
// all other bundles.
func Emptied(objects int, absent []*bundle.Absent, inv *inventory.Inventory, o Options) *bundle.Problem {
	if objects > 0 || o.AllowEmpty || o.Destroy || len(absent) > 0 && o.NoPrune {
		return nil
	}
	lost := len(inv.Members)
	for id := range bundle.SetOf(absent, func(a *bundle.Absent) bundle.ID { return a.ID }) {
		if _, member := inv.Members[id]; member {
			lost--
		}
	}
	if lost == 0 {
		return nil
	}
	what := "the bundle is empty"
	if len(absent) > 0 {
		what = "the bundle has no objects, only absent entries"
	}
	return &bundle.Problem{Message: fmt.Sprintf(
		"%s, and %s of inventory %s/%s would be pruned: if that is meant, use %s or %s",
		what, bundle.Count(lost, "object"), inv.Namespace, inv.Name, remedy.AllowEmpty, remedy.Destroy)}
}

// Unread are the objects of which nothing could be known, each with the reason.
func Unread(steps []*Step) []error {
	unread := bundle.Where(steps, func(s *Step) bool { return s.Unread != nil })
	return bundle.Each(unread, func(s *Step) error { return fmt.Errorf("%s: %w", bundle.Name(s.ID), s.Unread) })
}
