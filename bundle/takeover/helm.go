package takeover

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/remedy"
)

// takenOverBy is the annotation of what Helm stores of a release that was taken over: the
// inventory.
const takenOverBy = "brine.dev/taken-over-by"

func helmToken(annotations map[string]string) string {
	return Release{annotations[helmNamespace], annotations[helmName]}.Token()
}

// Release is a Helm release to take over from.
type Release struct{ Namespace, Name string }

// Releases are the Helm releases among what is taken over from.
func Releases(from []string) []Release {
	var all []Release
	for _, token := range from {
		if text, ok := strings.CutPrefix(token, helmPrefix); ok {
			namespace, name, _ := strings.Cut(text, "/")
			all = append(all, Release{namespace, name})
		}
	}
	return all
}

func (r Release) String() string {
	return fmt.Sprintf("Helm release %s in namespace %s", r.Name, r.Namespace)
}

// Token is how the release is named to be taken over from.
func (r Release) Token() string { return helmPrefix + r.Namespace + "/" + r.Name }

// CheckObjects is why a release cannot be taken over, by the bundle's live objects.
// Where Helm stores nothing of it (stored is false), it was taken over before or is
// none, unless objects belong to it. Where it does, no controller may install it again.
func (r Release) CheckObjects(stored bool, objects []*bundle.Object, live map[bundle.ID]*unstructured.Unstructured) error {
	for _, o := range objects {
		u := live[o.ID]
		if u == nil || helmToken(u.GetAnnotations()) != r.Token() {
			continue
		}
		switch tool := ToolOf(u); {
		case !stored && tool.Token == r.Token():
			return fmt.Errorf("%s belongs to %s, and no Secret or ConfigMap of that release is found: if Helm stores it elsewhere (HELM_DRIVER), remove it there without deleting its objects, and take over from the field manager: %s=helm",
				bundle.Name(o.ID), r, remedy.TakeOverFrom)
		case stored && tool.Token != r.Token():
			return fmt.Errorf("%s belongs to %s: suspend and remove it there first, because it would install %s again", bundle.Name(o.ID), tool.Text, r)
		}
	}
	return nil
}

// CheckLeft is why a release cannot be taken over that has objects on the cluster which
// the bundle does not contain.
func (r Release) CheckLeft(left []string) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%s has %s that the bundle does not contain, and \"helm uninstall\" would delete all or none: %s. Add them to the bundle, or have Helm drop them first",
		r, bundle.Count(len(left), "object"), bundle.Some(left, 10))
}

// CheckOptions is why a release cannot be taken over in such a run.
func (r Release) CheckOptions(only, rollbackOnFailure bool) []error {
	var wrong []error
	if only {
		wrong = append(wrong, fmt.Errorf("%s cannot be taken over with %s: all of its objects have to be applied", r, remedy.Only))
	}
	if rollbackOnFailure {
		wrong = append(wrong, fmt.Errorf("%s cannot be taken over with %s: a rollback would delete its objects, which the earlier revision does not contain", r, remedy.RollbackOnFailure))
	}
	return wrong
}

// Forget is a merge patch of what Helm stores of a release: Helm does not find it any
// more. Only a label and an annotation change.
func Forget(stored *unstructured.Unstructured, inventory string) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": stored.GetUID(), "resourceVersion": stored.GetResourceVersion(),
		"labels":      map[string]any{HelmOwner: bundle.FieldManager},
		"annotations": map[string]any{takenOverBy: inventory},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return patch, nil
}
