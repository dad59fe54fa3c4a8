package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// request is one object as raw sends it.
type request struct {
	Path string          `json:"path"` // of the object, below the server's address
	Body json.RawMessage `json:"body"`
}

// bundle is a generated one, in the form that each tool reads.
type bundle struct {
	manifests string // one file of many documents
	folder    string // the same file, alone in a folder, and kapply's inventory
	chart     string // helm's and nelm's
	project   string // kluctl's
	requests  string // raw's, a line each, namespaces first
}

// generate writes a bundle of mixed objects: one namespace in a hundred, and
// ConfigMaps, Services, ServiceAccounts and Roles in equal parts.
func generate(dir string, count int) (bundle, error) {
	b := bundle{
		folder: filepath.Join(dir, "folder"), chart: filepath.Join(dir, "chart"), project: filepath.Join(dir, "project"),
		requests: filepath.Join(dir, "requests.jsonl"),
	}
	b.manifests = filepath.Join(b.folder, "bundle.yaml")
	templates, objects := filepath.Join(b.chart, "templates"), filepath.Join(b.project, "objects")
	if err := errors.Join(os.MkdirAll(b.folder, 0o777), os.MkdirAll(templates, 0o777), os.MkdirAll(objects, 0o777)); err != nil {
		return b, err
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(b.folder, "inventory.yaml"), []byte(kapplyInventory), 0o666),
		os.WriteFile(filepath.Join(b.chart, "Chart.yaml"), []byte("apiVersion: v2\nname: bench\nversion: 1.0.0\n"), 0o666),
		os.WriteFile(filepath.Join(b.project, ".kluctl.yaml"), []byte("discriminator: bench\n"), 0o666),
		os.WriteFile(filepath.Join(b.project, "deployment.yaml"), []byte("deployments: [{path: objects}]\n"), 0o666),
	)
	if err != nil {
		return b, err
	}
	all, err := os.Create(b.manifests)
	if err != nil {
		return b, err
	}
	defer all.Close()
	lines, err := os.Create(b.requests)
	if err != nil {
		return b, err
	}
	defer lines.Close()
	manifests, requests := bufio.NewWriter(all), bufio.NewWriter(lines)
	encoder := json.NewEncoder(requests)
	for i := range count {
		text, r := mixed(i, max(1, count/100))
		fmt.Fprintf(manifests, "---\n%s", text)
		if err := encoder.Encode(r); err != nil {
			return b, err
		}
	}
	if err := errors.Join(manifests.Flush(), requests.Flush()); err != nil {
		return b, err
	}
	// Below the limit that helm has for one file of a chart, and for their sum.
	text, err := os.ReadFile(b.manifests)
	if err != nil {
		return b, err
	}
	return b, errors.Join(os.WriteFile(filepath.Join(templates, "bundle.yaml"), text, 0o666), os.WriteFile(filepath.Join(objects, "bundle.yaml"), text, 0o666))
}

const kapplyInventory = `apiVersion: v1
kind: ConfigMap
metadata:
  name: bench-inventory
  namespace: default
  labels: {cli-utils.sigs.k8s.io/inventory-id: bench}
`

// mixed is the i-th object of a bundle, as YAML and as a request.
func mixed(i, namespaces int) (string, request) {
	if i < namespaces {
		text := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: bench-%d\n  labels: {bench: \"yes\"}\n", i)
		return text, request{
			Path: fmt.Sprintf("/api/v1/namespaces/bench-%d", i),
			Body: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bench-%d","labels":{"bench":"yes"}}}`, i),
		}
	}
	namespace := fmt.Sprintf("bench-%d", i%namespaces)
	name := fmt.Sprintf("object-%d", i)
	meta := fmt.Sprintf("metadata:\n  name: %s\n  namespace: %s\n  labels: {app: bench, part: \"%d\"}\n", name, namespace, i)
	body := func(api, kind, rest string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q,"labels":{"app":"bench","part":"%d"}}%s}`,
			api, kind, name, namespace, i, rest)
	}
	core := "/api/v1/namespaces/" + namespace + "/"
	switch i % 4 {
	case 0:
		text := "apiVersion: v1\nkind: ConfigMap\n" + meta + fmt.Sprintf("data:\n  settings.ini: |\n    number = %d\n    level = info\n  mode: fast\n", i)
		return text, request{core + "configmaps/" + name, body("v1", "ConfigMap", fmt.Sprintf(`,"data":{"settings.ini":"number = %d\nlevel = info\n","mode":"fast"}`, i))}
	case 1:
		text := "apiVersion: v1\nkind: Service\n" + meta + "spec:\n  selector: {app: bench}\n  ports:\n  - name: http\n    port: 80\n    targetPort: 8080\n"
		return text, request{core + "services/" + name, body("v1", "Service", `,"spec":{"selector":{"app":"bench"},"ports":[{"name":"http","port":80,"targetPort":8080}]}`)}
	case 2:
		return "apiVersion: v1\nkind: ServiceAccount\n" + meta, request{core + "serviceaccounts/" + name, body("v1", "ServiceAccount", "")}
	default:
		text := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n" + meta + "rules:\n- apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [get, list, watch]\n"
		return text, request{
			"/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles/" + name,
			body("rbac.authorization.k8s.io/v1", "Role", `,"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]`),
		}
	}
}
