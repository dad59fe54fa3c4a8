package cli_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/cli"
	"brine/cmd/brine/clitest"
)

// atTerminal runs a command line where a person answers.
func atTerminal(ctx context.Context, s *clitest.Fixture, in io.Reader, args ...string) clitest.Outcome {
	var out, err bytes.Buffer
	args = append(args, "--inventory", s.Inventory, "--kubeconfig", s.Kubeconfig)
	code := cli.Run(ctx, cli.Streams{In: in, Out: &out, Err: &err, Terminal: true}, args)
	return clitest.Outcome{Exit: code, Stdout: out.String(), Stderr: err.String()}
}

// silent is a person who does not answer: asked is called, and nothing comes.
type silent struct{ asked func() }

func (s silent) Read([]byte) (int, error) {
	s.asked()
	select {}
}

func TestQuestionsOnATerminal(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Apply(clitest.ConfigMap("b")).Want(t, 0)
	p := s.Proxied()

	for _, answer := range []string{"", "\n", "n\n", "maybe\n"} {
		got := atTerminal(t.Context(), s, strings.NewReader(answer), "destroy", "-o", "json").Want(t, report.ExitBadBundle)
		for _, want := range []string{"To prune (1)", "ConfigMap", "Delete 1 object and the inventory " + s.Inventory + " on http"} {
			if !strings.Contains(got.Stderr, want) {
				t.Errorf("answer %q: stderr lacks %q:\n%s", answer, want, got.Stderr)
			}
		}
		if !strings.Contains(got.Stdout, "was not answered with yes: nothing was changed") {
			t.Errorf("answer %q: the result is %s", answer, got.Stdout)
		}
	}
	interrupted, stop := context.WithCancelCause(t.Context())
	atTerminal(interrupted, s, silent{func() { stop(report.ErrInterrupted) }}, "destroy").Want(t, report.ExitInterrupted)
	if sent := p.Writes(); len(sent) > 0 {
		t.Errorf("without a yes it writes: %v", sent)
	}

	got := atTerminal(t.Context(), s, strings.NewReader("yes\n"), "rollback").Want(t, 0)
	if !strings.Contains(got.Stderr, "Apply revision 1 to the inventory "+s.Inventory) {
		t.Errorf("it asks: %s", got.Stderr)
	}
	s.Holds("ConfigMap a")
	// What would be refused is not asked for.
	got = atTerminal(t.Context(), s, strings.NewReader("y\n"), "rollback", "2", "--max-prune", "0").Want(t, report.ExitBadBundle)
	if printed := got.Stdout + got.Stderr; strings.Contains(got.Stderr, "[y/N]") || !strings.Contains(printed, "it would be refused, as the messages above say: nothing was changed") {
		t.Errorf("it says: %s", printed)
	}
	// Where there is nothing to do, there is no question.
	atTerminal(t.Context(), s, strings.NewReader(""), "rollback", "1").Want(t, 0)
	got = atTerminal(t.Context(), s, strings.NewReader(""), "rollback", "2", "--yes").Want(t, 0)
	if strings.Contains(got.Stderr, "[y/N]") {
		t.Errorf("with --yes it asks: %s", got.Stderr)
	}
	s.Holds("ConfigMap b")
	atTerminal(t.Context(), s, strings.NewReader("y\n"), "destroy").Want(t, 0)
	s.Holds()
}
