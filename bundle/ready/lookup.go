package ready

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

var (
	podGVK           = bundle.PodKind.WithVersion("v1")
	eventGVK         = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	nodeGVK          = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	serviceGVK       = bundle.ServiceKind.WithVersion("v1")
	claimGVK         = bundle.PersistentVolumeClaimKind.WithVersion("v1")
	replicaSetGVK    = bundle.ReplicaSetKind.WithVersion("v1")
	storageClassGVK  = bundle.StorageClassKind.WithVersion("v1")
	endpointSliceGVK = schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}
)

// lookup is one thing to read: an object, or a list of objects of a namespace.
type lookup struct {
	gvk                             schema.GroupVersionKind
	namespace, name, labels, fields string
}

// read reads through the Diagnosis' memory: each lookup once, by whoever needs it
// first.
func (d *Diagnosis) read(l lookup, read func() ([]object, error)) ([]object, error) {
	return d.known.Get(l, read)
}

// list reads objects; what cannot be read becomes a line.
func (c *chain) list(ctx context.Context, gvk schema.GroupVersionKind, namespace, labels, fields string) []object {
	if c.d.reader.List == nil {
		return nil
	}
	found, err := c.d.read(lookup{gvk: gvk, namespace: namespace, labels: labels, fields: fields}, func() ([]object, error) {
		items, err := c.d.reader.List(ctx, gvk, namespace, labels, fields)
		return bundle.Each(items, func(item unstructured.Unstructured) object { return object{item.Object} }), err
	})
	if err != nil {
		c.add("cannot list %ss in namespace %s: %s", gvk.Kind, namespace, err)
	}
	return found
}

// get reads one object; known is false where that was not possible.
func (c *chain) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (o object, found, known bool) {
	if c.d.reader.Get == nil || !c.detailed || name == "" {
		return object{}, false, false
	}
	all, err := c.d.read(lookup{gvk: gvk, namespace: namespace, name: name}, func() ([]object, error) {
		u, err := c.d.reader.Get(ctx, gvk, namespace, name)
		if apierrors.IsNotFound(err) {
			u, err = nil, nil
		}
		if u == nil {
			return nil, err
		}
		return []object{{u.Object}}, err
	})
	if err != nil {
		c.add("cannot read %s: %s", title(gvk.Kind, namespace, name), err)
		return object{}, false, false
	}
	if len(all) == 0 {
		return object{}, false, true
	}
	return all[0], true, true
}

func title(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %s", kind, name)
}
