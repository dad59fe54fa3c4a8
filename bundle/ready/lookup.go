package ready

import (
	"context"
	"fmt"
	"sync"

	"brine/bundle"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	podGVK           = bundle.PodKind.WithVersion("v1")
	eventGVK         = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	nodeGVK          = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	serviceGVK       = bundle.ServiceKind.WithVersion("v1")
	claimGVK         = bundle.PersistentVolumeClaimKind.WithVersion("v1")
	replicaSetGVK    = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	storageClassGVK  = bundle.StorageClassKind.WithVersion("v1")
	endpointSliceGVK = schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}
)

type listKey struct {
	gvk                      schema.GroupVersionKind
	namespace, labels, field string
}

// listing is a list that is read once, by whoever needs it first.
type listing struct {
	once  sync.Once
	items []object
	err   error
}

type getKey struct {
	gvk             schema.GroupVersionKind
	namespace, name string
}

type getting struct {
	once   sync.Once
	object object
	found  bool
	err    error
}

// list reads through the Diagnosis' memory; what cannot be read becomes a line.
func (c *chain) list(ctx context.Context, gvk schema.GroupVersionKind, namespace, labels, field string) []object {
	if c.d.reader.List == nil {
		return nil
	}
	key := listKey{gvk, namespace, labels, field}
	c.d.mu.Lock()
	l := c.d.lists[key]
	if l == nil {
		l = &listing{}
		c.d.lists[key] = l
	}
	c.d.mu.Unlock()
	l.once.Do(func() {
		var items []unstructured.Unstructured
		items, l.err = c.d.reader.List(ctx, gvk, namespace, labels, field)
		for i := range items {
			l.items = append(l.items, object{items[i].Object})
		}
	})
	if l.err != nil {
		c.add("cannot list %ss in namespace %s: %s", gvk.Kind, namespace, l.err)
	}
	return l.items
}

// get reads one object; known is false where that was not possible.
func (c *chain) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (o object, found, known bool) {
	if c.d.reader.Get == nil || !c.detailed || name == "" {
		return object{}, false, false
	}
	key := getKey{gvk, namespace, name}
	c.d.mu.Lock()
	g := c.d.gets[key]
	if g == nil {
		g = &getting{}
		c.d.gets[key] = g
	}
	c.d.mu.Unlock()
	g.once.Do(func() {
		u, err := c.d.reader.Get(ctx, gvk, namespace, name)
		if apierrors.IsNotFound(err) {
			u, err = nil, nil
		}
		g.err = err
		if u != nil {
			g.object, g.found = object{u.Object}, true
		}
	})
	if g.err != nil {
		c.add("cannot read %s: %s", title(gvk.Kind, namespace, name), g.err)
		return object{}, false, false
	}
	return g.object, g.found, true
}

func title(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %s", kind, name)
}
