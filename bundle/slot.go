package bundle

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// slotText is a slot that asks for the digest of an object, as MetalK8s'
// execution module metalk8s_kubernetes.get_object_digest gives it: the only
// use of slots in its charts, and the only one that needs no Salt to answer.
var slotText = regexp.MustCompile(`^__slot__:salt:\w+\.get_object_digest\((.*)\)$`)

var slotArgument = regexp.MustCompile(`(\w+)\s*=\s*["']([^"']*)["']`)

const podTemplateAnnotations = "spec.template.metadata.annotations"

// slot is such a question.
type slot struct {
	id   ID
	path []string // of the value to digest; empty is the whole object
}

// parseSlot reads a slot that can be answered without Salt.
func parseSlot(text string) (slot, bool) {
	found := slotText.FindStringSubmatch(text)
	if found == nil {
		return slot{}, false
	}
	arguments := map[string]string{}
	for _, a := range slotArgument.FindAllStringSubmatch(found[1], -1) {
		arguments[a[1]] = a[2]
	}
	gv, err := schema.ParseGroupVersion(arguments["apiVersion"])
	s := slot{id: ID{
		GroupKind: schema.GroupKind{Group: gv.Group, Kind: arguments["kind"]},
		Namespace: arguments["namespace"], Name: arguments["name"],
	}}
	if path := arguments["path"]; path != "" {
		s.path = strings.Split(path, ":")
	}
	return s, err == nil && s.id.GroupKind.Kind != "" && s.id.Name != ""
}

// answerable says whether a slot at this path will be answered by FillSlots.
func answerable(p path, text string) bool {
	if len(p) < 5 || p[:4].String() != podTemplateAnnotations {
		return false
	}
	_, ok := parseSlot(text)
	return ok
}

// FillSlots puts the digests that slots in pod templates ask for in their
// place: of the object in this bundle, or else of the live one. Where there is
// neither, the annotation is left out and said so; a slot itself is never kept.
// live may be nil, as without a cluster.
func (b *Bundle) FillSlots(live func(ID) (*unstructured.Unstructured, error)) error {
	inBundle := map[ID]*Object{}
	filled := false
	for _, o := range b.Objects {
		inBundle[o.ID] = o
	}
	for _, o := range b.Objects {
		annotations, _, _ := unstructured.NestedFieldNoCopy(o.Content.Object, strings.Split(podTemplateAnnotations, ".")...)
		texts, _ := annotations.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			text, _ := texts[key].(string)
			s, ok := parseSlot(text)
			if !ok {
				continue
			}
			filled = true
			digest, err := s.answer(inBundle, live)
			if err != nil {
				return fmt.Errorf("%s: %s: answer the slot in %s[%s]: %w", o.Source, Name(o.ID), podTemplateAnnotations, key, err)
			}
			if digest != "" {
				texts[key] = digest
				if isSecretID(s.id) {
					b.toKey(o, append(strings.Split(podTemplateAnnotations, "."), key), digest)
				}
				continue
			}
			delete(texts, key)
			at := podTemplateAnnotations + "[" + key + "]"
			b.warn(Problem{Source: Source{File: o.Source.File, Line: o.Line(at)}, ID: o.ID, Path: at, Message: fmt.Sprintf(
				"Salt's __slot__ asks for the digest of %s, which is neither in the bundle nor on the cluster: the annotation is left out; put it into the bundle, or use %s", Name(s.id), "brine.dev/digest-of")})
		}
	}
	if filled {
		b.Digest = b.digest()
	}
	return nil
}

func (s slot) answer(inBundle map[ID]*Object, live func(ID) (*unstructured.Unstructured, error)) (string, error) {
	var content *unstructured.Unstructured
	if o := inBundle[s.id]; o != nil {
		content = o.Content
	} else if live != nil {
		var err error
		if content, err = live(s.id); err != nil {
			return "", err
		}
	}
	if content == nil {
		return "", nil
	}
	value, found, err := unstructured.NestedFieldNoCopy(content.Object, s.path...)
	if len(s.path) == 0 {
		value, found = map[string]any{"data": content.Object["data"], "spec": content.Object["spec"]}, true
	}
	if !found && len(s.path) == 2 && s.path[0] == "data" {
		// In a bundle the value may still be stringData.
		value, found, err = unstructured.NestedFieldNoCopy(content.Object, "stringData", s.path[1])
		if text, ok := value.(string); ok {
			value = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	if err != nil || !found {
		return "", nil //nolint:nilerr // a path through something else than mappings leads nowhere
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode %s of %s: %w", strings.Join(s.path, "."), Name(s.id), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
