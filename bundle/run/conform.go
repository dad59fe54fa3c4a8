package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/validate"
)

// definitions are the bundle's CRDs of which it holds resources, compiled once.
// What is wrong with a CRD itself, the server says.
func (r *run) definitions() *validate.CRDs {
	if r.crds != nil {
		return r.crds
	}
	kinds := map[schema.GroupKind]bool{}
	for _, o := range r.bundle.Objects {
		kinds[o.ID.GroupKind] = true
	}
	var used []*bundle.Object
	for _, o := range r.bundle.Objects {
		if d, ok := bundle.DefinitionOf(o.Content); ok && kinds[d.Kind] {
			used = append(used, o)
		}
	}
	r.crds, _ = validate.Compile(used)
	return r.crds
}

// conform finds, before the first write, what this run would send although the
// CRD in the same bundle forbids it, as check and preview do. It returns whether
// objects were taken out of the bundle for it (SkipInvalid): there
// has to be another plan then.
func (r *run) conform(ctx context.Context, p *plan.Plan) (skipped bool, err error) {
	sent := r.customResources(p)
	if len(sent) == 0 || r.DryRun != report.None && !r.SkipInvalid { // a preview shows them all, as failed
		return false, nil
	}
	crds := r.definitions()
	found := make([][]bundle.Problem, len(sent))
	bundle.Parallel(len(sent), func(i int) {
		s := sent[i]
		if !crds.Sound(s.ID.GroupKind) || crds.Unverified(s.GVK, s.Live) != "" {
			return // the server knows better
		}
		content := s.Object.Content
		if s.Live != nil {
			content = &unstructured.Unstructured{Object: s.Ignored.Sent(content.Object, s.Live)}
		}
		_, found[i], _ = crds.Check(ctx, s.Object, content, s.Live, true)
	})
	problems := slices.Concat(found...)
	if len(problems) > 0 {
		if problems, err = r.unmendable(ctx, problems); err != nil {
			return false, err
		}
	}
	if len(problems) == 0 {
		return false, nil
	}
	if rest := r.skipInvalid(problems); len(rest) > 0 {
		return false, report.BadBundle(rest...)
	}
	return true, nil
}

// customResources are the steps that send a resource whose CRD is in the bundle
// and will be in force: of an unchanged one the server has nothing to judge, and
// what is still to be mutated cannot be judged.
func (r *run) customResources(p *plan.Plan) []*plan.Step {
	defined := map[schema.GroupKind]bool{}
	for _, s := range p.Steps {
		if !s.Deletes() && s.ID.GroupKind == bundle.CRDKind && s.Blocked == "" && s.Object.Content.GetAnnotations()[bundle.LifecycleMutation] == "" {
			d, _ := bundle.DefinitionOf(s.Object.Content)
			defined[d.Kind] = true
		}
	}
	if len(defined) == 0 {
		return nil
	}
	var sent []*plan.Step
	for _, s := range p.Steps {
		_, mutated := annotation(s, bundle.ApplyTimeMutation)
		if !s.Deletes() && defined[s.ID.GroupKind] && s.Blocked == "" && s.Action != plan.Unchanged && s.ID.Name != "" && !mutated {
			sent = append(sent, s)
		}
	}
	return sent
}

func annotation(s *plan.Step, key string) (string, bool) {
	if s.Object == nil {
		return "", false
	}
	value, ok := s.Object.Content.GetAnnotations()[key]
	return value, ok
}

// mutators are the kinds whose objects change others on their way into the
// server, before it validates them: a field that is missing may not be then.
var mutators = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
}

// unmendable leaves those problems that no mutating webhook or policy, of the
// bundle or of the cluster, can do away with; the others are the server's to
// judge. It is asked only where there are problems.
func (r *run) unmendable(ctx context.Context, problems []bundle.Problem) ([]bundle.Problem, error) {
	var all []map[string]any
	for _, o := range r.bundle.Objects {
		if slices.Contains(mutators, o.ID.GroupKind) {
			all = append(all, o.Content.Object)
		}
	}
	for _, gk := range mutators {
		resource, err := r.client.Any(gk)
		if err != nil {
			continue // this server has none
		}
		live, err := r.client.List(ctx, resource, "", "", "")
		if apierrors.IsForbidden(err) {
			return nil, nil // who knows: the server does
		}
		if err != nil {
			return nil, fmt.Errorf("look for what may change custom resources before they are validated: %w", err)
		}
		for i := range live {
			all = append(all, live[i].Object)
		}
	}
	plurals := map[schema.GroupKind]string{}
	for _, o := range r.bundle.Objects {
		for _, resource := range cluster.Defined(o.Content) {
			plurals[resource.GVK.GroupKind()] = resource.GVR.Resource
		}
	}
	return slices.DeleteFunc(problems, func(p bundle.Problem) bool {
		gr := schema.GroupResource{Group: p.ID.GroupKind.Group, Resource: plurals[p.ID.GroupKind]}
		return slices.ContainsFunc(all, func(m map[string]any) bool { return mutates(m, gr) })
	}), nil
}

// mutates says whether a configuration or policy has a rule for a resource,
// whatever its selectors say.
func mutates(mutator map[string]any, gr schema.GroupResource) bool {
	var rules []any
	webhooks, _, _ := unstructured.NestedFieldNoCopy(mutator, "webhooks")
	list, _ := webhooks.([]any)
	for _, w := range list {
		if webhook, ok := w.(map[string]any); ok {
			more, _ := webhook["rules"].([]any)
			rules = append(rules, more...)
		}
	}
	policy, _, _ := unstructured.NestedFieldNoCopy(mutator, "spec", "matchConstraints", "resourceRules")
	more, _ := policy.([]any)
	for _, r := range append(rules, more...) {
		rule, _ := r.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		if !slices.Contains(groups, gr.Group) && !slices.Contains(groups, "*") {
			continue
		}
		for _, resource := range resources {
			if name, _, _ := strings.Cut(resource, "/"); name == "*" || name == gr.Resource {
				return true
			}
		}
	}
	return false
}
