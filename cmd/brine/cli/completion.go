package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/cluster"
	"brine/cmd/brine/output/wording"
	"brine/cmd/brine/values"
	"brine/inventory"
	"brine/inventory/store"
)

// completionTimeout bounds how long a shell waits for the cluster.
const completionTimeout = 3 * time.Second

// completeFlag completes a flag with what list reads from the cluster.
func completeFlag(cmd *cobra.Command, conn *connection, flag string, list func(context.Context, *cluster.Client) ([]string, error)) {
	_ = cmd.RegisterFlagCompletionFunc(flag, fromCluster(conn, list))
}

// fromCluster completes words that list reads from the cluster. It offers none
// if the cluster does not answer.
func fromCluster(conn *connection, list func(context.Context, *cluster.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp
		if len(values.SetFromEnvironment(cmd.Flags())) > 0 || len(args) > 0 {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		client, err := conn.client(cluster.Options{RetryFor: time.Nanosecond})
		if err != nil || client.Discover(ctx) != nil {
			return nil, directive
		}
		words, err := list(ctx, client)
		if err != nil {
			return nil, directive
		}
		// The last word of a list that is separated by commas.
		before := typed[:strings.LastIndex(typed, ",")+1]
		for i := range words {
			words[i] = before + words[i]
		}
		return words, directive
	}
}

func namespaces(ctx context.Context, c *cluster.Client) ([]string, error) {
	return namesOf(ctx, c, "Namespace", "", "")
}

// inventories are those of all namespaces, as NAMESPACE/NAME.
func inventories(ctx context.Context, c *cluster.Client) ([]string, error) {
	return namesOf(ctx, c, "ConfigMap", "", inventory.Label)
}

// inventoryNames are the inventories of the kubeconfig's namespace.
func (p *place) inventoryNames(ctx context.Context, c *cluster.Client) ([]string, error) {
	return namesOf(ctx, c, "ConfigMap", p.conn.Namespace(), inventory.Label)
}

// namesOf are the objects of a core kind: NAME, or NAMESPACE/NAME where all
// namespaces are read.
func namesOf(ctx context.Context, c *cluster.Client, kind, namespace, selector string) ([]string, error) {
	r, err := c.Any(schema.GroupKind{Kind: kind})
	if err != nil {
		return nil, err
	}
	objects, err := c.ListMetadata(ctx, r, namespace, selector)
	var names []string
	for i := range objects {
		name := objects[i].Name
		if r.Namespaced && namespace == "" {
			name = objects[i].Namespace + "/" + name
		}
		names = append(names, name)
	}
	return names, err
}

// kinds are those whose objects can be deleted and created again.
func kinds(_ context.Context, c *cluster.Client) ([]string, error) {
	var names []string
	all, _ := c.Listable()
	for _, r := range all {
		if r.Can("delete") && r.Can("create") {
			names = append(names, r.GVK.GroupKind().String())
		}
	}
	slices.Sort(names)
	return names, nil
}

// revisions are those of the inventory that the flags name.
func (p *place) revisions(ctx context.Context, c *cluster.Client) ([]string, error) {
	where, err := p.where("")
	if err != nil {
		return nil, err
	}
	inv, err := store.Load(ctx, c, where.Namespace, where.Name, where.ID, version())
	if err != nil {
		return nil, err
	}
	past, err := inv.Past(ctx)
	var words []string
	for _, h := range past.Saved() {
		about := fmt.Sprintf("%s, %s, %d objects", h.Time.Format(time.RFC3339), wording.Line(h.Result), h.Objects)
		words = append(words, cobra.CompletionWithDesc(strconv.Itoa(h.Number), about))
	}
	return words, err
}
