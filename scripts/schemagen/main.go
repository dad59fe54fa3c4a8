// Command schemagen writes what package validate knows of the built-in kinds:
// the OpenAPI v3 that a Kubernetes server publishes, reduced to structure and
// compressed. It asks the server of KUBECONFIG, or one that it starts with
// scripts/cluster; that must have no kinds but its own. The same server gives
// the same bytes.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"brine/bundle/validate/published"
)

func main() {
	out := flag.String("o", "published/published.json.zst", "file to write")
	cluster := flag.String("cluster", "../../scripts/cluster", "program to start a server with when KUBECONFIG is not set")
	flag.Parse()
	if err := run(*out, *cluster); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(out, cluster string) error {
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		dir, err := os.MkdirTemp("", "schemagen")
		if err != nil {
			return err
		}
		defer func() {
			_ = exec.Command(cluster, "down", "--dir", dir).Run()
			_ = os.RemoveAll(dir)
		}()
		path, err := exec.Command(cluster, "up", "--dir", dir, "--nodes", "0").Output()
		if err != nil {
			return fmt.Errorf("start a server: %w", err)
		}
		kubeconfig = strings.TrimSpace(string(path))
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	doc, err := reduce(client)
	if err != nil {
		return err
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	compressed := encoder.EncodeAll(data, nil)
	fmt.Printf("%s: %d kinds, %d types, %d bytes, %d compressed\n", doc.Version, len(doc.Kinds), len(doc.Types), len(data), len(compressed))
	return os.WriteFile(out, compressed, 0o644) //nolint:gosec // it is checked in
}

// document is as much of OpenAPI v3 as is used.
type document struct {
	Paths map[string]map[string]json.RawMessage `json:"paths"`

	Components struct {
		Schemas map[string]*property `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Action string                  `json:"x-kubernetes-action"`
	GVK    schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

type property struct {
	Ref        string               `json:"$ref"`
	AllOf      []*property          `json:"allOf"`
	OneOf      []*property          `json:"oneOf"`
	Type       string               `json:"type"`
	Format     string               `json:"format"`
	Default    any                  `json:"default"`
	Enum       []string             `json:"enum"`
	Properties map[string]*property `json:"properties"`
	Required   []string             `json:"required"`
	Items      *property            `json:"items"`
	Values     *property            `json:"additionalProperties"`
	ListType   string               `json:"x-kubernetes-list-type"`
	ListKeys   []string             `json:"x-kubernetes-list-map-keys"`

	GVK []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// optional.txt has, a line each, the fields that OpenAPI calls required and that
// are not known to be: the server does well without them (it fills them in, or
// takes Go's zero value), or no test has asked it (TestRequiredFields).
//
//go:embed optional.txt
var optional string

func reduce(client discovery.DiscoveryInterface) (*published.Document, error) {
	version, err := client.ServerVersion()
	if err != nil {
		return nil, err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	doc := &published.Document{Version: version.GitVersion, Kinds: map[string]string{}, Types: map[string]*published.Type{}}
	known := strings.Fields(optional)
	for path, gv := range paths {
		if path != "api/v1" && !strings.HasPrefix(path, "apis/") {
			continue
		}
		data, err := gv.Schema("application/json")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		var d document
		if err := json.Unmarshal(data, &d); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		addKinds(doc, d)
		for name, s := range d.Components.Schemas {
			t := reduced(s)
			t.Required = slices.DeleteFunc(t.Required, func(f string) bool { return slices.Contains(known, name+"."+f) })
			doc.Types[name] = t
		}
	}
	return doc, nil
}

// addKinds adds the kinds that can be applied.
func addKinds(doc *published.Document, d document) {
	models := map[schema.GroupVersionKind]string{}
	for name, s := range d.Components.Schemas {
		for _, gvk := range s.GVK {
			models[gvk] = name
		}
	}
	for path, methods := range d.Paths {
		var o operation
		if json.Unmarshal(methods["patch"], &o) != nil || o.Action != "patch" || !strings.HasSuffix(path, "/{name}") {
			continue
		}
		if model := models[o.GVK]; model != "" {
			doc.Kinds[published.Key(o.GVK)] = model
		}
	}
}

func reduced(s *property) *published.Type {
	t := &published.Type{Type: s.Type, Format: s.Format, Enum: s.Enum, Ref: strings.TrimPrefix(s.Ref, "#/components/schemas/")}
	if len(s.AllOf) == 1 {
		t.Ref = strings.TrimPrefix(s.AllOf[0].Ref, "#/components/schemas/")
	}
	for _, o := range s.OneOf {
		t.Type += "," + o.Type
	}
	t.Type = strings.TrimPrefix(t.Type, ",")
	if text, ok := s.Default.(string); ok && text != "" {
		t.Default = text
	}
	switch s.ListType {
	case "set":
		t.Set = true
	case "map":
		t.Keys = s.ListKeys
	}
	for name, p := range s.Properties {
		if t.Fields == nil {
			t.Fields = map[string]*published.Type{}
		}
		t.Fields[name] = reduced(p)
	}
	for _, name := range s.Required {
		if p := s.Properties[name]; p == nil || isZero(p.Default) {
			t.Required = append(t.Required, name)
		}
	}
	slices.Sort(t.Required)
	if s.Items != nil {
		t.Items = reduced(s.Items)
	}
	if s.Values != nil {
		t.Values = reduced(s.Values)
	}
	return t
}

// isZero tells Go's zero values, which the generator of OpenAPI calls defaults,
// from real ones.
func isZero(v any) bool {
	m, isMap := v.(map[string]any)
	return v == nil || v == "" || v == 0.0 || v == false || isMap && len(m) == 0
}
