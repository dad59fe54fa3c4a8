package write_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A Secret that a bundle has as stringData is brine's in what the server stores: a change of somebody
// else is seen, and a key that the bundle has no more goes. What an older brine applied owns only
// stringData, which no live Secret has.
func TestTextOfSecretsIsOwned(t *testing.T) {
	s := clitest.New(t)
	text := func(keys string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: \"{ns}\"}\nstringData: {" + keys + "}\n"
	}
	holds := func(want string) {
		t.Helper()
		data, _, _ := unstructured.NestedStringMap(s.Live("v1/secrets", s.NS, "login").Object, "data")
		got := ""
		for _, key := range []string{"pin", "user"} {
			got += data[key] + " "
		}
		if got != want {
			t.Error("the Secret has other values")
		}
	}
	s.Apply(text("pin: '1234', user: admin")).Want(t, 0).Did(t, "Secret", "login", plan.Created)
	s.Apply(text("pin: '1234', user: admin")).Want(t, 0).Did(t, "Secret", "login", plan.Unchanged)
	if _, err := s.Resources("v1/secrets").Namespace(s.NS).Patch(s.Context(), "login", types.MergePatchType, []byte(`{"data":{"pin":"OTk5OQ=="}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	clitest.Run(t, s.Kubeconfig, "drift", "--inventory", s.Inventory).Want(t, report.ExitChanges)
	s.Apply(text("pin: '1234', user: admin")).Want(t, 1).Prints(t, "kubectl-edit owns .data.pin")
	s.Apply(text("pin: '1234', user: admin"), "--force-conflicts").Want(t, 0).Did(t, "Secret", "login", plan.Configured)
	holds("MTIzNA== YWRtaW4= ")
	s.Apply(text("pin: '1234'")).Want(t, 0).Did(t, "Secret", "login", plan.Configured)
	holds("MTIzNA==  ")

	// As an older brine left it.
	_, err := s.Resources("v1/secrets").Namespace(s.NS).Patch(s.Context(), "login", types.JSONPatchType, []byte(
		`[{"op":"replace","path":"/metadata/managedFields/0/fieldsV1","value":{"f:metadata":{"f:annotations":{"f:config.k8s.io/owning-inventory":{}},"f:labels":{"f:applyset.kubernetes.io/part-of":{}}},"f:stringData":{"f:pin":{}}}}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(text("pin: '1234'")).Want(t, 0).Did(t, "Secret", "login", plan.Configured)
	s.Apply(text("pin: '1234'")).Want(t, 0).Did(t, "Secret", "login", plan.Unchanged)
}
