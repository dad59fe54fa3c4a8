package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle/apply"
	"brine/bundle/plan"
)

// offline runs a command line where there is no cluster, and no kubeconfig.
func offline(t *testing.T, args ...string) said {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	var out, err bytes.Buffer
	code := execute(t.Context(), streams{in: strings.NewReader(""), out: &out, err: &err}, args)
	s := said{exit: code, stdout: out.String(), stderr: err.String()}
	var result apply.Result
	if json.Unmarshal(out.Bytes(), &result) == nil && result.Kind == "Result" {
		s.result = &result
	}
	return s
}

func bundleFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "{ns}", "shop")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDryRunWithoutACluster(t *testing.T) {
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
	s.tells(t, "rate is over the limit", "replcas", "bundle.yaml:")
	offline(t, "check", "-f", bundleFile(t, bad)).want(t, 3).tells(t, "rate is over the limit", "replcas", "bundle.yaml:")
	offline(t, "check", "-f", bundleFile(t, good)).want(t, 0).tells(t, "warning: ", "unknown.example.com")

	old := bundleFile(t, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a, namespace: {ns}}\nspec: {minAvailable: 1}\n")
	offline(t, "check", "-f", old).want(t, 0)
	offline(t, "check", "-f", old, "--kubernetes-version=1.20").want(t, 3).tells(t, "policy/v1")
	offline(t, "apply", "--dry-run=client", "-o", "json", "-f", old, "--kubernetes-version=1.20").want(t, 1).tells(t, "policy/v1")
	offline(t, "check", "-f", old, "--kubernetes-version=9.9").want(t, 3).tells(t, "there are 1.")
	offline(t, "destroy", "--dry-run=client", "--inventory", "a/b", "-o", "json").want(t, 3).tells(t, "--dry-run=server")
}

func TestRealBundlesWithoutACluster(t *testing.T) {
	for _, name := range []string{"metalk8s-old", "metalk8s-new", "unready"} {
		s := offline(t, "apply", "--dry-run=client", "-f", realBundle(t, name), "-o", "json").want(t, 0)
		if s.result.Summary.Failed != 0 || s.result.Summary.Created == 0 {
			t.Errorf("%s: %+v", name, s.result.Summary)
		}
	}
}
