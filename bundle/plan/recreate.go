package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Recreation says what becomes of an object when the server refuses to change an
// immutable field of it: a value of the annotation on-immutable.
type Recreation string

// The recreations.
const (
	NoRecreation   Recreation = ""
	WithDependents Recreation = bundle.Recreate // its dependents are deleted with it
	OrphanFirst    Recreation = bundle.Orphan   // its dependents stay; the new object adopts them
)

// CheckRecreate checks the words of Options.Recreate: KIND, or KIND:orphan.
func CheckRecreate(words []string) error {
	for _, word := range words {
		if kind, how, given := strings.Cut(word, ":"); kind == "" || given && how != bundle.Orphan {
			return fmt.Errorf("%q: use KIND or KIND:%s", word, bundle.Orphan)
		}
	}
	return nil
}

// recreation says how an object may be recreated. Its own annotation counts first,
// and of several options that name its kind, the one that deletes less.
func (o Options) recreation(u *unstructured.Unstructured, gk schema.GroupKind) Recreation {
	annotations := u.GetAnnotations()
	switch own := Recreation(annotations[bundle.OnImmutable]); {
	case annotations[bundle.Run] == bundle.RunAlways:
		return WithDependents
	case own == WithDependents, own == OrphanFirst:
		return own
	}
	found := NoRecreation
	for _, word := range o.Recreate {
		kind, how, _ := strings.Cut(word, ":")
		switch {
		case kind != "*" && !strings.EqualFold(kind, gk.Kind) && !strings.EqualFold(kind, gk.String()):
		case how == bundle.Orphan:
			return OrphanFirst
		default:
			found = WithDependents
		}
	}
	return found
}

// Orphans says whether the step, if it recreates its object, keeps the dependents.
func (s *Step) Orphans() bool { return s.Recreate == OrphanFirst && !s.Always }

// Recreate is why an object may not be deleted to be created again as wanted; "" if it may.
// As Decide, it is asked directly before the deletion, too. An annotation keeps it that is on
// the cluster, or in the bundle: one that is new there comes with the change that is refused.
// orphans: its dependents stay.
func (g *Guard) Recreate(id bundle.ID, live, wanted *unstructured.Unstructured, orphans bool) string {
	same, known := g.Same[live.GetUID()]
	kept, dependent, keptBy := g.Moved[id], g.dependent(live), cmp.Or(bundle.KeptBy(live), bundle.KeptBy(wanted))
	switch {
	case keptBy != "":
		return keptBy
	case known && same != id:
		return "it is the same object as " + bundle.Name(same)
	case kept.Kept:
		return kept.Reason
	case id.GroupKind == bundle.NamespaceKind && id.Name == g.Of.Namespace:
		return "it holds the inventory itself"
	case dependent != "" && !orphans:
		return dependent
	}
	return Refusal(live, g.Of.ID, g.Options.Policy)
}

// Abandons is why the new object would not adopt, or not be able to use, what the
// old one leaves; "" if nothing is known against it.
func Abandons(live, desired *unstructured.Unstructured) string {
	switch live.GroupVersionKind().GroupKind() {
	case bundle.JobKind:
		return "a new Job does not adopt the pods of the old one"
	case bundle.StatefulSetKind:
		had := bundle.Each(claimTemplates(live), nameOf)
		names := slices.DeleteFunc(bundle.Each(claimTemplates(desired), nameOf), func(name string) bool { return slices.Contains(had, name) })
		if len(names) > 0 {
			return fmt.Sprintf("its pods do not have the volumes of the new claim templates %s, and cannot get them: its controller would be stuck", strings.Join(names, ", "))
		}
	}
	pods, _, _ := unstructured.NestedStringMap(live.Object, "spec", "template", "metadata", "labels")
	wanted := bundle.At[map[string]any](desired.Object, "spec", "selector")
	if len(pods) == 0 || wanted == nil {
		return ""
	}
	var selector metav1.LabelSelector
	if desired.GroupVersionKind().Group == "" { // a ReplicationController's is a map of labels
		wanted = map[string]any{"matchLabels": wanted}
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, &selector) != nil {
		return ""
	}
	if s, err := metav1.LabelSelectorAsSelector(&selector); err == nil && !s.Matches(labels.Set(pods)) {
		return "its selector changes, and does not match the pods of the old one: the new one would not adopt them"
	}
	return ""
}

// KeepLive is an object as it is created where its dependents stay: wanted, but with
// the live values of the fields that were not sent, or sent with another value,
// because they are left to others. An autoscaler's number of replicas stays.
func KeepLive(wanted, sent, live any) any {
	want, isMap := wanted.(map[string]any)
	if !isMap {
		return sent
	}
	out := map[string]any{}
	given, _ := sent.(map[string]any)
	there, _ := live.(map[string]any)
	for key, value := range want {
		was, isThere := there[key]
		switch now, isSent := given[key]; {
		case isSent:
			out[key] = KeepLive(value, now, was)
		case isThere:
			out[key] = was
		default:
			out[key] = value
		}
	}
	return out
}
