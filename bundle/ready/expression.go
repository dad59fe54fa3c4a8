package ready

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"brine/bundle"
)

// CEL expressions of rules: compiled, evaluated, and their errors in one line.

// expression is a compiled CEL expression over `self`.
type expression struct {
	text    string // in one line
	program cel.Program
	// guarded: errors may quote values of a Secret.
	guarded bool
	// from is where it stands, unless on the object itself.
	from string
}

// language is CEL as Kubernetes has it (strings, lists, regex, quantities,
// optional types, …, with its limits on cost), built when first needed: that
// takes some milliseconds.
var language = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 37)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.StoredExpressionsEnv(), nil
})

// longest is the longest expression that is taken, in bytes. Kubernetes has no
// such limit of its own: its annotations hold 256 KiB in all.
const longest = 16 << 10

func compile(text string, guarded bool) (*expression, error) {
	return compileAs(text, guarded, celconfig.PerCallLimit, func(t *cel.Type) error {
		if !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
			return fmt.Errorf("the CEL expression gives %s, not bool", t)
		}
		return nil
	})
}

// compileAs compiles an expression whose type fits, with a limit on what it may cost.
func compileAs(text string, guarded bool, cost uint64, fits func(*cel.Type) error) (*expression, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("the CEL expression is empty")
	}
	if len(text) > longest {
		return nil, fmt.Errorf("the CEL expression has %d bytes, more than %d", len(text), longest)
	}
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, celError(text, issues.Errors())
	}
	if err := fits(ast.OutputType()); err != nil {
		return nil, err
	}
	program, err := env.Program(ast, cel.CostLimit(cost))
	if err != nil {
		return nil, fmt.Errorf("the CEL expression cannot be run: %w", err)
	}
	return &expression{text: oneLine(text), program: program, guarded: guarded}, nil
}

// celError is the first error as "line 1, column 5: … at «rest of the line»",
// for a message is one line and so has no place for a caret below.
func celError(text string, all []*cel.Error) error {
	first := all[0]
	at := fmt.Sprintf("column %d", first.Location.Column()+1)
	lines := strings.Split(text, "\n")
	if len(lines) > 1 {
		at = fmt.Sprintf("line %d, %s", first.Location.Line(), at)
	}
	message := fmt.Sprintf("CEL, %s: %s", at, oneLine(first.Message))
	if rest := from(lines, first.Location); rest != "" {
		message += ": see «" + rest + "»"
	}
	if more := len(all) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	return fmt.Errorf("%s", message)
}

// from is the beginning of the expression from where an error is.
func from(lines []string, l common.Location) string {
	const enough = 40
	if l.Line() < 1 || l.Line() > len(lines) {
		return ""
	}
	line := []rune(lines[l.Line()-1])
	if l.Column() < 0 || l.Column() >= len(line) {
		return ""
	}
	return bundle.Clip(string(line[l.Column():]), enough)
}

// named is the rule's name, with its place: "ready-when of readiness.yaml:3".
func (e *expression) named(rule string) string {
	if e.from != "" {
		rule += " of " + e.from
	}
	return rule
}

func (e *expression) rule(name string) string { return e.named(name) + ": " + e.text }

// holds evaluates the expression. Where it cannot be, it does not hold, and why
// says what is in the way: "no such key: status".
func (e *expression) holds(live *unstructured.Unstructured) (holds bool, why string) {
	value, why := e.eval(live.Object)
	if why != "" {
		return false, why
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Sprintf("gives %s, not bool", value.Type().TypeName())
	}
	return bool(b), ""
}

func (e *expression) eval(self map[string]any) (value ref.Val, why string) {
	value, _, err := e.program.Eval(map[string]any{"self": self})
	if err == nil {
		return value, ""
	}
	why = oneLine(err.Error())
	if e.guarded && !strings.HasPrefix(why, "no such key: ") && !strings.Contains(why, "cost limit") {
		why = "cannot be evaluated; the error is not shown, since it may quote the Secret"
	}
	return nil, why
}
