package validate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The types of ObjectMeta, as the server publishes them, without descriptions.
// A test compares them, and can write them again.
//
//go:embed metadata.json
var metadataJSON []byte

var metadataModels = sync.OnceValues(func() (map[string]*spec.Schema, error) {
	models := map[string]*spec.Schema{}
	err := json.Unmarshal(metadataJSON, &models)
	return models, err
})

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// models are the types of a version's objects, for server-side apply. The
// server has them from apiextensions-apiserver's pkg/controller/openapi/builder,
// which makes a whole OpenAPI document with routes, and brings in with it what
// an API server is made of; a test compares the two.
func models(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (map[string]*spec.Schema, error) {
	metadata, err := metadataModels()
	if err != nil {
		return nil, fmt.Errorf("read the types of metadata: %w", err)
	}
	structural, err := servedSchema(v)
	if err != nil {
		return nil, err
	}
	model := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	if structural != nil {
		model = structural.ToKubeOpenAPI()
		addTypeAndMetadata(model)
		addEmbedded(model)
	}
	model.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": d.Spec.Group, "version": v.Name, "kind": d.Spec.Names.Kind},
	})
	all := maps.Clone(metadata)
	all[modelName(d.Spec.Group, v.Name, d.Spec.Names.Kind)] = model
	return all, nil
}

// internalSchema is a version's schema as the server's library has it; nil is any
// object.
func internalSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, error) {
	if v.Schema == nil {
		return nil, nil //nolint:nilnil // any object
	}
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, internal, nil); err != nil {
		return nil, fmt.Errorf("read the schema of version %s: %w", v.Name, err)
	}
	return internal.OpenAPIV3Schema, nil
}

// servedSchema is a version's schema where it is structural; nil is any
// object.
func servedSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*structuralschema.Structural, error) {
	props, err := internalSchema(v)
	if err != nil || props == nil || crdvalidation.SchemaHasInvalidTypes(props) {
		return nil, err
	}
	s, err := structuralschema.NewStructural(props)
	if err != nil || len(structuralschema.ValidateStructural(nil, s)) > 0 {
		return nil, nil //nolint:nilnil,nilerr // any object
	}
	return s.Unfold(), nil
}

func addTypeAndMetadata(s *spec.Schema) {
	text := func() spec.Schema { return *spec.StringProperty() }
	s.SetProperty("apiVersion", text())
	s.SetProperty("kind", text())
	s.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMeta))
}

// addEmbedded gives embedded resources what every object has.
func addEmbedded(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		addEmbedded(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		addEmbedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		addEmbedded(s.AdditionalProperties.Schema)
	}
	if embedded, ok := s.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && embedded {
		addTypeAndMetadata(s)
	}
}

// modelName is how OpenAPI documents name a type: com.example.v1.Kind.
func modelName(group, version, kind string) string {
	parts := strings.Split(group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + version + "." + kind
}
