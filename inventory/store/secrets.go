package store

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/inventory"
)

// unpackPlan is the plan in a Secret.
func unpackPlan(c *cluster.Client, live *unstructured.Unstructured, id bundle.ID) ([]byte, error) {
	kind, _, _ := unstructured.NestedString(live.Object, "type")
	packed, _, _ := unstructured.NestedString(live.Object, "data", planKey)
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil || len(raw) == 0 || kind != planType || live.GetLabels()[inventory.AuxiliaryLabel] == "" {
		return nil, fmt.Errorf("%s is there, but is no saved plan: choose another name for the inventory, or delete it", bundle.Name(id))
	}
	text, err := inventory.Decompress(raw)
	if err == nil && !json.Valid(text) {
		err = errors.New("it is no JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("the saved plan in %s cannot be decoded: %w. Delete it, and make a new one with %s: %s",
			bundle.Name(id), err, remedy.PlanOut, c.Commands().Delete(id.GroupKind, id.Namespace, id.Name))
	}
	return text, nil
}
