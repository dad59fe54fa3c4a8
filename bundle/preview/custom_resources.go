package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/validate"
)

// CheckCustomResources finds, before the first write, what a plan would send although the
// CRD in the same bundle forbids it, as check and preview do.
func CheckCustomResources(ctx context.Context, c *cluster.Client, b *bundle.Bundle, p *plan.Plan, compile func() *validate.CRDs) ([]bundle.Problem, error) {
	sent := customResources(p)
	if len(sent) == 0 {
		return nil, nil
	}
	crds := compile()
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
	if len(problems) == 0 {
		return nil, nil
	}
	return notCorrectable(ctx, c, b, problems)
}

// customResources are the steps that send a resource whose CRD is in the bundle
// and will be in force: of an unchanged one the server has nothing to judge, and
// what is still to be mutated cannot be judged.
func customResources(p *plan.Plan) []*plan.Step {
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
		if s.Deletes() || !defined[s.ID.GroupKind] || s.Blocked != "" || s.Action == plan.Unchanged || s.ID.Name == "" {
			continue
		}
		if _, mutated := s.Object.Content.GetAnnotations()[bundle.ApplyTimeMutation]; !mutated {
			sent = append(sent, s)
		}
	}
	return sent
}

// mutators are the kinds whose objects change others on their way into the
// server, before it validates them: a field that is missing may not be then.
var mutators = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
}

// notCorrectable leaves those problems that no mutating webhook or policy, of the
// bundle or of the cluster, can do away with; the others are the server's to
// judge. It is asked only where there are problems.
func notCorrectable(ctx context.Context, c *cluster.Client, b *bundle.Bundle, problems []bundle.Problem) ([]bundle.Problem, error) {
	var all []map[string]any
	for _, o := range b.Objects {
		if slices.Contains(mutators, o.ID.GroupKind) {
			all = append(all, o.Content.Object)
		}
	}
	for _, gk := range mutators {
		resource, err := c.Any(gk)
		if err != nil {
			continue // this server has none
		}
		live, err := c.List(ctx, resource, "", "", "")
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
	for _, o := range b.Objects {
		for _, resource := range cluster.Defined(o.Content) {
			plurals[resource.GVK.GroupKind()] = resource.GVR.Resource
		}
	}
	return slices.DeleteFunc(problems, func(p bundle.Problem) bool {
		gr := schema.GroupResource{Group: p.ID.GroupKind.Group, Resource: plurals[p.ID.GroupKind]}
		return slices.ContainsFunc(all, func(m map[string]any) bool { return mutates(m, gr) })
	}), nil
}

// mutator is a configuration or policy with the rules for what it changes.
type mutator struct {
	Webhooks []struct {
		Rules []mutatorRule `json:"rules"`
	} `json:"webhooks"`
	Spec struct {
		MatchConstraints struct {
			ResourceRules []mutatorRule `json:"resourceRules"`
		} `json:"matchConstraints"`
	} `json:"spec"`
}

type mutatorRule struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
}

// mutates says whether a configuration or policy has a rule for a resource,
// whatever its selectors say.
func mutates(object map[string]any, gr schema.GroupResource) bool {
	var m mutator
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &m); err != nil {
		return true // who knows
	}
	rules := m.Spec.MatchConstraints.ResourceRules
	for _, webhook := range m.Webhooks {
		rules = append(rules, webhook.Rules...)
	}
	return slices.ContainsFunc(rules, func(r mutatorRule) bool {
		return (slices.Contains(r.APIGroups, gr.Group) || slices.Contains(r.APIGroups, "*")) && slices.ContainsFunc(r.Resources, func(resource string) bool {
			name, _, _ := strings.Cut(resource, "/")
			return name == "*" || name == gr.Resource
		})
	})
}
