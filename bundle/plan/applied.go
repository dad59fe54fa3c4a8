package plan

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/redact"
	"brine/bundle/takeover"
	"brine/inventory"
)

// apply plans one object of the bundle.
func (in *Input) apply(o *bundle.Object) (*Step, error) {
	if o.ID.Name == "" {
		body, err := bundle.Encode(o.Content.Object)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return &Step{ID: o.ID, GVK: o.GVK, Object: o, Body: body, Action: Created, Reason: "generateName: new in each run, not tracked"}, nil
	}
	content := &unstructured.Unstructured{Object: shallow(o.Content.Object)}
	in.Inventory.SetOwner(content)
	bundle.FoldStringData(content.Object) // else brine would own nothing of what is stored
	body, err := bundle.Encode(content.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	s := &Step{ID: o.ID, GVK: o.GVK, Object: o, Live: in.Live[o.ID], Body: body, Ignored: in.ignored[o.ID], conflicts: in.Options.Conflicts.String()}
	if s.Desired, err = s.desiredHash(content.Object); err != nil {
		return nil, err
	}
	if redact.Holds(o.Content) {
		s.key, s.hashless = in.Inventory.Key, in.Inventory.Key == nil
	}
	s.hashless = s.hashless || mutation.HasAnnotation(o.Content)
	_, s.Member = in.Inventory.Members[o.ID]
	if s.Recreate = in.Options.recreation(o.Content, o.ID.GroupKind); bundle.HoldsObjects(o.ID.GroupKind) && !in.Options.ForceNamespaces {
		s.Recreate = NoRecreation // all that is in it would go with it
	}
	if in.terminating(s.Live) {
		s.Terminating, s.Live = s.Live, nil
	}
	in.runs(s)
	why := ""
	if s.Live != nil {
		why = in.refusal(o, s.Live)
	}
	switch {
	case s.Completed:
		s.Action, s.Reason = Unchanged, "completed"
		return s, nil
	case s.Live == nil:
		s.Action = Created
		if err := in.Unknown[o.ID]; err != nil {
			s.Action, s.Unread, s.Reason = Configured, err, "it may exist, but cannot be read: "+err.Error()
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
	if s.Always {
		s.Reason = bundle.Run + ": " + bundle.RunAlways
		return s, nil
	}
	if mutation.HasAnnotation(o.Content) || takeover.Of(s.Live, in.Options.TakeOverFrom).Needed(s.Live) {
		return s, nil // what is sent depends on more than the bundle
	}
	if known, ok := in.Inventory.Fingerprints[o.ID]; ok && !in.Options.VerifyFull && s.matches(known.Applied()) {
		s.Action = Unchanged
	}
	return s, nil
}

// terminating says whether a live object is being deleted, by itself or with its
// namespace.
func (in *Input) terminating(live *unstructured.Unstructured) bool {
	if live == nil {
		return false
	}
	namespace := in.Live[bundle.ID{GroupKind: bundle.NamespaceKind, Name: live.GetNamespace()}]
	return live.GetDeletionTimestamp() != nil || live.GetNamespace() != "" && namespace != nil && namespace.GetDeletionTimestamp() != nil
}

// shallow copies an object as deep as Brand changes it.
func shallow(object map[string]any) map[string]any {
	out := maps.Clone(object)
	if meta, ok := object["metadata"].(map[string]any); ok {
		out["metadata"] = maps.Clone(meta)
	}
	return out
}

// Changed says whether the stored object differs from the live one, or we own
// other fields of it than before, besides those that are left to others. It may have been
// read in another version than it is applied in. A CRD whose objects are rewritten changes
// in its status at least.
func (s *Step) Changed(live, stored *unstructured.Unstructured) bool {
	if s.Migration != nil {
		return true
	}
	if version := stored.GetAPIVersion(); version != live.GetAPIVersion() {
		live = &unstructured.Unstructured{Object: maps.Clone(live.Object)}
		live.SetAPIVersion(version)
	}
	if !diff.Equal(live, stored) {
		return true
	}
	before, _ := s.liveHash(live)
	after, _ := s.liveHash(stored)
	return before != after
}

// Send is body as it is sent to an object that is live: without the fields that
// are left to others.
func (s *Step) Send(body []byte, live *unstructured.Unstructured) ([]byte, error) {
	if len(s.Ignored) == 0 || live == nil {
		return body, nil
	}
	wanted := map[string]any{}
	if err := utiljson.Unmarshal(body, &wanted); err != nil {
		return nil, fmt.Errorf("decode what is to be applied: %w", err)
	}
	text, err := json.Marshal(s.Ignored.Sent(wanted, live))
	if err != nil {
		return nil, fmt.Errorf("encode what is to be applied: %w", err)
	}
	return text, nil
}

// refusal is Refusal for an object of the bundle. What the bundle leaves alone keeps its mark, so that
// the inventory which that names would delete it.
func (in *Input) refusal(o *bundle.Object, live *unstructured.Unstructured) string {
	why := Refusal(live, in.Inventory.ID, in.Options.Policy)
	if owner := inventory.OwnerOf(live); why == "" && LeavesAlone(o) && owner != "" && owner != in.Inventory.ID {
		return fmt.Sprintf("it belongs to inventory %q, and %s: ignore leaves that as it is: take the annotation out for one run", owner, bundle.LifecycleMutation)
	}
	return why
}
