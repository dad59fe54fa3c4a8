package bundle

import (
	"encoding/base64"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// At is what is at a path of fields, if it is a T, else T's zero value. It is no copy.
func At[T any](object map[string]any, path ...string) T {
	v, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	t, _ := v.(T)
	return t
}

// FoldStringData moves a Secret's stringData into data, as the server does when it stores one, in a map
// of its own. Other objects stay as they are.
func FoldStringData(secret map[string]any) {
	text, ok := secret["stringData"].(map[string]any)
	if !ok || secret["kind"] != SecretKind.Kind || secret["apiVersion"] != "v1" {
		return
	}
	data := map[string]any{}
	if d, ok := secret["data"].(map[string]any); ok {
		maps.Copy(data, d)
	}
	for key, value := range text {
		if s, ok := value.(string); ok {
			value = base64.StdEncoding.EncodeToString([]byte(s))
		}
		data[key] = value
	}
	delete(secret, "stringData")
	secret["data"] = data
}

// Integer is the integer at a path of fields, and whether there is one.
func Integer(object map[string]any, path ...string) (int, bool) {
	switch n := At[any](object, path...).(type) {
	case int64:
		return int(n), true
	case int:
		return n, true
	case float64:
		return int(n), n == float64(int(n))
	}
	return 0, false
}

// Items are the items of the list at a path of fields that are T's. They are no copies.
func Items[T any](object map[string]any, path ...string) (found []T) {
	for _, v := range At[[]any](object, path...) {
		if t, ok := v.(T); ok {
			found = append(found, t)
		}
	}
	return found
}

// Texts are the fields of the mapping at a path that are texts; nil where there is none.
func Texts(object map[string]any, path ...string) map[string]string {
	m := At[map[string]any](object, path...)
	if len(m) == 0 {
		return nil
	}
	texts := make(map[string]string, len(m))
	for key, v := range m {
		if text, ok := v.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// Decode is what is sent, as an object.
func Decode(body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &u.Object); err != nil {
		return nil, fmt.Errorf("decode what is sent: %w", err)
	}
	return u, nil
}
