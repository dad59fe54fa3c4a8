package cluster

import (
	"fmt"
	"hash/maphash"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharing lets the objects of a LIST share the equal parts of their managedFields, which
// take about as much memory as all else of a small object. They are never changed in place.
type sharing struct {
	seed    maphash.Seed
	trees   map[uint64]map[string]any // fieldsV1 by hash
	entries map[string]map[string]any // by the tree's address and the other fields
}

func newSharing() *sharing {
	return &sharing{seed: maphash.MakeSeed(), trees: map[uint64]map[string]any{}, entries: map[string]map[string]any{}}
}

func (s *sharing) managedFields(u *unstructured.Unstructured) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for i := range entries {
		entry, _ := entries[i].(map[string]any)
		tree, ok := entry["fieldsV1"].(map[string]any)
		if !ok {
			continue
		}
		hash := s.hash(tree)
		switch known, ok := s.trees[hash]; {
		case !ok:
			s.trees[hash] = tree
		case sameTree(known, tree):
			entry["fieldsV1"], tree = known, known
		default:
			continue
		}
		key := fmt.Appendf(nil, "%p", tree)
		texts := 0
		for _, name := range []string{"manager", "operation", "apiVersion", "time", "fieldsType", "subresource"} {
			if text, ok := entry[name].(string); ok {
				texts++
				key = strconv.AppendQuote(append(key, name...), text)
			}
		}
		if texts+1 != len(entry) {
			continue
		}
		if known, ok := s.entries[string(key)]; ok {
			entries[i] = known
		} else {
			s.entries[string(key)] = entry
		}
	}
}

func (s *sharing) hash(tree map[string]any) uint64 {
	const mix = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio
	sum := uint64(len(tree))
	for key, below := range tree {
		h := maphash.String(s.seed, key)
		if below, ok := below.(map[string]any); ok {
			h ^= s.hash(below) * mix
		}
		sum += h * mix
	}
	return sum
}

func sameTree(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, below := range a {
		left, ok := below.(map[string]any)
		right, both := b[key].(map[string]any)
		if !ok || !both || !sameTree(left, right) {
			return false
		}
	}
	return true
}
