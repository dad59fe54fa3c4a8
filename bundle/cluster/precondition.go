package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// noVersion is a resourceVersion that no object ever has. The server compares
// it only where there is an object (apiserver's registry/generic/registry/store.go,
// Update): an apply that carries it creates, or is refused with a conflict.
const noVersion = "9223372036854775807"

// bound is the body of an apply as it holds for one version of one object only, or,
// where live is nil, only for an object that does not exist. The uid is never sent
// alone: the server would report another uid as an immutable field.
func bound(body []byte, live *unstructured.Unstructured) ([]byte, error) {
	if at := metadataIn(body); at > 0 {
		more := fmt.Appendf(nil, `"resourceVersion":%q,`, noVersion)
		if live != nil {
			more = fmt.Appendf(nil, `"resourceVersion":%q,"uid":%q,`, live.GetResourceVersion(), live.GetUID())
		}
		return slices.Concat(body[:at], more, body[at:]), nil
	}
	u, err := bundle.Decode(body)
	if err != nil {
		return nil, err
	}
	if bundle.At[map[string]any](u.Object, "metadata") == nil {
		return nil, errors.New("what is to be applied has no metadata")
	}
	u.SetResourceVersion(noVersion)
	if live != nil {
		u.SetResourceVersion(live.GetResourceVersion())
		u.SetUID(live.GetUID())
	}
	return bundle.Encode(u.Object)
}

// metadataIn is where the fields of an object's metadata begin in its text; 0 if that has to be
// decoded to be found, or if a uid or a version may be among them.
func metadataIn(body []byte) int {
	const key = `"metadata":{"`
	if bytes.Contains(body, []byte(`"uid":`)) || bytes.Contains(body, []byte(`"resourceVersion":`)) {
		return 0
	}
	open := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '"':
			if open == 1 && bytes.HasPrefix(body[i:], []byte(key)) {
				return i + len(key) - 1
			}
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}
