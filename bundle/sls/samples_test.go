package sls

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// bundles is the folder of real bundles beside the repository.
func bundles(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "bundles")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("the real bundles are not there: %v", err)
		}
		t.Skipf("SKIPPED: the real bundles are not there: %v", err)
	}
	return dir
}

func readDocs(t *testing.T, path string) []*yaml.Node {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var docs []*yaml.Node
	for dec := yaml.NewDecoder(f); ; {
		n := &yaml.Node{}
		if err := dec.Decode(n); err != nil {
			if err.Error() == "EOF" {
				return docs
			}
			t.Fatal(err)
		}
		docs = append(docs, n)
	}
}

func plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Every sample that a real Salt printed gives the objects of the manifests it
// was rendered from.
func TestSamplesGiveTheObjectsOfTheirManifests(t *testing.T) {
	dir := bundles(t)
	settings := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "settings", "namespace": "metalk8s-ingress"},
		"data":     map[string]any{"mode": "on"},
	}
	old := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "old-settings", "namespace": "metalk8s-ingress"},
	}
	manifests := func(name string) (all []any) {
		for _, n := range readDocs(t, filepath.Join(dir, "metalk8s-new", name+".yaml")) {
			all = append(all, plain(t, n))
		}
		return all
	}
	ingress := manifests("nginx-ingress-chart")
	wants := map[string][]any{
		"dex-chart.high": manifests("dex-chart"), "dex-chart.low": manifests("dex-chart"), "dex-chart.renderer": manifests("dex-chart"),
		"nginx-ingress-chart.high": ingress, "nginx-ingress-chart.low": ingress, "nginx-ingress-chart.renderer": ingress,
		"deploy.high":     append(slices.Clone(ingress), settings, old),
		"deploy.low":      append(slices.Clone(ingress), settings, old),
		"deploy.renderer": {settings, old},
	}
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			doc := readDocs(t, filepath.Join(dir, "salt-output", name+".json"))[0]
			docs, problems, warnings := decoded(doc, Detect(doc), Options{IgnoreNonKubernetesStates: true})
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			if include := name == "deploy.renderer"; include != (len(warnings) == 1) {
				t.Errorf("warnings: %v", warnings)
			}
			if len(docs) != len(want) {
				t.Fatalf("%d documents, want %d", len(docs), len(want))
			}
			for i, d := range docs {
				if got := plain(t, d.Node); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("document %d (%s) differs from its manifest", i, d.State)
				}
				if d.Absent != (d.State == "Remove old settings") {
					t.Errorf("%s: absent is %v", d.State, d.Absent)
				}
				if sls, _, _ := strings.Cut(name, "."); d.SLS != sls && !strings.HasSuffix(name, "renderer") && sls != "deploy" {
					t.Errorf("%s: sls %q", d.State, d.SLS)
				}
				if d.Line == 0 {
					t.Errorf("%s: no line", d.State)
				}
			}
		})
	}
}

// "Create settings" requires test: Wait for ingress, which requires the whole
// SLS: ten edges through a state that is no object.
func TestSampleDeployHasItsEdgeThroughAForeignState(t *testing.T) {
	dir := bundles(t)
	for _, name := range []string{"deploy.high", "deploy.low"} {
		doc := readDocs(t, filepath.Join(dir, "salt-output", name+".json"))[0]
		docs, _, _ := decoded(doc, Detect(doc), Options{IgnoreNonKubernetesStates: true})
		i := slices.IndexFunc(docs, func(d *Document) bool { return d.State == "Create settings" })
		if i < 0 || len(docs[i].Requires) != 10 {
			t.Fatalf("%s: %d documents, Create settings at %d", name, len(docs), i)
		}
		for _, r := range docs[i].Requires {
			if r.Reason != "require: Wait for ingress, require: sls nginx-ingress-chart" || docs[slices.Index(docs, r.On)].SLS != "nginx-ingress-chart" {
				t.Errorf("%s: requires %d, %q", name, slices.Index(docs, r.On), r.Reason)
			}
		}
	}
}

// The foreign state of the samples is named, with its id and SLS.
func TestSampleDeployListsItsForeignState(t *testing.T) {
	dir := bundles(t)
	for _, name := range []string{"deploy.high", "deploy.low", "deploy.renderer"} {
		doc := readDocs(t, filepath.Join(dir, "salt-output", name+".json"))[0]
		_, problems, _ := decoded(doc, Detect(doc), Options{})
		if len(problems) != 1 || problems[0].Source.State != "Wait for ingress" || !strings.Contains(problems[0].Message, "test.nop") ||
			!strings.Contains(problems[0].Message, "--ignore-foreign-states") {
			t.Errorf("%s: %v", name, problems)
		}
		if !strings.HasSuffix(name, "renderer") && len(problems) == 1 && problems[0].Source.SLS != "deploy" {
			t.Errorf("%s: sls %q", name, problems[0].Source.SLS)
		}
	}
}
