package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/diff"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
)

// brine get: objects as they are, with who owns them.

// Query names objects of one kind on the cluster.
type Query struct {
	// Kind is KIND or KIND.GROUP, APIVersion GROUP/VERSION or "".
	Kind, APIVersion string
	// Name is "" for all, Namespace for all namespaces.
	Name, Namespace string
	Labels, Fields  string // selectors
	// ReadyWhen is a CEL expression in place of the objects' own.
	ReadyWhen string
	// Secrets shows the values of Secrets. Without it they are masked.
	Secrets bool
}

// Found are the objects of a Query, each with its readiness: the document of
// brine get -o json.
type Found struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Objects    []map[string]any `json:"objects"`
	Readiness  []Readiness      `json:"readiness"`
}

// Readiness is the state of an object, as a run waits for it.
type Readiness struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// Get reads objects as they are now. One that is proven not to be there is not
// among them. A kind that the cluster does not serve is an error.
func Get(ctx context.Context, c *cluster.Client, q Query) (*Found, error) {
	var secrets report.Secrets
	c.OnSecret(secrets.Read)
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	resource, err := q.resource(c)
	if err != nil {
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
	}
	if !resource.Namespaced {
		q.Namespace = ""
	}
	objects, err := q.read(ctx, c, resource)
	if err != nil {
		return nil, err
	}
	found := &Found{APIVersion: "brine.dev/v1", Kind: "Objects", Objects: []map[string]any{}, Readiness: []Readiness{}}
	given, err := q.rules(resource.GVK)
	if err != nil {
		return nil, err
	}
	hints := ReadHints(ctx, c, []bundle.ID{{GroupKind: resource.GVK.GroupKind()}}, nil)
	said, begin := ready.SaidBy{}, time.Now()
	for i := range objects {
		said.Hear(resource.GVK.GroupKind(), &objects[i])
	}
	for i := range objects {
		live := &objects[i]
		id := bundle.ID{GroupKind: resource.GVK.GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName()}
		rules := given
		if rules == nil {
			rules, _ = ready.Table(nil).Rules(&bundle.Object{ID: id, GVK: live.GroupVersionKind(), Content: live})
		}
		status := firstStatus(c, said, live, rules, ready.Of(live, rules, hints), begin, 0)
		content, reason := live.Object, status.Reason
		if !q.Secrets {
			secrets.Public(id.Name, id.Namespace)
			content, reason = diff.Shown(live, secrets.Text), secrets.Text(reason)
			// What Shown leaves out: the server sets it.
			if metadata, ok := content["metadata"].(map[string]any); ok {
				for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"} {
					if value, ok, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", key); ok {
						metadata[key] = value
					}
				}
			}
			if status, ok := live.Object["status"]; ok {
				content["status"] = diff.Rewrite(status, secrets.Text)
			}
		}
		found.Objects = append(found.Objects, content)
		found.Readiness = append(found.Readiness, Readiness{State: string(status.State), Reason: reason})
	}
	return found, nil
}

// rules are those of ReadyWhen; nil without it: each object's own annotations count.
func (q Query) rules(gvk schema.GroupVersionKind) (*ready.Rules, error) {
	if q.ReadyWhen == "" {
		return nil, nil //nolint:nilnil // documented
	}
	rules, err := ready.When(q.ReadyWhen, gvk.GroupKind())
	if err != nil {
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{fmt.Errorf("%s: %w", remedy.ReadyWhen, err)}}
	}
	return rules, nil
}

func (q Query) read(ctx context.Context, c *cluster.Client, r cluster.Resource) ([]unstructured.Unstructured, error) {
	if q.Name == "" {
		objects, err := c.List(ctx, r, q.Namespace, q.Labels, q.Fields)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.GVR.Resource, err)
		}
		return objects, nil
	}
	id := bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: q.Namespace, Name: q.Name}
	live, err := c.Get(ctx, r, id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", bundle.Name(id), err)
	}
	if live == nil {
		return nil, nil
	}
	return []unstructured.Unstructured{*live}, nil
}

// resource finds how the kind is served. What a group that cannot be discovered
// serves is unknown: that is the error then.
func (q Query) resource(c *cluster.Client) (cluster.Resource, error) {
	kind, group, grouped := strings.Cut(q.Kind, ".")
	if q.APIVersion != "" {
		gv, err := schema.ParseGroupVersion(q.APIVersion)
		if err != nil {
			return cluster.Resource{}, fmt.Errorf("API version %q: %w", q.APIVersion, err)
		}
		r, err := c.Resource(gv.WithKind(kind))
		if failed := c.Failed(gv.Group); err != nil && failed != nil {
			err = failed
		}
		if err != nil {
			return r, fmt.Errorf("find kind %s of %s: %w", kind, q.APIVersion, err)
		}
		return r, nil
	}
	all, failed := c.Listable()
	fits := slices.DeleteFunc(all, func(r cluster.Resource) bool {
		return !strings.EqualFold(r.GVK.Kind, kind) && r.GVR.Resource != kind || grouped && r.GVK.Group != group
	})
	switch groups := bundle.SetOf(fits, func(r cluster.Resource) string { return r.GVK.Group }); {
	case len(groups) > 1:
		return cluster.Resource{}, fmt.Errorf("several groups serve the kind %s: write KIND.GROUP", kind)
	case len(groups) == 1:
		return c.Any(fits[0].GVK.GroupKind())
	}
	for gv, err := range failed {
		if !grouped || gv.Group == group {
			return cluster.Resource{}, fmt.Errorf("find kind %s: %s cannot be discovered: %w", q.Kind, gv, err)
		}
	}
	return cluster.Resource{}, fmt.Errorf("the cluster does not serve the kind %s", q.Kind)
}
