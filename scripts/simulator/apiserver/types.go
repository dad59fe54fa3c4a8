package apiserver

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// builtInTypes are the types that the API server publishes, in which lists are maps or sets.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// otherTypes has those of custom resources without a schema: only the metadata has a type.
var otherTypes = sync.OnceValue(func() *typed.Parser {
	parser, err := typed.NewParser(`types:
- name: object
  map:
    fields:
    - name: metadata
      type: {namedType: metadata}
    elementType: {namedType: deduced}
- name: metadata
  map:
    fields:
    - name: annotations
      type: {map: {elementType: {scalar: string}}}
    - name: labels
      type: {map: {elementType: {scalar: string}}}
    - name: finalizers
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    - name: ownerReferences
      type: {list: {elementType: {namedType: deduced}, elementRelationship: associative, keys: [uid]}}
    - name: managedFields
      type: {list: {elementType: {namedType: atomic}, elementRelationship: atomic}}
    elementType: {namedType: deduced}
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
- name: deduced
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: deduced}, elementRelationship: separable}
`)
	if err != nil {
		panic(err)
	}
	return parser
})

// untyped converts objects of otherTypes.
type untyped struct{}

func (untyped) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return otherTypes().Type("object").FromUnstructured(o.(*unstructured.Unstructured).UnstructuredContent(), opts...) //nolint:forcetypeassert // there are no others here
}

func (untyped) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	content, _ := v.AsValue().Unstructured().(map[string]any)
	return &unstructured.Unstructured{Object: content}, nil
}

// managed is what a field manager is for.
type managed struct {
	gvk schema.GroupVersionKind
	as  *structure
}

func (s *Server) manager(k Kind) *managedfields.FieldManager {
	of := managed{k.GroupVersionKind, s.structureOf(k)}
	m := s.managers[of]
	if m == nil {
		var types managedfields.TypeConverter = untyped{}
		switch {
		case of.as != nil:
			types = of.as.types
		case scheme.Scheme.Recognizes(of.gvk):
			types = builtInTypes()
		}
		if m = managedfieldstest.NewFakeFieldManager(types, of.gvk); k.isCustom() {
			m = s.customManager(k, types)
		}
		s.managers[of] = m
	}
	return m
}

// unconditional are the kinds of which a PUT needs no resourceVersion.
var unconditional = []string{"ConfigMap", "Secret", "Namespace", "Deployment", "Job", "CronJob", "ReplicaSet", "PersistentVolumeClaim", "Pod", "Event", "ServiceAccount"}

// internalize is what reading into the server's own types and back makes of an object: empty
// metadata is dropped, stringData becomes data, and what is not said gets its default.
func internalize(k Kind, u *unstructured.Unstructured) {
	if m, _ := u.Object["metadata"].(map[string]any); m != nil {
		for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			switch v := m[key].(type) {
			case map[string]any:
				if len(v) == 0 {
					delete(m, key)
				}
			case []any:
				if len(v) == 0 {
					delete(m, key)
				}
			case nil:
				delete(m, key)
			}
		}
	}
	switch k.Kind {
	case "Secret":
		given, _ := u.Object["stringData"].(map[string]any)
		delete(u.Object, "stringData")
		data, _ := u.Object["data"].(map[string]any)
		if data = maps.Clone(data); data == nil {
			data = map[string]any{}
		}
		for key, value := range given {
			text, _ := value.(string)
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		if u.Object["data"] = data; len(data) == 0 {
			delete(u.Object, "data")
		}
		setDefault(u.Object, "Opaque", "type")
	case "PersistentVolumeClaim":
		setDefault(u.Object, "Filesystem", "spec", "volumeMode")
	case "CustomResourceDefinition":
		setDefault(u.Object, "None", "spec", "conversion", "strategy")
	case "Namespace":
		if u.GetName() != "" {
			setDefault(u.Object, u.GetName(), "metadata", "labels", "kubernetes.io/metadata.name")
		}
	case "Deployment":
		defaultDeployment(u)
	case "Job":
		defaultJob(u)
	case "CronJob":
		defaultCronJob(u)
	}
}

func defaultDeployment(u *unstructured.Unstructured) {
	for path, value := range map[string]any{
		"replicas": int64(1), "revisionHistoryLimit": int64(10), "progressDeadlineSeconds": int64(600), "strategy.type": "RollingUpdate",
	} {
		setDefault(u.Object, value, append([]string{"spec"}, strings.Split(path, ".")...)...)
	}
	if kind, _, _ := unstructured.NestedString(u.Object, "spec", "strategy", "type"); kind == "RollingUpdate" {
		setDefault(u.Object, "25%", "spec", "strategy", "rollingUpdate", "maxSurge")
		setDefault(u.Object, "25%", "spec", "strategy", "rollingUpdate", "maxUnavailable")
	}
	setDefault(u.Object, "Always", "spec", "template", "spec", "restartPolicy")
	defaultPods(u.Object, "spec", "template", "spec")
}

// defaultPods fills a pod's spec at a path.
func defaultPods(object map[string]any, path ...string) {
	for key, value := range map[string]any{"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": map[string]any{}, "terminationGracePeriodSeconds": int64(30)} {
		setDefault(object, value, append(slices.Clone(path), key)...)
	}
	containers, _, _ := unstructured.NestedFieldNoCopy(object, append(slices.Clone(path), "containers")...)
	list, _ := containers.([]any)
	for _, one := range list {
		c, _ := one.(map[string]any)
		image, _ := c["image"].(string)
		pull := "IfNotPresent"
		if !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
			pull = "Always"
		}
		for key, value := range map[string]any{"imagePullPolicy": pull, "resources": map[string]any{}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"} {
			setDefault(c, value, key)
		}
		ports, _ := c["ports"].([]any)
		for _, port := range ports {
			if p, ok := port.(map[string]any); ok {
				setDefault(p, "TCP", "protocol")
			}
		}
	}
}

func setDefault(object map[string]any, value any, path ...string) {
	if _, found, _ := unstructured.NestedFieldNoCopy(object, path...); !found {
		_ = unstructured.SetNestedField(object, value, path...)
	}
}

// blank is what the server has before an object is created: of its own kinds, a value of
// their Go type.
func (k Kind) blank() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if o, err := scheme.Scheme.New(k.GroupVersionKind); err == nil {
		u.Object, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	}
	if k.Kind == "CustomResourceDefinition" {
		u.Object["spec"] = map[string]any{"group": "", "names": map[string]any{"kind": "", "plural": ""}, "scope": "", "versions": nil}
	}
	u.SetGroupVersionKind(k.GroupVersionKind)
	return u
}

// isCustom says whether a kind is one of a CRD.
func (k Kind) isCustom() bool {
	return k != admission && !slices.Contains(builtIn, k)
}
