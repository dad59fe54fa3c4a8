// Package saved has the document of a plan that a preview saves, and says how it differs
// from one that is made now. It does no I/O.
package saved

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Version is the format of a saved plan.
const Version = "brine.dev/v1"

// Plan is a saved plan, with the versions of the live
// objects that it was made from. It holds no value of any Secret.
type Plan struct {
	APIVersion string    `json:"apiVersion"` // Version
	Kind       string    `json:"kind"`       // Plan
	Created    time.Time `json:"created"`
	Expires    time.Time `json:"expires,omitzero"` // it is not carried out any more; zero: no limit
	Version    string    `json:"version"`          // brine's
	Digest     string    `json:"digest"`           // the bundle's
	// Cluster is the cluster that the plan is for; nil in plans of older versions,
	// which are refused: to make a plan again costs less than a wrong cluster.
	Cluster   *Cluster  `json:"cluster,omitempty"`
	Inventory Inventory `json:"inventory"`
	// Options are those that decide what is done, as flags name them.
	Options map[string]string `json:"options"`
	Steps   []Step            `json:"steps"`
}

// ReadPlan reads a saved plan. name is for messages; version is brine's.
func ReadPlan(name string, text []byte, version string) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("read the plan %s: %w", name, err)
	}
	switch {
	case p.Kind != "Plan" || !strings.HasPrefix(p.APIVersion, "brine.dev/"):
		return nil, fmt.Errorf("read the plan %s: it was not written by %s", name, remedy.PlanOut)
	case p.APIVersion != Version:
		return nil, fmt.Errorf("read the plan %s: it is in format %s, which brine %s wrote, and this is %s, which reads %s: use %s, or make a new plan",
			name, p.APIVersion, p.Version, version, Version, p.Version)
	}
	return p, nil
}

// Encode is the plan as it is saved.
func (p *Plan) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	return append(text, '\n'), nil
}

// DigestText is the digest of a plan as it is saved: it names it to who approves it.
func DigestText(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// CheckApproved refuses a plan as it is saved that has another digest than the approved one;
// "" approves every plan. name is for messages.
func CheckApproved(name string, text []byte, digest string) error {
	if found := DigestText(text); digest != "" && found != digest {
		return fmt.Errorf("the plan %s is not the approved one, and nothing was changed: its digest is %s, %s is %s", name, found, remedy.PlanDigest, digest)
	}
	return nil
}

// StillHolds says whether a saved plan is as good as the one that was made now: it may be
// carried out, and for as long as was asked for.
func (p *Plan) StillHolds(now *Plan) bool {
	lifetime := func(p *Plan) time.Duration {
		if p.Expires.IsZero() {
			return 0
		}
		return p.Expires.Sub(p.Created)
	}
	return lifetime(p) == lifetime(now) && len(p.Drift(now)) == 0
}

// IgnoreFields are the rules about fields of others that a plan was made with.
func (p *Plan) IgnoreFields() ([]fields.Rule, error) {
	text := p.Options["ignore-fields"]
	if text == "" {
		return nil, nil
	}
	var rules []fields.Rule
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("read the rules of the plan about fields that are left to others: %w", err)
	}
	return rules, nil
}

// Only are the words that chose the objects of a partial plan.
func (p *Plan) Only() (words []string, withNeeds bool) {
	_ = json.Unmarshal([]byte(p.Options["only"]), &words) // of older versions there are none
	return words, p.Options["with-needs"] == "true"
}

// OnlyText is what the option holds; "" for a whole run.
func OnlyText(words []string) string { return textOf(words) }

// RulesText is what the option holds; "" for no rules.
func RulesText(rules []fields.Rule) string { return textOf(rules) }

func textOf[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	text, _ := json.Marshal(list) //nolint:errchkjson // they hold text only
	return string(text)
}

// Cluster identifies a cluster. What the user could not read is empty.
type Cluster struct {
	UID string `json:"uid,omitempty"` // of the namespace kube-system
	CA  string `json:"ca,omitempty"`  // "sha256:<hex>" over the cluster's CA certificates
}

// Known says whether the cluster can be distinguished from others.
func (c *Cluster) Known() bool { return c != nil && (c.UID != "" || c.CA != "") }

// drift says why this is not, or cannot be proven to be, the cluster of the plan.
func (c *Cluster) drift(now *Cluster) string {
	switch {
	case !c.Known():
		return "the cluster: the plan does not say which one it is for"
	case !now.Known(), c.UID != "" && now.UID == "", c.UID == "" && now.CA == "":
		return "the cluster: it cannot be compared with that of the plan: the right to get Namespace kube-system is missing"
	case c.UID != "" && c.UID != now.UID:
		return fmt.Sprintf("the cluster: the plan is for the one whose Namespace kube-system has the uid %s, this one's has %s", c.UID, now.UID)
	case c.CA != "" && now.CA != "" && c.CA != now.CA:
		return fmt.Sprintf("the cluster: the plan is for the one whose CA is %s, this one's is %s", c.CA, now.CA)
	}
	return ""
}

// Inventory is the inventory that a plan was made from.
type Inventory struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	ID        string `json:"id"`
	// Members is "sha256:<hex>" over the ids of all members.
	Members string `json:"members"`
}

// Step is what is to be done with one object, and the live object that it
// was decided from: none where UID is empty.
type Step struct {
	Group           string      `json:"group"`
	Version         string      `json:"version"`
	Kind            string      `json:"kind"`
	Namespace       string      `json:"namespace,omitempty"`
	Name            string      `json:"name"`
	Action          plan.Action `json:"action"`
	UID             string      `json:"uid,omitempty"`
	ResourceVersion string      `json:"resourceVersion,omitempty"`
	Generation      int64       `json:"generation,omitempty"`
	// Changes are what the server said would change, Claims the PersistentVolumeClaims
	// of a StatefulSet that would be recreated.
	Changes []diff.Change `json:"changes,omitempty"`
	Claims  []plan.Claim  `json:"claims,omitempty"`
}

// ID is which object the step is about.
func (s *Step) ID() bundle.ID {
	return bundle.ID{GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}, Namespace: s.Namespace, Name: s.Name}
}

// MakeInventory is the inventory as a saved plan holds it.
func MakeInventory(inv *inventory.Inventory) Inventory {
	h := sha256.New()
	for _, id := range bundle.SortedIDs(inv.Members) {
		fmt.Fprintln(h, id.String())
	}
	return Inventory{Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID, Members: "sha256:" + hex.EncodeToString(h.Sum(nil))}
}

// MakeStep is a step as a saved plan holds it: its outcome in the preview.
func MakeStep(s *plan.Step, action plan.Action, stored *unstructured.Unstructured, redact func(string) string) Step {
	step := Step{
		Group: s.ID.GroupKind.Group, Version: s.GVK.Version, Kind: s.ID.GroupKind.Kind,
		Namespace: s.ID.Namespace, Name: s.ID.Name, Action: action,
	}
	if s.Live == nil {
		return step
	}
	step.UID, step.ResourceVersion, step.Generation = string(s.Live.GetUID()), s.Live.GetResourceVersion(), s.Live.GetGeneration()
	if stored != nil && action != plan.Unchanged {
		step.Changes = diff.Objects(s.Live, stored, redact).Changes
	}
	return step
}

// Drift is how a saved plan differs from the same one made now: nothing if it may
// be carried out. An object may have a new
// version, as one whose status changes has all the time: what counts is that the
// same is done to the same object, and the same fields change in the same way.
// Of Secrets, whose values are not in a plan, the version counts as well.
func (p *Plan) Drift(now *Plan) []string {
	if why := p.Cluster.drift(now.Cluster); why != "" {
		return []string{why} // nothing else can be compared
	}
	var drift []string
	if !p.Expires.IsZero() && now.Created.After(p.Expires) {
		drift = append(drift, fmt.Sprintf("the time: the plan was made at %s, to be carried out until %s", p.Created.Format(time.RFC3339), p.Expires.Format(time.RFC3339)))
	}
	if p.Digest != now.Digest {
		drift = append(drift, fmt.Sprintf("the bundle: the plan was made from %s, this is %s", p.Digest, now.Digest))
	}
	options := map[string]string{}
	for name, is := range now.Options {
		if is != "" && is != "false" { // else it does nothing, and an older version may not have had it
			options[name] = is
		}
	}
	maps.Copy(options, p.Options)
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if p.Options[name] != now.Options[name] {
			drift = append(drift, fmt.Sprintf("%s: the plan was made with %q, this is %q", remedy.Flag(name), p.Options[name], now.Options[name]))
		}
	}
	was, is := p.Inventory, now.Inventory
	switch {
	case was.Namespace != is.Namespace || was.Name != is.Name || was.ID != is.ID:
		return append(drift, fmt.Sprintf("the inventory: the plan is for %s/%s (%s), this is %s/%s (%s)", was.Namespace, was.Name, was.ID, is.Namespace, is.Name, is.ID))
	case was.Members != is.Members:
		drift = append(drift, "the inventory: its members have changed since the plan was made")
	}
	steps := map[bundle.ID][]Step{} // several have no name yet
	for _, s := range now.Steps {
		steps[s.ID()] = append(steps[s.ID()], s)
	}
	for _, s := range p.Steps {
		id, other := s.ID(), Step{}
		ok := len(steps[id]) > 0
		if ok {
			other, steps[id] = steps[id][0], steps[id][1:]
		}
		if why := s.drift(other, ok); why != "" {
			drift = append(drift, bundle.Name(id)+": "+why)
		}
	}
	for _, s := range now.Steps {
		if left := steps[s.ID()]; len(left) > 0 {
			steps[s.ID()] = left[1:]
			drift = append(drift, fmt.Sprintf("%s: is not in the plan, and would be %s now", bundle.Name(s.ID()), s.Action))
		}
	}
	return drift
}

func (s *Step) drift(now Step, ok bool) string {
	switch {
	case !ok && slices.Contains([]plan.Action{plan.Pruned, plan.Detached, plan.Skipped}, s.Action): // not of the bundle, and gone by now: nothing is done to it
		return ""
	case !ok:
		return fmt.Sprintf("the plan says %s, and now nothing is to be done", s.Action)
	case s.UID == "" && now.UID != "":
		return "did not exist, and exists now"
	case s.expired(now):
		return ""
	case s.UID != "" && now.UID == "":
		return "existed, and does not exist any more"
	case s.UID != now.UID:
		return "was deleted and recreated since the plan was made"
	case s.Action != now.Action:
		return fmt.Sprintf("the plan says %s, and now it would be %s%s", s.Action, now.Action, paths(now.Changes))
	case s.Kind == "Secret" && s.Group == "" && s.Action != plan.Unchanged && s.ResourceVersion != now.ResourceVersion:
		return fmt.Sprintf("has changed since the plan was made: version %s then, %s now", s.ResourceVersion, now.ResourceVersion)
	}
	if !slices.Equal(s.Claims, now.Claims) {
		return fmt.Sprintf("the plan says of its claims: %s; and now: %s", claimsText(s.Claims), claimsText(now.Claims))
	}
	if differ := differing(s.Changes, now.Changes); len(differ) > 0 {
		return "would change in another way than the plan says" + paths(differ)
	}
	return ""
}

// expired says whether the step is about a Job that its TTL has removed by now, and that makes no
// difference: it had completed, or was to be replaced.
func (s *Step) expired(now Step) bool {
	same := s.Action == plan.Unchanged && now.Action == plan.Unchanged || s.Action == plan.Recreated && now.Action == plan.Created
	return s.ID().GroupKind == bundle.JobKind && now.UID == "" && same
}

func claimsText(claims []plan.Claim) string {
	if len(claims) == 0 {
		return "nothing"
	}
	return strings.Join(bundle.Each(claims, plan.Claim.String), ", ")
}

// differing are the changes that only one of the two has.
func differing(a, b []diff.Change) []diff.Change {
	count := map[string]int{}
	more := func(c diff.Change) bool { // than the other has
		text, _ := json.Marshal(c) //nolint:errchkjson // it was JSON
		count[string(text)]--
		return count[string(text)] < 0
	}
	for _, c := range a {
		text, _ := json.Marshal(c) //nolint:errchkjson // it was JSON
		count[string(text)]++
	}
	differ := bundle.Where(b, more)
	for text, n := range count {
		count[text] = max(n, 0)
	}
	return append(differ, bundle.Where(a, func(c diff.Change) bool { return !more(c) })...)
}

func paths(changes []diff.Change) string {
	paths := bundle.GroupBy(changes, func(c diff.Change) string { return c.Path }).Keys
	if len(paths) == 0 {
		return ""
	}
	return ": " + bundle.Some(paths, 5)
}
