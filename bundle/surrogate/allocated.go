package surrogate

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// Unallocated is an object that a dry run created, without what the server
// picked for it and will pick again: addresses, ports, and what follows from the
// UID. Two previews of the same show the same. sent is what the bundle asks for.
func Unallocated(answer, sent *unstructured.Unstructured) *unstructured.Unstructured {
	kind := answer.GroupVersionKind().GroupKind()
	if kind != bundle.ServiceKind && kind != bundle.JobKind && kind != bundle.PodKind {
		return answer
	}
	u := answer.DeepCopy()
	switch kind {
	case bundle.ServiceKind:
		service(u, sent)
	case bundle.JobKind:
		for _, path := range [][]string{
			{"metadata", "labels"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"},
		} {
			drop(u, sent, path, "controller-uid")
			drop(u, sent, path, "batch.kubernetes.io/controller-uid")
		}
	case bundle.PodKind:
		tokens(u)
	}
	return u
}

func drop(u, sent *unstructured.Unstructured, path []string, key string) {
	if _, wanted := bundle.At[map[string]any](sent.Object, path...)[key]; !wanted {
		delete(bundle.At[map[string]any](u.Object, path...), key)
	}
}

func service(u, sent *unstructured.Unstructured) {
	if bundle.At[string](sent.Object, "spec", "clusterIP") == "" && bundle.At[string](u.Object, "spec", "clusterIP") != "None" {
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
	}
	drop(u, sent, []string{"spec"}, "healthCheckNodePort")
	wanted := bundle.Items[map[string]any](sent.Object, "spec", "ports")
	for i, port := range bundle.Items[map[string]any](u.Object, "spec", "ports") {
		if i >= len(wanted) || wanted[i]["nodePort"] == nil {
			delete(port, "nodePort")
		}
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
