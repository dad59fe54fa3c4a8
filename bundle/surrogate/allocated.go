package surrogate

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unallocated is an object that a dry run created, without what the server
// picked for it and will pick again: addresses, ports, and what follows from the
// UID. Two previews of the same show the same. sent is what the bundle asks for.
func Unallocated(answer, sent *unstructured.Unstructured) *unstructured.Unstructured {
	switch answer.GroupVersionKind().GroupKind().String() {
	case "Service":
		u := answer.DeepCopy()
		service(u, sent)
		return u
	case "Job.batch":
		u := answer.DeepCopy()
		for _, path := range [][]string{
			{"metadata", "labels"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"},
		} {
			drop(u, sent, path, "controller-uid")
			drop(u, sent, path, "batch.kubernetes.io/controller-uid")
		}
		return u
	case "Pod":
		u := answer.DeepCopy()
		tokens(u)
		return u
	}
	return answer
}

func drop(u, sent *unstructured.Unstructured, path []string, key string) {
	wanted, _, _ := unstructured.NestedMap(sent.Object, path...)
	if _, ok := wanted[key]; ok {
		return
	}
	if below, ok, _ := unstructured.NestedMap(u.Object, path...); ok {
		delete(below, key)
		_ = unstructured.SetNestedMap(u.Object, below, path...)
	}
}

func service(u, sent *unstructured.Unstructured) {
	address, _, _ := unstructured.NestedString(sent.Object, "spec", "clusterIP")
	got, _, _ := unstructured.NestedString(u.Object, "spec", "clusterIP")
	if address == "" && got != "None" {
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
	}
	drop(u, sent, []string{"spec"}, "healthCheckNodePort")
	ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
	wanted, _, _ := unstructured.NestedSlice(sent.Object, "spec", "ports")
	for i, p := range ports {
		port, ok := p.(map[string]any)
		if !ok {
			continue
		}
		if i < len(wanted) {
			if want, ok := wanted[i].(map[string]any); ok && want["nodePort"] != nil {
				continue
			}
		}
		delete(port, "nodePort")
	}
	if ports != nil {
		_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
	}
}

// tokens gives the volume of a pod's token, named at random, one name.
func tokens(u *unstructured.Unstructured) {
	const stem = "kube-api-access-"
	var rename func(v any) any
	rename = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				v[k] = rename(below)
			}
		case []any:
			for i, below := range v {
				v[i] = rename(below)
			}
		case string:
			if strings.HasPrefix(v, stem) && len(v) == len(stem)+5 {
				return strings.TrimSuffix(stem, "-")
			}
		}
		return v
	}
	if spec, ok := u.Object["spec"]; ok {
		u.Object["spec"] = rename(spec)
	}
}
