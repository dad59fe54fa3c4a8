package takeover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// encoded is a release as Helm stores it.
func encoded(t *testing.T, manifest string, zipped bool) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": "web", "version": 1, "manifest": manifest})
	if err != nil {
		t.Fatal(err)
	}
	if zipped {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text)
		_ = w.Close()
		text = b.Bytes()
	}
	return base64.StdEncoding.EncodeToString(text)
}

func storedIn(kind, text string) *unstructured.Unstructured {
	if kind == "Secret" {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "r", "namespace": "ns"}, "data": map[string]any{"release": text}}}
}

func TestUninstalled(t *testing.T) {
	manifest := `---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: other}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept, annotations: {helm.sh/resource-policy: " Keep"}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: one}}
- {apiVersion: v1, kind: Secret, metadata: {name: two}}
`
	const want = "ConfigMap a; Deployment.apps other/web; Secret one; Secret two"
	for _, kind := range []string{"Secret", "ConfigMap"} {
		for _, zipped := range []bool{true, false} {
			objects, err := Uninstalled(storedIn(kind, encoded(t, manifest, zipped)))
			var got []string
			for _, o := range objects {
				got = append(got, bundle.Name(o))
			}
			if err != nil || strings.Join(got, "; ") != want {
				t.Errorf("%s, zipped %t: %q, %v", kind, zipped, got, err)
			}
		}
	}
	for text, want := range map[string]string{
		"!":                           "decode",
		"":                            "no JSON",
		encoded(t, "a: [", true):      "document 1 of the manifest is no YAML object",
		encoded(t, "a: {b: 1}", true): "document 1 of the manifest has no kind or name",
		base64.StdEncoding.EncodeToString([]byte("{}")): "no manifest",
	} {
		if _, err := Uninstalled(storedIn("ConfigMap", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
