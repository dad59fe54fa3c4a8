package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/jsonpath"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
)

// mutated is an object's body after its apply-time mutations
// (config.kubernetes.io/apply-time-mutation, as cli-utils' mutator does them):
// fields of other objects, as they stand on the cluster now, take the place of
// its own or of a token in them.
type mutated struct {
	body   []byte
	secret bool // values of Secrets are in it
}

func (e *execution) mutate(ctx context.Context, n *node) (mutated, error) {
	m := mutated{body: n.Body}
	if !mutation.HasAnnotation(n.Object.Content) {
		return m, nil
	}
	subs, err := mutation.ReadAnnotation(n.Object.Content)
	if err != nil {
		return m, err
	}
	content := n.Object.Content.DeepCopy()
	e.inv.SetOwner(content)
	sources := map[bundle.ID]*unstructured.Unstructured{}
	for _, s := range subs {
		id, source, err := e.source(ctx, n, s, sources)
		if err != nil {
			return m, err
		}
		if id.GroupKind == bundle.SecretKind {
			m.secret = true
			e.record.Secrets.Quotes(n.ID, source)
		}
		if err := substitute(content, source, s); err != nil {
			return m, fmt.Errorf("apply-time mutation of %s from %s of %s: %w", s.TargetPath, s.SourcePath, bundle.Name(id), err)
		}
	}
	if m.body, err = json.Marshal(content.Object); err != nil {
		return m, fmt.Errorf("apply-time mutation: encode: %w", err)
	}
	return m, nil
}

// source reads the object that a substitution takes its value from.
func (e *execution) source(ctx context.Context, n *node, s mutation.FieldSubstitution, known map[bundle.ID]*unstructured.Unstructured) (bundle.ID, *unstructured.Unstructured, error) {
	id := s.SourceRef.ToObjMetadata()
	resource, err := e.client.Any(id.GroupKind)
	if err != nil {
		return id, nil, fmt.Errorf("apply-time mutation of %s: %w", s.TargetPath, err)
	}
	if resource.Namespaced && id.Namespace == "" {
		id.Namespace = n.ID.Namespace
	}
	if live := known[id]; live != nil {
		return id, live, nil
	}
	live, err := e.client.Get(ctx, resource, id)
	switch {
	case err != nil:
		return id, nil, fmt.Errorf("apply-time mutation of %s: read %s: %w", s.TargetPath, bundle.Name(id), err)
	case live == nil:
		return id, nil, fmt.Errorf("apply-time mutation of %s: %w: %s", s.TargetPath, errNoSource, bundle.Name(id))
	}
	known[id] = live
	return id, live, nil
}

var errNoSource = fmt.Errorf("its source is not on the cluster")

// copiesSecret says whether an apply-time mutation put a value of a Secret into
// an object, whose diff must not be shown then.
func copiesSecret(u *unstructured.Unstructured) bool {
	if u == nil || !mutation.HasAnnotation(u) {
		return false
	}
	subs, err := mutation.ReadAnnotation(u)
	if err != nil {
		return true // who knows
	}
	for _, s := range subs {
		if id := s.SourceRef.ToObjMetadata(); id.GroupKind == bundle.SecretKind {
			return true
		}
	}
	return false
}

// substitute does one substitution. Its errors show no value.
func substitute(target, source *unstructured.Unstructured, s mutation.FieldSubstitution) error {
	value, err := one(source, s.SourcePath)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if s.Token != "" {
		old, err := one(target, s.TargetPath)
		if err != nil {
			return fmt.Errorf("target: %w", err)
		}
		text, ok := old.(string)
		if !ok {
			return fmt.Errorf("target: a token can be replaced in text only, and this is a %T", old)
		}
		with, err := asText(value)
		if err != nil {
			return err
		}
		// A target without the token stays as it is, as in cli-utils.
		value = strings.ReplaceAll(text, s.Token, with)
	}
	found, err := jsonpath.Set(target.Object, s.TargetPath, value)
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if found != 1 {
		return fmt.Errorf("target: the path leads to %d fields, not one", found)
	}
	return nil
}

func one(u *unstructured.Unstructured, path string) (any, error) {
	values, err := jsonpath.Get(u.Object, path)
	if err != nil {
		return nil, err
	}
	if len(values) != 1 {
		return nil, fmt.Errorf("the path leads to %d fields, not one", len(values))
	}
	return values[0], nil
}

func asText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case map[string]any, []any, nil:
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("source: encode: %w", err)
		}
		return string(text), nil
	}
	return fmt.Sprint(value), nil
}
