package lock

import (
	"context"
	"time"

	"brine/bundle/cluster"
)

// AwaitShort is Await of a lock whose lease is shorter.
func AwaitShort(ctx context.Context, c *cluster.Client, namespace, name string, wait Wait, duration time.Duration) (*Lock, error) {
	l := newLock(c, namespace, name)
	l.duration = duration
	return l, l.await(ctx, wait)
}
