package bundle

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// What slices and maps of the standard library do not have.

// Each is what of makes of each one; nil of none.
func Each[T, U any](all []T, of func(T) U) []U {
	made := slices.Grow([]U(nil), len(all))
	for _, one := range all {
		made = append(made, of(one))
	}
	return made
}

// Where are those that a function holds for; nil if there is none.
func Where[T any](all []T, holds func(T) bool) (found []T) {
	for _, one := range all {
		if holds(one) {
			found = append(found, one)
		}
	}
	return found
}

// SetOf is the set of what of makes of each one.
func SetOf[T any, K comparable](all []T, of func(T) K) sets.Set[K] {
	set := sets.Set[K]{}
	for _, one := range all {
		set.Insert(of(one))
	}
	return set
}

// IDs are those of objects.
func IDs(objects []*Object) sets.Set[ID] {
	ids := make(sets.Set[ID], len(objects))
	for _, o := range objects {
		ids.Insert(o.ID)
	}
	return ids
}

// By are values by their keys. Of several with one key it is the last.
func By[T any, K comparable](all []T, key func(T) K) map[K]T {
	found := make(map[K]T, len(all))
	for _, one := range all {
		found[key(one)] = one
	}
	return found
}

// ByID are objects by their IDs.
func ByID(objects []*Object) map[ID]*Object { return By(objects, func(o *Object) ID { return o.ID }) }

// Groups are values by their keys, in the order in which the keys came.
type Groups[K comparable, V any] struct {
	Keys []K
	Of   map[K][]V
}

// Add adds values to a group.
func (g *Groups[K, V]) Add(key K, values ...V) {
	of, known := g.Of[key]
	if !known {
		g.Keys = append(g.Keys, key)
	}
	if g.Of == nil {
		g.Of = map[K][]V{}
	}
	g.Of[key] = append(of, values...)
}

// All are the groups.
func (g *Groups[K, V]) All() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.Keys {
			if !yield(key, g.Of[key]) {
				return
			}
		}
	}
}

// GroupBy groups values by their keys.
func GroupBy[K comparable, V any](all []V, key func(V) K) *Groups[K, V] {
	groups := &Groups[K, V]{}
	for _, one := range all {
		groups.Add(key(one), one)
	}
	return groups
}
