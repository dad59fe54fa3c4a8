package read

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
)

// allowed are the values of the annotations that have a fixed set of them. The
// others are checked by the package that uses them: order (references), ready
// (CEL, durations), fields (pointers) and FillDigests.
var allowed = map[string][]string{
	bundle.LifecycleDeletion: {"detach"},
	bundle.LifecycleMutation: {"ignore"},
	bundle.OnImmutable:       {bundle.Recreate, bundle.Orphan},
	bundle.OnRemove:          {"keep"},
	bundle.OnStoredVersion:   {bundle.StoredMigrate},
	bundle.Run:               {bundle.RunAlways},
	bundle.Wait:              {bundle.WaitSkip},
}

// known are brine's own annotations that users write.
var known = []string{bundle.DigestOf, bundle.FailAfter, bundle.FailedWhen, bundle.IgnoreFields, bundle.OnImmutable, bundle.OnStoredVersion, bundle.ReadyWhen, bundle.Run, bundle.StatusTimeout, bundle.Timeout, bundle.Wait}

// honoured are all annotations that users write and brine reads.
var honoured = slices.Concat(known, []string{bundle.ApplyTimeMutation, bundle.DependsOn, bundle.LifecycleMutation}, bundle.KeepKeys())

// annotations checks those of all objects: an invalid value would be ignored at
// the worst of times, when the object is about to be deleted. Unknown annotations
// with brine's prefix are warnings, and so is what is a slip away from one that it reads.
func annotations(b *bundle.Bundle) (problems, odd bundle.Problems) {
	meant := map[string]string{} // objects have the same keys
	for _, o := range b.Objects {
		annotations := o.Content.GetAnnotations()
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			path := "metadata.annotations[" + key + "]"
			if values, ok := allowed[key]; ok && !slices.Contains(values, annotations[key]) {
				problems = append(problems, o.Problem(path, fmt.Sprintf("invalid value %q: use %s, or remove the annotation", annotations[key], strings.Join(values, " or "))))
			}
			if key == bundle.Run && o.ID.GroupKind != bundle.JobKind {
				problems = append(problems, o.Problem(path, "only a Job can have this annotation"))
			}
			if key == bundle.OnImmutable && annotations[key] == bundle.Orphan && o.ID.GroupKind == bundle.JobKind {
				problems = append(problems, o.Problem(path, "a new Job does not adopt the pods of the old one: use "+bundle.Recreate))
			}
			if key == bundle.OnStoredVersion && o.ID.GroupKind != bundle.CRDKind {
				problems = append(problems, o.Problem(path, "only a CustomResourceDefinition can have this annotation"))
			}
			if _, found := meant[key]; !found {
				meant[key] = unknownAnnotation(key)
			}
			if meant[key] != "" {
				odd = append(odd, o.Problem(path, meant[key]))
			} else if almost := bundle.NearlyKeeps(key, annotations[key]); almost != "" && allowed[key] == nil {
				odd = append(odd, o.Problem(path, fmt.Sprintf("%q does not keep the object from deletion: did you mean %s?", annotations[key], almost)))
			}
		}
		labels := bundle.At[map[string]any](o.Content.Object, "metadata", "labels")
		for _, key := range honoured {
			if value, found := labels[key].(string); found && bundle.KeptBy(&metav1.ObjectMeta{Labels: map[string]string{key: value}}) == "" {
				odd = append(odd, o.Problem("metadata.labels["+key+"]", key+" is read as an annotation: it is ignored as a label"))
			}
		}
		template, at := templateAt(o.Content.Object)
		for _, key := range known {
			if bundle.At[any](template, "metadata", "annotations", key) != nil {
				odd = append(odd, o.Problem(at+".metadata.annotations["+key+"]", key+" is read on the object itself, not on its pod template: it is ignored here"))
			}
		}
	}
	return problems, odd
}

// unknownAnnotation is what is odd about a key: it is brine's, or nearly one that brine reads.
func unknownAnnotation(key string) string {
	switch best := bundle.Nearest(key, honoured); {
	case key == bundle.Digest || slices.Contains(honoured, key):
	case best != "":
		return fmt.Sprintf("unknown annotation %s: did you mean %s?", key, best)
	case strings.HasPrefix(key, bundle.Prefix):
		return fmt.Sprintf("unknown annotation %s: brine has %s", key, strings.Join(known, ", "))
	}
	return ""
}
