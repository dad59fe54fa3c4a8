package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/takeover"
	"brine/inventory"
	"brine/inventory/store"
)

// AdoptOptions are what a user says about an adoption.
type AdoptOptions struct {
	MoveOptions
	// Objects are to be adopted; those that do not exist are an error, or with Optional
	// reported.
	Objects  []bundle.ID
	Optional bool
	// Owners are IDs of inventories that do not exist any more, whose objects are
	// adopted, too. Those of From are moved.
	Owners []string
}

// Adopt makes members of objects that are on the cluster, and changes nothing else of
// them. Objects of other inventories and tools are refused.
func Adopt(ctx context.Context, c *cluster.Client, o AdoptOptions) (*Move, error) {
	return transfer(ctx, c, o.MoveOptions, o.batches)
}

// batches are the objects by the inventory that they are taken from. All reasons why
// one cannot be adopted are reported before the first write.
func (o AdoptOptions) batches(m *mover, ctx context.Context) ([]*batch, error) { //nolint:revive // a method of mover to transfer
	if err := o.gone(ctx, m); err != nil {
		return nil, err
	}
	free := &batch{from: inventory.FromNone, owners: map[string]bool{"": true}, live: map[bundle.ID]*unstructured.Unstructured{}}
	for _, owner := range o.Owners {
		free.owners[owner] = true
	}
	all := []*batch{free}
	for i, from := range m.From {
		source, err := store.Load(ctx, m.client, from.Namespace, from.Name, from.ID, m.Version)
		if err != nil {
			return nil, err
		}
		m.move.From[i].ID = source.ID
		if !source.Exists() {
			free.owners[source.ID] = true
			continue
		}
		all = append(all, &batch{source: source, from: nameOf(source), owners: map[string]bool{source.ID: true}, live: map[bundle.ID]*unstructured.Unstructured{}})
	}
	var wrong []error
	for _, id := range o.Objects {
		live, err := m.client.Find(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", bundle.Name(id), err)
		}
		if err := o.take(m, all, id, live); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", bundle.Name(id), err))
		}
	}
	if len(wrong) > 0 {
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: wrong}
	}
	return all, nil
}

// gone makes sure that the inventories of Owners do not exist: one that does has to be
// locked, and is named in From.
func (o AdoptOptions) gone(ctx context.Context, m *mover) error {
	if len(o.Owners) == 0 {
		return nil
	}
	all, err := store.OpenAll(ctx, m.client, "", m.Version)
	if err != nil {
		return fmt.Errorf("make sure that there is no inventory %s: %w", strings.Join(o.Owners, ", "), err)
	}
	for _, inv := range all {
		if slices.Contains(o.Owners, inv.ID) && inv.ID != m.to.ID {
			return refused("the inventory with id %q exists: use %s=%s", inv.ID, remedy.FromInventory, nameOf(inv))
		}
	}
	return nil
}

// take adds an object to the batch that it belongs to. The error is why it cannot be
// adopted.
func (o AdoptOptions) take(m *mover, all []*batch, id bundle.ID, live *unstructured.Unstructured) error {
	if what := inventory.Auxiliary(m.to.Namespace, m.to.Name, id); what != "" {
		return fmt.Errorf("it is %s (%s)", what, nameOf(m.to))
	}
	if live == nil && o.Optional {
		m.move.NotMoved = append(m.move.NotMoved, objectOf(id, "it does not exist"))
		return nil
	}
	if live == nil {
		return errors.New("it does not exist")
	}
	owner, controller := live.GetAnnotations()[inventory.OwningInventory], metav1.GetControllerOf(live)
	switch tool := takeover.ToolOf(live); {
	case inventory.PartOfInventory(live) != "":
		return fmt.Errorf("it is a part of inventory %q itself", inventory.PartOfInventory(live))
	case live.GetDeletionTimestamp() != nil:
		return errors.New("it is Terminating")
	case controller != nil:
		return fmt.Errorf("it is controlled by %s %s", controller.Kind, controller.Name)
	case owner != m.to.ID && tool.Text != "":
		return fmt.Errorf("it belongs to %s, which may change or delete what it owns: remove its labels and annotations there first", tool.Text)
	}
	// Also what an interrupted command has taken already.
	own := owner == m.to.ID
	for _, b := range slices.Backward(all) {
		if b.owners[owner] || own && (b.source == nil || b.holds(id)) {
			b.ids, b.live[id] = append(b.ids, id), live
			return nil
		}
	}
	return fmt.Errorf("it belongs to inventory %q: %s, with that id or with NAMESPACE/NAME of the inventory, adopts it", owner, remedy.FromInventory)
}

func (b *batch) holds(id bundle.ID) bool {
	_, ok := b.source.Members[id]
	return ok
}
