package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/cli"
	"brine/cmd/brine/clitest"
)

// Whoever asked for a document gets one, however wrong the command line is.
func TestRefusalsAreDocuments(t *testing.T) {
	for line, why := range map[string]string{
		"apply --bogus":                             "unknown flag: --bogus",
		"apply --tiemout=5":                         "unknown flag: --tiemout: did you mean --timeout?",
		"apply --name x":                            "no bundle",
		"apply extra":                               `unknown command "extra"`,
		"preview --timeout=soon":                    "--timeout=soon: invalid duration",
		"preview -f /no/such/file --name x":         "/no/such/file",
		"destroy":                                   "the inventory has no name",
		"destroy --cascade=all --name x":            "--cascade=all: invalid value: use background, foreground or orphan",
		"rollback abc --name x":                     "the revision is not a number",
		"rollback --name x --kubeconfig /no/such":   "/no/such",
		"status --inventory a/b --bogus":            "unknown flag: --bogus",
		"history --inventory a/b --kubeconfig /no!": "/no!",
		"aply": `unknown command "aply"`,
	} {
		code := report.ExitBadBundle
		if strings.Contains(line, "--kubeconfig") {
			code = report.ExitUnreachable
		}
		s := clitest.Offline(t, append(strings.Fields(line), "-o", "json")...).Want(t, code)
		if s.Result == nil || len(s.Result.Errors) != 1 || !strings.Contains(s.Result.Errors[0], why) || s.Result.ExitCode != code {
			t.Errorf("%s: the document is %s", line, s.Stdout)
		}
		if !strings.Contains(s.Stderr, why) || strings.Count(s.Stderr, "brine: ") != 1 {
			t.Errorf("%s: stderr is %q, want %q once", line, s.Stderr, why)
		}
		if command, _, _ := strings.Cut(line, " "); command != "status" && command != "history" { // which have no events
			s = clitest.Offline(t, append(strings.Fields(line), "-o", "events")...).Want(t, code)
			var last struct {
				Type   string
				Result *report.Result
			}
			if err := json.Unmarshal([]byte(s.Stdout), &last); err != nil || last.Type != "finished" || !strings.Contains(strings.Join(last.Result.Errors, ""), why) {
				t.Errorf("%s: the events are %s", line, s.Stdout)
			}
			if !strings.Contains(s.Stderr, why) || strings.Count(s.Stderr, "brine: ") != 1 {
				t.Errorf("%s: stderr is %q", line, s.Stderr)
			}
		}
		s = clitest.Offline(t, strings.Fields(line)...).Want(t, code)
		if s.Stdout != "" || s.Stderr == "" || strings.Contains(s.Stderr, "object") || strings.Count(s.Stderr, "brine: ") != 1 || !strings.Contains(s.Stderr, why) {
			t.Errorf("%s: text is %q, and on stderr %q", line, s.Stdout, s.Stderr)
		}
	}
	s := clitest.Offline(t, "check", "--bogus", "-o", "json").Want(t, report.ExitBadBundle)
	var check struct {
		Kind   string
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal([]byte(s.Stdout), &check); err != nil || check.Kind != "Check" || len(check.Errors) != 1 {
		t.Errorf("check: %v, %s", err, s.Stdout)
	}
	if page := clitest.Offline(t, "apply", "--bogus", "-o", "html").Want(t, report.ExitBadBundle).Stdout; !strings.Contains(page, "unknown flag") {
		t.Errorf("html: %s", clitest.Clip(page))
	}
}

// An empty rendering never counts as an empty bundle.
func TestEmptyBundleIsRefused(t *testing.T) {
	for _, text := range []string{"", "\n", "#!jinja\n# nothing\n---\n", "{}", `{"local": {}}`, `{"local": []}`, `{"local": ["Rendering SLS 'base:x' failed"]}`, "null"} {
		for _, command := range []string{"apply", "preview"} {
			var out, errs bytes.Buffer
			code := cli.Run(context.Background(), cli.Streams{In: strings.NewReader(text), Out: &out, Err: &errs},
				[]string{command, "-f", "-", "--name", "x", "-o", "salt-cmd", "--kubeconfig", "/no/such/file"})
			var told struct {
				Changed bool
				Comment string
			}
			if err := json.Unmarshal(out.Bytes(), &told); err != nil || code != report.ExitBadBundle || told.Changed {
				t.Errorf("%s of %q: exit code %d, %v, %s", command, text, code, err, out.String())
			}
		}
	}
}

// Salt parses the whole of stdout: a command line that is wrong is answered as
// one JSON object, too.
func TestUsageErrorsAreOneJSONObjectForSalt(t *testing.T) {
	for _, line := range []string{
		"apply -o salt --no-such-flag", "apply -o salt-cmd extra words", "aply -o salt", "apply -o salt-cmd --timeout=soon",
		"destroy -o salt", "apply -o salt-cmd", "preview -o salt -f /no/such/file --name x", "apply -o salt-cmd -f - --name x --dry-run=never",
	} {
		var out, errs bytes.Buffer
		code := cli.Run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, strings.Fields(line))
		var told map[string]any
		if err := json.Unmarshal(out.Bytes(), &told); err != nil {
			t.Errorf("%s: %v in %q", line, err, out.String())
			continue
		}
		if comment, _ := told["comment"].(string); code != report.ExitBadBundle || comment == "" || told["result"] == true || told["changed"] == true {
			t.Errorf("%s: exit code %d, %v", line, code, told)
		}
		if errs.Len() > 0 {
			t.Errorf("%s: also on stderr: %s", line, errs.String())
		}
	}
}
