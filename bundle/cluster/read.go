package cluster

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/dynamic"
	"k8s.io/kube-openapi/pkg/spec3"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/jsontree"
)

// Reads: one object, lists in pages, metadata alone, logs, schemas.

// pageSize of LISTs: large enough to be few, small enough to go easy on etcd.
const pageSize = 500

// Get reads one object; nil and no error when it is proven not to be there.
func (c *Client) Get(ctx context.Context, r Resource, id bundle.ID) (*unstructured.Unstructured, error) {
	var live *unstructured.Unstructured
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		live, err = c.resource(r, id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		if missing, err := c.missing(ctx, r, id.Name, err); !missing {
			return nil, err
		}
		return nil, nil
	}
	if _, err := answers.About(id.Name)(live, nil); err != nil { // whether there is one is not known
		return nil, fmt.Errorf("%w: %w", answers.ErrNotServed, err)
	}
	c.secret(live)
	return live, nil
}

// List reads all objects of a resource that the label selector matches;
// namespace "" reads all namespaces.
func (c *Client) List(ctx context.Context, r Resource, namespace, labelSelector, fieldSelector string) ([]unstructured.Unstructured, error) {
	o := metav1.ListOptions{LabelSelector: labelSelector, FieldSelector: fieldSelector, Limit: pageSize}
	shared := &jsontree.Shared{}
	items, _, err := listAll(ctx, c, o, 0, func(ctx context.Context, o metav1.ListOptions) ([]unstructured.Unstructured, string, error) {
		return c.page(ctx, r, namespace, o, shared)
	})
	for i := range items {
		c.secret(&items[i])
	}
	if c.options.Listed != nil {
		c.options.Listed(shared)
	}
	return items, err
}

// page reads one page of a list, and where the next begins.
func (c *Client) page(ctx context.Context, r Resource, namespace string, o metav1.ListOptions, shared *jsontree.Shared) ([]unstructured.Unstructured, string, error) {
	result := c.raw.Get().AbsPath(r.path(namespace), r.GVR.Resource).SetHeader("Accept", "application/json").
		VersionedParams(&o, metav1.ParameterCodec).Do(ctx)
	text, _ := result.Raw() // its error lacks what the server said
	if err := result.Error(); err != nil {
		return nil, "", err
	}
	return decodeList(text, shared)
}

// decodeList decodes a list of objects, which share what is equal, and where its next page
// begins. (The decoder of the dynamic client decodes each item twice, and reads the text
// four times more: apimachinery's unstructured/helpers.go, decodeToList.)
func decodeList(text []byte, shared *jsontree.Shared) (items []unstructured.Unstructured, next string, err error) {
	content, err := shared.Unmarshal(text)
	list := unstructured.Unstructured{Object: content}
	if err != nil {
		return nil, "", fmt.Errorf("decode the list: %w", err)
	}
	kind, isList := strings.CutSuffix(list.GetKind(), "List")
	values, isArray := list.Object["items"].([]any)
	if !isArray && (list.Object["items"] != nil || !isList) {
		return nil, "", fmt.Errorf("the server answered with no list, but with kind %q", list.GetKind())
	}
	items = make([]unstructured.Unstructured, len(values))
	for i := range values {
		object, ok := values[i].(map[string]any)
		if !ok {
			return nil, "", fmt.Errorf("item %d of the list is no object", i)
		}
		if items[i].Object = object; items[i].GetKind() == "" && items[i].GetAPIVersion() == "" { // as in lists of built-in kinds
			items[i].SetKind(kind)
			items[i].SetAPIVersion(list.GetAPIVersion())
		}
	}
	next = bundle.At[string](list.Object, "metadata", "continue")
	return items, next, nil
}

// ListMetadata is List for when names, labels, annotations and owners are
// enough.
func (c *Client) ListMetadata(ctx context.Context, r Resource, namespace, labelSelector string) ([]metav1.PartialObjectMetadata, error) {
	items, _, err := c.listMetadata(ctx, r, namespace, labelSelector, 0)
	return items, err
}

// listMetadata ends early, and says that these are not all, with most objects or more;
// 0 is without end.
func (c *Client) listMetadata(ctx context.Context, r Resource, namespace, labelSelector string, most int) (items []metav1.PartialObjectMetadata, all bool, err error) {
	o := metav1.ListOptions{LabelSelector: labelSelector, Limit: 2 * pageSize}
	if most > 0 {
		o.Limit = min(o.Limit, int64(most))
	}
	return listAll(ctx, c, o, most, func(ctx context.Context, o metav1.ListOptions) ([]metav1.PartialObjectMetadata, string, error) {
		page, err := c.metadataPage(ctx, r, namespace, o)
		return page.Items, page.Continue, err
	})
}

// metadataPage reads one page of a list of metadata, as client-go's metadata client does.
func (c *Client) metadataPage(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (page metav1.PartialObjectMetadataList, err error) {
	const partial = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	result := c.metadata.Get().AbsPath(r.path(namespace), r.GVR.Resource).
		SetHeader("Accept", "application/vnd.kubernetes.protobuf"+partial+",application/json"+partial).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).Do(ctx)
	if err := result.Error(); err != nil {
		return page, err
	}
	list, err := result.Get()
	if metadata, ok := list.(*metav1.PartialObjectMetadataList); ok && err == nil {
		return *metadata, nil
	}
	if !runtime.IsNotRegisteredError(err) {
		return page, errors.Join(err, fmt.Errorf("the server answered with no list of metadata, but with %T", list))
	}
	text, err := result.Raw() // of a server that has no such lists, and sends the objects whole
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return page, fmt.Errorf("decode the list: %w", err)
	}
	if page.Items == nil && !strings.HasSuffix(page.Kind, "List") {
		return page, fmt.Errorf("the server answered with no list of metadata, but with kind %q", page.Kind)
	}
	return page, nil
}

// listTries is how often a list is begun again whose pages expire while it is read.
const listTries = 5

// listAll reads a list page by page, each with its retries, until it has all, or most
// of them unless that is 0. (client-go's pager copies each item, and has no place for
// the retries.)
func listAll[T any](ctx context.Context, c *Client, o metav1.ListOptions, most int, list func(context.Context, metav1.ListOptions) ([]T, string, error)) (items []T, all bool, err error) {
	for expired := 0; ; {
		var page []T
		var next string
		err := c.retry(ctx, func(ctx context.Context) (err error) {
			page, next, err = list(ctx, o)
			return err
		})
		switch {
		case apierrors.IsResourceExpired(err) && o.Continue != "" && expired < listTries:
			expired++
			items, o.Continue = nil, "" // the pages' snapshot is gone: from the start
			continue
		case err != nil:
			return nil, false, err
		}
		items = append(items, page...)
		if o.Continue = next; next == "" {
			return items, true, nil
		}
		if most > 0 && len(items) >= most {
			return items, false, nil
		}
	}
}

func (c *Client) resource(r Resource, namespace string) dynamic.ResourceInterface {
	if r.Namespaced && namespace != "" {
		return c.dynamic.Resource(r.GVR).Namespace(namespace)
	}
	return c.dynamic.Resource(r.GVR)
}

// maxLog is how many bytes of a log are read: a line may be of any length.
const maxLog = 64 << 10

// Logs reads the last lines of a container's log; of its previous run if so.
// It asks once: a kubelet that does not answer is no reason to wait.
func (c *Client) Logs(ctx context.Context, namespace, pod, container string, previous bool, lines int64) (string, error) {
	result := c.raw.Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).
		Param("tailLines", strconv.FormatInt(lines, 10)).
		Param("limitBytes", strconv.Itoa(maxLog)).Do(ctx)
	text, _ := result.Raw() // its error lacks what the server said
	if err := result.Error(); err != nil {
		return "", fmt.Errorf("read the log of container %s of pod %s/%s: %w", container, namespace, pod, err)
	}
	return string(text), nil
}

// Count is how many objects of a resource there are in a namespace, "" being all of
// them. It is one request: the server says how many it has not sent.
func (c *Client) Count(ctx context.Context, r Resource, namespace string) (int, error) {
	n := 0
	err := c.retry(ctx, func(ctx context.Context) error {
		page, err := c.metadataPage(ctx, r, namespace, metav1.ListOptions{Limit: 1})
		if n = len(page.Items); page.RemainingItemCount != nil {
			n += int(*page.RemainingItemCount)
		}
		return err
	})
	return n, err
}

// Types reads the server's own schemas of a group version: by what its lists
// are merged.
func (c *Client) Types(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	var text []byte
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		text, err = c.raw.Get().AbsPath("/openapi/v3"+pathOf(gv)).SetHeader("Accept", "application/json").Do(ctx).Raw()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schemas of %s: %w", gv, err)
	}
	var doc spec3.OpenAPI
	if err := stdjson.Unmarshal(text, &doc); err != nil {
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
