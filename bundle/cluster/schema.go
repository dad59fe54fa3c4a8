package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/spec3"
)

// Types reads the server's own schemas of a group version: by what its lists
// are merged.
func (c *Client) Types(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	var text []byte
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		text, err = c.raw.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schemas of %s: %w", gv, err)
	}
	var doc spec3.OpenAPI
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("decode the schemas of %s: %w", gv, err)
	}
	if doc.Components == nil {
		return nil, fmt.Errorf("the schemas of %s are empty", gv)
	}
	types, err := managedfields.NewTypeConverter(doc.Components.Schemas, false)
	if err != nil {
		return nil, fmt.Errorf("understand the schemas of %s: %w", gv, err)
	}
	return types, nil
}
