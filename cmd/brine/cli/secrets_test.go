package cli_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/cli"
	"brine/cmd/brine/clitest"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/documents"
)

// No value of a Secret, nor anything that it could be guessed from, is in
// anything that a run writes.
func TestNoSecretInAnyOutput(t *testing.T) {
	s := clitest.New(t)
	values := []string{"hunter2-old", "hunter3-new", "kubectl-put-me-here", "pruned-pass", "fixed-before", "fixed-after", "not base64 at all", "created-pass", "copied-into-annotation"}
	secret := func(name, body string, metadata ...string) string {
		text := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
		for _, m := range metadata {
			text += "  " + m + "\n"
		}
		return text + body
	}
	first := clitest.Documents(secret("changed", "stringData: {password: hunter2-old}\n"), secret("pruned", "stringData: {password: pruned-pass}\n"),
		secret("fixed", "stringData: {password: fixed-before}\nimmutable: true\n"),
		secret("annotated", "stringData: {password: copied-into-annotation}\n", `annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"copied-into-annotation"}}'}`))
	then := clitest.Documents(secret("changed", "stringData: {password: hunter3-new}\n"), secret("fixed", "stringData: {password: fixed-after}\nimmutable: true\n"),
		secret("created", "stringData: {password: created-pass}\n"),
		secret("annotated", "stringData: {password: hunter3-new}\n", `annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"hunter3-new"}}'}`))
	wrong := clitest.Documents(then, secret("wrong", "data: {password: not base64 at all}\n"))

	search := leaks(values)
	run := func(name, command, text string, exit int, flags ...string) {
		for _, format := range output.Formats {
			folder := t.TempDir()
			args := []string{"-f", s.File(text), "-o", format, "-v", "--recreate=Secret"}
			for _, ending := range documents.Reports {
				args = append(args, "--report", filepath.Join(folder, "report."+ending))
			}
			p := s.Run(command, append(args, flags...))
			what := name + " -o " + format
			if p.Exit != exit && !strings.HasPrefix(format, "salt") {
				t.Errorf("%s: exit code %d, want %d", what, p.Exit, exit)
			}
			annotates := format == "github" || format == "gitlab" // only what is wrong
			if !annotates && !strings.Contains(p.Stdout+p.Stderr, "changed") {
				t.Errorf("%s says nothing of the Secret", what)
			}
			search(t, what, p.Stdout+p.Stderr)
			for _, ending := range documents.Reports {
				page, err := os.ReadFile(filepath.Join(folder, "report."+ending))
				if err != nil {
					t.Fatal(err)
				}
				search(t, what+" --report "+ending, string(page))
			}
		}
	}
	s.Apply(first).Want(t, 0)
	if _, err := s.Resources("v1/secrets").Namespace(s.NS).Patch(s.Context(), "changed", types.MergePatchType,
		[]byte(`{"stringData":{"other":"kubectl-put-me-here"}}`), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	run("preview", "preview", then, 0, "--plan-out", file)
	bound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	search(t, "--plan-out", string(bound))
	run("bad preview", "preview", wrong, 3)
	run("dry run without a server", "apply", wrong, 3, "--dry-run=client")
	run("bad apply", "apply", wrong, 1, "--validation=skip-invalid")
	run("apply", "apply", then, 0)
	for _, command := range [][]string{{"check", "-f", s.File(wrong)}, {"check", "-f", s.File(wrong), "-o", "json"}, {"rbac", "-f", s.File(wrong)}} {
		p := offlineArgs(t, command)
		search(t, strings.Join(command[:1], " "), p)
	}
}

// leaks finds values, plain, encoded or hashed, in what was printed. It does not
// print them itself.
func leaks(values []string) func(t *testing.T, what, text string) {
	var forms []string
	for _, v := range values {
		sum := sha256.Sum256([]byte(v))
		forms = append(forms, v, base64.StdEncoding.EncodeToString([]byte(v)), base64.RawStdEncoding.EncodeToString([]byte(v)), hex.EncodeToString(sum[:]))
	}
	return func(t *testing.T, what, text string) {
		t.Helper()
		for i, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%s: value %d is in it, in form %d", what, i/4, i%4)
			}
		}
		for _, packed := range regexp.MustCompile(`id="bodies">([^<]+)`).FindAllStringSubmatch(text, -1) {
			raw, err := base64.StdEncoding.DecodeString(packed[1])
			if err != nil {
				t.Fatal(err)
			}
			z, err := gzip.NewReader(strings.NewReader(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			all, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			for i, form := range forms {
				if strings.Contains(string(all), form) {
					t.Errorf("%s, packed: value %d is in it, in form %d", what, i/4, i%4)
				}
			}
		}
	}
}

// What the cluster says of other objects may hold values of Secrets, too: of the
// bundle, and of those that are on the cluster only.
func TestNoSecretInWhatTheClusterSays(t *testing.T) {
	s := clitest.New(t)
	values := []string{"hunter2-of-the-bundle", "of-the-cluster-only-1", "first-line-of-a-key", "second-line-of-a-key"}
	search := leaks(values)
	printed := "login with " + values[0] + " and " + values[1] + ", " + base64.StdEncoding.EncodeToString([]byte(values[0])) + ", " + values[2] + "\\n" + values[3] + ", failed"
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if strings.HasSuffix(r.Path, "/log") {
			return clustertest.Action{Status: http.StatusOK, Message: "logged: " + printed}
		}
		return clustertest.Action{}
	})
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: \"{ns}\"}\nstringData:\n  password: " + values[0] +
		"\n  key: |\n    " + values[2] + "\n    " + values[3] + "\n"
	settings := func(host string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: \"{ns}\"}\ndata: {url: \"postgres://app:" + values[0] + "@" + host + "/shop\"}\n"
	}
	s.Apply(clitest.Documents(secret, settings("old"))).Want(t, 0)
	if _, err := s.Resources("v1/secrets").Namespace(s.NS).Patch(s.Context(), "login", types.MergePatchType,
		[]byte(`{"stringData":{"other":"`+values[1]+`"}}`), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	// A webhook that is not there, whose address holds the password, and a pod
	// that crashes: its state, an event, and its log.
	text := clitest.Documents(secret, settings("new"), clitest.PodWith("late", "nodeName: ghost"))
	go s.SetContainerState("late", `{"terminated":{"exitCode":1,"reason":"Error","message":"state: `+printed+`"}}`)
	s.Create("v1/events", "apiVersion: v1\nkind: Event\nmetadata: {name: late.1, namespace: \"{ns}\"}\ntype: Warning\nreason: Failed\ncount: 1\n"+
		"message: \"event: "+printed+"\"\ninvolvedObject: {kind: Pod, name: late, namespace: \"{ns}\", apiVersion: v1}\nlastTimestamp: \"2030-01-01T00:00:00Z\"\n")
	heard := ""
	for _, format := range output.Formats {
		report, file := filepath.Join(t.TempDir(), "report.html"), filepath.Join(t.TempDir(), "plan.json")
		shown := s.Preview(clitest.Documents(secret, settings("preview")), "-o", format, "-v", "--plan-out", file)
		search(t, "preview -o "+format, shown.Stdout+shown.Stderr)
		if bound, err := os.ReadFile(file); err != nil || !strings.Contains(string(bound), "***") {
			t.Errorf("no plan, or it shows nothing: %v", err)
		} else {
			search(t, "the plan", string(bound))
		}
		p := s.Apply(text, "-o", format, "-v", "--report", report, "--timeout=3s")
		search(t, "apply -o "+format, p.Stdout+p.Stderr)
		page, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		search(t, "--report", string(page))
		heard += p.Stdout + p.Stderr
	}
	st := clitest.Run(t, s.Kubeconfig, "status", "--inventory", s.Inventory, "-o", "text")
	search(t, "status", st.Stdout+st.Stderr)
	for _, words := range []string{"login with *** and ***", "state: ", "event: ", "logged: "} {
		if !strings.Contains(heard, words) {
			t.Errorf("no output says %q", words)
		}
	}
}

func offlineArgs(t *testing.T, args []string) string {
	t.Helper()
	var out, err strings.Builder
	cli.Run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err}, args)
	return out.String() + err.String()
}
