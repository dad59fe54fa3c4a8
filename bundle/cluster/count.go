package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// Count is how many objects of a resource there are in a namespace, "" being all of
// them. It is one request: the server says how many it has not sent.
func (c *Client) Count(ctx context.Context, r Resource, namespace string) (int, error) {
	resource := metadata.ResourceInterface(c.metadata.Resource(r.GVR))
	if namespace != "" && r.Namespaced {
		resource = c.metadata.Resource(r.GVR).Namespace(namespace)
	}
	n := 0
	err := c.retry(ctx, func(ctx context.Context) error {
		page, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
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
