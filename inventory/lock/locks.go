package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"brine/bundle"
	"brine/bundle/cluster"
)

// Locks are the locks of several inventories, in one order for every command: of
// two that need the same, one gets the first and with it the others.
type Locks []*Lock

// AwaitAll is Await for several inventories, as NAMESPACE and NAME.
func AwaitAll(ctx context.Context, c *cluster.Client, inventories [][2]string, wait Wait) (Locks, error) {
	inventories = slices.Clone(inventories)
	slices.SortFunc(inventories, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	var all Locks
	for _, i := range slices.Compact(inventories) {
		l, err := Await(ctx, c, i[0], i[1], wait)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Take is Lock.Take for all of them: the context that is returned ends when one of
// them is lost, and no write is sent while one of their leases may have run out. Those
// that were taken before an error are to be released too.
func (all Locks) Take(ctx context.Context) (context.Context, error) {
	held := ctx
	for _, l := range all {
		next, err := l.Take(held)
		if err != nil {
			return nil, err
		}
		held = next //nolint:fatcontext // each lock adds its own end
	}
	if len(all) > 0 {
		all[0].client.Gate(func(ctx context.Context) error {
			for _, l := range all {
				if err := l.writable(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return held, nil
}

// Release gives all back that were taken; remove says which of the Leases go.
func (all Locks) Release(ctx context.Context, remove func(*Lock) bool) error {
	all = bundle.Where(all, func(l *Lock) bool { return l.done != nil })
	slices.Reverse(all)
	return errors.Join(bundle.Each(all, func(l *Lock) error { return l.Release(ctx, remove(l)) })...)
}

// IsOf says whether it is the lock of the inventory namespace/name.
func (l *Lock) IsOf(namespace, name string) bool { return l.id == idOf(namespace, name) }
