package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/object/dependson"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"
)

// FieldManager owns the fields that brine applies.
const FieldManager = "brine"

// The annotations of an object that brine heeds. Those of any other tool are
// none of its business, and are applied as they are written.
const (
	// DependsOn names the objects that this one needs ready (cli-utils).
	DependsOn = dependson.Annotation
	// ApplyTimeMutation takes values from live objects (cli-utils).
	ApplyTimeMutation = mutation.Annotation
	// LifecycleDeletion with the value "detach" and OnRemove with the value
	// "keep": it is never deleted, but let go (cli-utils' common.NoDeletion).
	LifecycleDeletion = "client.lifecycle.config.k8s.io/deletion"
	OnRemove          = "cli-utils.sigs.k8s.io/on-remove"
	// LifecycleMutation with the value "ignore": create it if it is missing,
	// never change it (newer than cli-utils 0.37.2; kpt and Config Sync have it).
	LifecycleMutation = "client.lifecycle.config.k8s.io/mutation"
	// OnImmutable with the value "recreate": delete and create the object when
	// the server says that a field cannot be changed.
	OnImmutable = own + "on-immutable"
	// ReadyWhen is a CEL expression over the live object, `self`, that decides
	// when it is ready, instead of what is usual for its kind.
	ReadyWhen = own + "ready-when"
	// FailedWhen is a CEL expression over `self` that says when it has failed;
	// where it does not hold, ReadyWhen or what is usual for the kind decides.
	FailedWhen = own + "failed-when"
	// Timeout is how long to wait for the object, a Go duration ("90s", "10m");
	// "0" is as long as the run may take.
	Timeout = own + "timeout"
	// DigestOf names ConfigMaps and Secrets of this bundle on a workload, and
	// Digest is where their digest goes in its pod template: pods are replaced
	// when what they read changes. It takes the place of Salt's __slot__.
	DigestOf = own + "digest-of"
	Digest   = own + "digest"

	own = "brine.dev/"
)

// allowed are the values of the annotations that have a fixed set of them. The
// others have a form, which is judged where it is read: order (references),
// ready (CEL, durations) and Digests.
var allowed = map[string][]string{
	LifecycleDeletion: {"detach"},
	LifecycleMutation: {"ignore"},
	OnImmutable:       {"recreate"},
	OnRemove:          {"keep"},
}

// ours are brine's own that people write.
var ours = []string{DigestOf, FailedWhen, OnImmutable, ReadyWhen, Timeout}

// annotations judges those of all objects: a value that means nothing would be
// passed over at the worst of times, when the object is about to be deleted.
// Unknown ones of our own are odd.
func (b *Bundle) annotations() (problems, odd Problems) {
	for _, o := range b.Objects {
		annotations := o.Content.GetAnnotations()
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			path := "metadata.annotations[" + key + "]"
			if values, ok := allowed[key]; ok && !slices.Contains(values, annotations[key]) {
				problems = append(problems, o.about(path, fmt.Sprintf("%q means nothing here: write %s, or leave the annotation out", annotations[key], strings.Join(values, " or "))))
			}
			if strings.HasPrefix(key, own) && key != Digest && !slices.Contains(ours, key) {
				odd = append(odd, o.about(path, unknownAnnotation(key)))
			}
		}
		template, at := templateAt(o.Content.Object)
		misplaced, _, _ := unstructured.NestedFieldNoCopy(template, "metadata", "annotations")
		for _, key := range ours {
			if on, ok := misplaced.(map[string]any); ok && on[key] != nil {
				odd = append(odd, o.about(at+".metadata.annotations["+key+"]", key+" is read on the object itself, not on its pod template: nothing is done about it"))
			}
		}
	}
	return problems, odd
}

func unknownAnnotation(key string) string {
	if best := Nearest(key, ours); best != "" {
		return fmt.Sprintf("brine knows no annotation %s: is %s meant?", key, best)
	}
	return fmt.Sprintf("brine knows no annotation %s: it knows %s", key, strings.Join(ours, ", "))
}

// about is a problem with the field of o at path.
func (o *Object) about(path, message string) Problem {
	at := o.Source
	at.Line = o.Line(path)
	return Problem{Source: at, ID: o.ID, Path: path, Message: message}
}
