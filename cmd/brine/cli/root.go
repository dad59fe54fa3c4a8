package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
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
// could not be printed.
func printed(what string, err error, code int) error {
	switch {
	case err != nil:
		return &coded{code: report.ExitFailed, err: fmt.Errorf("%s: %w", what, err), late: true}
	case code != report.ExitOK:
		return &coded{code: code, err: fmt.Errorf("exit code %d", code), reported: true}
	}
	return nil
}

func newRoot(s Streams, p *profile) *cobra.Command {
	root := &cobra.Command{
		Use:   "brine",
		Short: "Make a Kubernetes cluster match a bundle that Salt rendered",
		Long: `brine takes a whole bundle of Kubernetes objects and makes a cluster match it:
applied in dependency order by server-side apply, tracked in a cli-utils
inventory, pruned, and waited for until it is ready.

Every flag can be given in the environment: --dry-run as BRINE_DRY_RUN.
Exit codes: 0 done; 1 some object failed; 2 changes exist (--detailed-exitcode),
or drift; 3 bad bundle or usage; 4 applied, but an object is not ready; 5 locked
by another run; 6 cluster unreachable or not permitted; 7 failed, and rolled back;
130, 143 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			problems := fromEnvironment(cmd.Flags())
			if problems = append(problems, wrongFlags(cmd)...); len(problems) > 0 {
				return problems
			}
			warnOfOldSpellings(s, cmd.Flags())
			return p.start()
		},
	}
	root.PersistentFlags().StringVar(&p.dir, "profile-dir", "", "write profiles and a trace of this command into a directory")
	_ = root.PersistentFlags().MarkHidden("profile-dir")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return invalid("--"+wrong.GetFlag().Name, wrong)
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
	addTopics(root)
	addHelp(root)
	return root
}

// fromEnvironment sets each flag that was not given from BRINE_…, if that is
// set: a flag overrides the environment, which overrides the default.
func fromEnvironment(flags *pflag.FlagSet) bundle.Problems {
	var problems bundle.Problems
	var given []string
	flags.Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	flags.VisitAll(func(f *pflag.Flag) {
		name := "BRINE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed || f.Name == "help" {
			return
		}
		// Both name the inventory: a flag of either overrides the environment.
		if other := map[string]string{"inventory": "name", "name": "inventory"}[f.Name]; other != "" && slices.Contains(given, other) {
			return
		}
		// BRINE_OUTPUT=salt is for all that can do it; brine version cannot.
		if formats, ok := f.Value.(*enum[string]); ok && f.Name == "output" && slices.Contains(output.Formats, value) && !slices.Contains(formats.values, value) {
			return
		}
		err := flags.Set(f.Name, value)
		if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = invalid(name, wrong)
		}
		if err == nil {
			err = flags.SetAnnotation(f.Name, environment, []string{name})
		}
		if err != nil {
			problems = append(problems, bundle.Problem{Message: err.Error()})
		}
	})
	return problems
}

// connection is how a command reaches the cluster: kubectl's flags.
type connection struct {
	flags *genericclioptions.ConfigFlags
	given *pflag.FlagSet
	first time.Duration // for a server that never answered
	retry time.Duration
}

// How long requests are retried: who only reads does not wait for long.
const (
	readRetry    = 20 * time.Second
	writeRetry   = time.Minute
	readContact  = 5 * time.Second
	writeContact = 20 * time.Second
)

func newConnection(cmd *cobra.Command, first, retry time.Duration) *connection {
	c := &connection{flags: genericclioptions.NewConfigFlags(true), given: cmd.Flags(), first: first}
	c.flags.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("request-timeout").Usage = "limit of one request, for example 1m30s; 0 is none (default: reads 30s without a byte, writes 75s, watches 2.5m without an event)"
	cmd.Flags().DurationVar(&c.retry, "retry-timeout", retry, fmt.Sprintf("how long one request is retried after transient errors, by default %s before the first answer; 0 does not retry", first))
	completeFlag(cmd, c, "namespace", namespaces)
	return c
}

// namespace is that of the kubeconfig's context, or of --namespace.
func (c *connection) namespace() string {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil || namespace == "" {
		return "default"
	}
	return namespace
}

func (c *connection) config() (*rest.Config, error) {
	config, err := c.flags.ToRESTConfig()
	if err = c.explainKubeconfig(config, err); err != nil {
		return nil, &coded{code: report.ExitUnreachable, err: fmt.Errorf("find the cluster: %w", err)}
	}
	return config, nil
}

// explainKubeconfig says what is missing in the files of the kubeconfig, which client-go
// takes for localhost:8080, and in which files.
func (c *connection) explainKubeconfig(config *rest.Config, err error) error {
	loader := c.flags.ToRawKubeConfigLoader()
	raw, rawErr := loader.RawConfig()
	files := loader.ConfigAccess().GetLoadingPrecedence()
	if file := loader.ConfigAccess().GetExplicitFile(); file != "" {
		files = []string{file}
	}
	asked := cmp.Or(*c.flags.Context, raw.CurrentContext)
	_, known := raw.Contexts[asked]
	missing := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	})
	names := strings.Join(files, ", ")
	switch contexts := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "); {
	case rawErr != nil && len(missing) < len(files):
		return unreadableKubeconfig(files, rawErr)
	case *c.flags.APIServer != "", err == nil && !strings.HasSuffix(config.Host, "localhost:8080"):
		return err
	case len(missing) == len(files):
		return fmt.Errorf("there is no kubeconfig %s: give --kubeconfig, or set KUBECONFIG", names)
	case len(raw.Contexts) == 0:
		return fmt.Errorf("the kubeconfig %s has no contexts: give --kubeconfig, or set KUBECONFIG", names)
	case asked == "":
		return fmt.Errorf("the kubeconfig %s has no current context: give --context (it has %s)", names, contexts)
	case !known:
		return fmt.Errorf("the kubeconfig %s has no context %q: give --context (it has %s)", names, asked, contexts)
	}
	return err
}

// unreadableKubeconfig says which of the files cannot be read, and where it is not YAML.
func unreadableKubeconfig(files []string, err error) error {
	for _, file := range files {
		_, wrong := clientcmd.LoadFromFile(file)
		if wrong == nil || errors.Is(wrong, fs.ErrNotExist) {
			continue
		}
		what := fmt.Sprintf("%s cannot be read: %v", file, wrong)
		if m := regexp.MustCompile(`yaml: line (\d+): (.*)`).FindStringSubmatch(wrong.Error()); m != nil {
			what = fmt.Sprintf("%s:%s is not YAML: %s", file, m[1], m[2])
		} else if strings.Contains(wrong.Error(), "unknown anchor") { // and quotes it: it may be a password
			what = file + " is not YAML: a value that begins with * is not in quotes"
		}
		return fmt.Errorf("the kubeconfig %s: mend it, or give another one with --kubeconfig or KUBECONFIG", what)
	}
	return err
}

func (c *connection) client(o cluster.Options) (*cluster.Client, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	o.UserAgent = "brine/" + version()
	if o.RetryFor == 0 {
		o.RetryFor, o.FirstContact = max(c.retry, time.Nanosecond), c.first // zero is a minute to cluster.Options
		if c.given.Changed("retry-timeout") {
			o.FirstContact = o.RetryFor
		}
	}
	if c.given.Changed("request-timeout") && config.Timeout == 0 {
		o.RequestTimeout = -1
	}
	if c.flags.CacheDir != nil && *c.flags.CacheDir != "" {
		o.CacheDir = filepath.Join(*c.flags.CacheDir, "http")
	}
	client, err := cluster.New(config, o)
	if err != nil {
		return nil, &coded{code: report.ExitUnreachable, err: err}
	}
	return client, nil
}
