package read

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
)

func TestSkipInvalidAppliesTheValidObjects(t *testing.T) {
	const text = `apiVersion: v1
kind: ConfigMap
metadata: {name: good}
---
apiVersion: v1
kind: ConfigMap
metadata: {}
---
just text
---
apiVersion: v1
kind: ConfigMap
metadata: {name: twice}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: twice}
data: {a: c}
---
apiVersion: example.com/v1
kind: Unheard
metadata: {name: of}
`
	if _, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(text)}); err == nil {
		t.Fatal("without being asked to, it skips")
	}
	b, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(strings.Replace(text, "---\njust text\n", "", 1)), SkipInvalid: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Objects) != 4 || len(b.Invalid) != 1 || b.Invalid[0].Source.Line != 7 {
		t.Fatalf("left are %d objects, and invalid is %v", len(b.Objects), b.Invalid)
	}
	problems, _ := errors.AsType[bundle.Problems](Resolve(b, Resolver{Strict: true}))
	// Which of two is meant nobody can know: both are left out. A problem that
	// is about none of the objects is not skipped.
	rest := b.Skip(append(slices.Clone(problems), bundle.Problem{Message: "about all"}))
	if len(rest) != 1 || rest[0].Message != "about all" {
		t.Errorf("not skipped: %v", rest)
	}
	var names []string
	for _, o := range b.Objects {
		names = append(names, o.ID.Name)
	}
	if !slices.Equal(names, []string{"good"}) {
		t.Errorf("left are %v", names)
	}
	if err := Resolve(b, Resolver{Strict: true}); err != nil {
		t.Errorf("what is left has problems: %v", err)
	}
	if len(b.Invalid) != 3 {
		t.Errorf("invalid is %v", b.Invalid)
	}
}
