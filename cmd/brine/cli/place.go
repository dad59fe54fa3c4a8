package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// Which inventory a command is about, on which cluster, and how it is read.

// place are the options that say which inventory a command is about, and on
// which cluster.
type place struct {
	inventory, name, id string
	// sole: where none is named, the only inventory of the cluster is meant. A command
	// that writes never guesses.
	sole bool
	conn *connection
}

// flags adds them; byDefault is the name without --name.
func (p *place) flags(cmd *cobra.Command, byDefault string, first, retry time.Duration) {
	f := cmd.Flags()
	if byDefault == "" {
		f.StringVar(&p.inventory, "inventory", "", "NAMESPACE/NAME of the inventory")
		f.StringVar(&p.name, "name", "", "name of the inventory, in the kubeconfig's namespace")
	} else {
		f.StringVar(&p.inventory, "inventory", "", "NAMESPACE/NAME of the inventory (default: --name in the kubeconfig's namespace)")
		f.StringVar(&p.name, "name", "", "name of the inventory (default: "+byDefault+")")
	}
	p.conn = newConnection(cmd, first, retry)
	completeFlag(cmd, p.conn, "inventory", inventories)
	completeFlag(cmd, p.conn, "name", p.inventoryNames)
}

// argument lets the command take the inventory as its argument, which is --inventory.
func (p *place) argument(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case len(args) > 1:
			return fmt.Errorf("%s takes one inventory, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " "))
		case p.given():
			return fmt.Errorf("the inventory is %s, and --inventory or --name: give only one of them", args[0])
		}
		return cmd.Flags().Set("inventory", args[0]) // as given, before the environment is looked at
	}
	cmd.ValidArgsFunction = fromCluster(p.conn, inventories)
}

func (p *place) idFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.id, "inventory-id", "", "the inventory must have this id (label cli-utils.sigs.k8s.io/inventory-id)")
}

// given says whether the flags name an inventory.
func (p *place) given() bool { return p.inventory != "" || p.name != "" }

var errNoName = errors.New("the inventory has no name: give --inventory NAMESPACE/NAME, or --name (see " + remedy.HelpNoName + ")")

var unnamable = regexp.MustCompile(`[^a-z0-9.-]+`)

// where is the inventory: --inventory, or --name or the bundle's file name in
// the kubeconfig's namespace. file is empty where there is no bundle.
func (p *place) where(file string) (report.Inventory, error) {
	inv := report.Inventory{ID: p.id}
	if p.inventory != "" && p.name != "" {
		return inv, fmt.Errorf("--inventory=%s and --name=%s: give only one of them", p.inventory, p.name)
	}
	if p.inventory != "" {
		namespace, name, ok := strings.Cut(p.inventory, "/")
		if !ok {
			namespace, name = p.conn.Namespace(), p.inventory
		}
		inv.Namespace, inv.Name = namespace, name
		return inv, nil
	}
	inv.Namespace, inv.Name = p.conn.Namespace(), p.name
	if path, named := namedFile(file); inv.Name == "" && named {
		base := filepath.Base(path)
		inv.Name = strings.Trim(unnamable.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "-"), "-.")
	}
	if inv.Name == "" {
		return inv, errNoName
	}
	return inv, nil
}

// namedFile is the path of a file or folder whose name says what it is: not standard input, nor
// what a shell puts in its place (<(salt-call …) is /dev/fd/63).
func namedFile(file string) (string, bool) {
	path, err := filepath.Abs(file)
	if err != nil {
		path = file
	}
	info, err := os.Stat(path)
	return path, file != "" && file != "-" && !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/proc/") && (err != nil || info.Mode().IsRegular() || info.IsDir())
}

// reach finds the inventory, and a client.
func (p *place) reach(ctx context.Context, s Streams, o cluster.Options) (report.Inventory, *cluster.Client, error) {
	where, err := p.where("")
	unnamed := errors.Is(err, errNoName) && p.sole
	if err != nil && !unnamed {
		return where, nil, err
	}
	client, noClient := p.client(s, o)
	switch {
	case noClient != nil && unnamed:
		return where, nil, err
	case noClient == nil && unnamed:
		where, err = p.only(ctx, s, client)
		return where, client, err
	}
	return where, client, noClient
}

// only is the inventory that is the only one: of the cluster, or of the namespace that
// was given.
func (p *place) only(ctx context.Context, s Streams, c *cluster.Client) (report.Inventory, error) {
	inv := report.Inventory{ID: p.id}
	namespace, of := p.conn.GivenNamespace(), "cluster"
	if namespace != "" {
		of = "namespace " + namespace
	}
	if err := c.Discover(ctx); err != nil {
		return inv, failed(err)
	}
	names, err := namesOf(ctx, c, "ConfigMap", namespace, inventory.Label)
	switch {
	case apierrors.IsForbidden(err):
		return inv, errNoName
	case err != nil:
		return inv, failed(err)
	case len(names) == 0:
		return inv, fmt.Errorf("there is no inventory in the %s", of)
	case len(names) > 1:
		return inv, fmt.Errorf("%w; the %s has %s", errNoName, of, bundle.Some(names, 10))
	}
	if namespace != "" {
		names[0] = namespace + "/" + names[0]
	}
	inv.Namespace, inv.Name, _ = strings.Cut(names[0], "/")
	s.warn(fmt.Sprintf("inventory %s, the only one of the %s", names[0], of))
	return inv, nil
}

// client reports on stderr, once a reason, that it retries: a server that does not
// answer would look like a hang.
func (p *place) client(s Streams, o cluster.Options) (*cluster.Client, error) {
	client, err := p.conn.client(o)
	if err != nil {
		return nil, err
	}
	var reported sync.Map
	var secrets report.Secrets // an answer may quote one
	client.OnSecret(secrets.Read)
	client.OnRetry(func(_ context.Context, err error, _ int) {
		if _, before := reported.LoadOrStore(err.Error(), true); !before {
			s.warn("retrying: " + secrets.Text(err.Error()))
		}
	})
	return client, nil
}

// open reads the inventory, which has to be there.
func (p *place) open(ctx context.Context, s Streams, o cluster.Options) (*store.Inventory, *cluster.Client, error) {
	where, client, err := p.reach(ctx, s, o)
	if err != nil {
		return nil, nil, err
	}
	inv, err := store.Load(ctx, client, where.Namespace, where.Name, where.ID, version())
	if err != nil {
		return nil, nil, failed(err)
	}
	if !inv.Exists() {
		return nil, nil, fmt.Errorf("there is no inventory %s/%s", where.Namespace, where.Name)
	}
	return inv, client, nil
}

// placeOf is where an inventory is.
func placeOf(inv *store.Inventory) report.Inventory {
	return report.Inventory{Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID}
}

// inspectOptions are those of the commands that only read an inventory: status
// and history.
type inspectOptions struct {
	place
	format string
}

// flags are those of a command that only reads: without a name, the only inventory is it.
func (o *inspectOptions) flags(cmd *cobra.Command, retry time.Duration) {
	o.place.flags(cmd, "", readContact, retry)
	o.sole = true
}

// readingCommand gives a command that only reads its flags and its argument.
func readingCommand(cmd *cobra.Command, show func(context.Context, *inspectOptions) error) *cobra.Command {
	o := &inspectOptions{}
	o.flags(cmd, readRetry)
	o.argument(cmd)
	outputFlag(cmd, &o.format, "text or json", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), o) }
	return cmd
}
