package output

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/order"
	"brine/cmd/brine/output/outputtest"
)

// checked is a small bundle with all that can be shown: an explicit edge, one
// to the outside, a wish for readiness, a dropped edge, a hostile state name.
func checked(t *testing.T) (*bundle.Bundle, *order.Graph, []bundle.Problem) {
	t.Helper()
	var objs []*bundle.Object
	for i, doc := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: web, annotations: {config.kubernetes.io/depends-on: "/namespaces/kube-system/ConfigMap/there"}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: web, annotations: {config.kubernetes.io/depends-on: "/namespaces/web/ConfigMap/settings"}}}`,
		`{apiVersion: example.com/v1, kind: Thing, metadata: {name: one}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, names: {kind: Thing, plural: things}}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: orphan, annotations: {config.kubernetes.io/depends-on: "/ConfigMap/nowhere"}}, data: {password: aHVudGVyMg==}}`,
	} {
		u := bundletest.Object(t, doc)
		gvk := u.GroupVersionKind()
		objs = append(objs, &bundle.Object{
			ID:      bundle.ID{GroupKind: gvk.GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()},
			GVK:     gvk,
			Content: u,
			Source:  bundle.Source{File: "web.yaml", Line: 10*i + 1},
		})
	}
	objs[2].Requisites = []bundle.Requisite{{On: objs[0].ID, Reason: "require: \x1b[31m\"Create\\settings\""}}
	b := &bundle.Bundle{
		Objects:  objs,
		Absent:   []*bundle.Absent{{ID: bundle.ID{GroupKind: objs[0].ID.GroupKind, Namespace: "web", Name: "old"}, GVK: objs[0].GVK, Source: bundle.Source{File: "web.yaml", Line: 60}}},
		Warnings: []bundle.Problem{{Source: bundle.Source{File: "web.yaml", Line: 3}, Message: "an odd thing"}},
	}
	g, problems := order.Build(objs, order.Options{})
	return b, g, problems
}

func TestCheck(t *testing.T) {
	b, g, problems := checked(t)
	for _, format := range []string{"text", "json", "dot"} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			if err := Check(&out, format, b, g, nil, problems, true); err != nil {
				t.Fatal(err)
			}
			outputtest.CompareGolden(t, "check."+format, out.String())
			if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), "aHVudGVyMg") {
				t.Error("a Secret's value is shown")
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Error("an escape sequence reaches the terminal")
			}
		})
	}
}

// Without -v there are only findings, and those of one kind are one line.
func TestCheckIsBrief(t *testing.T) {
	b, g, problems := checked(t)
	again := g.Dropped[0]
	again.From = len(g.Objects) - 1
	g.Dropped = append(g.Dropped, again)
	var out bytes.Buffer
	if err := Check(&out, "text", b, g, nil, problems, false); err != nil {
		t.Fatal(err)
	}
	outputtest.CompareGolden(t, "check.brief", out.String())
}

func TestCheckJSONIsOneDocumentWithoutNull(t *testing.T) {
	var out bytes.Buffer
	if err := Check(&out, "json", &bundle.Bundle{}, &order.Graph{}, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"objects", "absent", "dropped", "errors", "warnings"} {
		if _, ok := doc[list].([]any); !ok {
			t.Errorf("%s is %v, want a list", list, doc[list])
		}
	}
}

func TestCheckDotIsAcceptedByGraphviz(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("dot is not installed: Graphviz does NOT judge our graphs")
	}
	b, g, problems := checked(t)
	var in bytes.Buffer
	if err := Check(&in, "dot", b, g, nil, problems, false); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), dot, "-Tplain")
	cmd.Stdin = &in
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "\nnode ") || !strings.Contains(string(out), "\nedge ") {
		t.Errorf("dot saw no nodes or edges: %s", out)
	}
}

func TestCheckRefusesAnUnknownFormat(t *testing.T) {
	err := Check(&bytes.Buffer{}, "yaml", &bundle.Bundle{}, &order.Graph{}, nil, nil, false)
	if err == nil || !strings.Contains(err.Error(), "text, json or dot") {
		t.Errorf("error is %v", err)
	}
}
