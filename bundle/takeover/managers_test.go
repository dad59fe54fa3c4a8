package takeover

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/bundletest"
)

func TestPatchMovesManagersFields(t *testing.T) {
	entry := func(manager, operation, fields string) string {
		return `{manager: ` + manager + `, operation: ` + operation + `, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: ` + fields + `}`
	}
	live := bundletest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "7",
  annotations: {`+lastApplied+`: "{}"},
  managedFields: [`+strings.Join([]string{
		entry("kubectl-client-side-apply", "Update", `{"f:data": {"f:a": {}}}`),
		entry("kubectl", "Apply", `{"f:data": {"f:b": {}}}`),
		entry("brine", "Apply", `{"f:data": {"f:c": {}}}`),
		entry("other", "Update", `{"f:data": {"f:d": {}}}`),
		`{manager: kubectl, operation: Update, apiVersion: v1, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {}}}`,
	}, ", ")+`]}}`)
	managers := []string{"kubectl-client-side-apply", "kubectl"}
	if !Manages(live, managers) || Manages(live, []string{"nobody"}) {
		t.Error("it does not know who manages the object")
	}
	text, err := (TakeOver{Managers: managers}).Patch(live)
	if err != nil {
		t.Fatal(err)
	}
	var patch []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	if len(patch) != 3 || patch[1].Path != "/metadata/resourceVersion" || string(patch[1].Value) != `"7"` ||
		patch[2].Op != "remove" || patch[2].Path != "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration" {
		t.Fatalf("got %s", text)
	}
	var fields []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(patch[0].Value, &fields); err != nil {
		t.Fatal(err)
	}
	owned := map[string]string{}
	for _, f := range fields {
		owned[f.Manager+" "+string(f.Operation)+" "+f.Subresource] = string(f.FieldsV1.GetRawBytes())
	}
	for who, want := range map[string]string{
		"brine Apply ":          `{"f:data":{"f:a":{},"f:b":{},"f:c":{}}}`,
		"other Update ":         `{"f:data":{"f:d":{}}}`,
		"kubectl Update status": `{"f:status":{}}`,
	} {
		if owned[who] != want {
			t.Errorf("%q owns %s, want %s", who, owned[who], want)
		}
	}
	if len(owned) != 3 {
		t.Errorf("fields are owned by %v", owned)
	}
}
