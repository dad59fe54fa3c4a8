package validate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"brine/bundle"
	"brine/bundle/validate/published"
)

// An object is compared with the structure of its kind: unknown fields, types, missing fields.

// walker compares an object with the published structure of its kind. No message holds
// a value, but for enumerations and quantities, which Secrets have none of.
type walker struct {
	doc      *published.Document
	obj      *bundle.Object
	problems []bundle.Problem
}

func (w *walker) report(path, format string, args ...any) {
	w.problems = append(w.problems, w.obj.Problem(path, fmt.Sprintf(format, args...)))
}

func (w *walker) value(path bundle.Path, v any, t *published.Type) {
	quantity := t != nil && t.Ref == "io.k8s.apimachinery.pkg.api.resource.Quantity"
	t = w.doc.Resolve(t)
	if t == nil || v == nil { // null is as if it was not written
		return
	}
	if !typeFits(v, t) {
		w.report(path.String(), "must be of type %s, not %s%s", strings.ReplaceAll(t.Type, ",", " or "), jsonType(v), quoteHint(v, t))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(path, v, t)
	case []any:
		w.list(path, v, t)
	case string:
		if quantity {
			w.quantity(path, v)
		}
		w.text(path, v, t)
	default:
		if t.Format == "int32" && !fitsInt32(v) {
			w.report(path.String(), "must be of type int32: it is too large or too small")
		}
	}
}

func (w *walker) quantity(path bundle.Path, v string) {
	if _, err := resource.ParseQuantity(strings.TrimSpace(v)); err != nil { // the server trims it (Quantity.UnmarshalJSON)
		w.report(path.String(), "must be a quantity such as 500m or 1Gi, not %q", v)
	}
}

func (w *walker) object(path bundle.Path, v map[string]any, t *published.Type) {
	for _, name := range t.Required {
		if v[name] == nil {
			w.report(path.Field(name).String(), "is required and missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		f := t.Fields[name]
		if f == nil {
			f = t.Values
		}
		if f == nil && len(t.Fields) > 0 {
			w.report(path.Field(name).String(), "%s", unknownMessage(name, slices.Collect(maps.Keys(t.Fields))))
			continue
		}
		w.value(path.Field(name), v[name], f)
	}
}

func (w *walker) list(path bundle.Path, v []any, t *published.Type) {
	seen := map[string]int{}
	for i, item := range v {
		at := path.Item(i)
		if item == nil {
			w.report(at.String(), "must not be null: remove the item")
			continue
		}
		w.value(at, item, t.Items)
		key, same := w.key(item, t)
		if key == "" {
			continue
		}
		if first, ok := seen[key]; ok {
			w.report(at.String(), "%s as %s[%d]: remove one of them", same, path, first)
			continue
		}
		seen[key] = i
	}
}

// key identifies an item of a list, "" where the list has no keys; same is how a
// message begins about another item of the same key: "has the same name".
func (w *walker) key(item any, t *published.Type) (key, same string) {
	same = "is the same"
	if !t.Set {
		fields, ok := item.(map[string]any)
		if len(t.Keys) == 0 || !ok {
			return "", ""
		}
		of := w.doc.Resolve(t.Items)
		values := make([]any, len(t.Keys))
		for i, k := range t.Keys {
			values[i] = fields[k]
			if f := of.Fields[k]; values[i] == nil && f != nil && f.Default != "" {
				values[i] = f.Default
			}
		}
		item, same = values, "has the same "+strings.Join(t.Keys, " and ")
	}
	data, err := json.Marshal(item)
	if err != nil {
		return "", ""
	}
	return string(data), same
}

func (w *walker) text(path bundle.Path, v string, t *published.Type) {
	switch t.Format {
	case "byte":
		hint := ""
		if isSecret(w.obj) {
			hint = "; write plain text under stringData"
		}
		if _, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(v)); err != nil {
			w.report(path.String(), "must be base64%s", hint)
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			w.report(path.String(), "must be a time as in RFC 3339, like 2006-01-02T15:04:05Z")
		}
	}
	// The server takes "" for not written.
	if v == "" || len(t.Enum) == 0 || slices.Contains(t.Enum, v) {
		return
	}
	if best := bundle.Nearest(v, t.Enum); best != "" {
		w.report(path.String(), "unsupported value %q; did you mean %q?", v, best)
		return
	}
	w.report(path.String(), "unsupported value %q; there are %s", v, strings.Join(t.Enum, ", "))
}

func isSecret(o *bundle.Object) bool {
	return o.GVK.GroupKind() == bundle.SecretKind
}

func typeFits(v any, t *published.Type) bool {
	if t.Type == "" {
		return true
	}
	is, allowed := jsonType(v), strings.Split(t.Type, ",")
	return slices.Contains(allowed, is) || is == "integer" && slices.Contains(allowed, "number")
}

// quoteHint is for the commonest slip of YAML.
func quoteHint(v any, t *published.Type) string {
	switch v.(type) {
	case map[string]any, []any, string:
		return ""
	}
	if strings.Contains(t.Type, "string") {
		return "; put it in quotes"
	}
	return ""
}

func jsonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v != math.Trunc(v) {
			return "number"
		}
	}
	return "integer"
}

func fitsInt32(v any) bool {
	switch v := v.(type) {
	case int64:
		return v >= math.MinInt32 && v <= math.MaxInt32
	case float64:
		return v >= math.MinInt32 && v <= math.MaxInt32
	}
	return true
}
