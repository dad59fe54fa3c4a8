package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ContentDigest is "sha256:<hex>" over the objects as canonical JSON, sorted by ID, and over the IDs
// of the absent objects.
func (b *Bundle) ContentDigest() string {
	objects := slices.SortedStableFunc(slices.Values(b.Objects), func(x, y *Object) int { return compareIDs(x.ID, y.ID) })
	texts := make([][]byte, len(objects))
	Parallel(len(objects), func(i int) {
		// Content is made of JSON values, which cannot fail; keys get sorted.
		texts[i], _ = Encode(objects[i].Content.Object)
	})
	h := sha256.New()
	for _, text := range texts {
		h.Write(text)
		h.Write([]byte{'\n'})
	}
	absent := slices.SortedFunc(slices.Values(b.Absent), func(x, y *Absent) int { return compareIDs(x.ID, y.ID) })
	for _, a := range absent {
		fmt.Fprintf(h, "absent %s\n", Name(a.ID))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func compareIDs(x, y ID) int {
	return cmp.Or(
		cmp.Compare(x.GroupKind.Group, y.GroupKind.Group), cmp.Compare(x.GroupKind.Kind, y.GroupKind.Kind),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// secretDigest is a digest of what Secrets hold, which must not be stored as it
// is: a reader of the pod template could try values until one matches.
type secretDigest struct {
	object *Object
	path   []string
	plain  string
}

// AddSecretDigest notes that o has, at a path of keys and indexes, the plain digest
// of a Secret's values.
func (b *Bundle) AddSecretDigest(o *Object, path []string, plain string) {
	b.secretDigests = slices.DeleteFunc(b.secretDigests, func(k secretDigest) bool { return k.object == o && slices.Equal(k.path, path) })
	b.secretDigests = append(b.secretDigests, secretDigest{o, path, plain})
}

// HasSecretDigests reports whether KeySecretDigests has something to do.
func (b *Bundle) HasSecretDigests() bool { return len(b.secretDigests) > 0 }

// KeySecretDigests puts in place of each digest of a Secret what key makes of it. It
// has to come after Digests and FillSlots. Where the live object has the plain
// digest of the very same values, as an older version put it there, that stays:
// an upgrade of brine restarts no pod. seen is given each digest that was put or
// kept, and what is live in its place.
func (b *Bundle) KeySecretDigests(key func(plain string) string, live func(ID) *unstructured.Unstructured, seen func(o *Object, digest, live string)) {
	for _, k := range b.secretDigests {
		digest, there := key(k.plain), ""
		if u := live(k.object.ID); u != nil {
			there, _ = valueAt(u.Object, k.path).(string)
		}
		if there == k.plain {
			digest = k.plain
		}
		// It is there: Digests and FillSlots have put the plain one.
		setTextAt(k.object.Content.Object, k.path, digest)
		seen(k.object, digest, there)
	}
	if len(b.secretDigests) > 0 {
		b.Digest = b.ContentDigest()
	}
}

// DigestWithoutSecrets is a digest in which no object takes part that holds a
// Secret, and no digest of one.
func (b *Bundle) DigestWithoutSecrets(holds func(*unstructured.Unstructured) bool) string {
	rest := &Bundle{Absent: b.Absent}
	for _, o := range b.Objects {
		content := o.Content
		if holds(content) {
			continue
		}
		for _, k := range b.secretDigests {
			if k.object == o {
				content = content.DeepCopy()
				setTextAt(content.Object, k.path, "")
			}
		}
		rest.Objects = append(rest.Objects, &Object{ID: o.ID, Content: content})
	}
	return "without-secrets-" + strings.TrimPrefix(rest.ContentDigest(), "sha256:")
}

// valueAt is the value at a path of keys and indexes; nil if there is none.
func valueAt(v any, path []string) any {
	for _, key := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// setTextAt changes the text at a path.
func setTextAt(content map[string]any, path []string, text string) {
	last := path[len(path)-1]
	switch in := valueAt(content, path[:len(path)-1]).(type) {
	case map[string]any:
		in[last] = text
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i < len(in) {
			in[i] = text
		}
	}
}
