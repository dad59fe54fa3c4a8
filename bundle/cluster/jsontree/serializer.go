package jsontree

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serializers are the dynamic client's, but for JSON objects that they read at once. (The
// dynamic client reads each text six times.)
type Serializers struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes are the dynamic client's.
func (q Serializers) SupportedMediaTypes() []runtime.SerializerInfo {
	all := slices.Clone(q.NegotiatedSerializer.SupportedMediaTypes())
	for i := range all {
		if all[i].MediaType == runtime.ContentTypeJSON {
			all[i].Serializer = serializer{all[i].Serializer}
		}
	}
	return all
}

type serializer struct{ runtime.Serializer }

// Decode reads an object. What is none, or is a list or a Status, is the dynamic client's.
func (q serializer) Decode(text []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if u, ok := into.(*unstructured.Unstructured); ok {
		content, err := Unmarshal(text)
		object := unstructured.Unstructured{Object: content}
		if err == nil && object.GetAPIVersion() != "" && object.GetKind() != "" && object.GetKind() != "Status" && !object.IsList() {
			gvk := object.GroupVersionKind()
			u.Object = object.Object
			return u, &gvk, nil
		}
	}
	return q.Serializer.Decode(text, defaults, into)
}
