package lock

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
)

// State is what the Lease of an inventory says.
type State struct {
	// LastRun is when the last run that writes took the lock; zero if none did.
	LastRun time.Time
	// Holder is the run that holds the lock, for messages; "" if none does.
	Holder string
	// Ended: the holder is proven dead, and the next run takes the lock at once.
	Ended bool
}

// ReadState reads the lock of an inventory, and waits for nobody.
func ReadState(ctx context.Context, c *cluster.Client, namespace, name string) (State, error) {
	var s State
	id := idOf(namespace, name)
	live, err := c.Get(ctx, cluster.Leases, id)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", bundle.Name(id), err)
	}
	if live == nil {
		return s, nil
	}
	text, _, _ := unstructured.NestedString(live.Object, "spec", "acquireTime")
	if taken, err := time.Parse(microTime, text); err == nil {
		s.LastRun = taken.UTC().Truncate(time.Second)
	}
	if holder := holderOf(live); holder != "" {
		s.Holder, s.Ended = spoken(holder), isDead(holder)
	}
	return s, nil
}
