package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

func TestGetShowsObjectsOfAnyKind(t *testing.T) {
	s := clitest.New(t)
	secret := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n  namespace: {ns}\n  labels: {app: web}\nstringData: {password: hunter2-get}\n"
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{k: \"1\"}"), clitest.ConfigMapOf("b", "{k: \"2\"}"), secret)).Want(t, 0)
	get := func(args ...string) (objects []map[string]any, text string) {
		t.Helper()
		p := clitest.Run(t, s.Kubeconfig, append(append([]string{"get"}, args...), "--namespace", s.NS, "-o", "json")...)
		p.Want(t, 0)
		var found struct {
			Objects   []map[string]any
			Readiness []struct{ State string }
		}
		if err := json.Unmarshal([]byte(p.Stdout), &found); err != nil || len(found.Readiness) != len(found.Objects) {
			t.Fatalf("%v: %s", err, p.Stdout)
		}
		for _, r := range found.Readiness {
			if r.State != "ready" {
				t.Errorf("readiness %s of %v", r.State, args)
			}
		}
		return found.Objects, p.Stdout
	}
	one, _ := get("ConfigMap", "a", "--api-version", "v1")
	metadata, _ := one[0]["metadata"].(map[string]any)
	if len(one) != 1 || metadata["name"] != "a" || metadata["resourceVersion"] == nil || one[0]["data"] == nil {
		t.Errorf("get ConfigMap a prints %v", one)
	}
	if gone, _ := get("ConfigMap", "gone", "--ignore-not-found"); len(gone) != 0 {
		t.Errorf("an object that does not exist is printed: %v", gone)
	}
	if p := clitest.Run(t, s.Kubeconfig, "get", "ConfigMap", "gone", "--namespace", s.NS); p.Exit != 1 || !strings.Contains(p.Stderr, "does not exist") {
		t.Errorf("exit code %d: %s", p.Exit, p.Stderr)
	}
	if p := clitest.Run(t, s.Kubeconfig, "get", "NoSuchKind", "--namespace", s.NS); p.Exit != 3 || !strings.Contains(p.Stderr, "does not serve the kind NoSuchKind") {
		t.Errorf("exit code %d: %s", p.Exit, p.Stderr)
	}
	if labelled, _ := get("secrets", "-l", "app=web"); len(labelled) != 1 {
		t.Errorf("the label selector finds %d Secrets", len(labelled))
	}
	if named, _ := get("configmaps", "--field-selector", "metadata.name=b"); len(named) != 1 {
		t.Errorf("the field selector finds %d ConfigMaps", len(named))
	}
	for text, state := range map[string]string{`self.data.k == "1"`: "ready", `self.data.k == "2"`: "not-ready", `self.status.x`: "not-ready"} {
		p := clitest.Run(t, s.Kubeconfig, "get", "ConfigMap", "a", "--namespace", s.NS, "-o", "json", "--ready-when", text).Want(t, 0)
		if !strings.Contains(p.Stdout, `"state": "`+state+`"`) {
			t.Errorf("--ready-when '%s' is not %s: %s", text, state, p.Stdout)
		}
	}
	if p := clitest.Run(t, s.Kubeconfig, "get", "ConfigMap", "gone", "--ignore-not-found", "--namespace", s.NS, "--ready-when", "self."); p.Exit != 3 || !strings.Contains(p.Stderr, "--ready-when: ") {
		t.Errorf("exit code %d: %s", p.Exit, p.Stderr)
	}
	encoded := "aHVudGVyMi1nZXQ="
	if _, text := get("Secret", "login"); strings.Contains(text, encoded) || strings.Contains(text, "hunter2-get") || !strings.Contains(text, `"***"`) {
		t.Error("the value of a Secret is not masked")
	}
	if shown, _ := get("Secret", "login", "--show-secrets"); shown[0]["data"].(map[string]any)["password"] != encoded {
		t.Error("--show-secrets does not print the value")
	}
	if p := clitest.Run(t, s.Kubeconfig, "get", "Secret", "-A", "-l", "app=web", "-o", "text"); !strings.Contains(p.Stdout, "Secret "+s.NS+"/login") || strings.Contains(p.Stdout, "hunter2") {
		t.Error("the list of all namespaces lacks the Secret, or shows its value: " + strings.ReplaceAll(p.Stdout+p.Stderr, "hunter2", "(its value)"))
	}
}
