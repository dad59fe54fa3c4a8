package sls

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Slots of Salt's states that ask for the digest of an object, and how they are filled.

const slotPrefix = "__slot__:"

// slotText is a slot that asks for the digest of an object, as MetalK8s'
// execution module metalk8s_kubernetes.get_object_digest gives it: the only
// use of slots in its charts, and the only one that needs no Salt to answer.
var slotText = bundle.Pattern(`^__slot__:salt:\w+\.get_object_digest\((.*)\)$`)

var slotArgument = bundle.Pattern(`(\w+)\s*=\s*["']([^"']*)["']`)

// slot is such a question.
type slot struct {
	id   bundle.ID
	path []string // of the value to digest; empty is the whole object
}

// parseSlot reads a slot that can be answered without Salt.
func parseSlot(text string) (slot, bool) {
	if !strings.HasPrefix(text, slotPrefix) {
		return slot{}, false
	}
	found := slotText().FindStringSubmatch(text)
	if found == nil {
		return slot{}, false
	}
	arguments := map[string]string{}
	for _, a := range slotArgument().FindAllStringSubmatch(found[1], -1) {
		arguments[a[1]] = a[2]
	}
	gv, err := schema.ParseGroupVersion(arguments["apiVersion"])
	s := slot{id: bundle.ID{
		GroupKind: schema.GroupKind{Group: gv.Group, Kind: arguments["kind"]},
		Namespace: arguments["namespace"], Name: arguments["name"],
	}}
	if path := arguments["path"]; path != "" {
		s.path = strings.Split(path, ":")
	}
	return s, err == nil && s.id.GroupKind.Kind != "" && s.id.Name != ""
}

// CanFill reports whether FillSlots will answer a slot at this path: anywhere in an
// object but in the fields that identify it.
func CanFill(path, slot string) bool {
	switch path {
	case "apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.generateName":
		return false
	}
	_, ok := parseSlot(slot)
	return ok
}

// FillSlots puts the digests that slots ask for in their place: of the object
// in this bundle, or else of the live one. Where there is neither, the field is
// left out (in a list: empty), with a warning. A slot itself is never kept. live may be nil, as
// without a cluster.
func FillSlots(b *bundle.Bundle, live func(bundle.ID) (*unstructured.Unstructured, error)) error {
	f := filling{bundle: b, live: live, inBundle: bundle.ByID(b.Objects), begun: map[*bundle.Object]bool{}}
	for _, o := range b.Objects {
		if err := f.object(o); err != nil {
			return err
		}
	}
	if f.filled {
		b.Digest = b.ContentDigest()
	}
	return nil
}

// filling is the work of FillSlots.
type filling struct {
	bundle   *bundle.Bundle
	live     func(bundle.ID) (*unstructured.Unstructured, error)
	inBundle map[bundle.ID]*bundle.Object
	begun    map[*bundle.Object]bool
	filled   bool
}

func (f *filling) object(o *bundle.Object) error {
	if f.begun[o] {
		return nil
	}
	f.begun[o] = true
	if !bundle.HasText(o.Content.Object, func(text string) bool { return strings.HasPrefix(text, slotPrefix) }) {
		return nil
	}
	_, _, err := f.value(o, nil, o.Content.Object)
	return err
}

// value fills the slots in a value of an object; keep is false for a slot that
// has no answer.
func (f *filling) value(o *bundle.Object, at bundle.Path, v any) (filled any, keep bool, err error) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			value, keep, err := f.value(o, at.Field(key), v[key])
			if err != nil {
				return nil, false, err
			}
			if v[key] = value; !keep {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			value, keep, err := f.value(o, at.Item(i), v[i])
			if err != nil {
				return nil, false, err
			}
			if v[i] = value; !keep {
				v[i] = "" // the next item adopts its place
			}
		}
	case string:
		if s, ok := parseSlot(v); ok {
			return f.answer(o, at, s)
		}
	}
	return v, true, nil
}

func (f *filling) answer(o *bundle.Object, at bundle.Path, s slot) (any, bool, error) {
	f.filled = true
	if on := f.inBundle[s.id]; on != nil { // its own slots first
		if err := f.object(on); err != nil {
			return nil, false, err
		}
	}
	digest, err := f.digest(s)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %s: answer the slot in %s: %w", o.Source, bundle.Name(o.ID), at, err)
	}
	if digest != "" {
		if s.id.GroupKind == bundle.SecretKind {
			f.bundle.AddSecretDigest(o, at.Keys(), digest)
		}
		return digest, true, nil
	}
	effect := "the field is left out (in a list: empty)"
	if strings.HasPrefix(at.String(), "spec.template.") {
		effect += " until a run finds the object, and its pods restart in that run"
	}
	f.bundle.Warn(bundle.Problem{Source: bundle.Source{File: o.Source.File, Line: o.Line(at.String())}, ID: o.ID, Path: at.String(), Message: fmt.Sprintf(
		"Salt's __slot__ asks for the digest of %s, which is neither in the bundle nor on the cluster: %s; put it into the bundle, or use %s", bundle.Name(s.id), effect, bundle.DigestOf)})
	return nil, false, nil
}

// digest is what the slot asks for; empty where the object, or the value in it,
// is not to be had.
func (f *filling) digest(s slot) (string, error) {
	var content *unstructured.Unstructured
	if o := f.inBundle[s.id]; o != nil {
		content = o.Content
	} else if f.live != nil {
		var err error
		if content, err = f.live(s.id); err != nil {
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
		return "", fmt.Errorf("encode %s of %s: %w", strings.Join(s.path, "."), bundle.Name(s.id), err)
	}
	if strings.Contains(string(text), `"__slot__:`) {
		return "", fmt.Errorf("the digest of %s depends on itself", bundle.Name(s.id))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
