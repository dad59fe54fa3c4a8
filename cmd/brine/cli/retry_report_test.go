package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A server that is away is asked again, and that is told while it lasts.
func TestStatusAndHistoryReportRetries(t *testing.T) {
	for _, command := range []string{"status", "history", "rollback", "apply"} {
		var mu sync.Mutex
		requests := map[string]int{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			requests[r.URL.Path]++
			n := requests[r.URL.Path]
			mu.Unlock()
			if n == 1 { // several requests go out at once: each is sent again
				http.Error(w, "starting", http.StatusServiceUnavailable)
				return
			}
			http.Error(w, "who are you", http.StatusUnauthorized)
		}))
		t.Cleanup(server.Close)
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", server.URL)
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{command, "--inventory", "a/b"}
		if command == "apply" {
			args = append(args, "-f", clitest.BundleFile(t, clitest.ConfigMap("a")))
		}
		s := clitest.Run(t, kubeconfig, args...).Want(t, report.ExitUnreachable)
		if told := strings.Count(s.Stderr, "retrying: "); told < 1 || told > 2 || s.Result == nil || len(s.Result.Errors) != 1 {
			t.Errorf("%s: after %v stderr is %q, the document %s", command, requests, s.Stderr, s.Stdout)
		}
	}
}
