package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

func TestBuildDeletions(t *testing.T) {
	configMaps := schema.GroupKind{Kind: "ConfigMap"}
	for _, c := range []planCase{{
		name:   "what the bundle has no longer, dependents first",
		bundle: `{apiVersion: v1, kind: ConfigMap, metadata: {name: stays, namespace: ns}}`,
		live: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: stays, namespace: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: used, namespace: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: user, namespace: ns, annotations: {config.kubernetes.io/depends-on: /namespaces/ns/ConfigMap/used}}}`,
		want: `
configured ConfigMap ns/stays
pruned ConfigMap ns/user
pruned ConfigMap ns/used`,
	}, {
		name:    "a member that is gone is forgotten",
		gone:    []bundle.ID{{GroupKind: configMaps, Namespace: "ns", Name: "gone"}},
		options: Options{AllowEmpty: true},
		want:    `forget ConfigMap ns/gone`,
	}, {
		name:    "one that cannot be read is not, and keeps what holds it",
		options: Options{Destroy: true},
		live: `
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, names: {kind: Thing, plural: things}}}
{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, namespace: ns}}`,
		unsure: map[string]string{"t": "its CRD serves no version"},
		want: `
skipped Thing.example.com ns/t (stays): whether it is still there cannot be known: its CRD serves no version
pruned ConfigMap ns/c
skipped CustomResourceDefinition.apiextensions.k8s.io things.example.com (stays): Thing.example.com ns/t stays and needs it (defined by CustomResourceDefinition things.example.com)
skipped Namespace ns (stays): Thing.example.com ns/t stays and needs it (namespace ns)`,
	}, {
		name:    "nor does the APIService go that serves it",
		options: Options{Destroy: true},
		live: `
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com}, spec: {group: example.com, version: v1, service: {name: s, namespace: other}}}
{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, namespace: other}}`,
		unsure: map[string]string{"t": "the server is away"},
		want: `
skipped Thing.example.com other/t (stays): whether it is still there cannot be known: the server is away
skipped APIService.apiregistration.k8s.io v1.example.com (stays): Thing.example.com other/t stays and needs it (served by APIService v1.example.com)`,
	}, {
		name:    "a namespace with unmanaged objects, and one that cannot be read",
		options: Options{Destroy: true},
		live: `
{apiVersion: v1, kind: Namespace, metadata: {name: blind}}
{apiVersion: v1, kind: Namespace, metadata: {name: empty}}
{apiVersion: v1, kind: Namespace, metadata: {name: held}}`,
		holds: map[string]Contents{"held": {Unmanaged: []string{"Pod held/p"}}, "blind": {Unknown: []string{"pods (no right to list them)"}}},
		want: `
skipped Namespace held (stays): contains objects outside this inventory: Pod held/p; delete them first, or use --force-namespaces
pruned Namespace empty
skipped Namespace blind (stays): may contain objects outside this inventory: cannot read pods (no right to list them); --force-namespaces deletes it all the same`,
	}, {
		name:    "what is detached detaches what it needs",
		options: Options{Destroy: true},
		live: `
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: ns, annotations: {cli-utils.sigs.k8s.io/on-remove: keep, config.kubernetes.io/depends-on: /namespaces/ns/ConfigMap/used}}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: used, namespace: ns}}`,
		want: `
detached ConfigMap ns/kept: cli-utils.sigs.k8s.io/on-remove: keep
detached ConfigMap ns/used: ConfigMap ns/kept stays and needs it (depends-on annotation)
detached Namespace ns: ConfigMap ns/kept stays and needs it (namespace ns)`,
	}, {
		name:   "only absent entries",
		absent: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`,
		live: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}}`,
		want: `refused: the bundle has no objects, only absent entries, and 1 object of inventory home/inv would be pruned: if that is meant, use --allow-empty or brine destroy`,
	}, {
		name:    "only absent entries, and that is meant",
		options: Options{AllowEmpty: true},
		absent:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`,
		live: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, labels: {unmanaged: ""}}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}}`,
		want: `
pruned ConfigMap ns/b
pruned ConfigMap ns/a: the bundle wants it absent`,
	}, {
		name:   "absent entries that name all members",
		absent: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`,
		live:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`,
		want:   `pruned ConfigMap ns/a: the bundle wants it absent`,
	}, {
		name: "an empty bundle",
		live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}`,
		want: `refused: the bundle is empty, and 1 object of inventory home/inv would be pruned: if that is meant, use --allow-empty or brine destroy`,
	}} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := print(Build(c.input(t))), strings.TrimSpace(c.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
