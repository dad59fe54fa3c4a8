package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// Nothing but --timeout ends a command whose server never answers, or whose credential
// plugin waits for a person.
func TestACommandEndsWithItsTime(t *testing.T) {
	dir := t.TempDir()
	open := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-open:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(open) })
	pid := filepath.Join(dir, "pid")
	plugin := filepath.Join(dir, "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\necho $$ >> "+pid+"\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		text, _ := os.ReadFile(pid)
		for line := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(line); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	for user, text := range map[string]string{
		"nobody": "{}",
		"person": fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}", plugin),
	} {
		kubeconfig := filepath.Join(dir, user)
		config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\nusers: [{name: u, user: %s}]\ncontexts: [{name: a, context: {cluster: a, user: u}}]\ncurrent-context: a\n", server.URL, text)
		if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"status", "--inventory", "a/b"}, {"history", "--inventory", "a/b"}, {"inventory", "list"}, {"drift", "--inventory", "a/b"},
			{"apply", "--inventory", "a/b", "-f", clitest.BundleFile(t, clitest.ConfigMap("a"))},
		} {
			s := clitest.Run(t, kubeconfig, append(args, "--timeout", "1s")...).Want(t, report.ExitUnreachable)
			if !strings.Contains(s.Stderr+s.Stdout, "time ran out after 1s") {
				t.Errorf("%s, %v: %s%s", user, args, s.Stdout, s.Stderr)
			}
		}
	}
}
