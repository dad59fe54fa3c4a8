package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"brine/bundle"
	"brine/bundle/plan"
)

// What a review wants to know from the cluster.

// Questions are what a review wants to know from the cluster. A change of which
// nothing is dangerous has none.
type Questions struct {
	// Budgets: the PodDisruptionBudgets of these namespaces, sorted.
	Budgets []string
	// Count: how many resources a CRD has, or claims a Namespace.
	Count []bundle.ID
	// Find: whether these are there. Of roles also what they allow, of those in Keys
	// also their keys.
	Find []bundle.ID
	Keys map[bundle.ID]bool
	// Nodes: their labels.
	Nodes bool
	// Fit: whether the resources of these CRDs fit what they are to be.
	Fit []bundle.ID
}

// Cluster is what the cluster says to the questions. What it does not hold was not
// asked.
type Cluster struct {
	Budgets []unstructured.Unstructured
	// BudgetsUnknown is why the PodDisruptionBudgets could not be read.
	BudgetsUnknown string
	Counts         map[bundle.ID]Count
	// Found are those of Questions.Find that are there, of others than roles and those
	// of Questions.Keys their names alone. Unknown is why that is not known of an object.
	Found   map[bundle.ID]*unstructured.Unstructured
	Unknown map[bundle.ID]string
	// Nodes are the labels of each node. NodesUnknown is why they could not be read.
	Nodes        []map[string]string
	NodesUnknown string
	Fits         map[bundle.ID]Fits
	// Removals are the SLS and files of the last run that are gone.
	Removals []plan.Removal
	// Unread: no cluster was read. What pods there are is not known.
	Unread bool
}

// Count is how many there are, or why that is not known.
type Count struct {
	N       int
	Unknown string
}

// count says how many there are of something in an object.
func (r *reviewer) count(id bundle.ID, one, many string) string {
	c, asked := r.cluster.Counts[id]
	switch {
	case !asked:
		c.Unknown = "the cluster was not asked"
		fallthrough
	case c.Unknown != "":
		return "how many " + many + " is unknown (" + c.Unknown + ")"
	}
	return plural(c.N, one, many)
}

// Ask says what a review of these changes wants to know.
func Ask(all []Change) Questions {
	var q Questions
	changes, at := byID(all)
	for _, c := range changes {
		q.Nodes = q.Nodes || newSelector(c) != nil
		schema := schemaChanges(c)
		if schema != nil {
			q.Fit = append(q.Fit, c.ID)
		}
		switch {
		case c.Action == plan.Pruned && bundle.HoldsObjects(c.ID.GroupKind),
			schema.Breaks():
			q.Count = append(q.Count, c.ID)
		case c.Action == plan.Pruned && isWorkload(c.ID.GroupKind), (c.Action == plan.Configured || c.Orphans) && (restarts(c) || shrinks(c)):
			if pods := podsOf(c.Before); pods > 0 && !slices.Contains(q.Budgets, c.ID.Namespace) {
				q.Budgets = append(q.Budgets, c.ID.Namespace)
			}
		}
	}
	slices.Sort(q.Budgets)
	find := named(changes, at)
	q.Keys = maps.Clone(find)
	maps.DeleteFunc(q.Keys, func(_ bundle.ID, keys bool) bool { return !keys })
	for _, c := range changes {
		if c.After == nil || !isBinding(c.ID) || c.Action == plan.Pruned || len(gainers(c)) == 0 {
			continue
		}
		if role := roleOf(c); (at[role] == nil || at[role].Action == plan.Pruned) && role.Name != "cluster-admin" {
			find[role] = true
		}
	}
	q.Find = slices.SortedFunc(maps.Keys(find), func(a, b bundle.ID) int { return strings.Compare(bundle.Name(a), bundle.Name(b)) })
	return q
}

// budgets says which PodDisruptionBudgets of a workload's pods allow no disruption.
func (r *reviewer) budgets(c *Change) []string {
	switch {
	case r.cluster.Unread:
		return nil
	case r.cluster.BudgetsUnknown != "":
		return []string{"its PodDisruptionBudgets are unknown: " + r.cluster.BudgetsUnknown}
	}
	pods := labels.Set(bundle.Texts(content(c.Before), "spec", "template", "metadata", "labels"))
	var found []string
	r.disrupted = r.disrupted || podsOf(c.Before) > 0
	for i := range r.cluster.Budgets {
		b := &r.cluster.Budgets[i]
		if b.GetNamespace() != c.ID.Namespace {
			continue
		}
		var selector metav1.LabelSelector
		fields := bundle.At[map[string]any](b.Object, "spec", "selector") // {} is about all pods, none about none
		if fields == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
			continue
		}
		if s, err := metav1.LabelSelectorAsSelector(&selector); err != nil || !s.Matches(pods) {
			continue
		}
		r.guarded = true
		if allowed, known := bundle.Integer(b.Object, "status", "disruptionsAllowed"); known && allowed == 0 {
			found = append(found, fmt.Sprintf("PodDisruptionBudget %s allows no disruption now (%s): a rollout does not ask it, a drain of a node does",
				b.GetName(), demand(b)))
		}
	}
	return found
}

// demand is what a PodDisruptionBudget asks for: "minAvailable 1".
func demand(b *unstructured.Unstructured) string {
	for _, field := range []string{"minAvailable", "maxUnavailable"} {
		if v := bundle.At[any](b.Object, "spec", field); v != nil {
			return fmt.Sprintf("%s %v", field, v)
		}
	}
	return "no limit"
}
