package bundle

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// keyedDigest is a digest of what Secrets hold, which must not be stored as it
// is: whoever may read a pod template could try values until one fits.
type keyedDigest struct {
	object *Object
	path   []string
	plain  string
}

func (b *Bundle) toKey(o *Object, path []string, plain string) {
	b.keyed = slices.DeleteFunc(b.keyed, func(k keyedDigest) bool { return k.object == o && slices.Equal(k.path, path) })
	b.keyed = append(b.keyed, keyedDigest{o, path, plain})
}

// HasKeyed says whether KeyDigests has something to do.
func (b *Bundle) HasKeyed() bool { return len(b.keyed) > 0 }

// KeyDigests puts in place of each digest of a Secret what key makes of it. It
// has to come after Digests and FillSlots. Where the live object has the plain
// digest of the very same values, as an older version put it there, that stays:
// an upgrade of brine restarts no pod. seen is given each digest that was put or
// kept, and what is live in its place.
func (b *Bundle) KeyDigests(key func(plain string) string, live func(ID) *unstructured.Unstructured, seen func(o *Object, digest, live string)) {
	for _, k := range b.keyed {
		digest, there := key(k.plain), ""
		if u := live(k.object.ID); u != nil {
			there = textAt(u.Object, k.path)
		}
		if there == k.plain {
			digest = k.plain
		}
		// It is there: Digests and FillSlots have put the plain one.
		setTextAt(k.object.Content.Object, k.path, digest)
		seen(k.object, digest, there)
	}
	if len(b.keyed) > 0 {
		b.Digest = b.digest()
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
		for _, k := range b.keyed {
			if k.object == o {
				content = content.DeepCopy()
				setTextAt(content.Object, k.path, "")
			}
		}
		rest.Objects = append(rest.Objects, &Object{ID: o.ID, Content: content})
	}
	return "without-secrets-" + strings.TrimPrefix(rest.digest(), "sha256:")
}

// textAt is the text at a path, also through lists; empty if there is none.
func textAt(v any, path []string) string {
	for _, key := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				return ""
			}
			v = at[i]
		default:
			return ""
		}
	}
	text, _ := v.(string)
	return text
}

// setTextAt changes the text at a path.
func setTextAt(v any, path []string, text string) {
	for n, key := range path {
		last := n == len(path)-1
		switch at := v.(type) {
		case map[string]any:
			if last {
				at[key] = text
			}
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				return
			}
			if last {
				at[i] = text
			}
			v = at[i]
		}
	}
}
