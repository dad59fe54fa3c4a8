package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// lastApplied is where kubectl's client-side apply keeps what it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// takeOver makes brine the manager of the fields that the managers of
// --take-over-from own on the live object, so that the apply that follows
// removes those of them that the bundle does not set. It returns the object as
// it is then.
func (e *execution) takeOver(ctx context.Context, n *node, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || !plan.Manages(live, e.Plan.TakeOverFrom) {
		return live, nil
	}
	patch, err := takeOverPatch(live, e.Plan.TakeOverFrom)
	if err != nil {
		return nil, err
	}
	moved, err := e.client.Patch(ctx, n.resource, n.ID, types.JSONPatchType, patch, cluster.Write{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", strings.Join(e.Plan.TakeOverFrom, ", "), err)
	}
	return moved, nil
}

// takeOverPatch is a JSON patch that moves the managers' fields to brine and
// holds only for the very version that was read (client-go's csaupgrade). What
// another applier owns by Apply moves like what was written by Update.
func takeOverPatch(live *unstructured.Unstructured, managers []string) ([]byte, error) {
	moved := live.DeepCopy()
	fields := moved.GetManagedFields()
	for i := range fields {
		if slices.Contains(managers, fields[i].Manager) && fields[i].Subresource == "" {
			fields[i].Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	moved.SetManagedFields(fields)
	text, err := csaupgrade.UpgradeManagedFieldsPatch(moved, sets.New(managers...), bundle.FieldManager)
	if err != nil {
		return nil, fmt.Errorf("read the managed fields: %w", err)
	}
	var patch []map[string]any
	if err := json.Unmarshal(text, &patch); err != nil {
		return nil, fmt.Errorf("read the managed fields: %w", err)
	}
	if _, ok := live.GetAnnotations()[lastApplied]; ok {
		patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/annotations/" + strings.ReplaceAll(lastApplied, "/", "~1")})
	}
	return json.Marshal(patch)
}
