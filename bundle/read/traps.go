package read

import (
	"slices"
	"strings"

	"brine/bundle"
)

// Values that YAML or a template engine made something else of than was meant.

// traps finds values that YAML reads as another type than they look like. Free
// content (data, annotations, a custom resource's own fields) is not checked.
func (k *checker) traps(obj *bundle.Object) {
	k.group, k.kind = obj.GVK.Group, obj.GVK.Kind
	k.crd = k.kind == "CustomResourceDefinition"
	k.builtIn = !k.crd && bundle.IsBuiltIn(obj.GVK.Group)
	k.path = k.path[:0]
	k.inside(obj.Content.Object)
}

// inside checks the fields inside a value.
func (k *checker) inside(v any) {
	m, _ := v.(map[string]any)
	k.parts(v, func(key string, part any) {
		if m == nil || !k.field(m, key, part) {
			k.inside(part)
		}
	})
}

// parts calls do for each field of a mapping, and each item of a list (whose key is ""), with
// its path in k. It is false for another value.
func (k *checker) parts(v any, do func(key string, part any)) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, part := range v {
			k.path = k.path.Field(key)
			do(key, part)
			k.path = k.path[:len(k.path)-1]
		}
	case []any:
		for i, part := range v {
			k.path = k.path.Item(i)
			do("", part)
			k.path = k.path[:len(k.path)-1]
		}
	default:
		return false
	}
	return true
}

// field checks one field and reports whether that was all there is to it.
func (k *checker) field(m map[string]any, key string, v any) bool {
	switch {
	case k.ownMetadata() && (key == "name" || key == "namespace"):
		return true
	case k.textMap(key):
		k.texts(v)
		return true
	case k.ownMetadata():
		return false
	case key == "creationTimestamp" && v == nil && k.parent(1) == "metadata":
		delete(m, key) // what Go's encoders leave in every pod template
		return true
	case key == "image" && isNone(key, v):
		k.problem("%s", saysNone)
		return true
	case !k.builtIn:
		return false
	case key == "name", key == "namespace", key == "image", strings.HasSuffix(key, "Name"):
		return k.reference(key, v)
	case key == "value" && slices.Contains([]string{"env", "tolerations", "taints", "httpHeaders"}, k.parent(1)),
		key == "values" && slices.Contains([]string{"matchExpressions", "matchFields"}, k.parent(1)),
		key == "command", key == "args":
		k.texts(v)
		return true
	}
	return false
}

// ownMetadata: the field is one of the object's own metadata, whose name and
// namespace are checked already.
func (k *checker) ownMetadata() bool {
	return len(k.path) == 2 && k.path[0].Key == "metadata"
}

// parent is the key of the nth mapping around the field, passing over lists.
func (k *checker) parent(n int) string {
	for i := len(k.path) - 2; i >= 0; i-- {
		if k.path[i].Index >= 0 {
			continue
		}
		if n--; n == 0 {
			return k.path[i].Key
		}
	}
	return ""
}

// textMap: Kubernetes wants the values of this mapping to be text.
func (k *checker) textMap(key string) bool {
	switch key {
	case "labels", "annotations":
		return k.ownMetadata() || !k.crd && k.parent(1) == "metadata" && strings.Contains(strings.ToLower(k.parent(2)), "template")
	case "matchLabels", "nodeSelector":
		return !k.crd && k.parent(1) != "properties"
	case "data", "binaryData", "stringData":
		return k.group == "" && (k.kind == "ConfigMap" || k.kind == "Secret") && len(k.path) == 1
	case "selector":
		return k.group == "" && (k.kind == "Service" || k.kind == "ReplicationController") && len(k.path) == 2
	case "parameters":
		return k.group == "storage.k8s.io" && k.kind == "StorageClass" && len(k.path) == 1
	}
	return false
}

// texts wants v to be text, or its values to be.
func (k *checker) texts(v any) {
	if !k.parts(v, func(_ string, part any) { k.text(part) }) {
		k.text(v)
	}
}

func (k *checker) text(v any) {
	switch v.(type) {
	case nil, string:
		return
	case map[string]any, []any:
		if !k.builtIn && !slices.Contains([]string{"labels", "annotations"}, k.parent(1)) {
			return // a custom resource's nodeSelector may be a selector
		}
	}
	k.problem("%s", k.notText(v, k.path))
}

// reference checks a field of a built-in kind that names something.
func (k *checker) reference(key string, v any) bool {
	switch v := v.(type) {
	case map[string]any, []any:
		return false
	case string:
		if hasJinja(v) {
			k.problem("%s", leftOver)
		} else if isNone(key, v) {
			k.problem("%s", saysNone)
		}
	case nil:
	default:
		k.problem("%s", k.notText(v, k.path))
	}
	return true
}

const (
	leftOver = "Jinja is left over ({{ … }} or {% … %}): render the file before it gets here"
	saysNone = "None is what Python makes of a value that is not set: set it in the pillar, or give the template a default"
)

// isNone: a name is None as a whole, an image also where its registry, a part of
// its path, its tag or its digest is: reg/None:None.
func isNone(key string, v any) bool {
	s, _ := v.(string)
	if key != "image" {
		return s == "None"
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == ':' || r == '@' })
	return slices.Contains(parts, "None")
}

func hasJinja(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "{%")
}
