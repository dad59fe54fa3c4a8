package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/jsonpath"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/plan"
)

// Apply-time mutation (config.kubernetes.io/apply-time-mutation).

// Body is what is sent of an object, as JSON.
type Body struct {
	JSON   []byte
	Secret bool // an apply-time mutation put values of Secrets into it
}

// Mutate does an object's apply-time mutations
// (config.kubernetes.io/apply-time-mutation, as cli-utils' mutator does them):
// fields of other objects, as they are on the cluster now, replace its own or a
// token in them. The error is ErrNoSource where the cluster has no such object.
func (w *Writer) Mutate(ctx context.Context, s *plan.Step) (Body, error) {
	body := Body{JSON: s.Body}
	if !mutation.HasAnnotation(s.Object.Content) {
		return body, nil
	}
	subs, err := mutation.ReadAnnotation(s.Object.Content)
	if err != nil {
		return body, err
	}
	content := s.Object.Content.DeepCopy()
	if s.ID.Name != "" {
		w.Inventory.SetOwner(content)
	}
	sources := map[bundle.ID]*unstructured.Unstructured{}
	for _, sub := range subs {
		id, source, err := w.source(ctx, s, sub, sources)
		if err != nil {
			return body, err
		}
		if id.GroupKind == bundle.SecretKind {
			body.Secret = true
			w.Quotes(s.ID, source)
		}
		if err := substitute(content, source, sub); err != nil {
			return body, fmt.Errorf("apply-time mutation of %s from %s of %s: %w", sub.TargetPath, sub.SourcePath, bundle.Name(id), err)
		}
	}
	bundle.FoldStringData(content.Object)
	if body.JSON, err = json.Marshal(content.Object); err != nil {
		return body, fmt.Errorf("apply-time mutation: encode: %w", err)
	}
	return body, nil
}

func (w *Writer) source(ctx context.Context, step *plan.Step, s mutation.FieldSubstitution, known map[bundle.ID]*unstructured.Unstructured) (bundle.ID, *unstructured.Unstructured, error) {
	id := s.SourceRef.ToObjMetadata()
	resource, err := w.Client.Any(id.GroupKind)
	if err != nil {
		return id, nil, fmt.Errorf("apply-time mutation of %s: %w", s.TargetPath, err)
	}
	if resource.Namespaced && id.Namespace == "" {
		id.Namespace = step.ID.Namespace
	}
	if live := known[id]; live != nil {
		return id, live, nil
	}
	live, err := w.Client.Get(ctx, resource, id)
	switch {
	case err != nil:
		return id, nil, fmt.Errorf("apply-time mutation of %s: read %s: %w", s.TargetPath, bundle.Name(id), err)
	case live == nil:
		return id, nil, fmt.Errorf("apply-time mutation of %s: %w: %s", s.TargetPath, ErrNoSource, bundle.Name(id))
	}
	known[id] = live
	return id, live, nil
}

// ErrNoSource is that the object which an apply-time mutation reads is not on the
// cluster.
var ErrNoSource = fmt.Errorf("its source is not on the cluster")

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
	if v, ok := value.(int); ok && int(float64(v)) != v { // how cli-utils sets a number
		return errors.New("source: a whole number beyond 2^53 cannot be copied exactly: use a token, in a text")
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
