package validate

import (
	"fmt"
	"maps"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"brine/bundle"
)

// A CRD compiled as the server does when it begins to serve it.

// crd is one CustomResourceDefinition, as the server would hold it.
type crd struct {
	object   *bundle.Object
	v1       *apiextensionsv1.CustomResourceDefinition // defaulted
	kind     schema.GroupKind
	broken   bool // the server would refuse it
	versions map[string]*compiled

	typesOnce sync.Once
	types     managedfields.TypeConverter // of all versions
	typesErr  error
}

// compiled is a version of a crd. Schemas and CEL rules take long to compile,
// so it is done when the first object comes.
type compiled struct {
	once sync.Once
	err  error

	structural *structuralschema.Structural // nil if the version has no schema
	schema     validation.SchemaValidator
	rules      *cel.Validator // nil if it has none
	status     bool           // has the status subresource
	scale      *apiextensionsv1.CustomResourceSubresourceScale
	fields     *managedfields.FieldManager
}

func (d *crd) find(version string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.v1.Spec.Versions {
		if v := &d.v1.Spec.Versions[i]; v.Name == version {
			return v
		}
	}
	return nil
}

func (d *crd) storage() string {
	for _, v := range d.v1.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func (d *crd) namespaced() bool {
	return d.v1.Spec.Scope == apiextensionsv1.NamespaceScoped
}

func (d *crd) webhook() bool {
	c := d.v1.Spec.Conversion
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter
}

// version compiles one that exists.
func (d *crd) version(name string) (*compiled, error) {
	c := d.versions[name]
	c.once.Do(func() { c.err = d.compile(name, c) })
	return c, c.err
}

// compile does for one version what the server does when it begins to serve a
// CRD: getOrCreateServingInfoFor in apiextensions-apiserver's
// pkg/apiserver/customresource_handler.go.
func (d *crd) compile(name string, c *compiled) error {
	v := d.find(name)
	if s := v.Subresources; s != nil {
		c.status, c.scale = s.Status != nil, s.Scale
	}
	props, err := internalSchema(v)
	if err != nil {
		return err
	}
	if props != nil {
		s, err := structuralschema.NewStructural(props)
		if err != nil {
			return fmt.Errorf("read the schema of version %s: %w", name, err)
		}
		c.structural = s.DeepCopy() // defaults are shared with props
		if err := defaulting.PruneDefaults(c.structural); err != nil {
			return fmt.Errorf("read the defaults of version %s: %w", name, err)
		}
	}
	if c.schema, _, err = validation.NewSchemaValidator(props); err != nil {
		return fmt.Errorf("read the schema of version %s: %w", name, err)
	}
	c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	return d.manage(name, c)
}

// manage makes what merges an applied object into a live one in this version.
func (d *crd) manage(name string, c *compiled) error {
	d.typesOnce.Do(func() { d.types, d.typesErr = d.typeConverter() })
	if d.typesErr != nil {
		return d.typesErr
	}
	gvk := d.kind.WithVersion(name)
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	if c.status {
		reset[fieldpath.APIVersion(gvk.GroupVersion().String())] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	m, err := managedfields.NewDefaultCRDFieldManager(d.types, converter{d}, defaulter{c.structural}, creator{},
		gvk, gvk.GroupVersion(), "", fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		return fmt.Errorf("read the schema of version %s: %w", name, err)
	}
	c.fields = m
	return nil
}

// typeConverter knows the types of all versions, as server-side apply does.
func (d *crd) typeConverter() (managedfields.TypeConverter, error) {
	all := map[string]*spec.Schema{}
	for i := range d.v1.Spec.Versions {
		of, err := models(d.v1, &d.v1.Spec.Versions[i])
		if err != nil {
			return managedfields.NewDeducedTypeConverter(), nil //nolint:nilerr // so does the server
		}
		maps.Copy(all, of)
	}
	types, err := managedfields.NewTypeConverter(all, d.v1.Spec.PreserveUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("read the schemas of CRD %s: %w", d.v1.Name, err)
	}
	return types, nil
}

// defaulter fills in a version's defaults.
type defaulter struct {
	structural *structuralschema.Structural
}

func (d defaulter) Default(in kruntime.Object) {
	if u, ok := in.(kruntime.Unstructured); ok {
		defaulting.Default(u.UnstructuredContent(), d.structural)
	}
}

type creator struct{}

func (creator) New(gvk schema.GroupVersionKind) (kruntime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// converter is the conversion strategy None: another apiVersion, nothing else.
type converter struct {
	crd *crd
}

var _ kruntime.ObjectConvertor = converter{}

func (c converter) ConvertToVersion(in kruntime.Object, target kruntime.GroupVersioner) (kruntime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok || c.crd.find(to.Version) == nil {
		return nil, fmt.Errorf("the CRD %s has no version %q", c.crd.v1.Name, target)
	}
	if from.Version != to.Version && c.crd.webhook() {
		return nil, fmt.Errorf("only the conversion webhook of CRD %s can turn %s into %s", c.crd.v1.Name, from.Version, to.Version)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(to)
	return out, nil
}

func (c converter) Convert(_, _, _ any) error {
	return fmt.Errorf("convert custom resources: not by type")
}

func (c converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
