package bundle

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/bundletest"
)

func TestDefinitionOf(t *testing.T) {
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	for _, test := range []struct {
		name, yaml string
		want       Definition
		served     []string
	}{
		{"namespaced", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v2, served: true}, {name: v1, served: true, storage: true}, {name: v0, served: false}]}`,
			Definition{widget, "widgets", true, []DefinedVersion{{"v2", true, false}, {"v1", true, true}, {"v0", false, false}}}, []string{"v2", "v1"}},
		{"cluster-scoped", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {group: example.com, scope: Cluster, names: {kind: Widget, plural: widgets}}`,
			Definition{widget, "widgets", false, nil}, nil},
		{"in the old form", `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
spec: {group: example.com, scope: Namespaced, version: v1, names: {kind: Widget, plural: widgets}}`,
			Definition{widget, "widgets", true, []DefinedVersion{{"v1", true, true}}}, []string{"v1"}},
		{"of wrong types", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {group: 1, names: [], versions: [1, {name: {}}]}`,
			Definition{Namespaced: true, Versions: []DefinedVersion{{}, {}}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := DefinitionOf(bundletest.Object(t, test.yaml))
			if !ok || !reflect.DeepEqual(got, test.want) {
				t.Errorf("DefinitionOf = %+v, %v; want %+v", got, ok, test.want)
			}
			if !slices.Equal(got.Served(), test.served) {
				t.Errorf("Served = %v, want %v", got.Served(), test.served)
			}
		})
	}
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "CustomResourceDefinition"}}
	for _, u := range []*unstructured.Unstructured{nil, other} {
		if d, ok := DefinitionOf(u); ok {
			t.Errorf("DefinitionOf(%v) = %+v", u, d)
		}
	}
}

func TestReadyColumn(t *testing.T) {
	for path, want := range map[string]bool{
		`.status.conditions[?(@.type=="Ready")].status`: true, `.status.conditions[?(@.type == 'Ready')].reason`: true,
		`.status.conditions[?(@.type=="Readying")].status`: false, `.status.phase`: false,
	} {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": []any{map[string]any{}, map[string]any{"additionalPrinterColumns": []any{map[string]any{"jsonPath": path}}}}}}}
		if got := ReadyColumn(crd); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
