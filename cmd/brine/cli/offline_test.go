package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// offline runs a command line where there is no cluster, and no kubeconfig.
func offline(t *testing.T, args ...string) outcome {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	return runLine(t.Context(), nil, args...)
}

// bundleFile writes a bundle, with {ns} replaced by shop.
func bundleFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "{ns}", "shop")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClientDryRunNeedsNoCluster(t *testing.T) {
	good := documents(pumpCRD, pump("p", "  limit: 9\n"), configMap("a"), deployment("web", 1, "1m"),
		"apiVersion: unknown.example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: {ns}}\n")
	s := offline(t, "apply", "--dry-run=client", "-f", bundleFile(t, good), "-o", "json").want(t, 0)
	if s.result.DryRun != "client" || s.result.Summary.Created != 5 || len(s.result.Summary.Requests) != 0 {
		t.Errorf("%+v", s.result)
	}
	for kind, verified := range map[string]string{"Pump": "bundle CRD", "ConfigMap": "Kubernetes 1.37 (without a server)", "Thing": "not verified: its kind is not known without a server"} {
		for _, o := range s.result.Objects {
			if o.Kind == kind && (o.Verified != verified || o.Action != plan.Created) {
				t.Errorf("%s is %s, verified by %q", kind, o.Action, o.Verified)
			}
		}
	}
	if d := s.object(t, "Pump", "p").Diff; !strings.Contains(d, "rate: 7") {
		t.Errorf("the CRD's default is not there:\n%s", d)
	}
	if len(s.object(t, "Pump", "p").Needs) == 0 {
		t.Error("the order is not told")
	}
	offline(t, "apply", "--dry-run=client", "-f", bundleFile(t, good), "-o", "json", "--detailed-exitcode").want(t, 2)

	bad := documents(pumpCRD, pump("p", "  rate: 9\n  limit: 3\n"), configMap("a"), strings.Replace(deployment("web", 1, "1m"), "replicas: 1", "replcas: one", 1))
	s = offline(t, "apply", "--dry-run=client", "-f", bundleFile(t, bad), "-o", "json").want(t, 1)
	s.did(t, "Pump", "p", plan.Failed)
	s.did(t, "Deployment", "web", plan.Failed)
	s.did(t, "ConfigMap", "a", plan.Created)
	s.prints(t, "rate is over the limit", "replcas", "bundle.yaml:")
	offline(t, "check", "-f", bundleFile(t, bad)).want(t, 3).prints(t, "rate is over the limit", "replcas", "bundle.yaml:")
	offline(t, "check", "-f", bundleFile(t, good)).want(t, 0).prints(t, "warning: ", "unknown.example.com")

	old := bundleFile(t, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a, namespace: {ns}}\nspec: {minAvailable: 1}\n")
	offline(t, "check", "-f", old).want(t, 0)
	offline(t, "check", "-f", old, "--kubernetes-version=1.20").want(t, 3).prints(t, "policy/v1")
	offline(t, "apply", "--dry-run=client", "-o", "json", "-f", old, "--kubernetes-version=1.20").want(t, 1).prints(t, "policy/v1")
	offline(t, "check", "-f", old, "--kubernetes-version=9.9").want(t, 3).prints(t, "use 1.")
	offline(t, "destroy", "--dry-run=client", "--inventory", "a/b", "-o", "json").want(t, 3).prints(t, "--dry-run=server")
}

// What cannot be read hides nothing of what can.
func TestCheckReportsAllProblemsAtOnce(t *testing.T) {
	file := bundleFile(t, documents(
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
	s := offline(t, "check", "-f", file, "-f", none, "-o", "json").want(t, report.ExitBadBundle)
	if err := json.Unmarshal([]byte(s.stdout), &check); err != nil {
		t.Fatal(err, s.stdout)
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
	if len(check.Objects) != 5 || len(check.Warnings) != 1 || !strings.Contains(check.Warnings[0].Message, "2 objects") || s.stderr != "" {
		t.Errorf("%d objects, warnings %v, stderr %q", len(check.Objects), check.Warnings, s.stderr)
	}
	text := offline(t, "check", "-f", file).want(t, report.ExitBadBundle)
	if strings.Count(text.stdout, "error: ") != 6 || !strings.Contains(text.stdout, "ConfigMap (no name): metadata: is missing") {
		t.Errorf("as text:\n%s", text.stdout)
	}
}

func TestRealBundlesWithoutACluster(t *testing.T) {
	for _, name := range []string{"metalk8s-old", "metalk8s-new", "unready"} {
		s := offline(t, "apply", "--dry-run=client", "-f", realBundle(t, name), "-o", "json").want(t, 0)
		if s.result.Summary.Failed != 0 || s.result.Summary.Created == 0 {
			t.Errorf("%s: %+v", name, s.result.Summary)
		}
	}
}
