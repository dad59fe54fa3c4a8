package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster/answers"
)

// The live state before the plan: of each kind one LIST or some GETs, whichever costs less.

// Snapshot is the live state as it was read before the plan.
type Snapshot struct {
	Live map[bundle.ID]*unstructured.Unstructured
	// Unknown are objects that may be there, but whose kind cannot be read: the server
	// of their APIService is not available, or their CRD serves no version now.
	Unknown map[bundle.ID]error

	client   *Client
	wanted   map[bundle.ID]bool
	selector string // of members
	mu       sync.Mutex
	asked    map[bundle.ID]bool // by single GETs, or whatever fill takes instead
}

const (
	readers = 16 // parallel reads
	fewGets = 4  // up to here, single GETs are cheaper than a LIST
)

// Snapshot reads the live objects of members and others with as few requests, and as
// few that wait for each other, as it can: members by one LIST a kind through the
// selector of their label, and others meanwhile; then what the label did not find, by
// single GETs, or where there are many by a LIST of metadata. Objects in namespaces
// that do not exist are not read.
//
// Members, and those of others in certain, are absent only if that is proven:
// where their kind is not served they are Unknown until it is, unless, of others, this version of
// Kubernetes does not have it yet. So are objects whose
// conversion webhook does not answer: the run may be what brings it back.
func (c *Client) Snapshot(ctx context.Context, members, others, certain []bundle.ID, selector string) (*Snapshot, error) {
	ctx = Briefly(ctx)
	wanted, groups := map[bundle.ID]bool{}, map[string]bool{}
	v := &Snapshot{
		Live: map[bundle.ID]*unstructured.Unstructured{}, Unknown: map[bundle.ID]error{},
		client: c, wanted: wanted, selector: selector, asked: map[bundle.ID]bool{},
	}
	for _, id := range slices.Concat(members, others) {
		wanted[id] = true
		groups[id.GroupKind.Group] = true
	}
	c.AskFailed(ctx, func(group string) bool { return groups[group] })
	inside := func(id bundle.ID) bool { // of a namespace that may not exist
		return id.Namespace != "" && wanted[bundle.ID{GroupKind: bundle.NamespaceKind, Name: id.Namespace}]
	}
	first, reading := errgroup.WithContext(ctx)
	first.Go(func() error { return c.eachKind(reading, slices.DeleteFunc(slices.Clone(others), inside), v.fill) })
	first.Go(func() error { return c.eachKind(reading, members, v.list) })
	if err := first.Wait(); err != nil {
		return nil, err
	}
	c.proveAbsent(ctx, v, members, certain)
	var namespaces, rest []bundle.ID
	for id := range wanted {
		if _, ok := v.Live[id]; ok {
			continue
		}
		if _, err := c.Any(id.GroupKind); err != nil {
			if failed := c.Failed(id.GroupKind.Group); failed != nil {
				v.Unknown[id] = failed
			}
			continue
		}
		switch {
		case v.asked[id]:
		case id.GroupKind == bundle.NamespaceKind:
			namespaces = append(namespaces, id)
		default:
			rest = append(rest, id)
		}
	}
	if err := c.eachKind(ctx, namespaces, v.fill); err != nil {
		return nil, err
	}
	rest = slices.DeleteFunc(rest, func(id bundle.ID) bool {
		namespace := bundle.ID{GroupKind: bundle.NamespaceKind, Name: id.Namespace}
		return inside(id) && v.Live[namespace] == nil && v.Unknown[namespace] == nil
	})
	return v, c.eachKind(ctx, rest, v.fill)
}

// list reads members of one kind by their label; a single one by a GET, which is as
// cheap, and finds it without the label.
func (v *Snapshot) list(ctx context.Context, r Resource, ids []bundle.ID) error {
	if len(ids) == 1 {
		return v.fill(ctx, r, ids)
	}
	items, err := v.client.listEverywhere(ctx, r, ids, v.selector)
	if answers.ConversionFailed(err) {
		v.ask(ids)
		v.addUnknown(err, ids...)
		return nil
	}
	if err != nil && !answers.NotServed(err) {
		return err
	}
	v.add(r, items...)
	return nil
}

// proveAbsent settles those of ids whose kind is not served: they are Unknown
// unless it is proven that there are none. There is no object, but of members, of a kind that this version
// of Kubernetes does not have yet.
func (c *Client) proveAbsent(ctx context.Context, v *Snapshot, members, others []bundle.ID) {
	reasons, member := map[schema.GroupKind]error{}, sets.New(members...)
	for _, id := range slices.Concat(members, others) {
		if _, err := c.Any(id.GroupKind); err == nil {
			continue
		}
		reason, known := reasons[id.GroupKind]
		if !known {
			_, reason = c.ServedOrAbsent(ctx, id.GroupKind)
			reasons[id.GroupKind] = reason
		}
		if reason != nil && (member.Has(id) || !errors.Is(reason, errLater)) {
			v.Unknown[id] = reason
		}
	}
}

func (v *Snapshot) add(r Resource, found ...unstructured.Unstructured) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range found {
		u := &unstructured.Unstructured{Object: found[i].Object} // an item of a list keeps all others in memory
		id := bundle.ID{Namespace: u.GetNamespace(), Name: u.GetName(), GroupKind: r.GVK.GroupKind()}
		if !v.wanted[id] {
			continue
		}
		if u.GetKind() == "" { // items of some lists come without
			u.SetGroupVersionKind(r.GVK)
		}
		v.Live[id] = u
	}
}

func (v *Snapshot) addUnknown(err error, ids ...bundle.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range ids {
		v.Unknown[id] = err
	}
}

// ask notes that the objects need not be asked for again.
func (v *Snapshot) ask(ids []bundle.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range ids {
		v.asked[id] = true
	}
}

// fill reads the objects of one kind that no label found.
func (v *Snapshot) fill(ctx context.Context, r Resource, ids []bundle.ID) error {
	v.ask(ids)
	if len(ids) > fewGets && r.Can("list") {
		found, err := v.client.existing(ctx, r, ids)
		switch {
		case answers.ConversionFailed(err):
			v.addUnknown(err, ids...)
			return nil
		case err == nil:
			ids = found
		case !apierrors.IsForbidden(err) && !answers.NotServed(err):
			return err
		}
	}
	if len(ids) > 5*fewGets && r.Can("list") {
		items, err := v.client.listEverywhere(ctx, r, ids, "")
		if err == nil {
			v.add(r, items...)
		}
		if err == nil || !apierrors.IsForbidden(err) && !answers.NotServed(err) {
			return err
		}
	}
	return bundle.AtOnce(ctx, readers, ids, func(ctx context.Context, id bundle.ID) error {
		live, err := v.client.Get(ctx, r, id)
		switch {
		case errors.Is(err, answers.ErrNotServed), answers.ConversionFailed(err):
			v.addUnknown(err, id)
		case err != nil:
			return fmt.Errorf("read %s: %w", bundle.Name(id), err)
		case live != nil:
			v.add(r, *live)
		}
		return nil
	})
}

// existing are those of ids that are there, by a LIST of metadata.
func (c *Client) existing(ctx context.Context, r Resource, ids []bundle.ID) ([]bundle.ID, error) {
	there := map[bundle.ID]bool{}
	for _, namespace := range scopes(r, ids) {
		items, err := c.ListMetadata(ctx, r, namespace, "")
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.GVR.GroupResource(), err)
		}
		for i := range items {
			there[bundle.ID{Namespace: items[i].Namespace, Name: items[i].Name, GroupKind: r.GVK.GroupKind()}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id bundle.ID) bool { return !there[id] }), nil
}

// scopes is where to list for ids: their one namespace, or everywhere.
func scopes(r Resource, ids []bundle.ID) []string {
	if !r.Namespaced {
		return []string{""}
	}
	one := ids[0].Namespace
	if slices.ContainsFunc(ids, func(id bundle.ID) bool { return id.Namespace != one }) {
		return []string{""}
	}
	return []string{one}
}

// listEverywhere lists with one request where rights allow it, otherwise with
// one a namespace.
func (c *Client) listEverywhere(ctx context.Context, r Resource, ids []bundle.ID, selector string) ([]unstructured.Unstructured, error) {
	items, err := c.List(ctx, r, scopes(r, ids)[0], selector, "")
	if err == nil {
		return items, nil
	}
	if !apierrors.IsForbidden(err) || !r.Namespaced {
		return nil, fmt.Errorf("list %s: %w", r.GVR.GroupResource(), err)
	}
	items = nil
	for _, namespace := range sets.List(bundle.SetOf(ids, func(id bundle.ID) string { return id.Namespace })) {
		more, err := c.List(ctx, r, namespace, selector, "")
		if err != nil {
			return nil, fmt.Errorf("list %s in namespace %s: %w", r.GVR.GroupResource(), namespace, err)
		}
		items = append(items, more...)
	}
	return items, nil
}

// eachKind calls do for each served kind among ids, several at a time. What is
// not served is the caller's to settle.
func (c *Client) eachKind(ctx context.Context, ids []bundle.ID, do func(context.Context, Resource, []bundle.ID) error) error {
	byKind := bundle.GroupBy(ids, func(id bundle.ID) schema.GroupKind { return id.GroupKind })
	slices.SortFunc(byKind.Keys, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return bundle.AtOnce(ctx, readers, byKind.Keys, func(ctx context.Context, gk schema.GroupKind) error {
		r, err := c.Any(gk)
		if err != nil {
			return nil //nolint:nilerr // the caller settles what is not served
		}
		return do(ctx, r, byKind.Of[gk])
	})
}
