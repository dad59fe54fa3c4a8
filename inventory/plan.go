package inventory

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/remedy"
)

const (
	planType = "brine.dev/plan"
	planKey  = "plan.json.zst"
)

// EncodePlan is the Secret that keeps a compressed plan for the inventory with the ID.
func EncodePlan(id bundle.ID, inventoryID string, packed []byte) *unstructured.Unstructured {
	u := bundle.V1(id, map[string]any{"type": planType, "immutable": false, "data": map[string]any{planKey: base64.StdEncoding.EncodeToString(packed)}})
	u.SetLabels(map[string]string{AuxiliaryLabel: inventoryID})
	return u
}

// DecodePlan is the plan in its Secret.
func DecodePlan(live *unstructured.Unstructured, commands remedy.Commands) ([]byte, error) {
	id := bundle.IDOf(live)
	kind, _, _ := unstructured.NestedString(live.Object, "type")
	packed, _, _ := unstructured.NestedString(live.Object, "data", planKey)
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil || len(raw) == 0 || kind != planType || live.GetLabels()[AuxiliaryLabel] == "" {
		return nil, fmt.Errorf("%s is there, but is no saved plan: choose another name for the inventory, or delete it", bundle.Name(id))
	}
	text, err := Decompress(raw)
	if err == nil && !json.Valid(text) {
		err = errors.New("it is no JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("the saved plan in %s cannot be decoded: %w. Delete it, and make a new one with %s: %s",
			bundle.Name(id), err, remedy.PlanOut, commands.Delete(id.GroupKind, id.Namespace, id.Name))
	}
	return text, nil
}
