package inspect

import (
	"context"

	"brine/bundle"
	"brine/inventory/store"
)

// RenderedLast are the objects of the last run that applied everything, and those that runs
// without pruning before it left.
func RenderedLast(ctx context.Context, inv *store.Inventory) (number int, objects []*bundle.Object, err error) {
	past, err := inv.Past(ctx)
	for _, one := range past.Standing() {
		if !one.Applied() {
			continue
		}
		content, err := inv.LoadRevision(ctx, one.Number)
		if err != nil {
			return 0, nil, err
		}
		number, objects = max(number, one.Number), append(objects, content.Bundle.Objects...)
		if content.Options["no-prune"] != "true" {
			break
		}
	}
	return number, objects, err
}
