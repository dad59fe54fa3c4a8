package redact

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
)

// Objects into which an apply-time mutation puts values of Secrets
// (config.kubernetes.io/apply-time-mutation).

// CopiesSecret says whether an object holds values of Secrets this way.
func CopiesSecret(object map[string]any) bool {
	paths, known := Copied(object)
	return !known || len(paths) > 0
}

// Copied are the JSONPaths of the fields that do; false where the annotation cannot be read: it
// may be any.
func Copied(object map[string]any) (paths []string, known bool) {
	u := &unstructured.Unstructured{Object: object}
	if object == nil || !mutation.HasAnnotation(u) {
		return nil, true
	}
	all, err := mutation.ReadAnnotation(u)
	if err != nil {
		return nil, false
	}
	for _, s := range all {
		if s.SourceRef.ToObjMetadata().GroupKind == bundle.SecretKind {
			paths = append(paths, s.TargetPath)
		}
	}
	return paths, true
}
