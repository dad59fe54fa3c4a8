package simulator

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/inventory"
	"brine/scripts/simulator/apiserver"
)

// The oracle judges by the server's log and the result alone. Each function is one
// invariant, and returns what breaks it.

// oracle is all that an invariant looks at.
type oracle struct {
	server *apiserver.Server
	d      *done
	behind bool            // an API server may not know yet what is served
	hidden bool            // discovery did not have a kind for a while
	alone  bool            // nobody else acted, and nothing failed, since the step began
	others bool            // somebody else wrote, but for controllers
	rivals map[string]bool // commands that ran at the same time, and were not killed
}

// own are the writes of the step's process.
func (o *oracle) own() []*apiserver.Write { return o.ownUntil(o.d.to) }

// forward are those of them before it rolls back.
func (o *oracle) forward() []*apiserver.Write { return o.ownUntil(cmp.Or(o.d.back, o.d.to)) }

func (o *oracle) ownUntil(end int) []*apiserver.Write {
	var own []*apiserver.Write
	for _, w := range o.server.Log[o.d.from:end] {
		if w.Actor == o.d.actor {
			own = append(own, w)
		}
	}
	return own
}

// listedAt are the members that the inventory lists before a write.
func (o *oracle) listedAt(at int) map[bundle.ID]bool {
	stored := map[string]*unstructured.Unstructured{}
	for _, w := range o.server.Log[:at] {
		if w.Kind == bundle.ConfigMapKind && w.Namespace == home {
			stored[w.Name] = w.After
		}
	}
	return members(stored, o.d.inventory)
}

// goesBack says whether the step is a rollback, or ended with one: what was taken from
// another inventory is given back then.
func (o *oracle) goesBack() bool {
	return o.d.command == "rollback" || o.d.isAdministrative() || o.d.result != nil && o.d.result.Rollback != nil
}

func (o *oracle) id() string { return inventory.DefaultID(home, o.d.inventory) }

// bookkeeping says whether a write is of an inventory itself: of its own, or of the one that
// a rollback gives back to.
func (o *oracle) bookkeeping(w *apiserver.Write) bool {
	return w.Namespace == home && (of(w, o.d.inventory) || o.goesBack() && keepsBooks(w.Namespace, w.Name))
}

// home is the namespace of the inventories of the history that is played.
var home string

// makesHome says whether a write is the namespace of the inventory, without which there is no
// lock and no inventory.
func makesHome(w *apiserver.Write) bool {
	return w.Kind == bundle.NamespaceKind && w.Name == home && w.Before == nil
}

// keepsBooks says whether something is of an inventory itself.
func keepsBooks(namespace, name string) bool {
	return namespace == home && slices.ContainsFunc(inventories, func(inventory string) bool { return named(inventory, name) })
}

// of says whether what is written is of the inventory of a name.
func of(w *apiserver.Write, inventory string) bool { return named(inventory, w.Name) }

func named(inventory, name string) bool {
	return name == inventory || strings.HasPrefix(name, inventory+"-") || name == "brine-"+inventory
}

func owner(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	return u.GetAnnotations()[inventory.OwningInventory]
}

type invariant struct {
	name  string
	check func(*oracle) []string
}

// invariants are those of runs. Those with one number are parts of one promise.
var invariants = []invariant{
	{"1 nothing that is not ours is deleted or changed", (*oracle).onlyOurs},
	{"1 nobody's objects go with what holds them", (*oracle).onlyEmptied},
	{"1 what a person sets in the metadata stays", (*oracle).metadataStays},
	{"10 what the bundle uses stays", (*oracle).inUse},
	{"2 what undoes deletes only what brine created", (*oracle).undoesOnly},
	{"3 whatever carries our mark is in our inventory", (*oracle).superset},
	{"5 exit 0 is true", (*oracle).exitZero},
	{"5 exit 7 is true", (*oracle).exitSeven},
	{"6 the result is true", (*oracle).resultIsTrue},
	{"6 no drift is true", (*oracle).noDrift},
	{"6 a refusal is told as what it is", (*oracle).toldAsItIs},
	{"8 a dry run writes nothing", (*oracle).dryRun},
	{"8 a saved plan is what is done", (*oracle).asPlanned},
	{"8 an approved plan is carried out, or none", (*oracle).asApproved},
	{"8 a plan that holds stays", (*oracle).planStays},
	{"9 prune last", (*oracle).pruneLast},
	{"9 nothing goes that the user keeps", (*oracle).keeps},
	{"1 what is stored can be read", (*oracle).canBeRead},
	{"5 Jobs ran", (*oracle).jobsRan},
	{"5 a Job that has ended does not run again", (*oracle).endedJobsStay},
	{"9 annotations hold", (*oracle).annotationsHold},
	{"9 orphans stay", (*oracle).orphansStay},
	{"1 what is left to a controller stays", (*oracle).fieldsStay},
	{"1 tools let go where the user says so", (*oracle).toolsLetGo},
	{"1 the parts of another inventory stay", (*oracle).partsStay},
	{"1 a kubeconfig's namespace deletes nothing", (*oracle).namespaceIsNamed},
	{"3 a copy is no member", (*oracle).noCopies},
	{"9 what stays does not go with its owner", (*oracle).dependentsStay},
	{"9 flags hold", (*oracle).flagsHold},
	{"10 order", (*oracle).order},
	{"11 one writer", (*oracle).oneWriter},
	{"12 every run ends in its time", (*oracle).endsInTime},
	{"13 no secret", (*oracle).noSecret},
}

// ours says whether an object has the label of the inventory's members.
func ours(u *unstructured.Unstructured, name string) bool {
	return u.GetLabels()[inventory.PartOf] == inventory.ApplySetID(home, name)
}

// members are what the stored inventory lists at the moment of a write.
func members(at map[string]*unstructured.Unstructured, name string) map[bundle.ID]bool {
	all := map[bundle.ID]bool{}
	for stored, u := range at {
		if u == nil || stored != name && !strings.HasPrefix(stored, name+"-overflow-") {
			continue
		}
		data, _, _ := unstructured.NestedMap(u.Object, "data")
		for key := range data {
			if id, err := inventory.ParseMemberKey(key); err == nil {
				all[id] = true
			}
		}
		packed, _, _ := unstructured.NestedStringMap(u.Object, "binaryData")
		for _, text := range packed {
			if overflow, err := inventory.DecodeMembers(text); err == nil {
				for id := range overflow {
					all[id] = true
				}
			}
		}
	}
	return all
}

// superset replays the log: when brine puts the mark of an inventory on an object, that has
// it, and what leaves an inventory carries its mark no more.
func (o *oracle) superset() (wrong []string) {
	for _, name := range inventories {
		wrong = append(wrong, o.supersetOf(name)...)
	}
	return wrong
}

// inventories are those of histories; the last one is in few.
var inventories = []string{"shop", "other", another}

func (o *oracle) supersetOf(name string) (wrong []string) {
	stored := map[string]*unstructured.Unstructured{}
	marked, madeFor, lost := map[bundle.ID]bool{}, map[string]bool{}, o.lost(name)
	inventoryID, applySet := inventory.DefaultID(home, name), inventory.ApplySetID(home, name)
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		listing := w.Kind == bundle.ConfigMapKind && w.Namespace == home
		var was map[bundle.ID]bool
		if listing {
			was = members(stored, name)
			stored[w.Name] = w.After
		}
		if !isRestored(id) && owner(w.After) == inventoryID && w.After.GetLabels()[inventory.PartOf] == applySet {
			marked[id] = true
		} else {
			delete(marked, id)
		}
		if w.Kind == bundle.NamespaceKind && w.Name == home && w.After != nil {
			madeFor = map[string]bool{w.After.GetAnnotations()[inventory.MadeAnnotation]: true}
		}
		if i < o.d.from || w.Actor != o.d.actor {
			continue
		}
		switch {
		case listing && (w.Name == name || stored[name] != nil && strings.HasPrefix(w.Name, name+"-overflow-")):
			now := members(stored, name)
			for id := range marked {
				unlisted := !was[id] && (w.Name != name || id.GroupKind == bundle.NamespaceKind && id.Name == home && madeFor[name]) // overflow is written first; a run was killed that had made the namespace
				if !now[id] && !unlisted && !lost[id] && !o.toldApart(id) {
					wrong = append(wrong, fmt.Sprintf("%s left the inventory with its mark: %s", bundle.Name(id), w))
				}
			}
		case marked[id] && !makesHome(w) && !o.bookkeeping(w) && owner(w.Before) != inventoryID && !members(stored, name)[id]:
			wrong = append(wrong, fmt.Sprintf("marked, and not in the inventory: %s", w))
		}
	}
	return wrong
}

// lost are the objects that were members of an inventory when somebody deleted it before the
// command began, and that it does not have again: only a repair looks for them, of the kinds that it searches.
func (o *oracle) lost(name string) map[bundle.ID]bool {
	all, stored := map[bundle.ID]bool{}, map[string]*unstructured.Unstructured{}
	for _, w := range o.server.Log[:o.d.from] {
		if w.Kind != bundle.ConfigMapKind || w.Namespace != home {
			continue
		}
		if w.Name == name && w.After == nil {
			maps.Copy(all, members(stored, name))
		}
		if stored[w.Name] = w.After; len(all) > 0 && stored[name] != nil {
			for id := range members(stored, name) {
				delete(all, id)
			}
		}
	}
	if o.d.command == "repair" && name == o.d.inventory {
		maps.DeleteFunc(all, func(id bundle.ID, _ bool) bool { return o.searches(id.GroupKind, stored[name]) })
	}
	return all
}

// searches says whether a repair says that it has found all of a kind: it searches those that the
// inventory object lists, before it or by what it found.
func (o *oracle) searches(kind schema.GroupKind, before *unstructured.Unstructured) bool {
	if o.d.allKinds() || before == nil {
		return true
	}
	kinds := strings.Split(before.GetAnnotations()["applyset.kubernetes.io/contains-group-kinds"], ",")
	for id := range o.listed(o.d.inventory) {
		kinds = append(kinds, id.GroupKind.String())
	}
	return slices.Contains(kinds, kind.String())
}

// covers says whether live has all that wanted says.
func covers(live, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		there, _ := live.(map[string]any)
		for key, value := range wanted {
			if !covers(there[key], value) {
				return false
			}
		}
		return true
	case []any: // what is in them gets defaults, too
		there, _ := live.([]any)
		for i := range wanted {
			if len(there) != len(wanted) || !covers(there[i], wanted[i]) {
				return false
			}
		}
		return len(there) == len(wanted)
	default:
		return apiserver.Same(live, wanted)
	}
}

// contentOf is what the live object has of an object of a bundle: a Secret's text is stored as data.
func contentOf(object *bundle.Object) map[string]any {
	content := map[string]any{"metadata": map[string]any{}}
	for _, key := range []string{"spec", "data", "immutable", "webhooks"} {
		if value, has := object.Content.Object[key]; has {
			content[key] = value
		}
	}
	if texts, has, _ := unstructured.NestedStringMap(object.Content.Object, "stringData"); has {
		data := map[string]any{}
		for key, text := range texts {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		content["data"] = data
	}
	if labels := object.Content.GetLabels(); len(labels) > 0 {
		_ = unstructured.SetNestedStringMap(content, labels, "metadata", "labels")
	}
	return content
}

// exitZero holds where nobody else wrote, whatever failed.
func (o *oracle) exitZero() (wrong []string) {
	r := o.d.result
	if o.others || r.ExitCode != report.ExitOK || o.d.command != "apply" && o.d.command != "rollback" && o.d.command != "destroy" {
		return nil
	}
	lost := o.lost(o.d.inventory)
	if o.d.command == "destroy" {
		for p, u := range o.server.Objects {
			id := bundle.ID{GroupKind: o.server.KindAt(p).GroupKind(), Namespace: p.Namespace, Name: p.Name}
			// It was not a member yet, and holds what others have, or may not be deleted.
			said := fmt.Sprint(r.Warnings)
			warned := p.Resource == "namespaces" && p.Name == home && (strings.Contains(said, "which brine made for the inventory, stays") || strings.Contains(said, "unknown whether brine made it"))
			if owner(u) == o.id() && !isRestored(id) && u.GetDeletionTimestamp() == nil && !warned && !lost[id] {
				wrong = append(wrong, fmt.Sprintf("destroyed, and %s %s/%s is there", p.Resource, p.Namespace, p.Name))
			}
		}
		return wrong
	}
	wanted := map[bundle.ID]bool{}
	for _, object := range o.d.bundle.Objects {
		if o.d.only != nil && object.ID.GroupKind != bundle.ConfigMapKind {
			continue
		}
		wanted[object.ID] = true
		live := o.server.Get(object.GVK.GroupKind(), object.ID.Namespace, object.ID.Name)
		switch {
		case live == nil && (expires(object.Content) || o.isCollected(object.ID, o.d.to)):
		case live == nil || live.GetDeletionTimestamp() != nil:
			wrong = append(wrong, "is not there: "+bundle.Name(object.ID))
		case o.isLeftAlone(object.ID): // it may be anybody's
		case owner(live) != o.id():
			wrong = append(wrong, "is not ours: "+bundle.Name(object.ID))
		case !covers(live.Object, contentOf(object)) && !isOverridden(live) && !o.isLeft(object.ID) && o.says(object.ID, bundle.ApplyTimeMutation) == "":
			wrong = append(wrong, "is not as the bundle says: "+bundle.Name(object.ID))
		case !isReady(live) && !o.d.options.waitApplied && o.says(object.ID, bundle.Wait) == "":
			wrong = append(wrong, "is not ready: "+bundle.Name(object.ID))
		}
	}
	for p, u := range o.server.Objects {
		id := bundle.ID{GroupKind: o.server.KindAt(p).GroupKind(), Namespace: p.Namespace, Name: p.Name}
		unlisted := id.GroupKind == bundle.NamespaceKind && id.Name == home && u.GetAnnotations()[inventory.MadeAnnotation] == o.d.inventory // it goes with the inventory
		if owner(u) == o.id() && !isRestored(id) && !wanted[id] && !lost[id] && !unlisted && u.GetDeletionTimestamp() == nil && o.d.only == nil && !slices.ContainsFunc(r.Objects, func(other *report.ObjectResult) bool {
			return other.ID() == id && (other.Action == plan.Skipped || other.Action == plan.Detached)
		}) {
			wrong = append(wrong, "is not in the bundle, is ours, and is not said to be kept: "+bundle.Name(id))
		}
	}
	listed := o.listed(o.d.inventory)
	for id := range wanted {
		if !listed[id] {
			wrong = append(wrong, "is no member: "+bundle.Name(id))
		}
	}
	return wrong
}

// exitSeven: a run that failed has left what the rollback to the revision that it names would leave.
func (o *oracle) exitSeven() []string {
	r := o.d.result
	if r.ExitCode != report.ExitRolledBack || o.d.only != nil { // which the command line does not take together
		return nil
	}
	to := wentBackTo(r)
	content, err := contentOfRevision(o.server, o.d.inventory, to)
	if err != nil && !o.alone { // the other run may have trimmed the history
		return nil
	}
	if err != nil {
		return []string{fmt.Sprintf("rolled back to revision %d: %v", to, err)}
	}
	back, d := *o, *o.d
	d.command, d.only, d.bundle, d.result = "rollback", nil, content.Bundle, r.Rollback
	back.d = &d
	return back.exitZero()
}

// wentBackTo is the revision to which a run says that it rolled back, 0 if to none.
func wentBackTo(r *report.Result) (number int) {
	for _, said := range r.Errors {
		if _, err := fmt.Sscanf(said, "rolled back to revision %d", &number); err == nil {
			return number
		}
	}
	return 0
}

// noDrift: a drift that finds nothing is right.
func (o *oracle) noDrift() (wrong []string) {
	if o.d.command != "drift" || o.d.bundle == nil || o.d.result == nil || o.d.result.ExitCode != report.ExitOK || o.others {
		return nil
	}
	for _, object := range o.d.bundle.Objects {
		live := o.server.Get(object.GVK.GroupKind(), object.ID.Namespace, object.ID.Name)
		switch {
		case expires(object.Content), o.isLeftAlone(object.ID), o.isLeft(object.ID), o.says(object.ID, bundle.ApplyTimeMutation) != "":
		case live == nil:
			wrong = append(wrong, "is not there: "+bundle.Name(object.ID))
		case !covers(live.Object, contentOf(object)) && !isOverridden(live) && !isControlled(live):
			wrong = append(wrong, "is not as the bundle says: "+bundle.Name(object.ID))
		}
	}
	return wrong
}

func isReady(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "Job":
		return isComplete(u)
	case "Deployment":
	default:
		return true
	}
	wanted, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	ready, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return ready >= wanted && seen >= u.GetGeneration()
}

// resultIsTrue compares the actions with the log, where no answer was lost.
func (o *oracle) resultIsTrue() (wrong []string) {
	if !o.alone || o.d.result.DryRun != report.None || o.d.result.Rollback != nil {
		return nil
	}
	created, changed, deleted, rewritten := map[bundle.ID]bool{}, map[bundle.ID]bool{}, map[bundle.ID]bool{}, map[bundle.ID]bool{}
	expired := map[bundle.ID]bool{} // before it was created
	for _, w := range o.server.Log[o.d.from:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		switch {
		case w.Verb == "expire":
			expired[id] = expired[id] || !created[id]
		case w.Actor != o.d.actor:
		case isRewritten(w), w.Verb == "status": // a CRD's, of the versions in which objects are stored
			rewritten[id] = true
		case w.Before == nil:
			created[id] = true
		case w.After == nil, w.After.GetDeletionTimestamp() != nil:
			deleted[id] = true
		default:
			changed[id] = true
		}
	}
	for _, object := range o.d.result.Objects {
		id := object.ID()
		for _, ours := range o.d.bundle.Objects {
			outside := strings.Contains(object.Reason, "outside this inventory") && strings.Contains(object.Reason, bundle.Name(ours.ID))
			if outside && owner(o.server.Get(ours.ID.GroupKind, ours.ID.Namespace, ours.ID.Name)) == o.id() {
				wrong = append(wrong, fmt.Sprintf("%s: %s, and it is ours", bundle.Name(id), object.Reason))
			}
		}
		ok := true
		switch object.Action {
		case plan.Created:
			ok = created[id]
		case plan.Recreated:
			ok = created[id] && (deleted[id] || expired[id])
		case plan.Pruned: // or somebody had begun to delete it
			live := o.server.Get(id.GroupKind, id.Namespace, id.Name)
			ok = deleted[id] || live == nil || live.GetDeletionTimestamp() != nil
		case plan.Configured:
			ok = (changed[id] || rewritten[id]) && !created[id]
		case plan.Unchanged:
			ok = !created[id] && !changed[id] && !deleted[id]
		case plan.Skipped:
			putBack := id == gate && len(o.d.options.pruneFirst) > 0 && created[id] == deleted[id]
			ok = putBack || !created[id] && !deleted[id] || o.goesBack() && owner(o.server.Get(id.GroupKind, id.Namespace, id.Name)) != o.id() // another inventory's, given back and applied
		}
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s is %q in the result; created %t, changed %t, deleted %t in the log", bundle.Name(id), object.Action, created[id], changed[id], deleted[id]))
		}
	}
	return wrong
}

func (o *oracle) dryRun() (wrong []string) {
	if o.d.command != "preview" && o.d.command != "drift" {
		return nil
	}
	for _, w := range o.own() {
		if !o.d.secret || !isPlan(w) {
			wrong = append(wrong, "written: "+w.String())
		}
	}
	return wrong
}

// oneWriter: whoever writes has the lock, but for what makes a lock possible.
func (o *oracle) oneWriter() (wrong []string) {
	taken := map[string]bool{} // before something is given back to an inventory
	for _, w := range o.own() {
		lock := o.d.inventory
		for _, name := range inventories {
			if w.Kind == bundle.LeaseKind && w.Name == inventory.LockName(name) {
				taken[name] = true
			}
			if w.Namespace == home && of(w, name) || o.goesBack() && taken[name] && !keepsBooks(w.Namespace, w.Name) && owner(w.After) == inventory.DefaultID(home, name) {
				lock = name
			}
		}
		if owner(w.After) == o.id() || owner(w.Before) == o.id() { // an object, whatever its name is like
			lock = o.d.inventory
		}
		if w.Kind == bundle.LeaseKind && w.Before != nil && w.After != nil {
			wrong = append(wrong, o.stolen(w)...)
		}
		holder := w.Holders[home+"/"+lock]
		if holder != o.d.actor && w.Kind.Kind != "Lease" && !makesHome(w) && (o.d.command != "preview" || !isPlan(w)) {
			wrong = append(wrong, fmt.Sprintf("the lock is that of %q: %s", holder, w))
		}
	}
	return wrong
}

// stolen: no lock is taken from a command that goes on and has renewed it in time.
func (o *oracle) stolen(w *apiserver.Write) []string {
	holder, _, _ := unstructured.NestedString(w.Before.Object, "spec", "holderIdentity")
	lasts, _, _ := unstructured.NestedInt64(w.Before.Object, "spec", "leaseDurationSeconds")
	for _, before := range slices.Backward(o.server.Log[:slices.Index(o.server.Log, w)]) {
		if before.Kind != w.Kind || before.Namespace != w.Namespace || before.Name != w.Name {
			continue
		}
		if holder != "" && o.rivals[before.Actor] && w.Time.Sub(before.Time) < time.Duration(lasts)*time.Second {
			return []string{"the lock of a command that goes on is taken: " + w.String()}
		}
		break
	}
	return nil
}

// grace is what a run may take beyond its --timeout.
const grace = 16 * time.Second

func (o *oracle) endsInTime() []string {
	if took := o.d.ended.Sub(o.d.began); took > timeout+grace {
		return []string{fmt.Sprintf("it took %s with --timeout %s", took, timeout)}
	}
	return nil
}

// encodedCanary is what data of Secrets begin with.
var encodedCanary = base64.StdEncoding.EncodeToString([]byte(canary[:len(canary)/3*3]))

func (o *oracle) noSecret() (wrong []string) {
	if strings.Contains(o.d.printed, canary) {
		wrong = append(wrong, "the value of a Secret is in an event or the result")
	}
	if strings.Contains(o.d.printed, encodedCanary) {
		wrong = append(wrong, "the value of a Secret is in an event or the result, in base64")
	}
	for _, w := range o.own() {
		if w.After == nil || w.Kind == (schema.GroupKind{Kind: "Secret"}) {
			continue
		}
		if text, _ := json.Marshal(w.After.Object); strings.Contains(string(text), canary) {
			wrong = append(wrong, "the value of a Secret is stored: "+w.String())
		}
	}
	return wrong
}
