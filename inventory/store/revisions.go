package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Revisions as Secrets: saved, read, trimmed.

const (
	revisionHead = "brine.dev/last-revision" // annotation of the inventory object: the same, of the last one
	begunKey     = "brine.dev/begun"         // the same, of an apply of which no revision says how it ended
	revisionKey  = "bundle.json.zst"
	revisionSum  = "sha256" // in the first part: the checksum of all parts
	// revisionBytes of compressed bundle go into one Secret (1 MiB is the limit).
	revisionBytes = 900 << 10
)

// Last is the inventory's last revision; its Number is 0 if there is none.
func (inv *Inventory) Last() inventory.Revision { return inv.said(revisionHead) }

// LastSaved is the last revision, also where somebody deleted the inventory object, or what it says.
func (inv *Inventory) LastSaved(ctx context.Context) (inventory.Revision, error) {
	last := inv.Last()
	if last.Number > 0 {
		return last, nil
	}
	past, err := inv.Past(ctx)
	if history := past.Saved(); len(history) > 0 {
		last = history[0]
	}
	return last, err
}

// LoadLastSaved reads what that revision keeps, or the one that a rollback went back to since; 0 and nil
// if there is none.
func (inv *Inventory) LoadLastSaved(ctx context.Context) (int, *inventory.Content, error) {
	if err := inv.ReadTraces(ctx); err != nil {
		return 0, nil, err
	}
	last, err := inv.LastSaved(ctx)
	if err != nil || last.Number == 0 {
		return 0, nil, err
	}
	number := cmp.Or(inv.past().LeftBack(), last.Number)
	content, err := inv.LoadRevision(ctx, number)
	return number, content, err
}

// Latest is what the inventory object says of its last runs.
func (inv *Inventory) Latest() inventory.Latest {
	return inventory.Latest{Last: inv.Last(), Begun: inv.Begun()}
}

// Begun is the apply that wrote objects, and of which no revision says how it ended: without
// it a rollback would undo the apply before. Its Number is 0 if there is none.
func (inv *Inventory) Begun() inventory.Revision { return inv.said(begunKey) }

// Unfinished is the apply that had begun before this run, and of which no revision says how it
// ended.
func (inv *Inventory) Unfinished() inventory.Revision {
	if inv.replaced != nil {
		return *inv.replaced
	}
	return inv.Begun()
}

func (inv *Inventory) said(key string) inventory.Revision {
	var r inventory.Revision
	if inv.object != nil {
		_ = json.Unmarshal([]byte(inv.object.GetAnnotations()[key]), &r)
	}
	return r
}

// Begin makes the next write of the inventory object say that an apply has begun.
func (inv *Inventory) Begin(r inventory.Revision) {
	inv.replaced, inv.begun = new(inv.Begun()), r.Encode()
}

// NotKept makes the next write of the inventory object say that the apply that has begun has
// ended, and that no revision is kept of it.
func (inv *Inventory) NotKept() {
	if r := inv.Begun(); r.Number > 0 {
		r.Result = inventory.NotKept
		inv.Begin(r)
	}
}

// SaveRevision keeps the bundle as a new revision, unless it is the last one
// again with the same result, and nothing was adopted. The object names it with its next write, in Finish: so a revision that was cut
// short is overwritten by the next.
func (inv *Inventory) SaveRevision(ctx context.Context, r inventory.Revision, c *inventory.Content) (inventory.Revision, error) {
	last, err := inv.LastSaved(ctx)
	if err != nil {
		return last, err
	}
	begun, ends := inv.Unfinished(), r.Command != inventory.Rollback // which undoes what began, however often it is repeated
	if last.Says(r, begun) && !r.Adopts(c) && inv.past().LeftBack() == 0 && !inv.Misses(last.Number) {
		if inv.ended = r.Ends() || ends && begun.Number == 0; ends && !inv.ended {
			inv.Begin(begun) // again, where this partial run had begun, too
		}
		inv.lastRevision = last.Encode()
		return last, nil
	}
	if err := inv.ReadHistory(ctx); err != nil && (ends || !apierrors.IsForbidden(err)) { // a rollback is kept without: the next one would undo something else
		return last, err
	}
	if err := inv.refuseSuperseded(ctx); err != nil {
		return last, fmt.Errorf("save revision: %w", err)
	}
	if ends {
		r.RollbackTo = inv.past().LeftBack() // of the revision that is overwritten
	}
	inv.read = readRevisions{}
	r.Number, r.Format, r.Since = last.Number+1, inventory.Format, inventory.KnownSince
	if !ends {
		r.Number, r.Undid = max(r.Number, begun.Number+1), begun.Number
	}
	packed, sum, err := c.Encode()
	if err != nil {
		return r, fmt.Errorf("save revision %d: %w", r.Number, err)
	}
	parts := slices.Collect(slices.Chunk(packed, revisionBytes))
	r.Parts = len(parts)
	for i, part := range slices.Backward(parts) { // the first part, which names the others, comes last
		if err := inv.writePart(ctx, r, i, part, sum); err != nil {
			return r, fmt.Errorf("save revision %d: %w", r.Number, err)
		}
	}
	inv.ended, inv.lastRevision = ends, r.Encode()
	return r, nil
}

func (inv *Inventory) writePart(ctx context.Context, r inventory.Revision, i int, part []byte, sum string) error {
	data := map[string]any{revisionKey: base64.StdEncoding.EncodeToString(part)}
	if i == 0 {
		data[revisionSum] = base64.StdEncoding.EncodeToString([]byte(sum))
	}
	id := bundle.ID{Namespace: inv.Namespace, Name: inventory.RevisionName(inv.Name, r.Number, i), GroupKind: bundle.SecretKind}
	u := bundle.V1(id, map[string]any{"type": "brine.dev/revision", "immutable": false, "data": data})
	u.SetLabels(map[string]string{inventory.AuxiliaryLabel: inv.ID, inventory.RevisionLabel: strconv.Itoa(r.Number)})
	if i == 0 {
		u.SetAnnotations(map[string]string{inventory.RevisionInfo: r.Encode()})
	}
	return inv.putPart(ctx, u)
}

// putPart writes a part of a revision, or a plan; over one that is there already, as a run
// leaves it that was cut short, and over nothing that is not the inventory's.
func (inv *Inventory) putPart(ctx context.Context, u *unstructured.Unstructured) error {
	id := bundle.ID{Namespace: u.GetNamespace(), Name: u.GetName(), GroupKind: bundle.SecretKind}
	body, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var live *unstructured.Unstructured
	for try := 1; ; try++ {
		_, _, err := inv.client.Apply(ctx, cluster.Secrets, id, body, cluster.Write{Live: live, Force: true})
		switch {
		case err == nil:
			return nil
		case !answers.Overtaken(err) || try == removeTries:
			return fmt.Errorf("%s: %w", bundle.Name(id), err)
		}
		if live, err = inv.client.Get(ctx, cluster.Secrets, id); err != nil {
			return fmt.Errorf("%s: %w", bundle.Name(id), err)
		}
		if err := inv.refuseForeign(id, live); err != nil {
			return err
		}
	}
}

// Trim deletes the revisions that a limit does not keep, except one.
func (inv *Inventory) Trim(ctx context.Context, limit, except int) error {
	err := inv.sweep(ctx, func(past inventory.Past, item *metav1.PartialObjectMetadata) bool {
		n, err := strconv.Atoi(item.Labels[inventory.RevisionLabel])
		saved := past.Saved()
		return err == nil && n != except && len(saved) > 0 && n <= saved[0].Number && !inventory.Kept(past.Runs(), limit)[n]
	})
	if err != nil {
		return fmt.Errorf("trim the history: %w", err)
	}
	return nil
}

// Remains says whether there is an inventory, or at least an auxiliary object of one. Where all that is
// left is of one with another ID, that is an error: its members are found by that ID only.
func (inv *Inventory) Remains(ctx context.Context) (bool, error) {
	if inv.Exists() || len(inv.fingerprints)+len(inv.origins)+len(inv.overflow) > 0 {
		return true, nil
	}
	other := ""
	for _, r := range []cluster.Resource{cluster.ConfigMaps, cluster.Secrets} {
		items, err := inv.client.ListMetadata(ctx, r, inv.Namespace, inventory.AuxiliaryLabel)
		if err != nil {
			return false, fmt.Errorf("look for auxiliary objects of inventory %s/%s: list %ss: %w", inv.Namespace, inv.Name, r.GVK.Kind, err)
		}
		for i := range items {
			switch id := items[i].Labels[inventory.AuxiliaryLabel]; {
			case !inv.isPart(r.GVK.GroupKind(), items[i].Name):
			case id == inv.ID:
				return true, nil
			default:
				other = id
			}
		}
	}
	if other == "" {
		return false, nil
	}
	return false, fmt.Errorf("ConfigMap %s/%s is missing, but parts of an inventory of this name are there, with the ID %s: nothing was changed. %s finds its members; where it finds none, %s with %s=%s deletes the parts",
		inv.Namespace, inv.Name, other, inv.repairCommand(other), remedy.Destroy, remedy.InventoryID, other)
}

// DeleteHistory deletes the key, a saved plan and all revisions, known to the inventory object or not: the
// one that an interrupted run was about to save, too.
func (inv *Inventory) DeleteHistory(ctx context.Context) error {
	return inv.sweep(ctx, func(inventory.Past, *metav1.PartialObjectMetadata) bool { return true })
}

// sweep deletes those of the inventory's Secrets that go: first the revisions to which no rollback without a
// number would go, so that one that is cut short leaves none of these alone. Where another client wrote one since it
// was read, all are read, and decided about, again.
func (inv *Inventory) sweep(ctx context.Context, goes func(past inventory.Past, item *metav1.PartialObjectMetadata) bool) error {
	inv.read = readRevisions{}
	for try := 1; ; try++ {
		items, err := inv.secrets(ctx, "")
		if err != nil {
			return fmt.Errorf("list Secrets: %w", err)
		}
		past := inventory.Past{Latest: inv.Latest(), There: inventory.HistoryOf(items)}
		kept := inventory.Kept(past.Runs(), 1)
		for _, last := range []bool{false, true} {
			deleting, group := errgroup.WithContext(ctx)
			for i := range items {
				item := &items[i]
				n, notOne := strconv.Atoi(item.Labels[inventory.RevisionLabel])
				if last != (notOne != nil || kept[n]) || !goes(past, item) {
					continue
				}
				deleting.Go(func() error {
					if _, err := inv.client.Delete(group, cluster.Secrets, item, cluster.Deletion{}); err != nil {
						return fmt.Errorf("delete Secret %s/%s: %w", inv.Namespace, item.Name, err)
					}
					return nil
				})
			}
			if err = deleting.Wait(); err != nil {
				break
			}
		}
		if !answers.Overtaken(err) || try == removeTries {
			return err
		}
	}
}

// Past is what is known of the inventory's runs: one request, however many ask.
func (inv *Inventory) Past(ctx context.Context) (inventory.Past, error) {
	err := inv.ReadHistory(ctx)
	return inv.past(), err
}

// past is Past as far as it was read.
func (inv *Inventory) past() inventory.Past {
	return inventory.Past{Latest: inv.Latest(), There: inv.read.history}
}

// ReadHistory lists the revisions for Past. It asks nothing of the inventory object, which may
// be written meanwhile.
func (inv *Inventory) ReadHistory(ctx context.Context) error {
	if inv.read.listed {
		return nil
	}
	items, err := inv.revisions(ctx)
	if err != nil {
		return fmt.Errorf("read the history of inventory %s/%s: %w", inv.Namespace, inv.Name, err)
	}
	inv.read.history, inv.read.listed = inventory.HistoryOf(items), true
	return nil
}

// Misses says whether the history was read, and does not have a revision: a destroy was cut short, or
// somebody deleted it.
func (inv *Inventory) Misses(number int) bool {
	return inv.read.listed && !slices.ContainsFunc(inv.read.history, func(r inventory.Revision) bool { return r.Number == number })
}

// ReadTraces is ReadHistory for Forgets. Who may not list Secrets keeps no history.
func (inv *Inventory) ReadTraces(ctx context.Context) error {
	err := inv.ReadHistory(ctx)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// beyond is Past.Beyond, by what the object said before this run began.
func (inv *Inventory) beyond() inventory.Revision {
	past := inv.past()
	past.Begun = inv.Unfinished()
	return past.Beyond()
}

// NewestRead is the number of the newest revision where the history was read, whatever the inventory
// object says; 0: there is none.
func (inv *Inventory) NewestRead() int {
	if len(inv.read.history) == 0 {
		return 0
	}
	return inv.read.history[0].Number
}

// readRevisions is what was read of the history since the inventory was read, and was not
// written since: a preview asks for it several times.
type readRevisions struct {
	history []inventory.Revision
	listed  bool
	packed  map[int]packedRevision
}

// packedRevision is a revision as it is stored, and the checksum that it has to have.
type packedRevision struct {
	text []byte
	sum  string
}

// ErrNoTarget says that a rollback without a number has nowhere to go.
var ErrNoTarget = errors.New("there is no earlier revision with another content that was applied without an error")

// RollbackTarget is where a rollback without a number goes; see inventory.RollbackTarget.
// Revisions have the same content if they have the same digest or, as digests of other
// versions and keys differ, hold the same bundle.
func (inv *Inventory) RollbackTarget(ctx context.Context) (inventory.Target, error) {
	past, err := inv.Past(ctx)
	if err != nil {
		return inventory.Target{}, err
	}
	history := past.Runs()
	if err := inv.refuseSuperseded(ctx); err != nil {
		return inventory.Target{}, err
	}
	contents, unread := map[int]*inventory.Content{}, 0
	load := func(number int) *inventory.Content {
		if c, ok := contents[number]; ok || err != nil {
			return c
		}
		if contents[number], err = inv.LoadRevision(ctx, number); err != nil {
			unread = number
		}
		return contents[number]
	}
	for i := range history { // an older version did not record which were rollbacks
		if r := &history[i]; r.Command == "" {
			if c := load(r.Number); c != nil && c.MadeByRollback() {
				r.Command = inventory.Rollback
			}
		}
		if history[i].Command != inventory.Rollback {
			break
		}
	}
	target, ok := inventory.RollbackTarget(history, func(a, b inventory.Revision) bool {
		if inventory.SameDigest(a, b) || !a.IsKept() || !b.IsKept() {
			return inventory.SameDigest(a, b)
		}
		one, other := load(a.Number), load(b.Number)
		return one != nil && other != nil && one.Bundle.ContentDigest() == other.Bundle.ContentDigest()
	})
	switch {
	case err != nil && ok && unread < target.Number: // only how to go further back is unknown
		target.Further = inventory.Revision{}
	case err != nil:
		return inventory.Target{}, err
	case !ok:
		return inventory.Target{}, fmt.Errorf("inventory %s/%s: %w: %s; %s lists them, and %s takes any of them",
			inv.Namespace, inv.Name, ErrNoTarget, inventory.NoTarget(history, target.Undone.Number), inv.Commands().History(inv.Namespace, inv.Name), inv.Commands().Rollback(inv.Namespace, inv.Name, "NUMBER"))
	}
	return target, nil
}

// ErrNotLast says that what was to be undone is not the last run any more.
var ErrNotLast = errors.New("nothing was changed: another run got in between")

// StillLast is the error of a rollback that was to undo the last of these runs, where another one got in
// between; none is any.
func (inv *Inventory) StillLast(undone inventory.Latest) error {
	now := inv.Latest()
	if undone == (inventory.Latest{}) || undone.IsStill(now) {
		return nil
	}
	is, was := now.Run(), undone.Run()
	return fmt.Errorf("%w: revision %d of %s is the last one of inventory %s/%s now, and revision %d of %s was to be undone; %s lists them, and %s takes any that is kept", ErrNotLast,
		is.Number, is.Time.Format(time.RFC3339), inv.Namespace, inv.Name, was.Number, was.Time.Format(time.RFC3339), inv.Commands().History(inv.Namespace, inv.Name), inv.Commands().Rollback(inv.Namespace, inv.Name, "NUMBER"))
}

func (inv *Inventory) revisions(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	return inv.secrets(ctx, ","+inventory.RevisionLabel)
}

// secrets lists the inventory's own Secrets, of which the label selector says more.
func (inv *Inventory) secrets(ctx context.Context, more string) ([]metav1.PartialObjectMetadata, error) {
	items, err := inv.client.ListMetadata(ctx, cluster.Secrets, inv.Namespace, inventory.AuxiliaryLabel+"="+inv.ID+more)
	return bundle.Where(items, func(item metav1.PartialObjectMetadata) bool { return inv.isPart(bundle.SecretKind, item.Name) }), err
}

// ErrNoRevision says that the history does not hold the revision.
var ErrNoRevision = errors.New("no such revision")

// ErrDamagedRevision says that a revision is not as it was saved.
var ErrDamagedRevision = errors.New("the revision is damaged, nothing was changed")

// LoadRevision reads what a revision keeps, and verifies that it is as it was
// saved.
func (inv *Inventory) LoadRevision(ctx context.Context, number int) (*inventory.Content, error) {
	fail := func(err error) error {
		return fmt.Errorf("read revision %d of inventory %s/%s: %w", number, inv.Namespace, inv.Name, err)
	}
	packed, known := inv.read.packed[number]
	for i, parts := 0, 1; i < parts && !known; i++ {
		id := bundle.ID{Namespace: inv.Namespace, Name: inventory.RevisionName(inv.Name, number, i), GroupKind: bundle.SecretKind}
		damaged := func(what string) error {
			return fail(fmt.Errorf("%w: %s: %s; %s lists the others", ErrDamagedRevision, bundle.Name(id), what, inv.Commands().History(inv.Namespace, inv.Name)))
		}
		u, err := inv.client.Get(ctx, cluster.Secrets, id)
		switch {
		case err != nil:
			return nil, fail(err)
		case u == nil && i == 0:
			return nil, fmt.Errorf("%w: %d of inventory %s/%s (Secret %s is not there); %s lists them", ErrNoRevision, number, inv.Namespace, inv.Name, id.Name, inv.Commands().History(inv.Namespace, inv.Name))
		case u == nil:
			return nil, damaged("it is missing")
		}
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		if i == 0 {
			var r inventory.Revision
			if err := json.Unmarshal([]byte(u.GetAnnotations()[inventory.RevisionInfo]), &r); err != nil || r.Parts < 1 {
				return nil, damaged("its annotation " + inventory.RevisionInfo + " cannot be read")
			}
			if err := inventory.CheckFormat(r.Format, r.Since, inv.version); err != nil {
				return nil, fail(err)
			}
			parts = r.Parts
			text, _ := base64.StdEncoding.DecodeString(data[revisionSum])
			packed.sum = string(text)
		}
		part, err := base64.StdEncoding.DecodeString(data[revisionKey])
		if err != nil || len(part) == 0 {
			return nil, damaged("its data " + revisionKey + " cannot be read")
		}
		packed.text = append(packed.text, part...)
	}
	if inv.read.packed == nil {
		inv.read.packed = map[int]packedRevision{}
	}
	inv.read.packed[number] = packed
	c, err := inventory.DecodeContent(packed.text, packed.sum, fmt.Sprintf("revision-%d", number))
	if err != nil {
		// Not wrapped: an unexpected EOF in it is not the connection's.
		return nil, fail(fmt.Errorf("%w: %s", ErrDamagedRevision, err.Error()))
	}
	return c, nil
}
