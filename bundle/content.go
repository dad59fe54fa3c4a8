package bundle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
)

// At is what is at a path of fields, if it is a T, else T's zero value. It is no copy.
func At[T any](object map[string]any, path ...string) T {
	v, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	t, _ := v.(T)
	return t
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

// Each is what of makes of each one; nil of none.
func Each[T, U any](all []T, of func(T) U) []U {
	made := slices.Grow([]U(nil), len(all))
	for _, one := range all {
		made = append(made, of(one))
	}
	return made
}

// IDs are those of objects.
func IDs(objects []*Object) sets.Set[ID] {
	ids := make(sets.Set[ID], len(objects))
	for _, o := range objects {
		ids.Insert(o.ID)
	}
	return ids
}

// Groups are values by their keys, in the order in which the keys came.
type Groups[K comparable, V any] struct {
	Keys []K
	Of   map[K][]V
}

// Add adds values to a group.
func (g *Groups[K, V]) Add(key K, values ...V) {
	if _, known := g.Of[key]; !known {
		g.Keys = append(g.Keys, key)
	}
	if g.Of == nil {
		g.Of = map[K][]V{}
	}
	g.Of[key] = append(g.Of[key], values...)
}
