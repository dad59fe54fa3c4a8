package run_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// keyed is a bundle of a Secret and a workload that restarts with it.
func keyed(password string) string {
	return clitest.Documents("apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: \"{ns}\"}\nstringData: {password: "+password+"}\n",
		clitest.ConfigMap("settings"), clitest.Deployment("web", 1, "1m", clitest.Annotations(bundle.DigestOf+": secrets/login")))
}

// template is the digest in the live pod template.
func template(s *clitest.Fixture) string {
	s.Helper()
	u := s.Live("apps/v1/deployments", s.NS, "web")
	template := nestedMap(u.Object, "spec", "template", "metadata", "annotations")
	text, _ := template[bundle.Digest].(string)
	return text
}

func nestedMap(object map[string]any, path ...string) map[string]any {
	for _, p := range path {
		object, _ = object[p].(map[string]any)
	}
	return object
}

const keySecret = "inv-brine-key"

// No hash that can be guessed from is stored: not in the fingerprints, not in
// the history, not in pod templates.
func TestHashesOfSecretsAreKeyed(t *testing.T) {
	s := clitest.New(t)
	const password = "hunter2"
	text := keyed(password)
	s.Apply(text).Want(t, 0)
	u := s.Live("v1/secrets", s.NS, keySecret)
	if u == nil || u.GetLabels()[inventory.AuxiliaryLabel] == "" {
		t.Fatal("there is no key, or it has no label")
	}
	digest := template(s)
	if !strings.HasPrefix(digest, inventory.Keyed) {
		t.Errorf("the pod template has %q", digest)
	}
	if head := fmt.Sprint(s.ConfigMap("inv").Object); strings.Contains(strings.ReplaceAll(head, inventory.Keyed, ""), "sha256:") {
		t.Error("the inventory has a plain digest")
	}
	// The hashes of an unchanged Secret with a known password are not among the
	// fingerprints: with another key the same bundle has others.
	p := s.Proxied()
	s.Apply(text).Want(t, 0).Did(t, "Secret", "login", plan.Unchanged)
	for _, r := range p.Requests() {
		if r.IsWrite() && !strings.Contains(r.Path, "/leases") {
			t.Errorf("an unchanged bundle: %s %s", r.Method, r.Path)
		}
	}
	keys := 0
	for _, r := range p.Requests() {
		if strings.HasSuffix(r.Path, "/secrets/"+keySecret) {
			keys++
		}
	}
	if keys != 1 {
		t.Errorf("the key was asked for %d times", keys)
	}
	s.Apply(keyed("hunter3")).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
	if template(s) == digest {
		t.Error("the digest is the same for another password")
	}
	// The same key: a rollback restores the very digest.
	s.Run("rollback", nil).Want(t, 0)
	if got := template(s); got != digest {
		t.Errorf("after the rollback it is %q, was %q", got, digest)
	}
	// The key is lost: a warning reports it, pods restart once, and then there is no warning.
	if err := s.Resources("v1/secrets").Namespace(s.NS).Delete(s.Context(), keySecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(text).Want(t, 0).Prints(t, keySecret+", is gone", "Deployment.apps "+s.NS+"/web")
	if got := template(s); got == digest || !strings.HasPrefix(got, inventory.Keyed) {
		t.Errorf("with another key it is %q", got)
	}
	s.Apply(text).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
	s.Destroy().Want(t, 0)
	s.Missing("v1/secrets", keySecret)
}

// A bundle without Secrets has no key, and asks for none.
func TestNoKeyWithoutSecrets(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	s.Apply(clitest.Documents(clitest.ConfigMap("settings"), clitest.Deployment("web", 1, "1m", clitest.Annotations(bundle.DigestOf+": configmaps/settings")))).Want(t, 0)
	for _, r := range p.Requests() {
		if strings.Contains(r.Path, keySecret) {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
	s.Missing("v1/secrets", keySecret)
	if got := template(s); !strings.HasPrefix(got, "sha256:") {
		t.Errorf("the digest of a ConfigMap is %q", got)
	}
}

// A preview has no key to write. It shows no digest that apply would not have,
// and its plan holds when apply makes the key.
func TestPreviewWithoutKey(t *testing.T) {
	s := clitest.New(t)
	text := keyed("hunter2")
	file := filepath.Join(t.TempDir(), "plan.json")
	first := s.Preview(text, "--plan-out", file).Want(t, 0).Prints(t, "does not cover the values of Secrets")
	if strings.Contains(first.Stdout, inventory.Keyed) || strings.Contains(first.Stdout, bundle.Digest+": sha256:") {
		t.Error("it shows a digest that nothing will have")
	}
	s.Missing("v1/secrets", keySecret)
	offline := s.Run("apply", []string{"-f", s.File(text), "--dry-run=client"}).Want(t, 0)
	if strings.Contains(offline.Stdout, inventory.Keyed) || strings.Contains(offline.Stdout, bundle.Digest+": sha256:") {
		t.Error("--dry-run=client shows a digest")
	}
	s.Run("apply", []string{"-f", s.File(text), "--plan", file}).Want(t, 0)
	s.Exists("v1/secrets", keySecret)
	// A plan of now covers the values.
	s.Preview(text, "--plan-out", file).Want(t, 0)
	s.Run("apply", []string{"-f", s.File(keyed("hunter3")), "--plan", file}).Want(t, 3)
}

// Pod templates of an older version have plain digests. They stay until the
// Secret changes, so that no pod restarts for an upgrade of brine.
func TestPlainDigestsStayUntilTheSecretChanges(t *testing.T) {
	s := clitest.New(t)
	text := keyed("hunter2")
	s.Apply(text).Want(t, 0)
	plain := func(password string) string {
		b, err := read.Bundle(t.Context(), read.Options{Files: []string{s.File(keyed(password))}})
		if err != nil {
			t.Fatal(err)
		}
		if problems := read.FillDigests(b); len(problems) > 0 {
			t.Fatal(problems)
		}
		annotations := nestedMap(b.Objects[2].Content.Object, "spec", "template", "metadata", "annotations")
		return fmt.Sprint(annotations[bundle.Digest])
	}
	old, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{bundle.Digest: plain("hunter2")}}}}})
	if _, err := s.Resources("apps/v1/deployments").Namespace(s.NS).Patch(s.Context(), "web", types.MergePatchType, old, metav1.PatchOptions{FieldManager: "brine"}); err != nil {
		t.Fatal(err)
	}
	shown := s.Preview(text, "--force-conflicts").Want(t, 0)
	if strings.Contains(shown.Stdout, plain("hunter2")) {
		t.Error("the preview shows the plain digest")
	}
	s.Apply(text, "--force-conflicts").Want(t, 0)
	if got := template(s); got != plain("hunter2") {
		t.Errorf("the pods restarted: %q", got)
	}
	s.Apply(keyed("hunter3"), "--force-conflicts").Want(t, 0)
	if got := template(s); !strings.HasPrefix(got, inventory.Keyed) {
		t.Errorf("after a change it is still %q", got)
	}
}

// Whoever may not read the key is told so, and nothing is changed.
func TestKeyWithoutTheRightToReadIt(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if strings.HasSuffix(r.Path, "/secrets/"+keySecret) {
			return clustertest.Action{Status: http.StatusForbidden, Message: "secrets is forbidden: User \"x\" cannot get resource \"secrets\""}
		}
		return clustertest.Action{}
	})
	s.Apply(keyed("hunter2")).Want(t, 6).Prints(t, "read the key of inventory", "cannot get resource")
	s.Missing("v1/configmaps", "settings")
	s.Missing("apps/v1/deployments", "web")
}

// No report holds the key: whoever has it can make hashes of passwords.
func TestKeyIsNotReported(t *testing.T) {
	s := clitest.New(t)
	s.Apply(keyed("hunter2")).Want(t, 0)
	u := s.Live("v1/secrets", s.NS, keySecret)
	data := nestedMap(u.Object, "data")
	raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(data["key"]))
	if err != nil || len(raw) != 32 {
		t.Fatalf("the key has %d bytes: %v", len(raw), err)
	}
	sum := sha256.Sum256(raw)
	report := filepath.Join(t.TempDir(), "r.json")
	s.Preview(keyed("hunter2"), "--report", report).Want(t, 0)
	page, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	for i, form := range []string{fmt.Sprint(data["key"]), hex.EncodeToString(raw), hex.EncodeToString(sum[:])} {
		if strings.Contains(string(page), form) {
			t.Errorf("the report holds the key, in form %d", i)
		}
	}
}

// With another key the same Secret, which nobody touched, has other hashes; what
// holds no Secret has the same.
func TestFingerprintsFollowFromTheKey(t *testing.T) {
	s := clitest.New(t)
	s.Apply(keyed("hunter2")).Want(t, 0)
	before := fingerprints(s)
	if err := s.Resources("v1/secrets").Namespace(s.NS).Delete(t.Context(), keySecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(keyed("hunter2"), "--wait=applied").Want(t, 0)
	after := fingerprints(s)
	if a, b := before["login"], after["login"]; a.Desired == "" || a.UID != b.UID || a.Desired == b.Desired || a.Live == b.Live {
		t.Errorf("the hashes of the Secret do not follow from the key: same UID %v, same desired hash %v, same live hash %v", a.UID == b.UID, a.Desired == b.Desired, a.Live == b.Live)
	}
	if before["settings"] != after["settings"] || before["settings"].Desired == "" {
		t.Error("the hashes of a ConfigMap changed with the key")
	}
}

// fingerprints are those of the inventory, by the names of the objects.
func fingerprints(s *clitest.Fixture) map[string]inventory.Fingerprint {
	s.Helper()
	data := nestedMap(s.ConfigMap("inv-fingerprints-1").Object, "binaryData")
	packed, err := base64.StdEncoding.DecodeString(fmt.Sprint(data["fingerprints.json.zst"]))
	if err != nil {
		s.Fatal(err)
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		s.Fatal(err)
	}
	defer r.Close()
	text, err := r.DecodeAll(packed, nil)
	if err != nil {
		s.Fatal(err)
	}
	var records []struct {
		Name string `json:"name"`
		inventory.Fingerprint
	}
	if err := json.Unmarshal(text, &records); err != nil {
		s.Fatal(err)
	}
	prints := map[string]inventory.Fingerprint{}
	for _, record := range records {
		prints[record.Name] = record.Fingerprint
	}
	return prints
}
