package fields

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/bundletest"
)

// live is an object, with what brine and others own of it.
func live(t *testing.T, content, ours string, others ...string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: bundletest.Map(t, content)}
	entries := []any{}
	if ours != "" {
		entries = append(entries, map[string]any{"manager": "brine", "operation": "Apply", "fieldsV1": bundletest.Map(t, ours)})
	}
	for _, other := range others {
		entry := map[string]any{"manager": "other", "operation": "Update"}
		if rest, ok := strings.CutPrefix(other, "scale "); ok {
			entry["subresource"], other = "scale", rest
		}
		entry["fieldsV1"] = bundletest.Map(t, other)
		entries = append(entries, entry)
	}
	u.Object["metadata"] = map[string]any{"managedFields": entries}
	return u
}

func TestSent(t *testing.T) {
	const (
		replicas = `{"f:spec": {"f:replicas": {}, "f:paused": {}}}`
		rest     = `{"f:spec": {"f:paused": {}}}`
		hooks    = `{"f:webhooks": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:clientConfig": {"f:url": {}CA}}, 'k:{"name":"b"}': {".": {}, "f:name": {}, "f:clientConfig": {"f:url": {}CA}}}}`
		ca       = `{"f:webhooks": {'k:{"name":"a"}': {"f:clientConfig": {"f:caBundle": {}}}, 'k:{"name":"b"}': {"f:clientConfig": {"f:caBundle": {}}}}}`
	)
	with, without := strings.ReplaceAll(hooks, "CA", `, "f:caBundle": {}`), strings.ReplaceAll(hooks, "CA", "")
	for name, test := range map[string]struct {
		pointers           string
		wanted, live, ours string
		others             []string
		want               string
	}{
		"brine alone owns it":                      {"/spec/replicas", "spec: {replicas: 2, paused: true}", "spec: {replicas: 5, paused: true}", replicas, nil, "spec: {replicas: 5, paused: true}"},
		"it left the bundle":                       {"/spec/replicas", "spec: {paused: true}", "spec: {replicas: 5, paused: true}", replicas, nil, "spec: {replicas: 5, paused: true}"},
		"the section left the bundle":              {"/spec/replicas", "data: {a: b}", "spec: {replicas: 5}", replicas, nil, "data: {a: b}"},
		"another manager owns it":                  {"/spec/replicas", "spec: {replicas: 2, paused: true}", "spec: {replicas: 5}", rest, []string{replicas}, "spec: {paused: true}"},
		"another manager, by a subresource":        {"/spec/replicas", "spec: {replicas: 2, paused: true}", "spec: {replicas: 5}", rest, []string{"scale " + replicas}, "spec: {paused: true}"},
		"both own it":                              {"/spec/replicas", "spec: {replicas: 2, paused: true}", "spec: {replicas: 5}", replicas, []string{replicas}, "spec: {paused: true}"},
		"nobody owns it":                           {"/spec/replicas", "spec: {replicas: 2, paused: true}", "spec: {replicas: 1}", rest, nil, "spec: {paused: true}"},
		"no managed fields at all":                 {"/spec/replicas", "spec: {replicas: 2}", "spec: {replicas: 1}", "", nil, "spec: {}"},
		"it was removed from the live object":      {"/spec/paused", "spec: {replicas: 2, paused: true}", "spec: {replicas: 1}", `{"f:spec": {"f:replicas": {}}}`, nil, "spec: {replicas: 2}"},
		"its section is new":                       {"/spec/a/b", "spec: {a: {b: 1, c: 2}}", "spec: {paused: true}", rest, nil, "spec: {a: {b: 1, c: 2}}"},
		"a whole map, partly owned by others":      {"/spec", "spec: {replicas: 2, paused: true}, data: {a: b}", "spec: {replicas: 5, paused: false}", replicas, []string{`{"f:spec": {"f:paused": {}}}`}, "spec: {replicas: 5}, data: {a: b}"},
		"every key":                                {"/data/*", "data: {a: b, c: d}", "data: {a: x, c: y, e: z}", `{"f:data": {"f:a": {}, "f:e": {}}}`, []string{`{"f:data": {"f:c": {}}}`}, "data: {a: x, e: z}"},
		"a key with slashes":                       {"/metadata/annotations/a.b~1c~0d", `metadata: {annotations: {a.b/c~d: x, e: f}}`, "spec: {}", `{"f:spec": {}}`, nil, `metadata: {annotations: {a.b/c~d: x, e: f}}`},
		"two pointers":                             {"/spec/replicas, /spec/paused", "spec: {replicas: 2, paused: true, x: y}", "spec: {replicas: 5, paused: false}", replicas, nil, "spec: {replicas: 5, paused: false, x: y}"},
		"in each element, which brine alone owns":  {"/webhooks/*/clientConfig/caBundle", "webhooks: [{name: b, clientConfig: {url: u, caBundle: x}}, {name: a, clientConfig: {url: u}}]", "webhooks: [{name: a, clientConfig: {url: u, caBundle: A}}, {name: b, clientConfig: {url: u, caBundle: B}}]", with, nil, "webhooks: [{name: b, clientConfig: {url: u, caBundle: B}}, {name: a, clientConfig: {url: u, caBundle: A}}]"},
		"in each element, which the injector owns": {"/webhooks/*/clientConfig/caBundle", "webhooks: [{name: b, clientConfig: {url: u, caBundle: x}}, {name: a, clientConfig: {url: u}}]", "webhooks: [{name: a, clientConfig: {url: u, caBundle: A}}, {name: b, clientConfig: {url: u, caBundle: B}}]", without, []string{ca}, "webhooks: [{name: b, clientConfig: {url: u}}, {name: a, clientConfig: {url: u}}]"},
		"in a new element":                         {"/webhooks/*/clientConfig/caBundle", "webhooks: [{name: n, clientConfig: {url: u, caBundle: x}}, {name: a, clientConfig: {url: u, caBundle: x}}]", "webhooks: [{name: a, clientConfig: {url: u, caBundle: A}}, {name: b, clientConfig: {url: u, caBundle: B}}]", with, nil, "webhooks: [{name: n, clientConfig: {url: u, caBundle: x}}, {name: a, clientConfig: {url: u, caBundle: A}}]"},
		"in the element of the bundle's number":    {"/webhooks/1/clientConfig/caBundle", "webhooks: [{name: b, clientConfig: {url: u, caBundle: x}}, {name: a, clientConfig: {url: u, caBundle: x}}]", "webhooks: [{name: a, clientConfig: {url: u, caBundle: A}}, {name: b, clientConfig: {url: u, caBundle: B}}]", with, nil, "webhooks: [{name: b, clientConfig: {url: u, caBundle: x}}, {name: a, clientConfig: {url: u, caBundle: A}}]"},
		"the key of an element is always sent":     {"/webhooks/*/name", "webhooks: [{name: a, x: y}]", "webhooks: [{name: a}]", `{"f:webhooks": {'k:{"name":"a"}': {".": {}, "f:x": {}}}}`, []string{with}, "webhooks: [{name: a, x: y}]"},
		"by a key with a default":                  {"/ports/*/nodePort", "ports: [{port: 53, nodePort: 1}]", "ports: [{port: 53, protocol: UDP, nodePort: 7}, {port: 53, protocol: TCP, nodePort: 8}]", `{"f:ports": {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:nodePort": {}}, 'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:nodePort": {}}}}`, nil, "ports: [{port: 53, nodePort: 8}]"},
		"every element":                            {"/webhooks/*", "webhooks: [{name: a, url: u}, {name: n, url: u}]", "webhooks: [{name: a, url: A, o: p}, {name: b, url: B}]", `{"f:webhooks": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:url": {}}, 'k:{"name":"b"}': {".": {}, "f:url": {}}}}`, []string{`{"f:webhooks": {'k:{"name":"a"}': {"f:o": {}}}}`}, "webhooks: [{name: a, url: A}, {name: b, url: B}]"},
		"values of a set":                          {"/finalizers/*", "finalizers: [a, b]", "finalizers: [a, c, d]", `{"f:finalizers": {'v:"a"': {}, 'v:"d"': {}}}`, []string{`{"f:finalizers": {'v:"c"': {}}}`}, "finalizers: [a, d]"},
		"in a list that has one owner":             {"/args/1", "args: [x, y]", "args: [x, z]", `{"f:args": {}}`, nil, "args: [x, z]"},
		"in a list that another manager owns":      {"/args/1", "args: [x, y]", "args: [x, z]", "", []string{`{"f:args": {}}`}, "args: [x, z]"},
		"all of a list that has one owner":         {"/args/*", "args: [x, y]", "args: [z]", `{"f:args": {}}`, nil, "args: [z]"},
		"in a list that nobody owns":               {"/args/*/a", "args: [{name: x, a: 1}]", "args: [{name: y, a: 2}, {name: x, a: 3}]", "", nil, "args: [{name: x, a: 3}]"},
		"in a map that has one owner":              {"/selector/a", "selector: {b: c}", "selector: {a: x, b: y}", `{"f:selector": {}}`, nil, "selector: {a: x, b: c}"},
		"another type than the live one":           {"/spec/a/b", "spec: {a: [1]}", "spec: {a: {b: 1}}", `{"f:spec": {"f:a": {"f:b": {}}}}`, nil, "spec: {a: [1]}"},
	} {
		t.Run(name, func(t *testing.T) {
			ps, err := List(test.pointers)
			if err != nil {
				t.Fatal(err)
			}
			content := func(text string) map[string]any { return bundletest.Map(t, "{"+text+"}") }
			wanted, u := content(test.wanted), live(t, "{"+test.live+"}", test.ours, test.others...)
			before := u.DeepCopy()
			got := ps.Sent(wanted, u)
			if want := content(test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("sent is %v, want %v", got, want)
			}
			if !reflect.DeepEqual(wanted, content(test.wanted)) || !reflect.DeepEqual(u, before) {
				t.Error("what came in was changed")
			}
		})
	}
}

// What brine does not send any more goes, unless another manager owns it, or nobody does.
func TestWithoutUnsent(t *testing.T) {
	const both = `{"f:spec": {"f:a": {"f:b": {}}, "f:x": {}}}`
	for name, test := range map[string]struct {
		sent, live, ours string
		others           []string
		want             string
	}{
		"a field":                    {"spec: {x: 1}", "spec: {a: {b: 1, c: 2}, x: 1}", both, nil, "spec: {a: {c: 2}, x: 1}"},
		"all is sent":                {"spec: {a: {b: 3}, x: 1}", "spec: {a: {b: 1, c: 2}, x: 1}", both, nil, "spec: {a: {b: 1, c: 2}, x: 1}"},
		"another owns it, too":       {"spec: {x: 1}", "spec: {a: {b: 1}, x: 1}", both, []string{both}, "spec: {a: {b: 1}, x: 1}"},
		"another owns a part":        {"data: {}", "spec: {a: {b: 1, c: 2}, x: 1}", both, []string{`{"f:spec": {"f:a": {"f:c": {}}}}`}, "spec: {a: {c: 2}}"},
		"nobody owns it":             {"data: {}", "spec: {a: {b: 1}}", "", nil, "spec: {a: {b: 1}}"},
		"the map itself":             {"data: {}", "spec: {a: {b: 1, c: 2}}", `{"f:spec": {"f:a": {".": {}, "f:b": {}}}}`, nil, "spec: {}"},
		"a value that has one owner": {"spec: {}", "spec: {args: [x, y]}", `{"f:spec": {"f:args": {}}}`, nil, "spec: {}"},
		"in an element":              {"ports: [{name: a}]", "ports: [{name: a, x: 1}, {name: b, x: 1}]", `{"f:ports": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:x": {}}}}`, nil, "ports: [{name: a}, {name: b, x: 1}]"},
		"an element stays":           {"ports: []", "ports: [{name: a}]", `{"f:ports": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}`, nil, "ports: [{name: a}]"},
	} {
		t.Run(name, func(t *testing.T) {
			u := live(t, "{"+test.live+"}", test.ours, test.others...)
			before := u.DeepCopy()
			got := WithoutUnsent(u, bundletest.Map(t, "{"+test.sent+"}"))
			if !reflect.DeepEqual(u, before) {
				t.Error("what came in was changed")
			}
			delete(got, "metadata")
			if want := bundletest.Map(t, "{"+test.want+"}"); !reflect.DeepEqual(got, want) {
				t.Errorf("left is %v, want %v", got, want)
			}
		})
	}
}

// What is left to others is in no fingerprint, whoever owns it.
func TestTrim(t *testing.T) {
	for name, test := range map[string]struct {
		pointers, wanted, tree, live string
		wantTree, wantLive           string
	}{
		"a field":                      {"/spec/replicas", "{}", `{"f:spec": {"f:replicas": {}, "f:paused": {}}}`, "{spec: {replicas: 1}}", `{"f:spec": {"f:paused": {}}}`, "{spec: {replicas: 1}}"},
		"the only field of a section":  {"/spec/replicas", "{}", `{"f:a": {}, "f:spec": {"f:replicas": {}}}`, "{spec: {replicas: 1}}", `{"f:a": {}}`, "{spec: {replicas: 1}}"},
		"in every element":             {"/l/*/a", "{}", `{"f:l": {'k:{"name":"x"}': {".": {}, "f:a": {}}, 'k:{"name":"q"}': {"f:b": {}}}}`, "{l: [{name: x, a: 1}]}", `{"f:l": {'k:{"name":"x"}': {".": {}}, 'k:{"name":"q"}': {"f:b": {}}}}`, "{l: [{name: x, a: 1}]}"},
		"in one element of the bundle": {"/l/0/a", "{l: [{name: q}, {name: x}]}", `{"f:l": {'k:{"name":"x"}': {".": {}, "f:a": {}}, 'k:{"name":"q"}': {".": {}, "f:a": {}}}}`, "{l: [{name: x, a: 1}]}", `{"f:l": {'k:{"name":"x"}': {".": {}, "f:a": {}}, 'k:{"name":"q"}': {".": {}}}}`, "{l: [{name: x, a: 1}]}"},
		"in a value with one owner":    {"/l/1", "{}", `{"f:l": {}}`, "{l: [1, 2], m: 3}", `{"f:l": {}}`, "{l: [1], m: 3}"},
		"and that in an element":       {"/l/*/m/a", "{}", `{"f:l": {'k:{"name":"x"}': {"f:m": {}}}}`, "{l: [{name: x, m: {a: 1, b: 2}}]}", `{"f:l": {'k:{"name":"x"}': {"f:m": {}}}}`, "{l: [{name: x, m: {b: 2}}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			ps, err := List(test.pointers)
			if err != nil {
				t.Fatal(err)
			}
			tree, content := bundletest.Map(t, test.tree), bundletest.Map(t, test.live)
			gotTree, gotLive := ps.Trim(tree, content, bundletest.Map(t, test.wanted))
			if !reflect.DeepEqual(gotTree, bundletest.Map(t, test.wantTree)) || !reflect.DeepEqual(gotLive, any(bundletest.Map(t, test.wantLive))) {
				t.Errorf("left are %v and %v", gotTree, gotLive)
			}
			if !reflect.DeepEqual(tree, bundletest.Map(t, test.tree)) || !reflect.DeepEqual(content, bundletest.Map(t, test.live)) {
				t.Error("what came in was changed")
			}
		})
	}
}
