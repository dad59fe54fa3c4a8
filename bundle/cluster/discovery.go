package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/transport"
	"brine/bundle/read"
)

// What the server serves, which is asked once: kinds, their resources and verbs.

// Resource is how the server serves a kind.
type Resource struct {
	GVR        schema.GroupVersionResource
	GVK        schema.GroupVersionKind
	Namespaced bool
	Verbs      []string
	// Status: the resource has a status of its own, which its controller writes.
	Status bool
}

// Can says whether the resource has the verb.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// path is the URL's path of the resource's group and version, and of the namespace if
// the resource has one; "" is all namespaces.
func (r Resource) path(namespace string) string {
	if r.Namespaced && namespace != "" {
		return pathOf(r.GVR.GroupVersion()) + "/namespaces/" + namespace
	}
	return pathOf(r.GVR.GroupVersion())
}

func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

const failedGroupDelay = 5 * time.Second // for the answers of groups that discovery could not ask

type kinds struct {
	mu        sync.RWMutex
	byKind    map[schema.GroupVersionKind]Resource
	preferred map[schema.GroupKind]schema.GroupVersionKind
	failed    map[schema.GroupVersion]error
	learned   sets.Set[schema.GroupVersionKind]
}

// Discover asks the server what it serves: two requests where it has
// aggregated discovery (Kubernetes 1.27 and newer). Groups that cannot be
// discovered, because the server behind an APIService is away, are no error
// here: see Failed.
func (c *Client) Discover(ctx context.Context) error {
	if started := c.started; started != nil {
		c.started = nil
		select {
		case err := <-started:
			return err
		case <-ctx.Done():
			return fmt.Errorf("discover what %s serves: %w", c.config.Host, ctx.Err())
		}
	}
	return c.discover(ctx)
}

// StartDiscovery starts discovery early: the next Discover waits for its answer.
func (c *Client) StartDiscovery(ctx context.Context) {
	started := make(chan error, 1)
	c.started = started
	go func() { started <- c.discover(ctx) }()
}

func (c *Client) discover(ctx context.Context) error {
	var k *kinds
	begin := time.Now()
	err := c.retryFor(ctx, min(c.options.RetryFor, firstContact), func(ctx context.Context) (err error) {
		k, err = c.ask(ctx)
		if apierrors.IsForbidden(err) { // its message says nothing else
			if err = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the user may not get /api and /apis")); time.Since(begin) < transport.StartingFor {
				return apierrors.NewServiceUnavailable(err.Error())
			}
		}
		return err
	})
	if err != nil {
		return answers.ExplainReach(c.config.Host, err)
	}
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	c.kinds.keep(k)
	c.kinds.byKind, c.kinds.preferred, c.kinds.failed = k.byKind, k.preferred, k.failed
	return nil
}

// aggregated is what discovery accepts: all groups with their resources in one answer. It is
// v2beta1 in Kubernetes 1.27 to 1.29, with the same fields (k8s.io/api/apidiscovery/v2beta1),
// which client-go does not read any more.
const (
	aggregated     = discovery.AcceptV2 + ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=" + aggregatedKind + "," + discovery.AcceptV1
	aggregatedKind = "APIGroupDiscoveryList"
)

// listing is what /api or /apis answers: groups with their resources, and before Kubernetes
// 1.27 groups, or of /api the versions of the core group.
type listing struct {
	apidiscovery.APIGroupDiscoveryList
	Groups   []metav1.APIGroup `json:"groups"`
	Versions []string          `json:"versions"`
}

// ask asks for /api and /apis at the same time. Neither can be missing: a 404 is a proxy's.
// (client-go's own discovery takes one for a server without the core group.)
func (c *Client) ask(ctx context.Context) (*kinds, error) {
	paths := []string{"/api", "/apis"}
	listings := make([]listing, len(paths))
	asking, parallel := errgroup.WithContext(ctx)
	for i, path := range paths {
		asking.Go(func() error { return c.askJSON(parallel, path, aggregated, &listings[i]) })
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	k := &kinds{byKind: map[schema.GroupVersionKind]Resource{}, preferred: map[schema.GroupKind]schema.GroupVersionKind{}, failed: map[schema.GroupVersion]error{}}
	var groups []metav1.APIGroup
	for i, list := range listings {
		switch list.Kind {
		case aggregatedKind:
			aggregated, resources, failed := discovery.SplitGroupsAndResources(list.APIGroupDiscoveryList)
			for i := range aggregated.Groups {
				k.addGroup(&aggregated.Groups[i], resources)
			}
			maps.Copy(k.failed, failed)
		case "APIGroupList":
			groups = append(groups, list.Groups...)
		case "APIVersions":
			groups = append(groups, metav1.APIGroup{Versions: bundle.Each(list.Versions, func(v string) metav1.GroupVersionForDiscovery {
				return metav1.GroupVersionForDiscovery{Version: v}
			})})
		default:
			return nil, fmt.Errorf("what answers %s is no Kubernetes API server: kind %q", paths[i], list.Kind)
		}
	}
	return k, c.askEachVersion(ctx, k, groups)
}

// askEachVersion asks each version of the groups for its resources: what does not answer has failed.
func (c *Client) askEachVersion(ctx context.Context, k *kinds, groups []metav1.APIGroup) error {
	resources := map[schema.GroupVersion]*metav1.APIResourceList{}
	var versions []schema.GroupVersion
	for _, g := range groups {
		for _, v := range g.Versions {
			versions = append(versions, schema.GroupVersion{Group: g.Name, Version: v.Version})
		}
	}
	var mu sync.Mutex
	err := bundle.AtOnce(ctx, readers, versions, func(ctx context.Context, gv schema.GroupVersion) error {
		list, err := c.resources(ctx, gv)
		mu.Lock()
		defer mu.Unlock()
		if resources[gv] = list; err != nil {
			k.failed[gv] = err
		}
		return context.Cause(ctx)
	})
	for i := range groups {
		k.addGroup(&groups[i], resources)
	}
	return err
}

func (k *kinds) addGroup(group *metav1.APIGroup, resources map[schema.GroupVersion]*metav1.APIResourceList) {
	for _, v := range group.Versions {
		gv := schema.GroupVersion{Group: group.Name, Version: v.Version}
		if list := resources[gv]; list != nil {
			k.add(gv, list.APIResources)
		}
	}
}

// keep takes over into the new knowledge what a later discovery in the same
// run cannot report: groups whose server is away at the moment, kinds that were
// learned, versions that are preferred.
func (k *kinds) keep(next *kinds) {
	away := bundle.SetOf(slices.Collect(maps.Keys(next.failed)), func(gv schema.GroupVersion) string { return gv.Group })
	for gvk, r := range k.byKind {
		if _, ok := next.byKind[gvk]; !ok && (away.Has(gvk.Group) || k.learned.Has(gvk)) {
			next.byKind[gvk] = r
		}
	}
	for gk, gvk := range k.preferred {
		if _, ok := next.byKind[gvk]; ok {
			next.preferred[gk] = gvk
		}
	}
}

// add makes the resources of a version known; of a kind the first one is preferred.
func (k *kinds) add(gv schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if !strings.Contains(r.Name, "/") {
			k.know(servedIn(gv.WithKind(r.Kind), r, resources))
		}
	}
}

// know makes a resource known, and says whether it was not before.
func (k *kinds) know(r Resource) bool {
	if _, known := k.byKind[r.GVK]; known {
		return false
	}
	k.byKind[r.GVK] = r
	if k.preferred[r.GVK.GroupKind()].Empty() {
		k.preferred[r.GVK.GroupKind()] = r.GVK
	}
	return true
}

func servedIn(gvk schema.GroupVersionKind, r metav1.APIResource, all []metav1.APIResource) Resource {
	status := slices.ContainsFunc(all, func(other metav1.APIResource) bool { return other.Name == r.Name+"/status" })
	return Resource{GVR: gvk.GroupVersion().WithResource(r.Name), GVK: gvk, Namespaced: r.Namespaced, Verbs: r.Verbs, Status: status}
}

// Resource finds how a kind is served. Its error is a meta.NoKindMatchError
// that names the versions that are served instead, if any.
func (c *Client) Resource(gvk schema.GroupVersionKind) (Resource, error) {
	c.kinds.mu.RLock()
	defer c.kinds.mu.RUnlock()
	if r, ok := c.kinds.byKind[gvk]; ok {
		return r, nil
	}
	return Resource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// Any finds the version that the server prefers for a kind, for objects whose
// version does not matter, as when one is to be deleted.
func (c *Client) Any(gk schema.GroupKind) (Resource, error) {
	c.kinds.mu.RLock()
	defer c.kinds.mu.RUnlock()
	if gvk, ok := c.kinds.preferred[gk]; ok {
		return c.kinds.byKind[gvk], nil
	}
	return Resource{}, &meta.NoKindMatchError{GroupKind: gk}
}

// Versions are those in which the server serves a kind, the preferred first.
func (c *Client) Versions(gk schema.GroupKind) []string {
	c.kinds.mu.RLock()
	defer c.kinds.mu.RUnlock()
	var versions []string
	preferred := c.kinds.preferred[gk].Version
	for gvk := range c.kinds.byKind {
		if gvk.GroupKind() == gk && gvk.Version != preferred {
			versions = append(versions, gvk.Version)
		}
	}
	slices.Sort(versions)
	if preferred != "" {
		versions = slices.Insert(versions, 0, preferred)
	}
	return versions
}

// Failed is the error that kept a group from being discovered, or nil. Whether
// such a group serves a kind cannot be known.
func (c *Client) Failed(group string) error {
	c.kinds.mu.RLock()
	defer c.kinds.mu.RUnlock()
	for gv, err := range c.kinds.failed {
		if gv.Group == group {
			return fmt.Errorf("%s: %w", gv, err)
		}
	}
	return nil
}

// Learn makes a resource known that discovery cannot know yet: one that a
// CustomResourceDefinition of the bundle is about to define.
func (c *Client) Learn(r Resource) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if c.kinds.know(r) {
		c.kinds.learned.Insert(r.GVK)
	}
}

// LearnServed makes a kind known that its group and version serve by now. They are
// asked themselves: aggregated discovery may learn of a new APIService only a
// minute later (Kubernetes 1.27).
func (c *Client) LearnServed(ctx context.Context, gvk schema.GroupVersionKind) error {
	resources, err := c.resourcesOf(ctx, gvk.GroupVersion())
	for _, r := range resources {
		if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
			c.Learn(servedIn(gvk, r, resources))
		}
	}
	return err
}

// AskFailed asks those groups that discovery could not ask, each group and version
// itself: a new APIService's is stale in aggregated discovery for up to a minute
// (Kubernetes 1.27). What does not answer in a few seconds stays failed.
func (c *Client) AskFailed(ctx context.Context, needed func(group string) bool) {
	c.kinds.mu.RLock()
	failed := slices.Collect(maps.Keys(c.kinds.failed))
	c.kinds.mu.RUnlock()
	failed = slices.DeleteFunc(failed, func(gv schema.GroupVersion) bool { return !needed(gv.Group) })
	ctx, cancel := context.WithTimeout(ctx, failedGroupDelay)
	defer cancel()
	_ = bundle.AtOnce(ctx, max(len(failed), 1), failed, func(ctx context.Context, gv schema.GroupVersion) error { // it returns none
		resources, err := c.resourcesOf(ctx, gv)
		if err != nil || resources == nil {
			return nil // a 404 may be a server's that is behind
		}
		c.kinds.mu.Lock()
		defer c.kinds.mu.Unlock()
		delete(c.kinds.failed, gv)
		c.kinds.add(gv, resources)
		return nil
	})
}

// Prefer makes a served version the one that objects of its kind are read in,
// so that what is live is compared with what a bundle writes in like terms.
func (c *Client) Prefer(gvk schema.GroupVersionKind) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if _, ok := c.kinds.byKind[gvk]; ok {
		c.kinds.preferred[gvk.GroupKind()] = gvk
	}
}

// Listable are all resources that can be listed, in the server's preferred
// versions, and the groups of which that cannot be known.
func (c *Client) Listable() (all []Resource, failed map[schema.GroupVersion]error) {
	c.kinds.mu.RLock()
	defer c.kinds.mu.RUnlock()
	for _, gvk := range c.kinds.preferred {
		if r := c.kinds.byKind[gvk]; r.Can("list") {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Resource) int { return strings.Compare(a.GVR.String(), b.GVR.String()) })
	return all, maps.Clone(c.kinds.failed)
}

// Serves asks the server whether a group and version has the resource now: a
// CRD is established a little before each of its versions can be used.
func (c *Client) Serves(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
	resources, err := c.resourcesOf(ctx, gvr.GroupVersion())
	return slices.ContainsFunc(resources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource }), err
}

// resourcesOf asks a group and version itself; there are none where it is not served.
func (c *Client) resourcesOf(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	list, err := c.resources(ctx, gv)
	switch {
	case answers.NotServed(err), apierrors.IsNotFound(err), apierrors.IsGone(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find out what %s serves: %w", gv, err)
	}
	return list.APIResources, nil
}

func (c *Client) resources(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{}
	if err := c.askJSON(ctx, pathOf(gv), "application/json", list); err != nil {
		return nil, err
	}
	return list, nil
}

func (c *Client) askJSON(ctx context.Context, path, accept string, into any) error {
	text, err := c.disco.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// The resources that every cluster serves. They need no discovery.
var (
	APIServices = wellKnown(bundle.APIServiceKind, "apiservices", false)
	ConfigMaps  = wellKnown(bundle.ConfigMapKind, "configmaps", true)
	CRDs        = wellKnown(bundle.CRDKind, "customresourcedefinitions", false)
	Leases      = wellKnown(bundle.LeaseKind, "leases", true)
	Namespaces  = wellKnown(bundle.NamespaceKind, "namespaces", false)
	Secrets     = wellKnown(bundle.SecretKind, "secrets", true)
)

func wellKnown(gk schema.GroupKind, name string, namespaced bool) Resource {
	gvk := gk.WithVersion("v1")
	return Resource{GVR: gvk.GroupVersion().WithResource(name), GVK: gvk, Namespaced: namespaced}
}

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
