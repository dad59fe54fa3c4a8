package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const definition = "CustomResourceDefinition"

// validate refuses what a real server refuses of an object's metadata, changes of what may not
// change, and what the CRD of a custom resource says is wrong.
func (s *Server) validate(k Kind, u, live *unstructured.Unstructured) error {
	path := field.NewPath("metadata")
	var wrong field.ErrorList
	if live == nil {
		names := apivalidation.NameIsDNSSubdomain
		if k.Kind == "Namespace" {
			names = apivalidation.NameIsDNSLabel
		}
		wrong = apivalidation.ValidateObjectMetaAccessor(u, k.Namespaced, names, path)
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		if generated := u.GetGenerateName(); k.Kind == definition && generated != "" && generated != plural+"."+group {
			wrong = append(wrong, field.Invalid(path.Child("generateName"), generated, `must be spec.names.plural+"."+spec.group`))
		}
		if k.Kind == definition && u.GetName() != plural+"."+group {
			wrong = append(wrong, field.Invalid(path.Child("name"), u.GetName(), `must be spec.names.plural+"."+spec.group`))
		}
	} else {
		wrong = apivalidation.ValidateObjectMetaAccessorUpdate(u, live, path)
		if k.isCustom() || k.Kind == definition { // they are asked twice
			wrong = append(wrong, wrong...)
		}
		wrong = append(wrong, k.immutable(u, live)...)
		if k.Kind == definition {
			wrong = append(wrong, keepsVersions(u)...)
		}
	}
	if wrong = append(wrong, s.structureOf(k).validate(u, live)...); len(wrong) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.GroupKind(), u.GetName(), wrong)
}

func (k Kind) immutable(u, live *unstructured.Unstructured) (wrong field.ErrorList) {
	switch k.Kind {
	case "Secret":
		if u.Object["type"] != live.Object["type"] {
			wrong = append(wrong, field.Invalid(field.NewPath("type"), u.Object["type"], "field is immutable"))
		}
		fallthrough
	case "ConfigMap":
		if live.Object["immutable"] != true {
			break
		}
		if u.Object["immutable"] != true {
			wrong = append(wrong, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		for _, key := range []string{"data", "binaryData"} {
			if !Same(u.Object[key], live.Object[key]) {
				wrong = append(wrong, field.Forbidden(field.NewPath(key), "field is immutable when `immutable` is set"))
			}
		}
	case "PersistentVolumeClaim":
		if !Same(u.Object["spec"], live.Object["spec"]) {
			wrong = append(wrong, field.Forbidden(field.NewPath("spec"), "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
		}
	case "Job":
		wrong = append(wrong, fixedJob(u, live)...)
	case "Deployment":
		before, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
		after, _, _ := unstructured.NestedMap(u.Object, "spec", "selector")
		if !Same(before, after) {
			var selector metav1.LabelSelector
			_ = runtime.DefaultUnstructuredConverter.FromUnstructured(after, &selector)
			wrong = append(wrong, field.Invalid(field.NewPath("spec", "selector"), &selector, "field is immutable"))
		}
	}
	return wrong
}
