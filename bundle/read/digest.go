package read

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// The annotation brine.dev/digest-of: pods restart when the data that they use changes.

// FillDigests fills the pod templates of workloads that are annotated
// brine.dev/digest-of: configmaps/NAME,secrets/NAME with the digest of those
// objects' data as it is in this bundle. It has to come after Resolve, and may
// come again. What cannot be filled is a problem.
func FillDigests(b *bundle.Bundle) []bundle.Problem {
	byID := bundle.ByID(b.Objects)
	var problems []bundle.Problem
	filled := false
	for _, o := range b.Objects {
		of, ok := o.Content.GetAnnotations()[bundle.DigestOf]
		if !ok {
			continue
		}
		objects, messages := digested(o, of, byID, b.Partial)
		template, at := templateAt(o.Content.Object)
		if template == nil {
			messages = append(messages, fmt.Sprintf("%s has no pod template to put a digest into", o.GVK.Kind))
		}
		if len(messages) == 0 {
			digest := digestOf(objects)
			if err := annotate(template, digest); err != nil {
				messages = append(messages, fmt.Sprintf("the pod template's annotations are not a mapping: %v", err))
			} else if filled = true; slices.ContainsFunc(objects, func(o *bundle.Object) bool { return o.ID.GroupKind == bundle.SecretKind }) {
				b.AddSecretDigest(o, append(strings.Split(at, "."), "metadata", "annotations", bundle.Digest), digest)
			}
		}
		for _, m := range messages {
			problems = append(problems, o.Problem("metadata.annotations["+bundle.DigestOf+"]", m))
		}
	}
	if filled {
		b.Digest = b.ContentDigest()
	}
	return problems
}

// digested finds the objects that the annotation names, sorted and each once,
// or says what is wrong with it. What a partial bundle has not may be in the
// part that could not be read.
func digested(o *bundle.Object, of string, byID map[bundle.ID]*bundle.Object, partial bool) (objects []*bundle.Object, messages []string) {
	for ref := range strings.SplitSeq(of, ",") {
		resource, name, _ := strings.Cut(strings.TrimSpace(ref), "/")
		kind, ok := bundle.DigestKinds[resource]
		if !ok || name == "" {
			messages = append(messages, fmt.Sprintf("%q is not configmaps/NAME or secrets/NAME", strings.TrimSpace(ref)))
			continue
		}
		id := bundle.ID{GroupKind: kind, Namespace: o.ID.Namespace, Name: name}
		found := byID[id]
		if found == nil && partial {
			continue
		}
		if found == nil {
			messages = append(messages, fmt.Sprintf("%s is not in this bundle, so its digest is unknown: add it, or remove it from the list", bundle.Name(id)))
			continue
		}
		objects = append(objects, found)
	}
	slices.SortFunc(objects, func(x, y *bundle.Object) int {
		return cmp.Or(cmp.Compare(x.ID.GroupKind.Kind, y.ID.GroupKind.Kind), cmp.Compare(x.ID.Name, y.ID.Name))
	})
	return slices.Compact(objects), messages
}

// templateAt is the pod template of a workload, also of a CronJob and of custom
// resources that keep it where Deployments do, and its path; nil where there is none.
func templateAt(content map[string]any) (template map[string]any, path string) {
	for _, path := range [][]string{{"spec", "jobTemplate", "spec", "template"}, {"spec", "template"}} {
		if template := bundle.At[map[string]any](content, path...); bundle.At[map[string]any](template, "spec") != nil {
			return template, strings.Join(path, ".")
		}
	}
	return nil, ""
}

// annotate sets the annotation, also where metadata or annotations are null.
func annotate(template map[string]any, digest string) error {
	meta, isMap := template["metadata"].(map[string]any)
	if template["metadata"] == nil {
		delete(template, "metadata")
	} else if isMap && meta["annotations"] == nil {
		delete(meta, "annotations")
	}
	return unstructured.SetNestedField(template, digest, "metadata", "annotations", bundle.Digest)
}

// digestOf is over kinds, names and values, however those are written: a
// Secret's stringData counts as the data it becomes.
func digestOf(objects []*bundle.Object) string {
	h := sha256.New()
	for _, o := range objects {
		values := dataOf(o.Content.Object)
		write(h, o.ID.GroupKind.Kind, o.ID.Name, fmt.Sprint(len(values)))
		for _, key := range slices.Sorted(maps.Keys(values)) {
			write(h, key, values[key])
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func dataOf(content map[string]any) map[string]string {
	values := map[string]string{}
	take := func(field string, encoded bool) {
		m, _ := content[field].(map[string]any)
		for key, v := range m {
			s, ok := v.(string)
			if !ok {
				s = fmt.Sprint(v)
			}
			if raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), "")); encoded && err == nil {
				s = string(raw)
			}
			values[key] = s
		}
	}
	take("data", content["kind"] == "Secret")
	take("binaryData", true)
	take("stringData", false) // wins over data, as on the server
	return values
}

// write puts each text behind its length, so that no two lists look alike.
func write(h hash.Hash, texts ...string) {
	for _, s := range texts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
}
