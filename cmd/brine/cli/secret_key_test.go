package cli

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
	"brine/inventory"
)

// keyed is a bundle of a Secret and a workload that restarts with it.
func keyed(password string) string {
	return documents("apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: \"{ns}\"}\nstringData: {password: "+password+"}\n",
		configMap("settings"), deployment("web", 1, "1m", annotations(bundle.DigestOf+": secrets/login")))
}

// template is the digest in the live pod template.
func (s *fixture) template() string {
	s.Helper()
	u := s.live("apps/v1/deployments", s.ns, "web")
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
	s := newFixture(t)
	const password = "hunter2"
	text := keyed(password)
	s.apply(text).want(t, 0)
	u := s.live("v1/secrets", s.ns, keySecret)
	if u == nil || u.GetLabels()[inventory.AuxiliaryLabel] == "" {
		t.Fatal("there is no key, or it has no label")
	}
	digest := s.template()
	if !strings.HasPrefix(digest, inventory.Keyed) {
		t.Errorf("the pod template has %q", digest)
	}
	if head := fmt.Sprint(s.live("v1/configmaps", s.ns, "inv").Object); strings.Contains(head, "sha256:") && !strings.Contains(head, inventory.Keyed) {
		t.Error("the inventory has a plain digest")
	}
	// The hashes of an unchanged Secret with a known password are not among the
	// fingerprints: with another key the same bundle has others.
	p := s.proxied()
	s.apply(text).want(t, 0).did(t, "Secret", "login", plan.Unchanged)
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
	s.apply(keyed("hunter3")).want(t, 0).did(t, "Deployment", "web", plan.Configured)
	if s.template() == digest {
		t.Error("the digest is the same for another password")
	}
	// The same key: a rollback restores the very digest.
	s.run("rollback", nil).want(t, 0)
	if got := s.template(); got != digest {
		t.Errorf("after the rollback it is %q, was %q", got, digest)
	}
	// The key is lost: a warning reports it, pods restart once, and then there is no warning.
	if err := s.resources("v1/secrets").Namespace(s.ns).Delete(s.Context(), keySecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.apply(text).want(t, 0).prints(t, keySecret+", is gone", "Deployment.apps "+s.ns+"/web")
	if got := s.template(); got == digest || !strings.HasPrefix(got, inventory.Keyed) {
		t.Errorf("with another key it is %q", got)
	}
	s.apply(text).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
	s.destroy().want(t, 0)
	s.missing("v1/secrets", keySecret)
}

// A bundle without Secrets has no key, and asks for none.
func TestNoKeyWithoutSecrets(t *testing.T) {
	s := newFixture(t)
	p := s.proxied()
	s.apply(documents(configMap("settings"), deployment("web", 1, "1m", annotations(bundle.DigestOf+": configmaps/settings")))).want(t, 0)
	for _, r := range p.Requests() {
		if strings.Contains(r.Path, keySecret) {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
	s.missing("v1/secrets", keySecret)
	if got := s.template(); !strings.HasPrefix(got, "sha256:") {
		t.Errorf("the digest of a ConfigMap is %q", got)
	}
}

// A preview has no key to write. It shows no digest that apply would not have,
// and its plan holds when apply makes the key.
func TestPreviewWithoutKey(t *testing.T) {
	s := newFixture(t)
	text := keyed("hunter2")
	file := filepath.Join(t.TempDir(), "plan.json")
	first := s.preview(text, "--plan-out", file).want(t, 0).prints(t, "does not cover the values of Secrets")
	if strings.Contains(first.stdout, inventory.Keyed) || strings.Contains(first.stdout, bundle.Digest+": sha256:") {
		t.Error("it shows a digest that nothing will have")
	}
	s.missing("v1/secrets", keySecret)
	offline := s.run("apply", []string{"-f", s.file(text), "--dry-run=client"}).want(t, 0)
	if strings.Contains(offline.stdout, inventory.Keyed) || strings.Contains(offline.stdout, bundle.Digest+": sha256:") {
		t.Error("--dry-run=client shows a digest")
	}
	s.run("apply", []string{"-f", s.file(text), "--plan", file}).want(t, 0)
	s.exists("v1/secrets", keySecret)
	// A plan of now covers the values.
	s.preview(text, "--plan-out", file).want(t, 0)
	s.run("apply", []string{"-f", s.file(keyed("hunter3")), "--plan", file}).want(t, 3)
}

// Pod templates of an older version have plain digests. They stay until the
// Secret changes, so that no pod restarts for an upgrade of brine.
func TestPlainDigestsStayUntilTheSecretChanges(t *testing.T) {
	s := newFixture(t)
	text := keyed("hunter2")
	s.apply(text).want(t, 0)
	plain := func(password string) string {
		b, err := read.Bundle(t.Context(), read.Options{Files: []string{s.file(keyed(password))}})
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
	if _, err := s.resources("apps/v1/deployments").Namespace(s.ns).Patch(s.Context(), "web", types.MergePatchType, old, metav1.PatchOptions{FieldManager: "brine"}); err != nil {
		t.Fatal(err)
	}
	shown := s.preview(text, "--force-conflicts").want(t, 0)
	if strings.Contains(shown.stdout, plain("hunter2")) {
		t.Error("the preview shows the plain digest")
	}
	s.apply(text, "--force-conflicts").want(t, 0)
	if got := s.template(); got != plain("hunter2") {
		t.Errorf("the pods restarted: %q", got)
	}
	s.apply(keyed("hunter3"), "--force-conflicts").want(t, 0)
	if got := s.template(); !strings.HasPrefix(got, inventory.Keyed) {
		t.Errorf("after a change it is still %q", got)
	}
}

// Whoever may not read the key is told so, and nothing is changed.
func TestKeyWithoutTheRightToReadIt(t *testing.T) {
	s := newFixture(t)
	p := s.proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if strings.HasSuffix(r.Path, "/secrets/"+keySecret) {
			return clustertest.Action{Status: http.StatusForbidden, Message: "secrets is forbidden: User \"x\" cannot get resource \"secrets\""}
		}
		return clustertest.Action{}
	})
	s.apply(keyed("hunter2")).want(t, 6).prints(t, "read the key of inventory", "cannot get resource")
	s.missing("v1/configmaps", "settings")
	s.missing("apps/v1/deployments", "web")
}

// No report holds the key: whoever has it can make hashes of passwords.
func TestKeyIsNotReported(t *testing.T) {
	s := newFixture(t)
	s.apply(keyed("hunter2")).want(t, 0)
	u := s.live("v1/secrets", s.ns, keySecret)
	data := nestedMap(u.Object, "data")
	raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(data["key"]))
	if err != nil || len(raw) != 32 {
		t.Fatalf("the key has %d bytes: %v", len(raw), err)
	}
	sum := sha256.Sum256(raw)
	report := filepath.Join(t.TempDir(), "r.json")
	s.preview(keyed("hunter2"), "--report", report).want(t, 0)
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
	s := newFixture(t)
	s.apply(keyed("hunter2")).want(t, 0)
	before := s.fingerprints()
	if err := s.resources("v1/secrets").Namespace(s.ns).Delete(t.Context(), keySecret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.apply(keyed("hunter2"), "--wait=applied").want(t, 0)
	after := s.fingerprints()
	if a, b := before["login"], after["login"]; a.Desired == "" || a.UID != b.UID || a.Desired == b.Desired || a.Live == b.Live {
		t.Errorf("the hashes of the Secret do not follow from the key: same UID %v, same desired hash %v, same live hash %v", a.UID == b.UID, a.Desired == b.Desired, a.Live == b.Live)
	}
	if before["settings"] != after["settings"] || before["settings"].Desired == "" {
		t.Error("the hashes of a ConfigMap changed with the key")
	}
}

// fingerprints are those of the inventory, by the names of the objects.
func (s *fixture) fingerprints() map[string]inventory.Fingerprint {
	s.Helper()
	data := nestedMap(s.live("v1/configmaps", s.ns, "inv-fingerprints-1").Object, "binaryData")
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
