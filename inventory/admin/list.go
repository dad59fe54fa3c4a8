// Package admin carries out the commands about inventories themselves: it lists
// them, finds orphans, repairs them, and moves members from one to another. No
// command of this package deletes a member.
package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/lock"
	"brine/inventory/store"
)

// List is all inventories of a namespace or of the cluster: the document of -o
// json, in apiVersion brine.dev/v1. Fields are added to it, never renamed.
type List struct {
	APIVersion  string   `json:"apiVersion"`
	Kind        string   `json:"kind"`
	Inventories []Listed `json:"inventories"`
	ExitCode    int      `json:"exitCode"`
}

// Listed is one inventory.
type Listed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	ID        string `json:"id"`
	Members   int    `json:"members"`
	// LastRun is when the last run that writes began.
	LastRun *time.Time `json:"lastRun,omitempty"`
	// Revision is the last one; there is none without a history.
	Revision *inventory.Revision `json:"revision,omitempty"`
	// Version is that of brine that wrote the inventory last; "" where another tool
	// did.
	Version string `json:"version"`
	Lock    *Lock  `json:"lock,omitempty"`
	// Damage is why members may be missing.
	Damage []string `json:"damage"`
	// Unknown is what could not be read.
	Unknown []string `json:"unknown"`
}

// Lock is the run that holds the lock of an inventory.
type Lock struct {
	Holder string `json:"holder"`
	// Ended: the run was killed. The next one takes the lock at once.
	Ended bool `json:"ended"`
}

const readers = 8 // parallel reads

// ListInventories lists the inventories of a namespace, or with "" of the cluster.
// Its exit code is 1 if one of them is damaged, or its lock cannot be read.
func ListInventories(ctx context.Context, c *cluster.Client, namespace, version string) (*List, error) {
	all, err := openAll(ctx, c, namespace, version)
	if err != nil {
		return nil, err
	}
	l := &List{APIVersion: "brine.dev/v1", Kind: "InventoryList", Inventories: make([]Listed, len(all))}
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, inv := range all {
		group.Go(func() error {
			l.Inventories[i] = listed(reading, c, inv)
			return context.Cause(reading)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range l.Inventories {
		if len(l.Inventories[i].Damage)+len(l.Inventories[i].Unknown) > 0 {
			l.ExitCode = report.ExitFailed
		}
	}
	return l, nil
}

func openAll(ctx context.Context, c *cluster.Client, namespace, version string) ([]*store.Inventory, error) {
	all, err := store.OpenAll(ctx, c, namespace, version)
	if namespace == "" && apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; give a namespace to list only the inventories in it", err)
	}
	return all, err
}

func listed(ctx context.Context, c *cluster.Client, inv *store.Inventory) Listed {
	l := Listed{
		Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID, Members: len(inv.Members),
		Damage: append([]string{}, inv.Damage()...), Unknown: []string{},
	}
	if own, ok := strings.CutPrefix(inv.Tool(), "brine/"); ok {
		l.Version = own
	}
	if last := inv.Last(); last.Number > 0 {
		l.Revision = &last
	}
	state, err := lock.ReadState(ctx, c, inv.Namespace, inv.Name)
	if err != nil {
		l.Unknown = append(l.Unknown, err.Error())
	}
	if !state.LastRun.IsZero() {
		l.LastRun = &state.LastRun
	}
	if state.Holder != "" {
		l.Lock = &Lock{Holder: state.Holder, Ended: state.Ended}
	}
	return l
}
