package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/validate"
)

// A kind that is not served says nothing of its objects: its CRD may serve no
// version for a while, its API server may be down, discovery may be behind. That
// there are none is proven if no CRD defines the kind and no API server other
// than the cluster's own serves its group. Of a built-in kind it is proven only where
// this version of Kubernetes has removed it: its objects cannot be reached, and count as
// deleted. A 404 alone proves nothing but of the object that it names.

// ServedOrAbsent proves that there are no objects of a kind that discovery does not
// know. Its error is the reason why that is not proven. Where a CRD turns out to
// serve the kind after all, it is known from now on and Served is true.
func (c *Client) ServedOrAbsent(ctx context.Context, gk schema.GroupKind) (served bool, err error) {
	if err := c.Failed(gk.Group); err != nil {
		return false, err
	}
	if err := c.absentBackend(ctx, gk); err != nil {
		return false, err
	}
	names, err := c.ListMetadata(ctx, CRDs, "", "")
	if err != nil {
		return false, unproven(gk.String(), "CRDs", err)
	}
	for i := range names {
		if !strings.HasSuffix(names[i].Name, "."+gk.Group) {
			continue
		}
		crd, err := c.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: names[i].Name})
		if err != nil {
			return false, unproven(gk.String(), "CRD "+names[i].Name, err)
		}
		if crd == nil {
			continue
		}
		if d, _ := bundle.DefinitionOf(crd); d.Kind != gk {
			continue
		}
		resources := Defined(crd)
		for _, r := range resources {
			c.Learn(r)
		}
		if len(resources) == 0 {
			return false, fmt.Errorf("%w: %s, whose CRD %s serves no version", answers.ErrNotServed, gk, crd.GetName())
		}
		return true, nil
	}
	return false, c.removed(ctx, gk)
}

// LearnDefined makes the kinds known that CRDs define and discovery does not know: an API
// server learns of a CRD later than the one that stored it.
func (c *Client) LearnDefined(ctx context.Context) error {
	crds, err := c.ListMetadata(ctx, CRDs, "", "")
	if err != nil {
		return fmt.Errorf("list the CRDs, whose kinds discovery may not know yet: %w", err)
	}
	all, _ := c.Listable()
	known := bundle.SetOf(all, func(r Resource) string { return r.GVR.GroupResource().String() })
	for i := range crds {
		if known.Has(crds[i].Name) {
			continue
		}
		crd, err := c.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: crds[i].Name})
		if err != nil {
			return fmt.Errorf("read CRD %s, whose kind discovery does not know: %w", crds[i].Name, err)
		}
		if crd == nil || !isEstablished(crd) { // there can be no objects
			continue
		}
		for _, r := range Defined(crd) {
			c.Learn(r)
		}
	}
	return nil
}

func isEstablished(crd *unstructured.Unstructured) bool {
	return slices.ContainsFunc(bundle.Items[map[string]any](crd.Object, "status", "conditions"), func(c map[string]any) bool {
		return c["type"] == "Established" && c["status"] == "True"
	})
}

// removed proves that a built-in kind was removed from Kubernetes: nil also for any other.
func (c *Client) removed(ctx context.Context, gk schema.GroupKind) error {
	if !validate.BuiltIn(gk) {
		return nil
	}
	var info struct{ GitVersion string }
	err := c.retry(ctx, func(ctx context.Context) error {
		text, err := c.raw.Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &info)
	})
	if err != nil {
		return unproven(gk.String(), "the server's version", err)
	}
	switch gone, later, err := validate.Removed(gk, info.GitVersion); {
	case err == nil && gone:
		return nil
	case err == nil && later:
		return fmt.Errorf("%w: %s, %w (%s)", answers.ErrNotServed, gk, errLater, info.GitVersion)
	}
	return fmt.Errorf("%w: %s, though Kubernetes %s has it", answers.ErrNotServed, gk, info.GitVersion)
}

// errLater: after a downgrade, objects of the kind may still be stored.
var errLater = errors.New("which this version of Kubernetes does not have yet")

// AnyOrAbsent is Any for a kind that discovery may not know yet. Its error is the
// reason why it is not known, and not proven either, whether there are objects.
func (c *Client) AnyOrAbsent(ctx context.Context, gk schema.GroupKind) (r Resource, served bool, err error) {
	if r, err = c.Any(gk); err == nil {
		return r, true, nil
	}
	if served, err = c.ServedOrAbsent(ctx, gk); err != nil || !served {
		return r, false, err
	}
	r, err = c.Any(gk)
	return r, err == nil, err
}

// Find is Get for an object of a kind that discovery may not know yet.
func (c *Client) Find(ctx context.Context, id bundle.ID) (*unstructured.Unstructured, error) {
	r, served, err := c.AnyOrAbsent(ctx, id.GroupKind)
	if err != nil || !served {
		return nil, err
	}
	return c.Get(ctx, r, id)
}

// absent proves the same of a resource whose name is known: nil if there is no
// such resource any more.
func (c *Client) absent(ctx context.Context, r Resource) error {
	name := r.GVR.GroupResource().String()
	crd, err := c.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: name})
	switch {
	case err != nil:
		return unproven(name, "CRD "+name, err)
	case crd != nil:
		return fmt.Errorf("%w: CRD %s is there", answers.ErrNotServed, name)
	}
	if err := c.absentBackend(ctx, r.GVK.GroupKind()); err != nil {
		return err
	}
	return c.removed(ctx, r.GVK.GroupKind())
}

// absentBackend proves that no API server other than the cluster's own is to serve a kind's group,
// in whatever version.
func (c *Client) absentBackend(ctx context.Context, gk schema.GroupKind) error {
	services, err := c.List(ctx, APIServices, "", "", "")
	if err != nil {
		return unproven(gk.String(), "APIServices", err)
	}
	for i := range services {
		if group := bundle.At[string](services[i].Object, "spec", "group"); group == gk.Group && hasBackend(&services[i]) {
			return fmt.Errorf("%w: %s, though APIService %s is there for its group", answers.ErrNotServed, gk, services[i].GetName())
		}
	}
	return nil
}

// absentAPIService proves that no API server is to serve a group's version: the cluster's own says
// so itself, with its answer to the request for what that has.
func (c *Client) absentAPIService(ctx context.Context, gv schema.GroupVersion, answer error) error {
	name := gv.Version + "." + gv.Group
	service, err := c.Get(ctx, APIServices, bundle.ID{GroupKind: bundle.APIServiceKind, Name: name})
	switch {
	case err != nil:
		return unproven(gv.String(), "APIService "+name, err)
	case service != nil && (hasBackend(service) || !answers.NotServed(answer)):
		return fmt.Errorf("%w: APIService %s is there", answers.ErrNotServed, name)
	}
	return nil
}

func hasBackend(service *unstructured.Unstructured) bool {
	return bundle.At[map[string]any](service.Object, "spec", "service") != nil
}

func unproven(kind, what string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %s, and there is no right to read %s", answers.ErrNotServed, kind, what)
	}
	return fmt.Errorf("%w: %s; read %s: %w", answers.ErrNotServed, kind, what, err)
}

// missing interprets the answer to a request for one object: true if the object
// is proven not to be there.
func (c *Client) missing(ctx context.Context, r Resource, name string, err error) (bool, error) {
	switch {
	case answers.ProvesAbsence(err, name):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("%w: the answer to the request for %s %s is not one of the API server about it: %w", answers.ErrNotServed, r.GVR.GroupResource(), name, answers.UnservedError(err))
	case !answers.NotServed(err):
		return false, err
	case r.GVR == CRDs.GVR || r.GVR == APIServices.GVR: // every API server serves them
		return false, fmt.Errorf("%w: %s: %w", answers.ErrNotServed, r.GVR.GroupResource(), err)
	}
	if err := c.absent(ctx, r); err != nil {
		return false, err
	}
	return true, nil
}
