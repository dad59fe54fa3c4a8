package sls_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/read"
	"brine/bundle/read/readtest"
	"brine/bundle/sls"
)

func slotOf(kind, name, path string) string {
	return fmt.Sprintf("__slot__:salt:metalk8s_kubernetes.get_object_digest(kind=%q, apiVersion=\"v1\", namespace=\"ns\", name=%q, path=%q)", kind, name, path)
}

// A slot in what an object's digest is taken of is answered before.
func TestSlotsWhereverTheyStand(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata:\n  key: value\n  other: '%s'\n"
	const alertmanager = `apiVersion: monitoring.coreos.com/v1
kind: Alertmanager
metadata: {name: main, namespace: ns, annotations: {of-all: '%[2]s'}}
spec:
  podMetadata: {annotations: {checksum/config: '%[1]s', checksum/live: '%[3]s', checksum/none: '%[4]s'}}
  containers: [{name: a, args: [--config-hash, '%[1]s', '%[4]s', last]}]
`
	text := fmt.Sprintf(alertmanager, slotOf("ConfigMap", "c", "data:key"), slotOf("ConfigMap", "c", ""), slotOf("Secret", "live", "data:x"), slotOf("Secret", "none", "")) + "---\n" + fmt.Sprintf(configMap, slotOf("ConfigMap", "c", "data:key"))
	b := readtest.Bundle(t, text)
	live := func(id bundle.ID) (*unstructured.Unstructured, error) {
		if id.Name != "live" {
			return nil, nil
		}
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"x": "eA=="}}}, nil
	}
	if err := sls.FillSlots(b, live); err != nil {
		t.Fatal(err)
	}
	content := b.Objects[0].Content.Object
	annotations, _, _ := unstructured.NestedStringMap(content, "spec", "podMetadata", "annotations")
	if got := annotations["checksum/config"]; len(got) != 64 {
		t.Errorf("the digest is %q", got)
	}
	if got := annotations["checksum/live"]; len(got) != 64 || got == annotations["checksum/config"] {
		t.Errorf("the live object's digest is %q", got)
	}
	if _, ok := annotations["checksum/none"]; ok || len(b.Warnings) != 2 || b.Warnings[1].Source.Line != 5 || !strings.Contains(b.Warnings[1].Message, "Secret ns/none") {
		t.Errorf("what nobody has is %v, and told as %v", annotations, b.Warnings)
	}
	containers, _, _ := unstructured.NestedSlice(content, "spec", "containers")
	if args := containers[0].(map[string]any)["args"].([]any); args[1] != annotations["checksum/config"] || args[2] != "" || args[3] != "last" {
		t.Errorf("the arguments are %v", args)
	}
	data, _, _ := unstructured.NestedStringMap(b.Objects[1].Content.Object, "data")
	if data["other"] != annotations["checksum/config"] {
		t.Errorf("the ConfigMap holds %v", data)
	}
	// As if the ConfigMap had been written with its digest.
	filled := readtest.Bundle(t, fmt.Sprintf(alertmanager, slotOf("ConfigMap", "c", "data:key"), slotOf("ConfigMap", "c", ""), "", "")+"---\n"+fmt.Sprintf(configMap, data["other"]))
	if err := sls.FillSlots(filled, nil); err != nil {
		t.Fatal(err)
	}
	if a, b := b.Objects[0].Content.GetAnnotations()["of-all"], filled.Objects[0].Content.GetAnnotations()["of-all"]; a != b || len(a) != 64 {
		t.Errorf("the digest of an object with a slot is %q, want %q", a, b)
	}
}

func TestSlotsThatHaveNoAnswer(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: ns}\ndata:\n  key: '%s'\n"
	for name, test := range map[string]struct{ text, want string }{
		"of itself":      {fmt.Sprintf(text, "c", slotOf("ConfigMap", "c", "")), "depends on itself"},
		"of one another": {fmt.Sprintf(text, "c", slotOf("ConfigMap", "d", "")) + "---\n" + fmt.Sprintf(text, "d", slotOf("ConfigMap", "c", "")), "depends on itself"},
	} {
		t.Run(name, func(t *testing.T) {
			err := sls.FillSlots(readtest.Bundle(t, test.text), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	for name, text := range map[string]string{
		"another function": fmt.Sprintf(text, "c", "__slot__:salt:test.echo(1)"),
		"a name":           fmt.Sprintf(text, "'"+slotOf("Secret", "s", "")+"'", "v"),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "b.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := read.Bundle(t.Context(), read.Options{Files: []string{file}}); err == nil || !strings.Contains(err.Error(), "__slot__") {
				t.Errorf("%v", err)
			}
		})
	}
}
