package validate

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// coerce makes u what the schema allows, and returns the paths of the unknown
// fields that it took out: unstructuredSchemaCoercer.apply in
// apiextensions-apiserver's pkg/apiserver/customresource_handler.go. stored is
// for objects as they come from the storage: malformed metadata is dropped and
// nulls that the schema does not allow as well. Server-side apply leaves such
// nulls in what was sent, for validation to refuse.
func (v *compiled) coerce(u *unstructured.Unstructured, preserveUnknown, stored bool) (unknown []string, err error) {
	apiVersion, kind := u.GetAPIVersion(), u.GetKind()
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields:     stored,
		ReturnUnknownFieldPaths: !stored,
	})
	if err != nil {
		return nil, err
	}
	if !preserveUnknown {
		paths := pruning.PruneWithOptions(u.Object, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: !stored})
		unknown = append(unknown, paths...)
		if stored {
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, v.structural)
		}
	}
	fieldErr, paths := objectmeta.CoerceWithOptions(nil, u.Object, v.structural, false, objectmeta.CoerceOptions{
		DropInvalidFields:       stored,
		ReturnUnknownFieldPaths: !stored,
	})
	if fieldErr != nil {
		return nil, fieldErr
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	return append(unknown, paths...), nil
}

// validateScale is ValidateScaleSpec and ValidateScaleStatus of
// customResourceValidator in apiextensions-apiserver.
func (v *compiled) validateScale(u *unstructured.Unstructured) field.ErrorList {
	if v.scale == nil {
		return nil
	}
	var errs field.ErrorList
	for _, path := range []string{v.scale.SpecReplicasPath, v.scale.StatusReplicasPath} {
		n, _, err := unstructured.NestedInt64(u.Object, steps(path)...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(fieldPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(fieldPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(fieldPath(path), n, fmt.Sprintf("should be less than or equal to %d", math.MaxInt32)))
		}
	}
	if path := v.scale.LabelSelectorPath; path != nil {
		if s, _, err := unstructured.NestedString(u.Object, steps(*path)...); err != nil {
			errs = append(errs, field.Invalid(fieldPath(*path), s, err.Error()))
		}
	}
	return errs
}

func steps(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

func fieldPath(path string) *field.Path {
	return field.NewPath(strings.TrimPrefix(path, "."))
}
