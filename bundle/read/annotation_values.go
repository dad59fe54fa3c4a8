package read

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// annotations checks those of all objects: an invalid value would be ignored at
// the worst of times, when the object is about to be deleted. Unknown annotations
// with brine's prefix are warnings.
func annotations(b *bundle.Bundle) (problems, odd bundle.Problems) {
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
			if strings.HasPrefix(key, bundle.Prefix) && key != bundle.Digest && !slices.Contains(known, key) {
				odd = append(odd, o.Problem(path, unknownAnnotation(key)))
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

func unknownAnnotation(key string) string {
	if best := bundle.Nearest(key, known); best != "" {
		return fmt.Sprintf("unknown annotation %s: did you mean %s?", key, best)
	}
	return fmt.Sprintf("unknown annotation %s: brine has %s", key, strings.Join(known, ", "))
}
