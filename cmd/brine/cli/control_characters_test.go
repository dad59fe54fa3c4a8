package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/cmd/brine/clitest"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
)

// evil is a text that moves the cursor, clears the screen, sets the terminal's
// title, makes a link, turns the direction of text, and hides.
const evil = "\x1b[2Jx\u009b1A\x1b]0;t\x07\x1b]8;;http://evil\x1b\\link\u202ertl\u2066\u200b\u2028\x7f\r"

// harmless fails the test when a text could do anything to a terminal.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: it is not UTF-8", what)
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s: %q is in %q", what, r, text[max(0, i-60):min(len(text), i+20)])
			return
		}
	}
}

// Whatever the cluster, the bundle or the command line say, no command writes
// what a terminal would obey.
func TestNoOutputControlsTheTerminal(t *testing.T) {
	s := clitest.New(t)
	var quoted bytes.Buffer
	if err := wording.JSON(&quoted, evil); err != nil {
		t.Fatal(err)
	}
	asJSON := strings.TrimSpace(quoted.String())
	settings := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: \"{ns}\", annotations: {note: " + asJSON + "}}\ndata: {a: " + value + "}\n"
	}
	role := func(verbs string) string {
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: \"evil\\u202e\\u009b1A\", namespace: \"{ns}\"}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [%s]}]\n", verbs)
	}
	s.Apply(clitest.Documents(settings("old"), role("get")), "--jid", evil).Want(t, 0)
	go s.SetContainerState("late", `{"terminated":{"exitCode":1,"reason":"Error","message":`+asJSON+`}}`)
	s.Create("v1/events", "apiVersion: v1\nkind: Event\nmetadata: {name: late.1, namespace: \"{ns}\"}\ntype: Warning\nreason: Failed\ncount: 1\n"+
		"message: "+asJSON+"\ninvolvedObject: {kind: Pod, name: late, namespace: \"{ns}\", apiVersion: v1}\nlastTimestamp: \"2030-01-01T00:00:00Z\"\n")
	text := clitest.Documents(settings("new"), role("list"), clitest.PodWith("late", "nodeName: ghost"))
	for _, format := range output.Formats {
		report := filepath.Join(t.TempDir(), "report.html")
		p := s.Preview(text, "-o", format, "-v")
		harmless(t, "preview -o "+format, p.Stdout+p.Stderr)
		for _, timeout := range []string{"3s", "1m"} { // the pod never gets ready, and a slow machine may not get to it
			p = s.Apply(text, "-o", format, "-v", "--timeout="+timeout, "--report", report)
			if strings.Contains(p.Stdout, "late") {
				s.Eventually("the pod has its state", func() bool {
					pod := s.Live("v1/pods", s.NS, "late")
					return pod == nil || pod.Object["status"].(map[string]any)["containerStatuses"] != nil
				})
				break
			}
		}
		harmless(t, "apply -o "+format, p.Stdout+p.Stderr)
		if !strings.Contains(p.Stdout, "late") {
			t.Errorf("apply -o %s says nothing of the pod", format)
		}
		page, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		harmless(t, "--report", string(page))
	}
	// A history that somebody else has written.
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(s.Context(), "inv", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"note":`+asJSON+`}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir() + "/evil\u202e\x1b[2J"
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	named := folder + "/bundle\u009b.yaml"
	wrong := clitest.Documents(role("get"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\\u009b\\u202e\"}\ndata: {a: !evil x, "+asJSON+": 1}\n")
	if err := os.WriteFile(named, []byte(strings.ReplaceAll(wrong, "{ns}", s.NS)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"status", "--inventory", s.Inventory, "-o", "text"}, {"status", "--inventory", s.Inventory, "-o", "json"}, {"inventory", "repair", "--inventory", s.Inventory, "-o", "text"},
		{"history", "--inventory", s.Inventory, "-o", "text"}, {"history", "--inventory", s.Inventory, "-o", "json"},
		{"status", "--inventory", s.NS + "/" + evil}, {"history", "--inventory", s.NS + "/none", "--inventory-id" + evil},
		{"apply", "-f", named, "--inventory", s.Inventory, "-o", "text"}, {"apply", "-f", named, "--inventory", s.Inventory, "-o", "json"},
		{"apply", "-f", named, "--inventory", s.Inventory, "-o", "salt"}, {"apply", "-f", filepath.Join(folder, "none"), "-o", "text"},
		{"destroy", "--inventory", s.Inventory, "--dry-run=server", "-o", "text", "-v"},
		{"rollback", evil, "--inventory", s.Inventory, "-o", "text"},
	} {
		p := clitest.Run(t, s.Kubeconfig, args...)
		harmless(t, strings.Join(args[:1], " ")+" "+fmt.Sprint(args[1:]), p.Stdout+p.Stderr)
		if p.Stdout+p.Stderr == "" {
			t.Errorf("%v says nothing", args)
		}
	}
	good := s.File(clitest.Documents(settings("new"), role("get")))
	for _, args := range [][]string{
		{"check", "-f", named}, {"check", "-f", named, "-o", "json"}, {"check", "-f", good}, {"check", "-f", good, "-o", "dot"}, {"check", "-f", good, "-o", "json"},
		{"rbac", "-f", good}, {"rbac", "-f", named}, {evil}, {"apply", "--" + evil}, {"apply", "-f", good, "--wait=" + evil}, {"apply", "-f", good, "--dry-run=client", "-o", "text"},
	} {
		text := offlineArgs(t, args)
		harmless(t, fmt.Sprint(args), text)
		if text == "" {
			t.Errorf("%q says nothing", args)
		}
	}
}
