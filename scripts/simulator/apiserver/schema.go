package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// structure is what a CRD says about the fields of a version: which are kept, their defaults
// and their rules, by the library of the real server.
type structure struct {
	fields    *structuralschema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
	types     managedfields.TypeConverter
}

// objectMeta is the type of the metadata that server-side apply looks at.
var objectMeta = sync.OnceValue(func() (s spec.Schema) {
	const text = `{"type": "object", "properties": {
		"name": {"type": "string"}, "namespace": {"type": "string"}, "generateName": {"type": "string"}, "uid": {"type": "string"}, "selfLink": {"type": "string"},
		"resourceVersion": {"type": "string"}, "generation": {"type": "integer"}, "creationTimestamp": {"type": "string"}, "deletionTimestamp": {"type": "string"},
		"deletionGracePeriodSeconds": {"type": "integer"},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}}, "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
		"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
		"ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"], "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "uid": {"type": "string"}, "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}},
		"managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}`
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	return s
})

// structures are those that were compiled, by their text: that takes long.
var structures sync.Map

// structureOf is that of a custom resource, as the API server that is asked knows it; nil: any
// field is kept.
func (s *Server) structureOf(k Kind) *structure {
	crd := s.defining(k)
	if crd == nil {
		return nil
	}
	crd = s.known(crd, 0)
	if known := s.structures[k]; known.crd == crd {
		return known.is
	}
	is := structureIn(crd, k)
	s.structures[k] = defined{crd, is}
	return is
}

// defined is what a CRD says of a kind.
type defined struct {
	crd *unstructured.Unstructured
	is  *structure
}

func structureIn(crd *unstructured.Unstructured, k Kind) *structure {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, one := range versions {
		v, _ := one.(map[string]any)
		if said, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema"); v["name"] == k.Version && said != nil {
			if all, _ := said["x-kubernetes-preserve-unknown-fields"].(bool); all {
				return nil
			}
			return structureFrom(k, said)
		}
	}
	return nil
}

func structureFrom(k Kind, said map[string]any) *structure {
	text, _ := json.Marshal(said)
	key := k.String() + string(text)
	if known, ok := structures.Load(key); ok {
		return known.(*structure) //nolint:forcetypeassert // there is nothing else in it
	}
	props, internal := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	made := &structure{}
	err := json.Unmarshal(text, props)
	if err == nil {
		err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil)
	}
	if err == nil {
		made.fields, err = structuralschema.NewStructural(internal)
	}
	if err == nil {
		made.validator, _, err = validation.NewSchemaValidator(internal)
	}
	if err != nil {
		panic(err) // the simulator writes no others
	}
	made.rules = cel.NewValidator(made.fields, true, celconfig.PerCallLimit)
	published := made.fields.Unfold().ToKubeOpenAPI()
	published.SetProperty("apiVersion", *spec.StringProperty())
	published.SetProperty("kind", *spec.StringProperty())
	published.SetProperty("metadata", objectMeta())
	var named []any
	for _, version := range []string{"v1", "v2", "v3"} { // fields may be owned in others: here all have the same schema
		named = append(named, map[string]any{"group": k.Group, "version": version, "kind": k.Kind})
	}
	published.AddExtension("x-kubernetes-group-version-kind", named)
	if made.types, err = managedfields.NewTypeConverter(map[string]*spec.Schema{k.Kind: published}, false); err != nil {
		panic(err)
	}
	structures.Store(key, made)
	return made
}

// conform takes out what no field is for, and nulls, and puts in the defaults, as decoding does.
func (c *structure) conform(u *unstructured.Unstructured) {
	if c == nil {
		return
	}
	pruning.Prune(u.Object, c.fields, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, c.fields)
	c.fill(u)
}

// strictly refuses fields that are unknown.
func (c *structure) strictly(u *unstructured.Unstructured, strict bool) error {
	if c == nil || !strict {
		return nil
	}
	unknown := pruning.PruneWithOptions(u.DeepCopy().Object, c.fields, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	for i := range unknown {
		unknown[i] = fmt.Sprintf("unknown field %q", unknown[i])
	}
	return badRequest("strict decoding error: " + strings.Join(unknown, ", "))
}

// fill puts in the defaults alone: a field that is applied and that nothing is for is refused.
func (c *structure) fill(u *unstructured.Unstructured) {
	if c != nil {
		defaulting.Default(u.Object, c.fields)
	}
}

// validate is what is wrong with an object; live is nil where it is new. Rules wait until the
// fields that they read are right.
func (c *structure) validate(u, live *unstructured.Unstructured) (wrong field.ErrorList) {
	if c == nil {
		return nil
	}
	var old any
	var options []cel.Option
	if live == nil {
		wrong = validation.ValidateCustomResource(nil, u.Object, c.validator)
	} else {
		both := common.NewCorrelatedObject(u.Object, live.Object, &model.Structural{Structural: c.fields})
		wrong = validation.ValidateCustomResourceUpdate(nil, u.Object, live.Object, c.validator, validation.WithRatcheting(both))
		old, options = live.Object, []cel.Option{cel.WithRatcheting(both)}
	}
	wrong = append(wrong, listtype.ValidateListSetsAndMaps(nil, c.fields, u.Object)...)
	if c.rules == nil {
		return wrong
	}
	for _, err := range wrong {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(wrong, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	broken, _ := c.rules.Validate(context.Background(), nil, c.fields, u.Object, old, celconfig.RuntimeCELCostBudget, options...)
	return append(wrong, broken...)
}

// reread makes of what is stored what reading it gives since a CRD has changed.
func (s *Server) reread(k Kind) {
	c := s.structureOf(k)
	if c == nil {
		return
	}
	for _, p := range s.Places() {
		if p.Group != k.Group || p.Resource != k.Plural {
			continue
		}
		now := s.Objects[p].DeepCopy()
		if c.conform(now); !Same(now.Object, s.Objects[p].Object) {
			s.Objects[p] = now
		}
	}
}
