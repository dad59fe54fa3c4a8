package preview

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
	"brine/bundle/cluster/answers"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/validate"
)

// Invalid are the problems of each step that sends what the server refuses for what it says,
// as `brine check` finds them without a server.
type Invalid map[*plan.Step]bundle.Problems

// Problems are those of all steps of a plan, in its order.
func (of Invalid) Problems(p *plan.Plan) (all []bundle.Problem) {
	for _, s := range p.Steps {
		all = append(all, of[s]...)
	}
	return all
}

// CheckSent finds, before the first write, what a plan would send although the server
// refuses it for what it says.
func CheckSent(ctx context.Context, in Input) (Invalid, error) {
	found, err := checkCustomResources(ctx, in)
	if err != nil || in.Rollback { // which sends what a server once took: as much of it as possible
		return found, err
	}
	return found, checkBuiltIn(ctx, in, found)
}

// ExplainInvalid says of the objects that fail in a preview what CheckSent finds wrong with
// them, in its words. found: an apply would be refused.
func ExplainInvalid(ctx context.Context, in Input, results []Result) (found bool, err error) {
	if in.Drift || !slices.ContainsFunc(results, func(r Result) bool { return r.Action == plan.Failed }) {
		return false, nil
	}
	invalid, err := CheckSent(ctx, in)
	for i, s := range in.Plan.Steps {
		if len(invalid[s]) > 0 && results[i].Action == plan.Failed {
			results[i].Err = invalid[s]
		}
	}
	return len(invalid) > 0, err
}

// checkBuiltIn judges objects of Kubernetes' own kinds, and CRDs. A server of another
// version, defaults, webhooks and what is live may all make right what looks wrong: so the
// server is asked about the objects that look wrong, by a dry run, and has the last word.
func checkBuiltIn(ctx context.Context, in Input, invalid Invalid) error {
	steps := slices.DeleteFunc(sentSteps(in.Plan), func(s *plan.Step) bool {
		return !validate.Knows(s.GVK) && s.ID.GroupKind != bundle.CRDKind
	})
	found := make([][]bundle.Problem, len(steps))
	failed := make([]error, len(steps))
	bundle.Parallel(len(steps), func(i int) {
		objects := []*bundle.Object{asSent(steps[i])}
		crds, faults := validate.Compile(objects)
		found[i], _, failed[i] = validate.Offline(objects, validate.Options{CRDs: crds})
		found[i] = append(found[i], faults...)
	})
	mutators := mutatorsOf(in.Plan)
	suspects := map[*plan.Step]bundle.Problems{}
	for i, s := range steps {
		if failed[i] != nil {
			return failed[i]
		}
		resource, err := in.Client.Resource(s.GVK)
		if len(found[i]) > 0 && err == nil && !anyMutates(mutators, resource.GVR.GroupResource()) { // as they come first
			suspects[s] = found[i]
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	in.Only = func(s *plan.Step) bool { return suspects[s] != nil }
	in.Options.Conflicts = fields.ConflictRules{{Manager: "*", Do: fields.Take}} // a conflict would hide the rest
	results, _, err := Run(ctx, in)
	if err != nil {
		return err
	}
	for i, s := range in.Plan.Steps {
		if answers.Invalid(results[i].Err) {
			invalid[s] = suspects[s]
		}
	}
	return nil
}

// checkCustomResources judges resources whose CRD is in the bundle, and will be in force.
func checkCustomResources(ctx context.Context, in Input) (Invalid, error) {
	defined := map[schema.GroupKind]bool{}
	for _, s := range in.Plan.Steps {
		if !s.Deletes() && s.ID.GroupKind == bundle.CRDKind && s.Blocked == "" && s.Object.Content.GetAnnotations()[bundle.LifecycleMutation] == "" {
			d, _ := bundle.DefinitionOf(s.Object.Content)
			defined[d.Kind] = true
		}
	}
	invalid := Invalid{}
	sent := slices.DeleteFunc(sentSteps(in.Plan), func(s *plan.Step) bool { return !defined[s.ID.GroupKind] || s.ID.Name == "" })
	if len(sent) == 0 {
		return invalid, nil
	}
	crds := in.CRDs()
	found := make([][]bundle.Problem, len(sent))
	bundle.Parallel(len(sent), func(i int) {
		s := sent[i]
		if crds.Sound(s.ID.GroupKind) && crds.Unverified(s.GVK, s.Live) == "" { // else the server knows better
			_, found[i], _ = crds.Check(ctx, s.Object, asSent(s).Content, s.Live)
			if len(found[i]) > 0 && s.Live != nil && s.Recreate != plan.NoRecreation { // a rule about changes does not judge a new one
				if _, asNew, _ := crds.Check(ctx, s.Object, asSent(s).Content, nil); len(asNew) == 0 {
					found[i] = nil
				}
			}
		}
	})
	for i, s := range sent {
		if len(found[i]) > 0 {
			invalid[s] = found[i]
		}
	}
	if len(invalid) == 0 {
		return invalid, nil
	}
	return notCorrectable(ctx, in, invalid)
}

// sentSteps are the steps that send an object as it stands in the bundle: of an unchanged
// one the server has nothing to judge, and what is still to be mutated cannot be judged.
func sentSteps(p *plan.Plan) []*plan.Step {
	var sent []*plan.Step
	for _, s := range p.Steps {
		if s.Deletes() || s.Blocked != "" || s.Action == plan.Unchanged || s.Action == plan.Skipped {
			continue
		}
		if _, mutated := s.Object.Content.GetAnnotations()[bundle.ApplyTimeMutation]; !mutated {
			sent = append(sent, s)
		}
	}
	return sent
}

// asSent is a step's object without the fields that are left to others.
func asSent(s *plan.Step) *bundle.Object {
	if s.Live == nil {
		return s.Object
	}
	sent := *s.Object
	sent.Content = &unstructured.Unstructured{Object: s.Ignored.Sent(s.Object.Content.Object, s.Live)}
	return &sent
}

// mutators are the kinds whose objects change others on their way into the
// server, before it validates them: a field that is missing may not be then.
var mutators = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
}

// mutatorsOf are those of the bundle.
func mutatorsOf(p *plan.Plan) []map[string]any {
	of := bundle.Where(p.Steps, func(s *plan.Step) bool { return !s.Deletes() && slices.Contains(mutators, s.ID.GroupKind) })
	return bundle.Each(of, func(s *plan.Step) map[string]any { return s.Object.Content.Object })
}

// notCorrectable leaves those problems that no mutating webhook or policy, of the
// bundle or of the cluster, can do away with; the others are the server's to
// judge. It is asked only where there are problems.
func notCorrectable(ctx context.Context, in Input, invalid Invalid) (Invalid, error) {
	all := mutatorsOf(in.Plan)
	for _, gk := range mutators {
		resource, err := in.Client.Any(gk)
		if err != nil {
			continue // this server has none
		}
		live, err := in.Client.List(ctx, resource, "", "", "")
		if apierrors.IsForbidden(err) {
			return Invalid{}, nil // who knows: the server does
		}
		if err != nil {
			return nil, fmt.Errorf("look for what may change custom resources before they are validated: %w", err)
		}
		for i := range live {
			all = append(all, live[i].Object)
		}
	}
	for _, s := range in.Plan.Steps {
		if s.Deletes() {
			continue
		}
		for _, resource := range cluster.Defined(s.Object.Content) {
			if !anyMutates(all, resource.GVR.GroupResource()) {
				continue
			}
			for of := range invalid {
				if of.ID.GroupKind == resource.GVK.GroupKind() {
					delete(invalid, of)
				}
			}
		}
	}
	return invalid, nil
}

// anyMutates says whether a configuration or policy has a rule for a resource, whatever
// its selectors say.
func anyMutates(mutators []map[string]any, gr schema.GroupResource) bool {
	return slices.ContainsFunc(mutators, func(m map[string]any) bool {
		rules := bundle.Items[map[string]any](m, "spec", "matchConstraints", "resourceRules")
		for _, webhook := range bundle.Items[map[string]any](m, "webhooks") {
			rules = append(rules, bundle.Items[map[string]any](webhook, "rules")...)
		}
		return slices.ContainsFunc(rules, func(r map[string]any) bool {
			groups := bundle.Items[string](r, "apiGroups")
			return (slices.Contains(groups, gr.Group) || slices.Contains(groups, "*")) && slices.ContainsFunc(bundle.Items[string](r, "resources"), func(resource string) bool {
				name, _, _ := strings.Cut(resource, "/")
				return name == "*" || name == gr.Resource
			})
		})
	})
}
