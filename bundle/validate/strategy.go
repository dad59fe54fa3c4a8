package validate

import (
	"context"
	"slices"

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

// validate is apiextensions-apiserver's customResourceStrategy.Validate
// (pkg/registry/customresource), whose package would bring in etcd's client,
// and what the server's generic part asks of every new object. With a live object it
// is ValidateUpdate: what was wrong before and was not touched is let pass
// (ratcheting).
func (v *compiled) validate(ctx context.Context, d *crd, u, live *unstructured.Unstructured) field.ErrorList {
	at := field.NewPath("metadata")
	meta, errs := metaOf(u)
	var old any
	var ratcheting []cel.Option
	if live == nil {
		if len(errs) == 0 {
			errs = apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, meta, nil, d.namespaced(), apivalidation.NameIsDNSSubdomain, at, true)
		}
		errs = append(errs, validation.ValidateCustomResource(nil, u.Object, v.schema)...)
	} else {
		liveMeta, liveErrs := metaOf(live)
		if len(errs) == 0 && len(liveErrs) == 0 {
			errs = apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, meta, liveMeta, d.namespaced(), nil, at, true)
		}
		both := common.NewCorrelatedObject(u.Object, live.Object, &model.Structural{Structural: v.structural})
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, live.Object, v.schema, validation.WithRatcheting(both))...)
		old, ratcheting = live.Object, []cel.Option{cel.WithRatcheting(both)}
	}
	errs = append(errs, v.validateScale(u)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, v.structural, false)...)
	if live == nil || len(listtype.ValidateListSetsAndMaps(nil, v.structural, live.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)...)
	}
	if v.rules != nil {
		if blocked(errs) {
			return append(errs, &field.Error{Type: field.ErrorTypeInvalid, Detail: "the CRD's rules (x-kubernetes-validations) were not checked because of the other problems: correct those first"})
		}
		broken, _ := v.rules.Validate(ctx, nil, v.structural, u.Object, old, celconfig.RuntimeCELCostBudget, ratcheting...)
		errs = append(errs, broken...)
	}
	if live != nil || len(errs) > 0 {
		return errs
	}
	return apivalidation.ValidateObjectMetaAccessor(meta, d.namespaced(), path.ValidatePathSegmentName, at)
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
	missing := []field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}
	return slices.ContainsFunc(errs, func(err *field.Error) bool { return slices.Contains(missing, err.Type) })
}
