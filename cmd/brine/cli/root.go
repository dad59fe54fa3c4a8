package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/connect"
	"brine/cmd/brine/help"
	"brine/cmd/brine/output/wording"
	"brine/cmd/brine/profile"
	"brine/cmd/brine/values"
)

// The root command: exit codes of errors, the way to the cluster.

var (
	//go:embed commands.txt
	commands string
	//go:embed README.md
	reference string
	//go:embed troubleshooting.md
	troubleshooting string

	helpTexts = help.Documents{Commands: commands, Reference: reference, Troubleshooting: troubleshooting}
)

// Streams are the process's; tests give their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal: In and Err are one, so that a question can be asked and answered.
	Terminal bool
}

// warn reports something beside the result.
func (s Streams) warn(message string) { fmt.Fprintf(s.Err, "brine: %s\n", wording.Clean(message)) }

// coded is an error that stands for an exit code.
type coded struct {
	code     int
	err      error
	reported bool // the command printed it
	late     bool // the command did its work, and could not show it
	unknown  bool // what the command did is not known
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// endOf is how an error ends the process; cobra's own errors are of usage.
func endOf(err error) *coded {
	if c, ok := errors.AsType[*coded](err); ok {
		return c
	}
	return &coded{code: report.ExitBadBundle, err: err}
}

// failed is an error with the exit code that it has in a run.
func failed(err error) error { return &coded{code: run.ExitCode(err), err: err} }

// printed is how a command ends that did its work: with an exit code, or with what
// could not be printed, which does not hide what went wrong before.
func printed(what string, err error, code int) error {
	switch {
	case err != nil:
		if report.Succeeded(code) {
			code = report.ExitFailed
		}
		return &coded{code: code, err: fmt.Errorf("%s: %w", what, err), late: true}
	case code != report.ExitOK:
		return &coded{code: code, err: fmt.Errorf("exit code %d", code), reported: true}
	}
	return nil
}

func newRoot(s Streams, p *profile.Profile) *cobra.Command {
	root := &cobra.Command{
		Use:           "brine",
		Version:       version(),
		Short:         "Make a Kubernetes cluster match a bundle that Salt rendered",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			problems := values.SetFromEnvironment(cmd.Flags())
			if problems = append(problems, values.CheckFlags(cmd.Flags())...); len(problems) > 0 {
				return problems
			}
			warnings := values.FindOldSpellings(cmd.Flags())
			if !cmd.Hidden { // a shell that completes
				warnings = append(warnings, values.FindUnknownVariables(cmd.Root(), os.Environ())...)
			}
			for _, warning := range warnings {
				s.warn(warning)
			}
			return p.Start()
		},
	}
	root.PersistentFlags().StringVar(&p.Dir, "profile-dir", "", "write profiles and a trace of this command into a directory")
	_ = root.PersistentFlags().MarkHidden("profile-dir")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return values.ExplainInvalid("--"+wrong.GetFlag().Name, wrong)
		}
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			if meant := bundle.Nearest(unknown.GetSpecifiedName(), names); meant != "" {
				return fmt.Errorf("%w: did you mean --%s?", err, meant)
			}
		}
		return err
	})
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetIn(s.In)
	root.AddCommand(
		newApply(s), newPreview(s), newDestroy(s), newStatus(s), newGet(s), newPatch(s), newDrift(s), newHistory(s), newDiff(s), newRollback(s), newInventory(s), newCheck(s), newImages(s), newRBAC(s), newVersion(s),
	)
	limitTime(root)
	values.RefuseEmpty(root)
	helpTexts.Add(root)
	return root
}

// How long requests are retried: who only reads does not wait for long.
const (
	readRetry    = 20 * time.Second
	writeRetry   = time.Minute
	readContact  = 5 * time.Second
	writeContact = 20 * time.Second
)

// connection is how a command reaches the cluster.
type connection struct{ *connect.Flags }

func newConnection(cmd *cobra.Command, first, retry time.Duration) *connection {
	c := &connection{connect.Add(cmd.Flags(), first, retry)}
	completeFlag(cmd, c, "namespace", namespaces)
	return c
}

func (c *connection) client(o cluster.Options) (*cluster.Client, error) {
	o.UserAgent = "brine/" + version()
	client, err := c.Client(o)
	if err != nil {
		return nil, &coded{code: report.ExitUnreachable, err: err}
	}
	return client, nil
}
