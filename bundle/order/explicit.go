package order

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/cli-utils/pkg/object"
	"sigs.k8s.io/cli-utils/pkg/object/dependson"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
)

// explicit adds the edges that people wrote: annotations (whose syntax and
// meaning are cli-utils' own) and Salt's requisites. All of them want their
// target ready.
func (b *builder) explicit() {
	for i, o := range b.objs {
		b.dependsOn(i, o)
		b.mutations(i, o)
		for _, r := range o.Requisites {
			b.require(i, r.On, "", r.Reason)
		}
	}
}

func (b *builder) dependsOn(i int, o *bundle.Object) {
	value, ok := annotation(o, bundle.DependsOn)
	if !ok {
		return
	}
	seen := map[bundle.ID]bool{}
	for ref := range strings.SplitSeq(value, ",") {
		on, err := dependson.ParseObjMetadata(ref)
		switch {
		case err != nil:
			b.problem(i, bundle.DependsOn, fmt.Sprintf(
				"%v; write group/Kind/name or group/namespaces/namespace/Kind/name, separated by commas (an empty group for core: /namespaces/…)", err))
		case seen[on]:
			b.problem(i, bundle.DependsOn, fmt.Sprintf("%s is named twice: remove one", bundle.Name(on)))
		default:
			seen[on] = true
			b.require(i, on, bundle.DependsOn, "depends-on annotation")
		}
	}
}

func (b *builder) mutations(i int, o *bundle.Object) {
	if _, ok := annotation(o, bundle.ApplyTimeMutation); !ok {
		return
	}
	subs, err := mutation.ReadAnnotation(o.Content)
	if err != nil {
		if invalid, ok := errors.AsType[object.InvalidAnnotationError](err); ok {
			err = invalid.Cause
		}
		b.problem(i, bundle.ApplyTimeMutation, fmt.Sprintf(
			"%v; write a YAML list of sourceRef, sourcePath, targetPath and token", err))
		return
	}
	seen := map[bundle.ID]bool{}
	for _, s := range subs {
		on := s.SourceRef.ToObjMetadata()
		// Its namespace is optional, "defaults to the namespace of the target".
		if _, found := b.byID[on]; !found && on.Namespace == "" && b.find(on.GroupKind, "", on.Name) < 0 {
			on.Namespace = o.ID.Namespace
		}
		if !seen[on] {
			seen[on] = true
			b.require(i, on, bundle.ApplyTimeMutation, "apply-time mutation of "+s.TargetPath)
		}
	}
}

// require adds one explicit edge, inside the bundle or out of it. from is the
// annotation it comes from, "" for a requisite.
func (b *builder) require(i int, on bundle.ID, from, reason string) {
	to, ok := b.byID[on]
	if !ok && on.Namespace == "" {
		to = b.find(on.GroupKind, "", on.Name)
		ok = to >= 0
	}
	switch {
	case on == b.objs[i].ID, ok && to == i:
		b.problem(i, from, "the object depends on itself: remove that dependency")
	case ok:
		b.need(i, to, Ready, explicit, reason)
	default:
		b.external[i] = append(b.external[i], External{On: on, Reason: reason, annotation: pathOf(from), similar: b.similar(on)})
	}
}

// similar suggests an object of the bundle instead of one that is not there.
func (b *builder) similar(on bundle.ID) string {
	if b.byName == nil {
		b.byName = make(map[kindName]int, len(b.objs))
		for i, o := range b.objs {
			name := kindName{strings.ToLower(o.ID.GroupKind.Kind), o.ID.Name}
			if _, twice := b.byName[name]; !twice {
				b.byName[name] = i
			}
		}
	}
	if i, ok := b.byName[kindName{strings.ToLower(on.GroupKind.Kind), on.Name}]; ok {
		if ref, err := dependson.FormatObjMetadata(b.objs[i].ID); err == nil {
			return fmt.Sprintf("; did you mean %q (%s)?", ref, b.objs[i].Source)
		}
	}
	return ""
}

type kindName struct{ kind, name string }

// problem records a problem with the explicit dependencies of an object: from is
// the annotation, "" for a requisite.
func (b *builder) problem(i int, from, msg string) {
	o := b.objs[i]
	b.report(o.Problem(pathOf(from), msg))
	b.invalidate(i)
}

func pathOf(annotation string) string {
	if annotation == "" {
		return ""
	}
	return "metadata.annotations[" + annotation + "]"
}
