package validate

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// validateCreate is apiextensions-apiserver's customResourceStrategy.Validate
// (pkg/registry/customresource), whose package would bring in etcd's client,
// and what the server's generic part asks of every new object.
func (v *compiled) validateCreate(ctx context.Context, d *crd, u *unstructured.Unstructured) field.ErrorList {
	meta, errs := metaOf(u)
	if len(errs) == 0 {
		errs = apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, meta, nil, d.namespaced(),
			apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"), true)
	}
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, v.schema)...)
	errs = append(errs, v.validateScale(u)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)...)
	if v.rules != nil {
		if blocked(errs) {
			return append(errs, rulesUnchecked())
		}
		broken, _ := v.rules.Validate(ctx, nil, v.structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	if len(errs) > 0 {
		return errs
	}
	return apivalidation.ValidateObjectMetaAccessor(meta, d.namespaced(), path.ValidatePathSegmentName, field.NewPath("metadata"))
}

// validateUpdate is customResourceStrategy.ValidateUpdate: what was wrong
// before and was not touched is let pass (ratcheting).
func (v *compiled) validateUpdate(ctx context.Context, d *crd, u, live *unstructured.Unstructured) field.ErrorList {
	meta, errs := metaOf(u)
	liveMeta, liveErrs := metaOf(live)
	if len(errs) == 0 && len(liveErrs) == 0 {
		errs = apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, meta, liveMeta, d.namespaced(), nil, field.NewPath("metadata"), true)
	}
	both := common.NewCorrelatedObject(u.Object, live.Object, &model.Structural{Structural: v.structural})
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, live.Object, v.schema, validation.WithRatcheting(both))...)
	errs = append(errs, v.validateScale(u)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, v.structural, false)...)
	if old := listtype.ValidateListSetsAndMaps(nil, v.structural, live.Object); len(old) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)...)
	}
	if v.rules == nil {
		return errs
	}
	if blocked(errs) {
		return append(errs, rulesUnchecked())
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, u.Object, live.Object, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(both))
	return append(errs, broken...)
}

func metaOf(u *unstructured.Unstructured) (*metav1.ObjectMeta, field.ErrorList) {
	meta := &metav1.ObjectMeta{}
	raw, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return meta, nil
	}
	if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(raw, meta); err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata"), "", err.Error())}
	}
	return meta, nil
}

// blocked reports whether CEL rules cannot be evaluated: the fields they read may be
// missing or of another type.
func blocked(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

func rulesUnchecked() *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Detail: "the CRD's rules (x-kubernetes-validations) were not checked because of the other problems: correct those first"}
}
