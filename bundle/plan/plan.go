package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/order"
	"brine/bundle/redact"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Policy says whose objects a run may take: cli-utils' inventory policies.
type Policy int

// The policies, from the most careful on.
const (
	MustMatch          Policy = iota // only our own
	AdoptIfNoInventory               // and those of no inventory
	AdoptAll                         // and those of others
)

func (p Policy) String() string {
	return [...]string{"must-match", "adopt-if-no-inventory", "adopt-all"}[p]
}

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
	// Recreate are the kinds (as kubectl names them: Job, Deployment.apps)
	// that may be recreated.
	Recreate []string
	// ForceNamespaces: delete Namespaces and CRDs whatever they contain.
	ForceNamespaces bool
	// VerifyFull asks the server about every object, whatever its fingerprint.
	VerifyFull bool
	// TakeOverFrom are the field managers whose fields brine takes over.
	TakeOverFrom []string
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
	// Invalid are objects of the bundle that were left out of it: they stay as
	// they are, and somebody else tells of them.
	Invalid map[bundle.ID]bool
	Options Options
}

// Need is an edge of the plan: Step has to be applied or ready (or, between
// deletions, gone).
type Need struct {
	Step   int
	Want   order.Want
	Reason string
	Weak   bool
	// Timing: the edge is about when only; what becomes of Step is the same to
	// this one.
	Timing bool
}

// Step is what is to be done with one object.
type Step struct {
	ID     bundle.ID
	GVK    schema.GroupVersionKind
	Object *bundle.Object             // nil for what is not in the bundle
	Live   *unstructured.Unstructured // nil for what is not there
	// Terminating is the object that is still being deleted, to be made anew.
	Terminating *unstructured.Unstructured
	Action      Action
	Reason      string
	Needs       []Need
	Member      bool // the inventory held it before
	// Body is what is sent, Desired its hash. Only of objects in the bundle.
	Body    []byte
	Desired string
	// key keys the hashes of an object that holds a Secret; hashless says that it
	// has none that may be kept.
	key      *inventory.Key
	hashless bool
	// Recreate: may be deleted and created anew.
	Recreate bool
	// Blocked says why an object of the bundle cannot be applied (policy).
	Blocked string
	// Kept: a skipped deletion that leaves the run incomplete.
	Kept bool
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
	// Add are the ids that the inventory has to hold before the first write.
	Add []bundle.ID
	// Forget are members that are gone from the cluster, or were never ours.
	Forget   []bundle.ID
	Warnings []string
	// Refused is why the plan may be shown, but not carried out (MaxPrune).
	Refused []bundle.Problem
	// Guard decides about deletions, again before each of them.
	Guard *Guard
}

// Build plans. It returns problems that must stop the run before its first
// write; the plan is nil then. So must Plan.Refused, of which there is a plan.
func Build(in Input) (*Plan, []bundle.Problem) {
	p := &Plan{}
	var problems []bundle.Problem
	if problem := Emptied(len(in.Graph.Objects), in.Absent, in.Inventory, in.Options); problem != nil {
		return nil, []bundle.Problem{*problem}
	}
	at := make([]int, len(in.Graph.Objects)) // graph's index -> step's
	priority := in.Graph.CriticalPath()
	for n, i := range in.Graph.Sorted {
		at[i] = n
		step, err := in.apply(in.Graph.Objects[i])
		if err != nil {
			problems = append(problems, bundle.Problem{Source: in.Graph.Objects[i].Source, ID: in.Graph.Objects[i].ID, Message: err.Error()})
			continue
		}
		for _, e := range in.Graph.Needs[i] {
			step.Needs = append(step.Needs, Need{Step: at[e.To], Want: e.Want, Reason: e.Reason, Weak: e.Weak})
		}
		step.Priority = priority[i]
		p.Steps = append(p.Steps, step)
		if step.Blocked == "" && step.ID.Name != "" {
			p.Add = append(p.Add, step.ID)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	in.prune(p)
	if problems := in.tooMany(p); len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

// Emptied refuses a bundle without objects where members would be pruned that
// it does not name as absent: most likely nothing was rendered. It is nil for
// all other bundles.
func Emptied(objects int, absent []*bundle.Absent, inv *inventory.Inventory, o Options) *bundle.Problem {
	if objects > 0 || o.AllowEmpty || o.Destroy || len(absent) > 0 && o.NoPrune {
		return nil
	}
	lost := len(inv.Members)
	named := map[bundle.ID]bool{}
	for _, a := range absent {
		if _, member := inv.Members[a.ID]; member && !named[a.ID] {
			named[a.ID] = true
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

// apply plans one object of the bundle.
func (in *Input) apply(o *bundle.Object) (*Step, error) {
	if o.ID.Name == "" {
		return &Step{ID: o.ID, GVK: o.GVK, Object: o, Action: Created, Reason: "generateName: new in each run, not tracked"}, nil
	}
	content := &unstructured.Unstructured{Object: shallow(o.Content.Object)}
	in.Inventory.SetOwner(content)
	body, err := json.Marshal(content.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	s := &Step{ID: o.ID, GVK: o.GVK, Object: o, Live: in.Live[o.ID], Body: body, Desired: DesiredHash(body)}
	if redact.Holds(o.Content) {
		s.key, s.hashless = in.Inventory.Key, in.Inventory.Key == nil
	}
	s.hashless = s.hashless || mutation.HasAnnotation(o.Content)
	_, s.Member = in.Inventory.Members[o.ID]
	s.Recreate = o.Content.GetAnnotations()[bundle.OnImmutable] == "recreate" || in.mayRecreate(o.ID.GroupKind)
	if in.going(s.Live) {
		s.Terminating, s.Live = s.Live, nil
	}
	if _, keep := keepsLive(s.Live); keep {
		s.Recreate = false // recreating deletes
	}
	if bundle.HoldsObjects(o.ID.GroupKind) {
		// All that is in it would go with it.
		s.Recreate = s.Recreate && in.Options.ForceNamespaces
	}
	why := ""
	if s.Live != nil {
		why = Refusal(s.Live, in.Inventory.ID, in.Options.Policy)
	}
	switch {
	case s.Live == nil:
		s.Action = Created
		if err := in.Unknown[o.ID]; err != nil {
			s.Action, s.Reason = Configured, "whether it is there cannot be known: "+err.Error()
		}
		return s, nil
	case why != "":
		s.Action, s.Blocked, s.Reason = Failed, why, why
		return s, nil
	case LeavesAlone(o):
		s.Action, s.Reason = Unchanged, bundle.LifecycleMutation+": ignore"
		return s, nil
	}
	s.Action = Configured
	if mutation.HasAnnotation(o.Content) || Manages(s.Live, in.Options.TakeOverFrom) {
		return s, nil // what is sent depends on more than the bundle
	}
	if !in.Options.VerifyFull {
		known, ok := in.Inventory.Fingerprints[o.ID]
		if now, fine := s.Fingerprint(s.Live); ok && fine && now == known {
			s.Action = Unchanged
		}
	}
	return s, nil
}

// Manages says whether one of the managers owns fields of the object itself.
func Manages(live *unstructured.Unstructured, managers []string) bool {
	return len(managers) > 0 && slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && slices.Contains(managers, entry.Manager)
	})
}

// going says whether a live object is being deleted, by itself or with its
// namespace.
func (in *Input) going(live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	namespace := in.Live[bundle.ID{GroupKind: bundle.NamespaceKind, Name: live.GetNamespace()}]
	return live.GetDeletionTimestamp() != nil || live.GetNamespace() != "" && namespace != nil && namespace.GetDeletionTimestamp() != nil
}

// shallow copies an object as deep as Brand changes it.
func shallow(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	maps.Copy(out, object)
	if meta, ok := object["metadata"].(map[string]any); ok {
		copied := make(map[string]any, len(meta)+2)
		maps.Copy(copied, meta)
		out["metadata"] = copied
	}
	return out
}

func (in *Input) mayRecreate(gk schema.GroupKind) bool {
	return slices.ContainsFunc(in.Options.Recreate, func(kind string) bool {
		return kind == "*" || strings.EqualFold(kind, gk.Kind) || strings.EqualFold(kind, gk.String())
	})
}

// Refusal says why an inventory may not take a live object, and what can be
// done about it; empty if it may (cli-utils' CanApply).
func Refusal(live *unstructured.Unstructured, inventoryID string, policy Policy) string {
	switch owner := live.GetAnnotations()[inventory.OwningInventory]; {
	case owner == inventoryID:
		return ""
	case owner == "" && policy == MustMatch:
		return "it is on the cluster and belongs to no inventory: " + remedy.InventoryPolicy + "=" + AdoptIfNoInventory.String() + " would take it"
	case owner != "" && policy != AdoptAll:
		return fmt.Sprintf("it belongs to inventory %q: %s=%s would take it", owner, remedy.InventoryPolicy, AdoptAll)
	}
	return ""
}

// Owned says whether a live object belongs to the inventory.
func Owned(live *unstructured.Unstructured, inventoryID string) bool {
	return live.GetAnnotations()[inventory.OwningInventory] == inventoryID
}

// LeavesAlone says whether an object of the bundle stays as it is once it is
// there.
func LeavesAlone(o *bundle.Object) bool {
	return o.Content.GetAnnotations()[bundle.LifecycleMutation] == "ignore"
}

// KeptAs is the annotation that forbids to delete a live object; empty if none
// does.
func KeptAs(live *unstructured.Unstructured) string {
	annotation, _ := keeps(live)
	return annotation
}

func keepsLive(live *unstructured.Unstructured) (string, bool) {
	if live == nil {
		return "", false
	}
	return keeps(live)
}

// Changed says whether the stored object differs from the live one, or we own
// other fields of it than before.
func Changed(live, stored *unstructured.Unstructured) bool {
	if !diff.Equal(live, stored) {
		return true
	}
	before, _ := liveHash(live)
	after, _ := liveHash(stored)
	return before != after
}
