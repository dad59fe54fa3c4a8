package validate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"brine/bundle/read"
)

// crdsOf are the CRDs of files, among them those of real bundles.
func crdsOf(t *testing.T, files ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		b, err := read.Bundle(t.Context(), read.Options{Files: []string{file}, IgnoreNonKubernetesStates: true})
		if err != nil {
			t.Logf("%s: %v", file, err)
			continue
		}
		for _, o := range b.Objects {
			if o.ID.GroupKind.Kind != "CustomResourceDefinition" || o.Content.GetAPIVersion() != "apiextensions.k8s.io/v1" {
				continue
			}
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content.Object, d); err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
			all = append(all, d)
		}
	}
	return all
}

// mergeTypes are those that server-side apply merges by.
func mergeTypes(t *testing.T, models map[string]*spec.Schema, preserve bool) map[string]smdschema.Atom {
	t.Helper()
	s, err := schemaconv.ToSchemaFromOpenAPI(models, preserve)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]smdschema.Atom{}
	for _, d := range s.Types {
		all[d.Name] = sortFields(d.Atom)
	}
	return all
}

// sortFields puts fields in the order of their names: theirs is that of a map.
func sortFields(a smdschema.Atom) smdschema.Atom {
	if a.List != nil {
		a.List.ElementType.Inlined = sortFields(a.List.ElementType.Inlined)
	}
	if a.Map != nil {
		a.Map.ElementType.Inlined = sortFields(a.Map.ElementType.Inlined)
		for i := range a.Fields {
			a.Fields[i].Type.Inlined = sortFields(a.Fields[i].Type.Inlined)
		}
		slices.SortFunc(a.Fields, func(a, b smdschema.StructField) int { return strings.Compare(a.Name, b.Name) })
	}
	return a
}

// The types are those that the server makes of the same CRDs. With
// BRINE_UPDATE=1 the types of metadata are written from the server's first.
func TestModelsAreTheServers(t *testing.T) {
	crds := crdsOf(t, append(realFiles(t), "testdata/crds.yaml", "../../testdata/sample/coupons.yaml")...)
	if len(crds) < 3 {
		t.Fatalf("only %d CRDs to compare", len(crds))
	}
	for _, d := range crds {
		for i := range d.Spec.Versions {
			v := &d.Spec.Versions[i]
			doc, err := builder.BuildOpenAPIV3(d, v.Name, builder.Options{})
			if err != nil {
				t.Errorf("%s %s: the server's: %v", d.Name, v.Name, err)
				continue
			}
			if os.Getenv("BRINE_UPDATE") == "1" {
				updateMetadata(t, doc.Components.Schemas)
				return
			}
			ours, err := models(d, v)
			if err != nil {
				t.Fatalf("%s %s: %v", d.Name, v.Name, err)
			}
			want := mergeTypes(t, doc.Components.Schemas, d.Spec.PreserveUnknownFields)
			for name, got := range mergeTypes(t, ours, d.Spec.PreserveUnknownFields) {
				if !reflect.DeepEqual(got, want[name]) {
					t.Errorf("%s %s: the type %s is\n%s\nthe server's is\n%s", d.Name, v.Name, name, short(got), short(want[name]))
				}
			}
			gvk := modelName(d.Spec.Group, v.Name, d.Spec.Names.Kind)
			if theirs := doc.Components.Schemas[gvk]; theirs == nil || !reflect.DeepEqual(jsonOf(t, theirs.Extensions["x-kubernetes-group-version-kind"]), jsonOf(t, ours[gvk].Extensions["x-kubernetes-group-version-kind"])) {
				t.Errorf("%s %s: the model %s has another group, version and kind", d.Name, v.Name, gvk)
			}
		}
	}
	t.Logf("%d CRDs", len(crds))
}

// realFiles are the files of the real bundles, where they are.
func realFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	dir := filepath.Join("..", "..", "..", "shared", "bundles")
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".sls")) {
			files = append(files, path)
		}
		return nil
	})
	return files
}

func short(v any) string {
	text, _ := json.Marshal(v)
	return string(text[:min(len(text), 1500)])
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func updateMetadata(t *testing.T, all map[string]*spec.Schema) {
	t.Helper()
	wanted := map[string]*spec.Schema{}
	var add func(name string)
	add = func(name string) {
		s := all[name]
		if s == nil || wanted[name] != nil {
			return
		}
		wanted[name] = s
		for _, part := range strings.Split(jsonOf(t, s), `"#/components/schemas/`)[1:] {
			ref, _, _ := strings.Cut(part, `"`)
			add(ref)
		}
	}
	add(objectMeta)
	var plain any
	if err := json.Unmarshal([]byte(jsonOf(t, wanted)), &plain); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(undescribed(plain), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("metadata.json", append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// undescribed leaves out descriptions, which are texts; a field may be called so, too.
func undescribed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for k := range v {
			v[k] = undescribed(v[k])
		}
	case []any:
		for i := range v {
			v[i] = undescribed(v[i])
		}
	}
	return v
}
