package fields

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"brine/bundle"
)

// Fields that other managers own with other values.

// Resolution is what is done about a field that another manager owns with another
// value.
type Resolution string

// The resolutions. Of several owners of one field, the earlier one decides.
const (
	Fail  Resolution = "fail"
	Leave Resolution = "leave" // to that manager: the field is not sent
	Take  Resolution = "take"
)

// ConflictRules decide by field manager. The first that matches counts.
type ConflictRules []ConflictRule

// ConflictRule is about the managers whose names match a pattern.
type ConflictRule struct {
	Manager string
	Do      Resolution
}

// ParseConflictRules reads rules like "kubectl*=take".
func ParseConflictRules(words []string) (ConflictRules, error) {
	var rules ConflictRules
	for _, word := range words {
		at := strings.LastIndex(word, "=")
		if at <= 0 {
			return nil, fmt.Errorf("%q is not a rule like kubectl*=take", word)
		}
		rule := ConflictRule{strings.TrimSpace(word[:at]), Resolution(strings.TrimSpace(word[at+1:]))}
		if !slices.Contains([]Resolution{Fail, Leave, Take}, rule.Do) {
			return nil, fmt.Errorf("%q: use take, leave or fail", word)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// String is what ParseConflictRules reads, separated by commas.
func (rules ConflictRules) String() string {
	return strings.Join(bundle.Each(rules, func(r ConflictRule) string { return r.Manager + "=" + string(r.Do) }), ",")
}

// Of is what is done about the fields of a manager.
func (rules ConflictRules) Of(manager string) Resolution {
	if manager == bundle.RecreationManager {
		return Take // of a run that was killed
	}
	for _, r := range rules {
		if Like(r.Manager, manager) {
			return r.Do
		}
	}
	return Fail
}

// Conflict is a field that the bundle writes and another manager owns with
// another value.
type Conflict struct {
	Field                string // .spec.replicas, as the server writes it
	Manager, Subresource string
	Since                string // when the manager wrote last (RFC 3339); "" where the server does not keep it, as of a scale
	// Live and Wanted are the values as JSON, shortened; "" where there is none.
	Live, Wanted string
	keys         []string // of the field in fieldsV1, from the top; nil if they are not known
}

// Owner is the manager as messages name it.
func (c Conflict) Owner() string {
	if c.Subresource == "" {
		return c.Manager
	}
	return fmt.Sprintf("%s (subresource %s)", c.Manager, c.Subresource)
}

// ConflictsOf finds the owners of a field that the server reports as a conflict
// with a manager.
func ConflictsOf(field, manager string, wanted map[string]any, live *unstructured.Unstructured) []Conflict {
	var found []Conflict
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == bundle.FieldManager && entry.Operation == "Apply" && entry.Subresource == "" || entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		set.Iterate(func(path fieldpath.Path) {
			if path.String() != field {
				return
			}
			c := Conflict{Field: field, Manager: entry.Manager, Subresource: entry.Subresource}
			if entry.Time != nil {
				c.Since = entry.Time.UTC().Format(time.RFC3339)
			}
			for _, element := range path {
				key, err := fieldpath.SerializePathElement(element)
				if err != nil {
					return
				}
				c.keys = append(c.keys, key)
			}
			c.Live, c.Wanted = shortened(lookup(live.Object, c.keys)), shortened(lookup(wanted, c.keys))
			found = append(found, c)
		})
	}
	if slices.ContainsFunc(found, func(c Conflict) bool { return c.Manager == manager }) {
		return slices.DeleteFunc(found, func(c Conflict) bool { return c.Manager != manager })
	}
	return []Conflict{{Field: field, Manager: manager}}
}

func lookup(value any, keys []string) (any, bool) {
	for _, key := range keys {
		there, below, _ := at(value, key)
		if !there {
			return nil, false
		}
		value = below
	}
	return value, true
}

// longest is how much of a value is shown.
const longest = 80

func shortened(value any, ok bool) string {
	if !ok {
		return ""
	}
	t, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return bundle.Clip(string(t), longest)
}

// Settle decides about all conflicts of an object. It returns what is sent then,
// and whether that takes fields from others; the fields that are left to others,
// and those that are taken. ok is false where a rule says fail, or a field that is
// left to others cannot be taken out of what is sent.
func (rules ConflictRules) Settle(wanted map[string]any, conflicts []Conflict) (sent map[string]any, left, taken []Conflict, ok bool) {
	order := []Resolution{Fail, Leave, Take}
	byField := map[string]Resolution{}
	for _, c := range conflicts {
		do := rules.Of(c.Manager)
		if was, known := byField[c.Field]; !known || slices.Index(order, do) < slices.Index(order, was) {
			byField[c.Field] = do
		}
	}
	for _, c := range conflicts {
		switch byField[c.Field] {
		case Fail:
			return nil, nil, nil, false
		case Take:
			taken = append(taken, c)
			continue
		}
		if rules.Of(c.Manager) == Leave {
			left = append(left, c)
		}
		if len(c.keys) == 0 {
			return nil, nil, nil, false
		}
		dropped, _ := drop(wanted, c.keys).(map[string]any)
		wanted = dropped
	}
	return wanted, left, taken, true
}

// drop is a value without the field at keys. What comes in is not changed.
func drop(value any, keys []string) any {
	there, below, set := at(value, keys[0])
	switch {
	case !there:
		return value
	case len(keys) > 1:
		return set(drop(below, keys[1:]))
	}
	switch value := value.(type) {
	case map[string]any:
		return without(value, Pointer{strings.TrimPrefix(keys[0], "f:")})
	case []any:
		return slices.DeleteFunc(slices.Clone(value), func(item any) bool { return IsElement(keys[0], item) })
	}
	return value
}

// Explained says who owns which fields with which values since when. Values are
// left out where they may be those of a Secret.
func Explained(conflicts []Conflict, values bool) string {
	type owner struct{ name, since string }
	var fields bundle.Groups[owner, string]
	conflicts = slices.Clone(conflicts) // the server's order is by chance
	slices.SortStableFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Owner(), b.Owner()), cmp.Compare(a.Field, b.Field))
	})
	for _, c := range conflicts {
		text := c.Field
		if values && c.Live+c.Wanted != "" {
			text += fmt.Sprintf(" (%s on the cluster, %s in the bundle)", cmp.Or(c.Live, "nothing"), cmp.Or(c.Wanted, "nothing"))
		}
		fields.Add(owner{c.Owner(), c.Since}, text)
	}
	var parts []string
	for _, o := range fields.Keys {
		part := o.name + " owns " + strings.Join(fields.Of[o], ", ")
		if o.since != "" {
			part += ", written at " + o.since
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// Named are fields with their owners, like ".spec.replicas from kubectl".
func Named(conflicts []Conflict, preposition string) string {
	parts := bundle.Each(conflicts, func(c Conflict) string { return c.Field + " " + preposition + " " + c.Owner() })
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}
