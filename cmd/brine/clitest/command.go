package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/cli"
)

// Run runs a command line against the cluster of a kubeconfig. Without -o it
// asks for JSON and parses that.
func Run(t testing.TB, kubeconfig string, args ...string) Outcome {
	t.Helper()
	return RunContext(t.Context(), t, kubeconfig, args...)
}

// RunContext is Run with a context, which a test ends as a signal does.
func RunContext(ctx context.Context, t testing.TB, kubeconfig string, args ...string) Outcome {
	t.Helper()
	args = append(slices.Clone(args), "--kubeconfig", kubeconfig)
	if !slices.ContainsFunc(args, func(a string) bool { return a == "-o" || strings.HasPrefix(a, "--output") }) {
		args = append(args, "-o", "json")
	}
	return Command(ctx, nil, args...)
}

// Command runs a command line as it is, with a standard input. The result is
// parsed where there is one.
func Command(ctx context.Context, in io.Reader, args ...string) Outcome {
	if in == nil {
		in = strings.NewReader("")
	}
	var out, err bytes.Buffer
	code := cli.Run(ctx, cli.Streams{In: in, Out: &out, Err: &err}, args)
	s := Outcome{Exit: code, Stdout: out.String(), Stderr: err.String()}
	var result report.Result
	if json.Unmarshal(out.Bytes(), &result) == nil && result.Kind == "Result" {
		s.Result = &result
	}
	return s
}

// Offline runs a command line where there is no cluster, and no kubeconfig.
func Offline(t *testing.T, args ...string) Outcome {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	return Command(t.Context(), nil, args...)
}

// RBAC is what brine rbac writes.
func RBAC(t *testing.T, args ...string) string {
	t.Helper()
	return Command(t.Context(), nil, append([]string{"rbac"}, args...)...).Want(t, 0).Stdout
}
