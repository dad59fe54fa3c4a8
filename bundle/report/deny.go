package report

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/redact"
)

// Rules of --deny over the result of a dry run.

// Deny has rules over a plan: what they find stops a run before its first write.
type Deny []denial

type denial struct {
	name string
	at   bundle.Source
	rule *ready.Finder
}

// ReadDeny reads a file of rules: a name, and a CEL expression over the Result of a dry run.
func ReadDeny(file string, content []byte) (Deny, error) {
	entries, err := ready.Entries(file, content)
	if err != nil {
		return nil, err
	}
	var deny Deny
	var problems bundle.Problems
	for _, e := range entries {
		at := bundle.Source{File: file, Line: e.Line}
		text, err := e.Text()
		var rule *ready.Finder
		if err == nil {
			rule, err = ready.CompileFinder(text)
		}
		if err != nil {
			problems = append(problems, bundle.Problem{Source: at, Message: e.Name + ": " + err.Error()})
			continue
		}
		deny = append(deny, denial{e.Name, at, rule})
	}
	return deny, problems.Err()
}

// Problems are what the rules find in the result of a dry run of a plan. A rule that cannot
// be evaluated counts as one that found something.
func (d Deny) Problems(r *Result, p *plan.Plan, objects []*ObjectResult) ([]bundle.Problem, error) {
	if len(d) == 0 {
		return nil, nil
	}
	self, err := asMap(r)
	if err != nil {
		return nil, err
	}
	all := make([]any, len(objects))
	for i, o := range objects {
		item, err := asMap(o)
		if err != nil {
			return nil, err
		}
		s := p.Steps[i]
		if s.Object != nil {
			item["object"] = withoutValues(s.Object.Content)
		}
		if s.Live != nil {
			item["live"] = withoutValues(s.Live)
		}
		all[i] = item
	}
	self["objects"] = all
	var problems []bundle.Problem
	for _, rule := range d {
		found, why := rule.rule.Find(self)
		switch {
		case why != "":
			problems = append(problems, bundle.Problem{Source: rule.at, Message: fmt.Sprintf("denied by rule %q, because it cannot be evaluated: %s", rule.name, why)})
		case found != nil:
			message := fmt.Sprintf("denied by rule %q", rule.name)
			if len(found) > 0 {
				message += ": " + bundle.Some(bundle.Each(found, nameOf), 5)
			}
			problems = append(problems, bundle.Problem{Source: rule.at, Message: message})
		}
	}
	return problems, nil
}

// Stop is the error that ends a run of which the rules found something.
func (d Deny) Stop(r *Result, p *plan.Plan, objects []*ObjectResult) error {
	found, err := d.Problems(r, p, objects)
	if err != nil || len(found) == 0 {
		return err
	}
	return BadBundle(found...)
}

// nameOf names what a rule found: an object of the Result, one of the review with its
// objects, or a text.
func nameOf(found any) string {
	if text, ok := found.(string); ok {
		return text
	}
	u, _ := found.(map[string]any)
	if objects, ok := u["objects"].([]any); ok {
		return bundle.Some(bundle.Each(objects, nameOf), 5)
	}
	of := bundle.Reference{Group: bundle.At[string](u, "group"), Kind: bundle.At[string](u, "kind"), Namespace: bundle.At[string](u, "namespace"), Name: bundle.At[string](u, "name")}
	if of.Kind == "" {
		return "something without a kind"
	}
	return bundle.Name(of.ID())
}

// withoutValues is an object as rules see it: without a Secret's values.
func withoutValues(u *unstructured.Unstructured) map[string]any {
	if u.GetKind() != "Secret" {
		return u.Object
	}
	bare := u.DeepCopy()
	delete(bare.Object, "data")
	delete(bare.Object, "stringData")
	unstructured.RemoveNestedField(bare.Object, "metadata", "annotations", redact.LastApplied)
	return bare.Object
}

func asMap(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("evaluate the rules that deny: %w", err)
	}
	found := map[string]any{}
	if err := utiljson.Unmarshal(text, &found); err != nil { // whole numbers stay whole
		return nil, fmt.Errorf("evaluate the rules that deny: %w", err)
	}
	return found, nil
}
