package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Count is how many objects of a resource there are in a namespace, "" being all of
// them. It is one request: the server says how many it has not sent.
func (c *Client) Count(ctx context.Context, r Resource, namespace string) (int, error) {
	n := 0
	err := c.retry(ctx, func(ctx context.Context) error {
		page, err := c.metadataPage(ctx, r, namespace, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if n = len(page.Items); page.RemainingItemCount != nil {
			n += int(*page.RemainingItemCount)
		}
		return nil
	})
	return n, err
}
