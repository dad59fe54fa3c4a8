package rights

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
)

// questions under way at once.
const questions = 16

// reviews is known without discovery; every authenticated user may create one.
var reviews = cluster.Resource{
	GVR: schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"},
	GVK: schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"},
}

// Missing are those of wanted that the user does not have, in the same order.
// What holds in all namespaces is checked once.
func Missing(ctx context.Context, c *cluster.Client, wanted []Right) ([]Right, error) {
	everywhere, err := held(ctx, c, wide(wanted))
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(wanted), func(r Right) bool {
		return everywhere[Right{Verb: r.Verb, Resource: r.Resource}]
	})
	narrow, err := held(ctx, c, rest)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rest, func(r Right) bool { return narrow[r] }), nil
}

// wide are the rights without their namespaces and names, each once.
func wide(rights []Right) []Right {
	all := bundle.SetOf(rights, func(r Right) Right { return Right{Verb: r.Verb, Resource: r.Resource} })
	return slices.SortedFunc(maps.Keys(all), compare)
}

func held(ctx context.Context, c *cluster.Client, rights []Right) (map[Right]bool, error) {
	answers := map[Right]bool{}
	var mu sync.Mutex
	return answers, bundle.AtOnce(ctx, questions, rights, func(ctx context.Context, r Right) error {
		allowed, err := ask(ctx, c, r)
		if err != nil {
			return fmt.Errorf("check for the right to %s: %w", r, err)
		}
		mu.Lock()
		defer mu.Unlock()
		answers[r] = allowed
		return nil
	})
}

func ask(ctx context.Context, c *cluster.Client, r Right) (bool, error) {
	resource, subresource, _ := strings.Cut(r.Resource.Resource, "/")
	attributes := map[string]any{"verb": r.Verb, "group": r.Resource.Group, "resource": resource}
	for key, value := range map[string]string{"namespace": r.Namespace, "name": r.Name, "subresource": subresource} {
		if value != "" {
			attributes[key] = value
		}
	}
	u := bundle.V1(bundle.ID{GroupKind: reviews.GVK.GroupKind()}, map[string]any{"spec": map[string]any{"resourceAttributes": attributes}})
	answer, err := c.Create(ctx, reviews, u, cluster.Write{})
	if err != nil {
		return false, err
	}
	return bundle.At[bool](answer.Object, "status", "allowed"), nil
}
