package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/lock"
	"brine/inventory/store"
)

// Members move from inventories to another one.

// MoveOptions are what a user says about moving members between inventories.
type MoveOptions struct {
	From []report.Inventory
	To   report.Inventory
	// ToUID is Source.UID of To; "" if it may be any inventory of its name.
	ToUID types.UID
	// Select chooses members; nil takes all.
	Select func(bundle.ID) bool
	// Origins, if not nil, are those that the chosen members had when they were chosen. What has another one by
	// now stays: a run has applied it since.
	Origins map[bundle.ID]inventory.Origin
	// Remove deletes inventories of From that have no members left.
	Remove bool
	// Rename copies the history and the key, too. There is one in From.
	Rename      bool
	Version     string // brine's
	DryRun      bool
	LockTimeout time.Duration
	Report      func(message string) // of what is waited for
}

// Move is what a move came to: the document of -o json, in apiVersion brine.dev/v1.
// Fields are added to it, never renamed.
type Move struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	From       []report.Inventory `json:"from"`
	To         report.Inventory   `json:"to"`
	DryRun     bool               `json:"dryRun"`
	// Moved are members of To now.
	Moved []Object `json:"moved"`
	// NotMoved stay what they were.
	NotMoved []Object `json:"notMoved"`
	// Removed are the inventories that were deleted, because they had no members left.
	Removed  []report.Inventory `json:"removed"`
	ExitCode int                `json:"exitCode"`
}

// mover moves members to one inventory. Its writes come in this order, and a
// repeated command goes on where a killed one ended:
//
//  1. The source records that the move begins: no run of it deletes the members.
//  2. The target lists the members: a superset is harmless.
//  3. The ownership metadata of the objects changes.
//  4. The source forgets the members.
type mover struct {
	MoveOptions
	client *cluster.Client
	to     *store.Inventory
	move   *Move

	mu sync.Mutex // of move.NotMoved
}

type batch struct {
	// source is nil for objects that are in no inventory.
	source *store.Inventory
	from   string // Origin.BroughtFrom of what it brings
	// owners are the annotations that the objects may have, besides the target's.
	owners map[string]bool
	ids    []bundle.ID
	live   map[bundle.ID]*unstructured.Unstructured
	// dropped are members of a source that is to be removed, and are not its own.
	dropped []bundle.ID
}

// removable says whether nothing is left of the source after the move.
func (b *batch) removable() bool {
	return b.source != nil && len(b.source.Members) == len(b.ids)+len(b.dropped)
}

const takeTries = 10 // how often another run may be first

// MoveMembers moves members of inventories to another one. It deletes no member.
func MoveMembers(ctx context.Context, c *cluster.Client, o MoveOptions) (*Move, error) {
	return transfer(ctx, c, o, (*mover).batches)
}

// transfer moves what prepare finds. An error of prepare ends it before the first
// write.
func transfer(ctx context.Context, c *cluster.Client, o MoveOptions, prepare func(*mover, context.Context) ([]*batch, error)) (*Move, error) {
	var sources []report.Inventory // each once: what one read of it forgets, another would write again
	for _, from := range o.From {
		if from.Namespace == o.To.Namespace && from.Name == o.To.Name { // it would forget what it receives
			return nil, refused("inventory %s/%s cannot be moved to itself", from.Namespace, from.Name)
		}
		if !slices.Contains(sources, from) {
			sources = append(sources, from)
		}
	}
	o.From = sources
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		m := &mover{MoveOptions: o, client: c, move: &Move{
			APIVersion: "brine.dev/v1", Kind: "Move", From: o.From, To: o.To, DryRun: o.DryRun, Moved: []Object{}, NotMoved: []Object{}, Removed: []report.Inventory{},
		}}
		err := m.attempt(ctx, prepare)
		if errors.Is(err, lock.ErrTaken) && try < takeTries {
			continue
		}
		return m.move, err
	}
}

func (m *mover) attempt(ctx context.Context, prepare func(*mover, context.Context) ([]*batch, error)) error {
	var locks lock.Locks
	if !m.DryRun {
		names := [][2]string{{m.To.Namespace, m.To.Name}}
		for _, from := range m.From {
			names = append(names, [2]string{from.Namespace, from.Name})
		}
		var err error
		if locks, err = lock.AwaitAll(ctx, m.client, names, lock.Wait{Until: time.Now().Add(m.LockTimeout), Report: m.Report}); err != nil {
			return err
		}
	}
	var err error
	if m.to, err = store.Load(ctx, m.client, m.To.Namespace, m.To.Name, m.To.ID, m.Version); err != nil {
		return err
	}
	if m.ToUID != "" && m.to.Source().UID != m.ToUID {
		return refused("inventory %s was renamed or deleted meanwhile", nameOf(m.to))
	}
	m.move.To.ID = m.to.ID
	batches, err := prepare(m, ctx)
	if err == nil {
		err = m.forgetNone(ctx, batches)
	}
	if err != nil {
		return err
	}
	if m.DryRun {
		m.report(batches)
		for _, b := range batches {
			if m.Remove && b.removable() {
				m.removed(b.source)
			}
		}
		return nil
	}
	held, err := locks.Take(ctx)
	if err = noNamespace(err); err == nil {
		err = m.carryOut(held, batches)
		if cause := context.Cause(held); errors.Is(cause, lock.ErrLost) {
			err = cause
		}
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return errors.Join(err, locks.Release(release, func(l *lock.Lock) bool {
		if l.IsOf(m.to.Namespace, m.to.Name) {
			return !m.to.Exists()
		}
		return !slices.ContainsFunc(batches, func(b *batch) bool {
			return b.source != nil && l.IsOf(b.source.Namespace, b.source.Name) && b.source.Exists()
		})
	}))
}

// forgetNone is the error of an inventory that is to be written, and does not list all that belongs
// to it: see store.Inventory.Forgets.
func (m *mover) forgetNone(ctx context.Context, batches []*batch) error {
	all := []*store.Inventory{m.to}
	for _, b := range batches {
		if b.source != nil {
			all = append(all, b.source)
		}
	}
	for _, inv := range all {
		if err := inv.Forgets(ctx, nil, true); err != nil {
			return err
		}
	}
	return nil
}

func refused(format string, args ...any) error {
	return &report.Stop{Code: report.ExitBadBundle, Errors: []error{fmt.Errorf(format, args...)}}
}

func nameOf(inv *store.Inventory) string { return inv.Namespace + "/" + inv.Name }

// batches are the members that are chosen of each source.
func (m *mover) batches(ctx context.Context) ([]*batch, error) {
	if m.Remove && !m.Rename && !m.to.Exists() && !m.to.OnlyAuxiliary() {
		from, to := m.From[0].Namespace+"/"+m.From[0].Name, nameOf(m.to)
		return nil, refused("there is no inventory %s, nothing was moved: to give an inventory this name, use %s; then others can be merged into it", to, m.client.Commands().Rename(from, to))
	}
	var all []*batch
	chosen := 0
	for i, from := range m.From {
		source, err := store.Load(ctx, m.client, from.Namespace, from.Name, from.ID, m.Version)
		if err != nil {
			return nil, err
		}
		m.move.From[i].ID = source.ID
		b := &batch{source: source, from: nameOf(source), owners: map[string]bool{source.ID: true}}
		if !source.Exists() && !m.repeated(b.from) {
			return nil, refused("there is no inventory %s", b.from)
		}
		for id := range source.Members {
			if (m.Select == nil || m.Select(id)) && (m.Origins == nil || m.Origins[id].Equal(source.Origins[id])) {
				b.ids = append(b.ids, id)
			}
		}
		slices.SortFunc(b.ids, bundle.CompareIDs)
		if m.Rename {
			if err := m.to.Rename(ctx, source); err != nil {
				return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
			}
		}
		chosen += len(b.ids)
		if err := m.read(ctx, b); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	if chosen == 0 && m.Select != nil && m.Origins == nil && !slices.ContainsFunc(all, func(b *batch) bool { return m.repeated(b.from) }) {
		return nil, refused("no member of inventory %s is chosen: %s lists its members", all[0].from, m.client.Commands().Status(all[0].from))
	}
	return all, nil
}

// repeated says whether an earlier command has moved members from there already.
func (m *mover) repeated(from string) bool {
	if m.to.RenamedFrom() == from {
		return true
	}
	for id, origin := range m.to.Origins {
		if origin.BroughtFrom == from && (m.Select == nil || m.Select(id)) {
			return true
		}
	}
	return false
}

// read reads the objects of a batch, and leaves out those that belong to others.
func (m *mover) read(ctx context.Context, b *batch) error {
	for _, id := range b.ids {
		if what := inventory.Auxiliary(m.to.Namespace, m.to.Name, id); what != "" {
			return refused("%s is %s (%s): it cannot be its member", bundle.Name(id), what, nameOf(m.to))
		}
	}
	view, err := m.client.Snapshot(ctx, b.ids, nil, nil, b.source.Selector())
	if err != nil {
		return err
	}
	if len(view.Unknown) > 0 {
		id := bundle.SortedIDs(view.Unknown)[0]
		return fmt.Errorf("%s cannot be read, nothing was moved: %w", bundle.Name(id), view.Unknown[id])
	}
	b.live = view.Live
	b.ids = slices.DeleteFunc(b.ids, func(id bundle.ID) bool {
		live := b.live[id]
		if live == nil || live.GetAnnotations()[inventory.OwningInventory] == m.to.ID {
			return false
		}
		why := b.refusal(live)
		switch {
		case why != "" && m.Remove:
			b.dropped = append(b.dropped, id)
			m.move.NotMoved = append(m.move.NotMoved, objectOf(id, why))
		case why != "":
			m.notMoved(id, why)
		}
		return why != ""
	})
	return nil
}

// refusal says why an object may not get another owner.
func (b *batch) refusal(live *unstructured.Unstructured) string {
	switch owner := live.GetAnnotations()[inventory.OwningInventory]; {
	case b.owners[owner]:
		return ""
	case owner == "":
		return "it has no annotation " + inventory.OwningInventory
	default:
		return fmt.Sprintf("it belongs to inventory %q", owner)
	}
}

func (m *mover) notMoved(id bundle.ID, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.move.NotMoved = append(m.move.NotMoved, objectOf(id, why))
	m.move.ExitCode = report.ExitFailed
}

func (m *mover) report(batches []*batch) {
	for _, b := range batches {
		for _, id := range b.ids {
			m.move.Moved = append(m.move.Moved, objectOf(id, ""))
		}
	}
}

func (m *mover) carryOut(ctx context.Context, batches []*batch) error {
	for _, b := range batches {
		if err := m.one(ctx, b); err != nil {
			return fmt.Errorf("the move is not complete, repeat the command: %w", err)
		}
	}
	m.report(batches)
	return nil
}

func (m *mover) one(ctx context.Context, b *batch) error {
	there := b.source != nil && b.source.Exists() // else it was removed before
	if there {
		if err := b.source.BeginMove(ctx, b.ids, nameOf(m.to)); err != nil {
			return err
		}
		if m.Rename {
			if err := m.to.CopyHistory(ctx, b.source); err != nil {
				return err
			}
		}
	}
	news := slices.DeleteFunc(slices.Clone(b.ids), func(id bundle.ID) bool {
		status, member := m.to.Members[id] // one that was about to leave, and returns, is new
		return member && status.MovingTo == "" && (b.live[id] == nil || b.live[id].GetAnnotations()[inventory.OwningInventory] == m.to.ID)
	})
	if err := m.to.Receive(ctx, news, m.origins(b, news)); err != nil {
		return err
	}
	if err := m.keepCompleted(ctx, b); err != nil {
		return err
	}
	stay, err := m.own(ctx, b)
	if err != nil {
		return err // what is half done, the next command ends
	}
	if len(stay) > 0 {
		if err := m.stay(ctx, b, stay, news); err != nil {
			return err
		}
	}
	remove := m.Remove && b.removable()
	if there {
		if err := b.source.Forget(ctx, slices.Concat(b.ids, b.dropped)); err != nil {
			return err
		}
	}
	if !remove {
		return nil
	}
	m.removed(b.source)
	return b.source.Delete(ctx)
}

// origins are those of new members in the target.
func (m *mover) origins(b *batch, ids []bundle.ID) map[bundle.ID]inventory.Origin {
	origins := map[bundle.ID]inventory.Origin{}
	for _, id := range ids {
		live := b.live[id]
		if live != nil && m.to.OriginOf(id, live).How != inventory.Unknown {
			origins[id] = m.to.OriginOf(id, live) // it was there all the time
			continue
		}
		switch {
		case live == nil: // what comes under that name is not there yet
		case b.source == nil:
			origins[id] = inventory.Origin{How: inventory.Adopted}.Of(live.GetUID())
		case m.Rename:
			origins[id] = b.source.OriginOf(id, live).Of(live.GetUID())
		default:
			origins[id] = b.source.OriginOf(id, live).Of(live.GetUID()).MovedTo(m.to.Source(), b.source.Source())
		}
		origin, was := origins[id], inventory.Origin{}
		if live != nil && b.source != nil {
			was = b.source.OriginOf(id, live)
		}
		origin.BroughtFrom = b.from
		if was.BroughtFrom == inventory.ToGiveBack && origin.How == inventory.Moved && !was.IsFrom(m.to.Source()) && was.From != nameOf(m.to) {
			origin = was // it still has to go back, and is not back
		}
		origins[id] = origin
	}
	return origins
}

func (m *mover) removed(inv *store.Inventory) {
	m.move.Removed = append(m.move.Removed, report.Inventory{Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID})
}

// stay takes objects back whose owner could not be changed. The target keeps those that it had before.
func (m *mover) stay(ctx context.Context, b *batch, ids, news []bundle.ID) error {
	b.ids = slices.DeleteFunc(b.ids, func(id bundle.ID) bool { return slices.Contains(ids, id) })
	received := bundle.Where(ids, func(id bundle.ID) bool { return slices.Contains(news, id) })
	if err := m.to.Forget(ctx, received); err != nil || b.source == nil {
		return err
	}
	return b.source.BeginMove(ctx, ids, "")
}

// keepCompleted takes along the memory of Jobs that completed: without it they would
// run again.
func (m *mover) keepCompleted(ctx context.Context, b *batch) error {
	if b.source == nil {
		return nil
	}
	fingerprints := maps.Clone(m.to.Fingerprints)
	for _, id := range b.ids {
		if was := b.source.Fingerprints[id]; was.Completed != "" {
			fingerprints[id] = inventory.Fingerprint{Completed: was.Completed, CompletedIn: was.CompletedIn}
		}
	}
	return m.to.SaveFingerprints(ctx, fingerprints)
}

// own changes the owner of the objects of a batch, several at a time. It returns
// those that could not be changed.
func (m *mover) own(ctx context.Context, b *batch) (stay []bundle.ID, err error) {
	var mu sync.Mutex
	err = bundle.AtOnce(ctx, readers, b.ids, func(ctx context.Context, id bundle.ID) error {
		live := b.live[id]
		if live == nil {
			return nil // it is a member that does not exist
		}
		if err := m.ownOne(ctx, b, id, live); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if _, unknown := errors.AsType[*unknownOwner](err); unknown {
				return fmt.Errorf("%s: %w. It is a member of both inventories until this command is repeated", bundle.Name(id), err)
			}
			m.notMoved(id, err.Error())
			mu.Lock()
			stay = append(stay, id)
			mu.Unlock()
		}
		return nil
	})
	return stay, err
}
