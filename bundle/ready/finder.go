package ready

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Finder is a CEL expression over any `self` that looks for something: it finds it by true,
// or by a list that is not empty.
type Finder struct{ expression *expression }

// finderCost is how often more a Finder may cost: it is about thousands of objects.
const finderCost = 100

// CompileFinder compiles its expression.
func CompileFinder(text string) (*Finder, error) {
	e, err := compileAs(text, true, finderCost*celconfig.PerCallLimit, func(t *cel.Type) error {
		if t.IsExactType(cel.BoolType) || t.IsExactType(cel.DynType) || t.Kind() == types.ListKind {
			return nil
		}
		return fmt.Errorf("the CEL expression gives %s, not bool or a list", t)
	})
	return &Finder{e}, err
}

// Find is what the expression finds in self, nil if nothing. Where it cannot be evaluated,
// why says what is in the way.
func (f *Finder) Find(self map[string]any) (found []any, why string) {
	value, why := f.expression.eval(self)
	if why != "" {
		return nil, why
	}
	switch value := value.(type) {
	case types.Bool:
		if value {
			return []any{}, ""
		}
		return nil, ""
	case traits.Lister:
		for it := value.Iterator(); it.HasNext() == types.True; {
			found = append(found, native(it.Next()))
		}
		return found, ""
	}
	return nil, fmt.Sprintf("it gives %s, not bool or a list", value.Type().TypeName())
}

// native is a value as JSON has it.
func native(v ref.Val) any { return v.Value() }
