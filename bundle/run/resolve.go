package run

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/sls"
)

// resolve settles what the bundle's objects are, with the server's help.
func (r *run) resolve(ctx context.Context) error {
	resolver := read.Resolver{
		Namespace: r.Namespace,
		Scope:     r.client.Scope,
		Hint:      r.hint,
		Strict:    true,
	}
	err := read.Resolve(r.bundle, resolver)
	r.record.Secrets.Bundle(r.bundle.Objects)
	var problems bundle.Problems
	if r.SkipInvalid && errors.As(err, &problems) {
		if problems = r.skipInvalid(problems); len(problems) == 0 {
			err = read.Resolve(r.bundle, resolver)
		}
	}
	if err == nil {
		if slotErr := sls.FillSlots(r.bundle, r.live(ctx)); slotErr != nil {
			return slotErr
		}
		if problems := r.skipInvalid(read.FillDigests(r.bundle)); len(problems) > 0 {
			return report.BadBundle(problems...)
		}
	}
	for _, w := range r.bundle.Warnings {
		r.record.Warn(w.Error())
	}
	if err != nil {
		return &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
	}
	for _, o := range r.bundle.Objects {
		r.client.Prefer(o.GVK)
	}
	return nil
}

// live reads an object that a slot names.
func (r *run) live(ctx context.Context) func(bundle.ID) (*unstructured.Unstructured, error) {
	return func(id bundle.ID) (*unstructured.Unstructured, error) {
		resource, err := r.client.Any(id.GroupKind)
		if err != nil {
			return nil, nil //nolint:nilerr // a kind that is not served has no objects
		}
		return r.client.Get(ctx, resource, id)
	}
}

func (r *run) hint(gvk schema.GroupVersionKind) string {
	versions := r.client.Versions(gvk.GroupKind())
	if len(versions) == 0 {
		return ""
	}
	for i, v := range versions {
		versions[i] = schema.GroupVersion{Group: gvk.Group, Version: v}.String()
	}
	return "the server serves it as " + strings.Join(versions, ", ")
}

// learnKinds makes known what the bundle's CRDs will define.
func (r *run) learnKinds() {
	for _, o := range r.bundle.Objects {
		for _, resource := range cluster.Defined(o.Content) {
			r.client.Learn(resource)
		}
	}
}
