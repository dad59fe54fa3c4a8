package run

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
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/validate"
)

// compileDefinitions compiles the CRDs of which the bundle holds resources. What is wrong
// with a CRD itself, the server says.
func compileDefinitions(objects []*bundle.Object) *validate.CRDs {
	kinds := map[schema.GroupKind]bool{}
	for _, o := range objects {
		kinds[o.ID.GroupKind] = true
	}
	var used []*bundle.Object
	for _, o := range objects {
		if d, ok := bundle.DefinitionOf(o.Content); ok && kinds[d.Kind] {
			used = append(used, o)
		}
	}
	crds, _ := validate.Compile(used)
	return crds
}

// checkCustomResources finds, before the first write, what this run would send although the
// CRD in the same bundle forbids it, as check and preview do.
func checkCustomResources(ctx context.Context, c *cluster.Client, o *Options, t target, p *plan.Plan) ([]bundle.Problem, error) {
	sent := customResources(p)
	if len(sent) == 0 || o.DryRun != report.None && !o.SkipInvalid { // a preview shows them all, as failed
		return nil, nil
	}
	crds := t.definitions()
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
	return notCorrectable(ctx, c, t.bundle, problems)
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

// storedInOldVersions finds the objects of those CRDs of the bundle whose stored versions
// change.
func storedInOldVersions(ctx context.Context, c *cluster.Client, options plan.Options, now situation) map[bundle.ID]plan.Stored {
	all := map[bundle.ID]plan.Stored{}
	inBundle := map[bundle.ID]bool{}
	for _, o := range now.graph.Objects {
		inBundle[o.ID] = true
	}
	for _, o := range now.graph.Objects {
		crd := now.live.Live[o.ID]
		if m := plan.StoredVersions(o.Content, crd); m != nil && (len(m.Gone) > 0 || options.Migrates(o.Content, crd)) {
			all[o.ID] = storedOf(ctx, c, o, crd, m, inBundle)
		}
	}
	return all
}

// storedOf lists the objects of one CRD, and what they would lose. Those of the bundle
// have in the new version what the bundle says. What a conversion webhook makes of
// the others is known only where the live CRD serves the new version already.
func storedOf(ctx context.Context, c *cluster.Client, o *bundle.Object, crd *unstructured.Unstructured, m *plan.Migration, inBundle map[bundle.ID]bool) (found plan.Stored) {
	resource, err := cluster.DefinedIn(crd, m.To)
	if err != nil {
		return plan.Stored{Err: err}
	}
	items, err := c.List(cluster.Briefly(ctx), resource, "", "", "")
	if err != nil {
		return plan.Stored{Err: err, Later: answers.WebhookFailed(err)}
	}
	found.Count = len(items)
	if !m.Relabels && resource.GVK.Version != m.To {
		return found
	}
	crds, problems := validate.Compile([]*bundle.Object{o})
	if len(problems) > 0 {
		return found // the server refuses the CRD, and nothing is rewritten
	}
	for i := range items {
		id := bundle.ID{GroupKind: resource.GVK.GroupKind(), Namespace: items[i].GetNamespace(), Name: items[i].GetName()}
		if inBundle[id] {
			continue
		}
		items[i].SetGroupVersionKind(resource.GVK)
		fields, err := crds.Dropped(&items[i], m.To)
		if err != nil {
			return plan.Stored{Count: len(items), Err: err}
		}
		for _, field := range fields {
			found.Lost = append(found.Lost, bundle.Name(id)+" "+field)
		}
	}
	return found
}
