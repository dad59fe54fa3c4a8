package run_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// A plan in a Secret can be carried out by who did not make it. One that still holds stays as it
// is; one that does not, or is too old, is refused, and made again.
func TestPlanInSecret(t *testing.T) {
	s := clitest.New(t)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: {ns}}\nstringData: {password: VALUE}\n"
	first := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("gone"), strings.Replace(secret, "VALUE", "hidden-one", 1))
	then := clitest.Documents(strings.Replace(clitest.ConfigMap("a"), "key: value", "key: new", 1), strings.Replace(secret, "VALUE", "hidden-two", 1))
	s.Apply(then, "--plan", "secret").Want(t, 3).Prints(t, "there is no saved plan, and nothing was changed: Secret "+s.NS+"/inv-brine-plan is not there")
	s.Apply(first).Want(t, 0)

	made := func(flags ...string) *report.SavedPlan {
		t.Helper()
		saved := s.Preview(then, append([]string{"--plan-out", "secret"}, flags...)...).Want(t, 0).Result.Plan
		if saved == nil || saved.Place != "Secret "+s.NS+"/inv-brine-plan" || !strings.HasPrefix(saved.Digest, "sha256:") {
			t.Fatalf("saved %+v", saved)
		}
		return saved
	}
	one := made()
	if one.Kept || one.Was != "" || one.Expires.Sub(one.Created).Hours() != 24 {
		t.Errorf("the first one: %+v", one)
	}
	version := s.Live("v1/secrets", s.NS, "inv-brine-plan").GetResourceVersion()
	if again := made(); !again.Kept || again.Digest != one.Digest || !again.Created.Equal(one.Created) {
		t.Errorf("made twice: %+v, then %+v", one, again)
	}
	if now := s.Live("v1/secrets", s.NS, "inv-brine-plan").GetResourceVersion(); now != version {
		t.Errorf("the Secret was written again: %s, then %s", version, now)
	}
	if text := planText(t, s.Live("v1/secrets", s.NS, "inv-brine-plan")); strings.Contains(text, "hidden-") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("hidden-"))[:8]) {
		t.Error("the plan has the value of a Secret")
	}
	if longer := made("--plan-lifetime", "48h"); longer.Kept || longer.Was != one.Digest || longer.Expires.Sub(longer.Created).Hours() != 48 {
		t.Errorf("with another lifetime: %+v", longer)
	}

	// Too old.
	made("--plan-lifetime", "1ns")
	s.Apply(then, "--plan", "secret").Want(t, 3).Prints(t, "out of date", "the time: the plan was made at")
	s.Exists("v1/configmaps", "gone")
	one = made()
	if one.Kept {
		t.Errorf("one that is too old was kept")
	}

	// Something else would be done: the old plan is refused, and replaced.
	s.Apply(clitest.Documents(first, clitest.ConfigMap("more"))).Want(t, 0)
	s.Apply(then, "--plan", "secret").Want(t, 3).Prints(t, "the inventory: its members")
	two := made()
	if two.Kept || two.Was != one.Digest || two.Digest == one.Digest {
		t.Errorf("after a change: %+v, before %+v", two, one)
	}
	s.Apply(then, "--plan", "secret", "--plan-digest", one.Digest).Want(t, 3).Prints(t, "is not the approved one, and nothing was changed: its digest is "+two.Digest)
	s.Exists("v1/configmaps", "gone")
	s.Preview(then, "--plan-digest", one.Digest).Want(t, 3) // no such flag
	s.Apply(then, "--plan-digest", one.Digest).Want(t, 3).Prints(t, "--plan-digest needs --plan")

	run := s.Apply(then, "--plan", "secret", "--plan-digest", two.Digest).Want(t, 0)
	run.Did(t, "ConfigMap", "a", plan.Configured)
	run.Did(t, "ConfigMap", "gone", plan.Pruned)
	s.Destroy().Want(t, 0)
	s.Missing("v1/secrets", "inv-brine-plan")
}

// A plan of a first apply, and a Secret of that name which is no plan.
func TestPlanInSecretOfAnotherOwner(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: inv-brine-plan, namespace: {ns}}\nstringData: {a: b}\n")
	s.Preview(clitest.ConfigMap("a"), "--plan-out", "secret").Want(t, 1).Prints(t, "is no saved plan")
	s.Apply(clitest.ConfigMap("a"), "--plan", "secret").Want(t, 1).Prints(t, "is no saved plan")
	s.Missing("v1/configmaps", "a")

	s.Inventory = s.NS + "/other"
	s.Preview(clitest.ConfigMap("a"), "--plan-out", "secret").Want(t, 0)
	s.Apply(clitest.ConfigMap("a"), "--plan", "secret").Want(t, 0).Did(t, "ConfigMap", "a", plan.Created)

	s.Inventory = s.NS + "-none/other"
	s.Preview("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-none\"}\n", "--plan-out", "secret").Want(t, 1).Prints(t, "create the namespace before")
}

// A Secret whose plan cannot be decoded, or is that of another inventory, is said to be so, with
// what helps; nothing is done, and it stays.
func TestPlanInSecretThatIsNone(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	for _, c := range []struct{ data, want string }{
		{"bm90IHBhY2tlZA==", "cannot be decoded"},
		{base64.StdEncoding.EncodeToString(inventory.Compress([]byte("{half"))), "it is no JSON"},
		{base64.StdEncoding.EncodeToString(inventory.Compress([]byte(`{"apiVersion":"brine.dev/v1","kind":"Plan","inventory":{"namespace":"x","name":"y"}}`))), "another inventory"},
	} {
		s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\ntype: brine.dev/plan\nmetadata: {name: inv-brine-plan, namespace: {ns}, labels: {brine.dev/inventory: other}}\ndata: {plan.json.zst: "+c.data+"}\n")
		version := s.Live("v1/secrets", s.NS, "inv-brine-plan").GetResourceVersion()
		said := []string{c.want}
		if c.want != "another inventory" {
			said = append(said, "kubectl delete secret inv-brine-plan --namespace "+s.NS)
		}
		for _, run := range []clitest.Outcome{s.Apply(clitest.ConfigMap("b"), "--plan", "secret"), s.Preview(clitest.ConfigMap("b"), "--plan-out", "secret")} {
			if run.Prints(t, said...); run.Exit == 0 {
				t.Errorf("%s: exit code 0", c.want)
			}
		}
		if now := s.Live("v1/secrets", s.NS, "inv-brine-plan").GetResourceVersion(); now != version {
			t.Errorf("%s: it was written", c.want)
		}
		s.Missing("v1/configmaps", "b")
		if err := s.Resources("v1/secrets").Namespace(s.NS).Delete(t.Context(), "inv-brine-plan", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func planText(t *testing.T, live *unstructured.Unstructured) string {
	t.Helper()
	text, _, _ := unstructured.NestedString(live.Object, "data", "plan.json.zst")
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := zstd.NewReader(nil)
	defer r.Close()
	plain, err := r.DecodeAll(packed, nil)
	if err != nil || !json.Valid(plain) {
		t.Fatalf("%v: %s", err, plain)
	}
	return string(plain)
}
