// Package connect finds the cluster as kubectl does, by the same flags and files, and says which
// of them is wrong.
package connect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"brine/bundle/cluster"
	"brine/bundle/remedy"
)

// Flags are kubectl's, and how long requests are retried.
type Flags struct {
	flags *genericclioptions.ConfigFlags
	given *pflag.FlagSet
	first time.Duration // for a server that never answered
	retry time.Duration
}

// Add adds them to a command; first is how long a server is asked that never answered.
func Add(flags *pflag.FlagSet, first, retry time.Duration) *Flags {
	c := &Flags{flags: genericclioptions.NewConfigFlags(true), given: flags, first: first}
	c.flags.AddFlags(flags)
	flags.Lookup("request-timeout").Usage = "limit of one request, for example 1m30s; 0 is none (default: reads 30s without a byte, writes 75s, watches 2.5m without an event)"
	flags.DurationVar(&c.retry, "retry-timeout", retry, fmt.Sprintf("how long one request is retried after transient errors, by default %s before the first answer; 0 does not retry", first))
	return c
}

// GivenNamespace is that of --namespace, or "".
func (c *Flags) GivenNamespace() string { return *c.flags.Namespace }

// Namespace is that of the kubeconfig's context, or of --namespace.
func (c *Flags) Namespace() string {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil || namespace == "" {
		return "default"
	}
	return namespace
}

// explainKubeconfig says what is missing in the files of the kubeconfig, which client-go
// takes for localhost:8080, and in which files.
func (c *Flags) explainKubeconfig(config *rest.Config, err error) error {
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

// Client is a client of the cluster.
func (c *Flags) Client(o cluster.Options) (*cluster.Client, error) {
	config, err := c.flags.ToRESTConfig()
	if err = c.explainKubeconfig(config, err); err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
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
	o.Commands = c.commands()
	return cluster.New(config, o)
}

// commands are for the same cluster, which flags chose.
func (c *Flags) commands() remedy.Commands {
	var given []string
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "server", "certificate-authority", "tls-server-name", "insecure-skip-tls-verify", "as"} {
		if f := c.given.Lookup(name); f.Changed {
			given = append(given, remedy.Flag(name)+"="+f.Value.String())
		}
	}
	return remedy.ForCluster(given...)
}
