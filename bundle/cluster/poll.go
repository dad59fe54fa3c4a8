package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster/answers"
)

// Polls bound the reads of objects that cannot be watched, of all kinds together.
const (
	pollers   = 4 // at once
	pollQPS   = 50
	pollBurst = 10
)

// Poll reads objects of one resource, for want of a watch: where a namespace has
// more than a few, by one LIST through the selector of their label. What that does
// not find, or may not ask, is read by single GETs. live is nil where an object
// is not there; of what could not be read nothing, or the error, is reported.
func (c *Client) Poll(ctx context.Context, r Resource, ids []bundle.ID, selector string, report func(id bundle.ID, live *unstructured.Unstructured, err error)) {
	var single []bundle.ID
	for namespace, wanted := range bundle.GroupBy(ids, func(id bundle.ID) string { return id.Namespace }).All() {
		found := map[string]*unstructured.Unstructured{}
		if len(wanted) > fewGets && r.Can("list") && c.polls.Wait(ctx) == nil {
			items, err := c.List(ctx, r, namespace, selector, "")
			if err != nil && !apierrors.IsForbidden(err) && !answers.NotServed(err) { // a GET knows of what is not served
				continue // the next round may find more
			}
			for i := range items {
				found[items[i].GetName()] = &items[i]
			}
		}
		for _, id := range wanted {
			if live := found[id.Name]; live != nil {
				report(id, live, nil)
			} else {
				single = append(single, id)
			}
		}
	}
	_ = bundle.AtOnce(ctx, pollers, single, func(ctx context.Context, id bundle.ID) error { // every error is reported
		if err := c.polls.Wait(ctx); err != nil {
			report(id, nil, err)
			return nil
		}
		live, err := c.Get(ctx, r, id)
		report(id, live, err)
		return nil
	})
}
