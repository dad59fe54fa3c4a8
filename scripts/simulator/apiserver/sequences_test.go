package apiserver_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"strings"
)

// kind is one whose objects the sequences are about. No controller of a real cluster writes
// them; where one does (Deployments), requests are dry runs.
type kind struct {
	prefix, apiVersion, kind, plural string
	dry                              bool
	cluster                          bool // no namespace
	content                          func(*generator) map[string]any
}

func (k kind) path(namespace, name string) string {
	if k.cluster {
		return strings.TrimSuffix(fmt.Sprintf("%s/%s/%s", k.prefix, k.plural, name), "/")
	}
	return strings.TrimSuffix(fmt.Sprintf("%s/namespaces/%s/%s/%s", k.prefix, namespace, k.plural, name), "/")
}

var kinds = []kind{
	{prefix: "/api/v1", apiVersion: "v1", kind: "ConfigMap", plural: "configmaps", content: func(g *generator) map[string]any {
		content := map[string]any{"data": map[string]any{"a": g.value(), g.key(): g.value()}}
		if g.rand.IntN(12) == 0 {
			content["immutable"] = true
		}
		return content
	}},
	{prefix: "/api/v1", apiVersion: "v1", kind: "Secret", plural: "secrets", content: func(g *generator) map[string]any {
		content := map[string]any{"data": map[string]any{g.key(): base64.StdEncoding.EncodeToString([]byte(g.value()))}}
		if g.rand.IntN(3) == 0 {
			content = map[string]any{"stringData": map[string]any{g.key(): g.value()}}
		}
		if g.rand.IntN(8) == 0 {
			content["type"] = "example.com/token"
		}
		return content
	}},
	{prefix: "/api/v1", apiVersion: "v1", kind: "ServiceAccount", plural: "serviceaccounts", content: func(g *generator) map[string]any {
		return map[string]any{"automountServiceAccountToken": g.rand.IntN(2) == 0, "imagePullSecrets": []any{map[string]any{"name": g.key()}}}
	}},
	{prefix: "/apis/coordination.k8s.io/v1", apiVersion: "coordination.k8s.io/v1", kind: "Lease", plural: "leases", content: func(g *generator) map[string]any {
		return map[string]any{"spec": map[string]any{"holderIdentity": g.value(), "leaseDurationSeconds": 60, "renewTime": "2026-11-24T21:00:00.123456Z"}}
	}},
	{prefix: "/apis/differential.example.com/v1", apiVersion: "differential.example.com/v1", kind: "Widget", plural: "widgets", content: func(g *generator) map[string]any {
		return map[string]any{"spec": map[string]any{"size": g.rand.IntN(3), "parts": []any{g.value(), g.key()}, g.key(): map[string]any{"deep": g.value()}}}
	}},
	{prefix: "/apis/differential.example.com/v1", apiVersion: "differential.example.com/v1", kind: "Gadget", plural: "gadgets", content: (*generator).gadget},
	{prefix: "/apis/apps/v1", apiVersion: "apps/v1", kind: "Deployment", plural: "deployments", dry: true, content: func(g *generator) map[string]any {
		return map[string]any{"spec": map[string]any{
			"replicas": g.rand.IntN(3), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "image": "web:" + g.value(), "env": []any{map[string]any{"name": "A", "value": g.value()}},
					"ports": []any{map[string]any{"containerPort": 80}},
				}}},
			},
		}}
	}},
}

// held are kinds whose objects controllers write: of them, requests are dry runs. One
// Namespace and one CRD are there, named NAMESPACE-held and widgets.
var held = []kind{
	{prefix: "/api/v1", apiVersion: "v1", kind: "Namespace", plural: "namespaces", dry: true, cluster: true, content: func(*generator) map[string]any {
		return map[string]any{}
	}},
	{prefix: "/api/v1", apiVersion: "v1", kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims", dry: true, content: func(g *generator) map[string]any {
		return map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": g.key(), "resources": map[string]any{"requests": map[string]any{"storage": g.value() + "Gi"}},
		}}
	}},
	{prefix: "/apis/batch/v1", apiVersion: "batch/v1", kind: "Job", plural: "jobs", dry: true, content: func(g *generator) map[string]any {
		return map[string]any{"spec": map[string]any{"backoffLimit": g.rand.IntN(3), "ttlSecondsAfterFinished": g.rand.IntN(2), "template": pods(g)}}
	}},
	{prefix: "/apis/batch/v1", apiVersion: "batch/v1", kind: "CronJob", plural: "cronjobs", dry: true, content: func(g *generator) map[string]any {
		return map[string]any{"spec": map[string]any{"schedule": g.value() + " 0 * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": pods(g)}}}}
	}},
	{prefix: "/apis/apiextensions.k8s.io/v1", apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", plural: "customresourcedefinitions", dry: true, cluster: true, content: func(g *generator) map[string]any {
		spec := maps.Clone(widgets["spec"].(map[string]any))
		if g.rand.IntN(2) == 0 {
			spec["conversion"] = map[string]any{"strategy": "None"}
		}
		return map[string]any{"spec": spec}
	}},
}

func pods(g *generator) map[string]any {
	return map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "job", "image": "job:" + g.value(), "args": []any{g.value()}}}}}
}

// generator makes requests by chance.
type generator struct {
	rand      *rand.Rand
	namespace string
	paged     *request // whose next page is asked for next
}

// gadget is one as its CRD wants it, or not.
func (g *generator) gadget() map[string]any {
	spec := map[string]any{"size": g.rand.IntN(4), "mode": of(g, "a", "b"), "fixed": of(g, "x", "x", "x", "y"), "parts": []any{g.value(), g.key()}}
	switch g.rand.IntN(12) {
	case 0:
		spec["size"] = of[any](g, 9, "large", -1, nil)
	case 1:
		delete(spec, "size")
	case 2:
		spec["mode"] = of[any](g, "c", nil, 7)
	case 3:
		spec["unknown"] = g.value()
	case 4:
		spec["parts"] = of[any](g, g.value(), []any{1}, map[string]any{"a": "b"})
	case 5:
		delete(spec, "fixed")
	case 6, 7:
		spec["deep"] = of[any](g, map[string]any{}, map[string]any{"level": 2}, map[string]any{"more": 1})
	case 8:
		spec["tags"] = of[any](g, []any{g.key(), g.value()}, []any{"1", "1"})
	case 9:
		delete(spec, "mode")
	}
	return map[string]any{"spec": spec}
}

func of[T any](g *generator, from ...T) T { return from[g.rand.IntN(len(from))] }

func (g *generator) value() string { return of(g, "1", "2", "3") }
func (g *generator) key() string   { return of(g, "a", "b", "c") }

// metadata are labels, annotations and, seldom, finalizers.
func (g *generator) metadata(name string) map[string]any {
	m := map[string]any{"name": name}
	if g.rand.IntN(2) == 0 {
		m["labels"] = map[string]any{g.key(): g.value()}
	}
	if g.rand.IntN(3) == 0 {
		m["annotations"] = map[string]any{"example.com/" + g.key(): g.value()}
	}
	if g.rand.IntN(12) == 0 {
		m["finalizers"] = []any{"example.com/wait"}
	}
	return m
}

func (k kind) create(name string, g *generator) map[string]any {
	object := k.content(g)
	if name == "the-last" && k.kind == "Gadget" { // no server refuses it
		object = map[string]any{"spec": map[string]any{"size": 1}}
	}
	object["apiVersion"], object["kind"], object["metadata"] = k.apiVersion, k.kind, g.metadata(name)
	if name == "the-last" {
		delete(object["metadata"].(map[string]any), "finalizers")
	}
	return object
}

// next is the next request.
func (g *generator) next() request {
	if r := g.paged; r != nil {
		g.paged, r.next = nil, true
		return *r
	}
	k, name := kinds[g.rand.IntN(len(kinds))], of(g, "one", "two", "three")
	if g.rand.IntN(5) == 0 {
		k = held[g.rand.IntN(len(held))]
		switch {
		case k.kind == "Namespace" && g.rand.IntN(3) > 0:
			name = g.namespace + "-held"
		case k.kind == "CustomResourceDefinition":
			name = "widgets.differential.example.com"
		}
	}
	r := request{query: url.Values{}, contentType: "application/json", path: k.path(g.namespace, name), of: k.path(g.namespace, name), where: "metadata"}
	if k.dry || g.rand.IntN(5) == 0 {
		r.query.Set("dryRun", "All")
	}
	if g.rand.IntN(4) > 0 {
		r.query.Set("fieldManager", of(g, "brine", "kubectl-edit"))
	}
	if g.rand.IntN(4) == 0 {
		r.query.Set("fieldValidation", "Strict")
	}
	versions := func() {
		r.uid, r.version = of(g, "", "", "now", "now", "now", "never"), of(g, "", "", "now", "now", "now", "before", "never")
	}
	body := k.create(name, g)
	switch n := g.rand.IntN(100); {
	case n < 14:
		g.post(&r, k, body)
	case n < 24:
		r.method, r.body = "PUT", body
		versions()
	case n < 54:
		r.method, r.body, r.contentType = "PATCH", body, "application/apply-patch+yaml"
		r.query.Set("fieldManager", of(g, "brine", "other"))
		if g.rand.IntN(2) == 0 {
			r.query.Set("force", "true")
		}
		versions()
	case n < 62:
		r.method, r.contentType = "PATCH", "application/merge-patch+json"
		r.body = of[map[string]any](g,
			map[string]any{"metadata": map[string]any{"labels": map[string]any{g.key(): g.value()}}},
			map[string]any{"metadata": map[string]any{"labels": map[string]any{g.key(): nil}, "annotations": map[string]any{"example.com/a": nil, "example.com/b": g.value()}}},
			map[string]any{"metadata": map[string]any{"finalizers": nil}},
		)
		versions()
	case n < 68:
		r.method, r.contentType, r.where = "PATCH", "application/json-patch+json", "patch"
		r.body = of[[]any](g,
			[]any{map[string]any{"op": "add", "path": "/metadata/labels", "value": map[string]any{g.key(): g.value()}}},
			[]any{map[string]any{"op": "remove", "path": "/metadata/annotations/example.com~1a"}},
			[]any{map[string]any{"op": "replace", "path": "/metadata/finalizers", "value": []any{}}},
		)
		versions()
	case n < 82:
		r.method, r.where = "DELETE", "preconditions"
		options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
		if r.query.Has("dryRun") {
			options["dryRun"] = []any{"All"}
		}
		if g.rand.IntN(2) == 0 {
			options["propagationPolicy"] = "Background"
			if options["dryRun"] != nil { // else the real garbage collector acts, now or later
				options["propagationPolicy"] = of(g, "Background", "Orphan", "Foreground")
			}
		}
		r.query, r.body = url.Values{}, options
		if options["dryRun"] != nil {
			r.query.Set("dryRun", "All")
		}
		versions()
	default:
		g.read(&r, k)
	}
	return r
}

func (g *generator) post(r *request, k kind, body map[string]any) {
	r.method, r.path, r.body = "POST", k.path(g.namespace, ""), body
	switch metadata := body["metadata"].(map[string]any); g.rand.IntN(10) {
	case 0:
		delete(metadata, "name")
		metadata["generateName"] = "generated-"
		r.of = ""
		r.query.Set("dryRun", "All")
	case 1:
		metadata["namespace"] = g.namespace
	case 2:
		metadata["namespace"] = "elsewhere"
	case 3:
		r.path, r.of = k.path("not-there", ""), ""
	case 4:
		metadata["name"] = "Not_A_Name"
	}
}

// read is a GET or a LIST.
func (g *generator) read(r *request, k kind) {
	r.method, r.query = "GET", url.Values{}
	kindOfRead := g.rand.IntN(6)
	if k.cluster { // a list has what others made
		kindOfRead = 0
	}
	switch kindOfRead {
	case 0, 1:
	case 2:
		r.path = strings.Replace(r.path, k.plural, of(g, k.plural, "nothings"), 1)
		r.path = strings.Replace(r.path, "/v1/", of(g, "/v1/", "/v1/", "/v9/"), 1)
		r.path = strings.Replace(r.path, "differential", of(g, "differential", "nowhere"), 1)
	default:
		r.path, r.of = k.path(g.namespace, ""), ""
		switch g.rand.IntN(6) {
		case 0:
			r.query.Set("labelSelector", of(g, "a", "a=1", "b in (1,2)", "!c"))
		case 1:
			r.query.Set("fieldSelector", "metadata.name="+of(g, "one", "two"))
		case 2:
			r.query.Set("limit", of(g, "1", "2", "3"))
			g.paged = r
		case 3:
			r.query.Set("resourceVersion", "0")
		case 4:
			r.query.Set("labelSelector", "a=(")
		}
		if g.rand.IntN(2) == 0 {
			r.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
		}
	}
}
