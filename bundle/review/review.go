// Package review says what a reviewer of a change asks first: which images and
// versions change, what is dangerous, and which objects change alike. The objects
// before and after the change come in, with what the cluster says about them; a
// Review goes out. It is pure.
package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
)

// Change is what becomes of one object.
type Change struct {
	ID     bundle.ID
	Action plan.Action
	Reason string
	// Before is the live object, After the object as it would be stored. Either is
	// nil where there is none, or where it is not known.
	Before, After *unstructured.Unstructured
	// Fields are what changes between them. Values of Secrets are masked in them.
	Fields []diff.Change
	// Taken are the fields that are taken from other field managers.
	Taken []string
	// Orphans: a recreated object whose dependents stay. Claims are those of a recreated
	// StatefulSet whose templates ask for other sizes.
	Orphans bool
	Claims  []plan.Claim
	// Object is the object in the bundle, nil where there is none.
	Object *bundle.Object
	// Unverified is why the server could not be asked about the change; "" where it
	// was, or where nobody asked it.
	Unverified string
	// Unadmitted: validated by the CRD of the bundle alone.
	Unadmitted bool
}

// Review is what a change is about. Fields are added to it, never renamed.
type Review struct {
	// Risks come in the order of the types below.
	Risks []Risk `json:"risks"`
	// Starts are pods that there are not yet.
	Starts []Start `json:"starts"`
	// Clear are the types of risks that were looked for, and of which there is none.
	Clear []Type `json:"clear"`
	// NoBudget: no PodDisruptionBudget is about the pods that restart or are deleted.
	NoBudget bool `json:"noBudget,omitempty"`
	// Unchecked is what could not be looked for.
	Unchecked []Unchecked     `json:"unchecked"`
	Images    []ImageChange   `json:"images"`
	Versions  []VersionChange `json:"versions"`
	// Unversioned is how many objects change that Versions does not count: the version
	// of their component stays as it is, or they name none.
	Unversioned int    `json:"unversioned"`
	Same        []Same `json:"same"`
	// Back is what going back would lose or meet; nil where it was not looked for, or where
	// there is nothing to go back to.
	Back *GoingBack `json:"back,omitempty"`
}

// GoingBack is what going back to the last good revision would lose or meet, once the
// change was made.
type GoingBack struct {
	Revision int    `json:"revision"` // 0 where that is not known either
	Losses   []Loss `json:"losses"`
	// Unknown is why the losses are not all; "" if they are, but for NotKnown.
	Unknown string `json:"unknown,omitempty"`
	// NotKnown is what cannot be known before.
	NotKnown string `json:"notKnown"`
}

// NotKnown is GoingBack.NotKnown.
const NotKnown = "what controllers and databases do until then"

// Loss is what going back would lose or meet at one object.
type Loss struct {
	Object bundle.Reference `json:"object"`
	Text   string           `json:"text"`
}

// NewGoingBack is the way back to a revision with its losses.
func NewGoingBack(revision int, losses []bundle.Problem) *GoingBack {
	all := bundle.Each(losses, func(l bundle.Problem) Loss { return Loss{bundle.ReferTo(l.ID), l.Message} })
	return &GoingBack{Revision: revision, Losses: append([]Loss{}, all...), NotKnown: NotKnown}
}

// Type is what is dangerous about a change.
type Type string

// The types of risks, the worst first.
const (
	Share      Type = "share"      // much of the inventory is pruned
	Removed    Type = "removed"    // an SLS or a file of the last run is gone
	Data       Type = "data"       // data is deleted
	Deleted    Type = "deleted"    // pods or their Services are deleted
	Recreated  Type = "recreated"  // an object is deleted and created again
	Missing    Type = "missing"    // pods name objects that are not there
	Restart    Type = "restart"    // pods are replaced
	Rights     Type = "rights"     // somebody may do more than before
	Privileges Type = "privileges" // pods may do more on their nodes
	Webhook    Type = "webhook"    // requests are sent to another server first
	Network    Type = "network"    // Services, routes and policies, and who is behind them
	API        Type = "api"        // a CRD loses fields or versions
	Conflict   Type = "conflict"   // fields are taken from other field managers
	Unverified Type = "unverified" // the server, or its policies, could not be asked
)

// Types are all types of risks, in their order.
var Types = []Type{Share, Removed, Data, Deleted, Recreated, Missing, Restart, Rights, Privileges, Webhook, Network, API, Conflict, Unverified}

// Title names the risks of a type for people.
func (t Type) Title() string {
	return map[Type]string{
		Share: "More than a third of the inventory is pruned", Removed: "SLS and files are gone, and their objects with them", Data: "Data is deleted", Deleted: "Workloads and Services are deleted", Recreated: "Deleted and created again", Missing: "Pods name what is missing", Restart: "Pods restart",
		Rights: "Rights widen", Privileges: "Pods get privileges on nodes", Webhook: "Requests go through webhooks, policies or other API servers",
		Network: "Services, routes and selectors change", API: "APIs lose fields or versions", Conflict: "Fields are taken from other managers",
		Unverified: "The server could not check this in full",
	}[t]
}

// Risk is something that a reviewer has to know before the change is applied.
type Risk struct {
	Type Type `json:"type"`
	// Subject is who may do more: of Rights.
	Subject string `json:"subject,omitempty"`
	// Severe: of Rights those that lead to all others, or to the Secrets of others.
	Severe bool `json:"severe,omitempty"`
	// Objects are those it is about: one, but for Rights and Unverified.
	Objects []bundle.Reference `json:"objects"`
	Text    string             `json:"text"`
	Details []string           `json:"details,omitempty"`
	// Pods is how many pods restart or are deleted. Stuck: new ones do not start while
	// what they name is missing.
	Pods  int  `json:"pods,omitempty"`
	Stuck bool `json:"stuck,omitempty"`
	// weight is how dangerous rights are, compared with those of others.
	weight int
}

// ImageChange is an image that changes from one version to another, comes, or goes.
type ImageChange struct {
	// Image is without its version, as it is afterwards where there is an afterwards.
	Image string `json:"image"`
	// From and To are tags or digests, or whole images where the repository changes,
	// too. From is "" for an image that is new, To for one that is no longer used.
	From    string             `json:"from,omitempty"`
	To      string             `json:"to,omitempty"`
	Guess   bool               `json:"guess,omitempty"` // it may not be an image
	Objects []bundle.Reference `json:"objects"`
}

// VersionChange is a component whose labels say another version than before.
type VersionChange struct {
	Component string `json:"component"`
	// ChartFrom and ChartTo are versions of its chart (helm.sh/chart), From and To its
	// own (app.kubernetes.io/version).
	ChartFrom string `json:"chartFrom,omitempty"`
	ChartTo   string `json:"chartTo,omitempty"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Objects   int    `json:"objects"`
	// Action is what becomes of all of its objects: configured, created or pruned.
	Action plan.Action `json:"action"`
}

// Same is a change that is the same in many objects.
type Same struct {
	Fields []diff.Change `json:"fields"`
	// Labels: nothing but labels and annotations of versions changes.
	Labels  bool               `json:"labels"`
	Objects []bundle.Reference `json:"objects"`
}

// Of reviews a change. Questions says what of the cluster it wants to know.
func Of(changes []Change, cluster Cluster) *Review {
	all, at := byID(changes)
	r := &reviewer{cluster: cluster, changes: all, at: at, stuck: map[bundle.ID]bool{}, doubtful: map[bundle.ID]bool{}, nodes: map[bundle.ID]string{}}
	r.gone()
	r.missing()
	r.scheduled()
	for _, c := range all {
		r.risks(c)
	}
	r.prunedToo()
	r.share()
	r.widened()
	r.unverified()
	r.limits()
	slices.SortStableFunc(r.found, func(a, b Risk) int {
		return cmp.Or(slices.Index(Types, a.Type)-slices.Index(Types, b.Type), rankOf(a)-rankOf(b))
	})
	versions, others := versionsOf(all)
	return &Review{
		Risks: orNone(r.found), Starts: orNone(r.starts()), Clear: orNone(r.clear), NoBudget: r.disrupted && !r.guarded, Unchecked: orNone(r.skipped),
		Images: orNone(imagesOf(all)), Versions: orNone(versions), Unversioned: others, Same: orNone(sameOf(all)),
	}
}

// byID are the changes in their order, and by their objects.
func byID(changes []Change) (all []*Change, at map[bundle.ID]*Change) {
	at = map[bundle.ID]*Change{}
	for i := range changes {
		all = append(all, &changes[i])
		at[changes[i].ID] = &changes[i]
	}
	return all, at
}

// orNone is a list that JSON writes as [], not as null.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Empty says whether there is nothing to say.
func (r *Review) Empty() bool {
	return r == nil || len(r.Risks)+len(r.Starts)+len(r.Clear)+len(r.Unchecked)+len(r.Images)+len(r.Versions)+len(r.Same) == 0 && r.Back == nil
}

// reviewer collects the risks of a change.
type reviewer struct {
	cluster Cluster
	changes []*Change
	at      map[bundle.ID]*Change
	found   []Risk
	grants  []grant
	// disrupted: there are pods that restart or are deleted, whose PodDisruptionBudgets
	// are known; guarded: one of these is about them.
	disrupted, guarded bool
	// stuck are workloads whose new pods do not start, doubtful those whose pods name in an
	// argument what is missing.
	stuck, doubtful map[bundle.ID]bool
	// nodes is which nodes new nodeSelectors select.
	nodes map[bundle.ID]string
	// skipped is what could not be looked for, open the types of risks of which there
	// may be more, clear those of which there is none.
	skipped []Unchecked
	open    []Type
	clear   []Type
}

func (r *reviewer) add(t Type, c *Change, pods int, details []string, format string, args ...any) {
	r.found = append(r.found, Risk{Type: t, Objects: []bundle.Reference{bundle.ReferTo(c.ID)}, Text: fmt.Sprintf(format, args...), Details: details, Pods: pods})
}

// risks finds those of one object.
func (r *reviewer) risks(c *Change) {
	if len(c.Taken) > 0 {
		r.add(Conflict, c, 0, nil, "takes %s", strings.Join(c.Taken, "; "))
	}
	switch c.Action {
	case plan.Pruned, plan.Recreated:
		r.removed(c)
	case plan.Configured, plan.Created:
	default:
		return
	}
	if c.Action != plan.Pruned {
		r.rights(c)
		r.privileges(c)
		r.webhook(c)
	}
	r.network(c)
	if c.Action == plan.Configured || c.Orphans {
		r.scaled(c)
		r.restart(c)
		r.api(c)
	}
}

// prunedToo are the objects that are deleted besides workloads and Services, so that their
// number is that of the pruned objects.
func (r *reviewer) prunedToo() {
	known := map[bundle.Reference]Type{}
	for _, risk := range r.found {
		if risk.Type == Deleted || risk.Type == Data || risk.Type == Network {
			known[risk.Objects[0]] = risk.Type
		}
	}
	var others []bundle.Reference
	found := false
	for _, c := range r.changes {
		if c.Action == plan.Pruned {
			o := bundle.ReferTo(c.ID)
			found = found || known[o] == Deleted
			if known[o] == "" {
				others = append(others, o)
			}
		}
	}
	if found && len(others) > 0 {
		r.found = append(r.found, Risk{Type: Deleted, Objects: others, Text: "deleted as well"})
	}
}

// share warns where much of what is there is pruned, as a bundle does that was rendered
// in part. With less than five objects the list says it, and who destroys wants all of them gone.
func (r *reviewer) share() {
	var pruned []bundle.Reference
	there, kept := 0, false
	for _, c := range r.changes {
		kept = kept || c.Object != nil
		if c.Action != plan.Created {
			there++
		}
		if c.Action == plan.Pruned {
			pruned = append(pruned, bundle.ReferTo(c.ID))
		}
	}
	if kept && len(pruned) >= 5 && 3*len(pruned) > there {
		r.found = append(r.found, Risk{Type: Share, Objects: pruned, Text: fmt.Sprintf("%d of %d objects are pruned: is the bundle whole?", len(pruned), there)})
	}
}

// unverified are the changes that the server could not be asked about, by reason.
func (r *reviewer) unverified() {
	var by bundle.Groups[string, bundle.Reference]
	for _, c := range r.changes {
		switch {
		case c.Unverified != "":
			by.Add(c.Unverified, bundle.ReferTo(c.ID))
		case c.Unadmitted:
			by.Add("this run creates or changes their CRD, so only this CRD checked them; webhooks and admission policies check them when they are applied", bundle.ReferTo(c.ID))
		}
	}
	for _, reason := range by.Keys {
		r.found = append(r.found, Risk{Type: Unverified, Text: reason, Objects: by.Of[reason]})
	}
}

// content is an object's, nil where there is none.
func content(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}
