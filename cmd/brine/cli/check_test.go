package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What cannot be read hides nothing of what can.
func TestCheckReportsAllProblemsAtOnce(t *testing.T) {
	file := clitest.BundleFile(t, clitest.Documents(
		"apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {prots: []}\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {config.kubernetes.io/depends-on: /namespaces/default/ConfigMap/lost, brine.dev/digest-of: configmaps/lost}}\n"+
			"spec: {replcas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'reg/None:None'}]}}}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: lost\n name: twice\n",
		"apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 1}\n",
		"apiVersion: unknown.example.com/v1\nkind: Thing\nmetadata: {name: t}\n",
		"apiVersion: unknown.example.com/v1\nkind: Thing\nmetadata: {name: t2}\n",
	))
	var check struct {
		Kind             string
		Objects          []any
		Errors, Warnings []struct {
			Source        bundle.Source
			Path, Message string
		}
	}
	none := filepath.Join(t.TempDir(), "none.yaml")
	s := clitest.Offline(t, "check", "-f", file, "-f", none, "-o", "json").Want(t, report.ExitBadBundle)
	if err := json.Unmarshal([]byte(s.Stdout), &check); err != nil {
		t.Fatal(err, s.Stdout)
	}
	var got []string
	for _, e := range check.Errors {
		what := e.Path
		if what == "" {
			what, _, _ = strings.Cut(e.Message, ":")
		}
		got = append(got, fmt.Sprintf("%s:%d %s", filepath.Base(e.Source.File), e.Source.Line, what))
	}
	want := []string{
		"bundle.yaml:4 spec.prots", "bundle.yaml:9 spec.replcas", "bundle.yaml:9 spec.template.spec.containers[0].image",
		"bundle.yaml:15 not YAML", "bundle.yaml:17 metadata", "bundle.yaml:24 data.a", "none.yaml:0 no such file or folder (looked for " + none + ")",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the errors are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(check.Objects) != 5 || len(check.Warnings) != 1 || !strings.Contains(check.Warnings[0].Message, "2 objects") || s.Stderr != "" {
		t.Errorf("%d objects, warnings %v, stderr %q", len(check.Objects), check.Warnings, s.Stderr)
	}
	text := clitest.Offline(t, "check", "-f", file).Want(t, report.ExitBadBundle)
	if strings.Count(text.Stdout, "error: ") != 6 || !strings.Contains(text.Stdout, "ConfigMap (no name): metadata: is missing") {
		t.Errorf("as text:\n%s", text.Stdout)
	}
}
