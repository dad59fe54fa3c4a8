package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"brine/bundle/apply"
)

func TestSaltFormatOfACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"apply -o salt":                          "salt",
		"apply -osalt-cmd --nonsense":            "salt-cmd",
		"apply --nonsense --output=salt-events":  "salt-events",
		"apply --output salt":                    "salt",
		"apply -o=salt":                          "salt",
		"apply -o json":                          "",
		"apply -o":                               "",
		"apply -- -o salt":                       "",
		"apply -o salt -o json":                  "",
		"apply --outputs salt":                   "",
		"status --name salt --kubeconfig=o=salt": "",
	} {
		if got := saltFormat(strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	t.Setenv("BRINE_OUTPUT", "salt-cmd")
	if got := saltFormat([]string{"apply"}); got != "salt-cmd" {
		t.Errorf("from the environment: %q", got)
	}
}

// An empty rendering never counts as an empty bundle.
func TestAnEmptyRenderingIsABadBundle(t *testing.T) {
	for _, text := range []string{"", "\n", "#!jinja\n# nothing\n---\n", "{}", `{"local": {}}`, `{"local": []}`, `{"local": ["Rendering SLS 'base:x' failed"]}`, "null"} {
		for _, command := range []string{"apply", "preview"} {
			var out, errs bytes.Buffer
			code := execute(context.Background(), streams{in: strings.NewReader(text), out: &out, err: &errs},
				[]string{command, "-f", "-", "--name", "x", "-o", "salt-cmd", "--kubeconfig", "/no/such/file"})
			var told struct {
				Changed bool
				Comment string
			}
			if err := json.Unmarshal(out.Bytes(), &told); err != nil || code != apply.ExitBadBundle || told.Changed {
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
		code := execute(context.Background(), streams{in: strings.NewReader(""), out: &out, err: &errs}, strings.Fields(line))
		var told map[string]any
		if err := json.Unmarshal(out.Bytes(), &told); err != nil {
			t.Errorf("%s: %v in %q", line, err, out.String())
			continue
		}
		if comment, _ := told["comment"].(string); code != apply.ExitBadBundle || comment == "" || told["result"] == true || told["changed"] == true {
			t.Errorf("%s: exit code %d, %v", line, code, told)
		}
		if errs.Len() > 0 {
			t.Errorf("%s: also on stderr: %s", line, errs.String())
		}
	}
}
