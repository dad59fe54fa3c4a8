package cluster

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noVersion is a resourceVersion that no object ever has. The server compares
// it only where there is an object (apiserver's registry/generic/registry/store.go,
// Update): an apply that carries it creates, or is refused with a conflict.
const noVersion = "9223372036854775807"

// bound is the body of an apply as it holds for one version of one object only, or,
// where live is nil, only for an object that does not exist. The uid is never sent
// alone: the server would report another uid as an immutable field.
func bound(body []byte, live *unstructured.Unstructured) ([]byte, error) {
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("decode what is to be applied: %w", err)
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return nil, fmt.Errorf("decode the metadata of what is to be applied: %w", err)
	}
	version := noVersion
	if live != nil {
		version = live.GetResourceVersion()
		metadata["uid"], _ = json.Marshal(live.GetUID()) //nolint:errchkjson // a string
	}
	metadata["resourceVersion"], _ = json.Marshal(version) //nolint:errchkjson // a string
	var err error
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, fmt.Errorf("encode the metadata of what is to be applied: %w", err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be applied: %w", err)
	}
	return text, nil
}
