package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/read"
)

// Scope says what discovery knows of a kind: read.Resolver's question.
func (c *Client) Scope(gvk schema.GroupVersionKind) read.Scope {
	resource, err := c.Resource(gvk)
	switch {
	case err == nil && resource.Namespaced:
		return read.ScopeNamespaced
	case err == nil:
		return read.ScopeCluster
	case c.Failed(gvk.Group) != nil:
		return read.ScopeLater
	}
	return read.ScopeUnknown
}
