// Package rights is about the rights that a run needs: a bundle, or the steps of a
// plan, come in; rights, those of them that the user lacks, and RBAC roles that
// grant them go out.
package rights

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/images"
)

// Right is one thing that a user may do. Namespace "" is all namespaces, or the
// cluster; Name "" is any object.
type Right struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string
	Name      string
}

// String reads "patch deployments.apps in namespace shop".
func (r Right) String() string {
	s := r.Verb + " " + r.Resource.String()
	if r.Name != "" {
		s += " " + r.Name
	}
	if r.Namespace != "" {
		s += " in namespace " + r.Namespace
	}
	return s
}

// Use is what a run does with one object.
type Use struct {
	ID       bundle.ID
	Resource schema.GroupResource
	Content  *unstructured.Unstructured // nil for what is only deleted
	Verbs    []string
	// Recreates: it may be deleted and created again.
	Recreates bool
}

// Verbs of a run about each object that it manages.
var (
	// Reading is enough to see what is there.
	Reading = []string{"get", "list"}
	// Applying is reading, and what apply, wait and prune do. A dry run asks for
	// the same rights as the real thing.
	Applying = []string{"get", "list", "watch", "create", "patch", "delete"}
)

var (
	configMaps = cluster.ConfigMaps.GVR.GroupResource()
	secrets    = cluster.Secrets.GVR.GroupResource()
	leases     = cluster.Leases.GVR.GroupResource()
	namespaces = cluster.Namespaces.GVR.GroupResource()
	classes    = schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}
	rbac       = "rbac.authorization.k8s.io"
	// What defines kinds: by these it is proven that a kind is not served because
	// there is none.
	crds        = cluster.CRDs.GVR.GroupResource()
	apiServices = cluster.APIServices.GVR.GroupResource()
)

// Of are the rights for uses and for an inventory in namespace, sorted and each
// of them once. readOnly is enough for a preview that the server verifies no
// object of.
func Of(uses []Use, namespace string, readOnly bool) []Right {
	set := map[Right]bool{}
	add := func(resource schema.GroupResource, namespace, name string, verbs ...string) {
		for _, v := range verbs {
			set[Right{Verb: v, Resource: resource, Namespace: namespace, Name: name}] = true
		}
	}
	for _, u := range uses {
		add(u.Resource, u.ID.Namespace, "", u.Verbs...)
		if !readOnly {
			grants(u, add)
			migrates(u, add)
			grows(u, add)
		}
		reasons(u, add)
		guards(u, add)
	}
	if readOnly {
		add(configMaps, namespace, "", Reading...)
		add(secrets, namespace, "", Reading...)
		return sorted(set)
	}
	add(configMaps, namespace, "", "get", "list", "create", "update", "delete")
	add(secrets, namespace, "", "get", "list", "create", "patch", "delete") // revisions, which are applied
	add(leases, namespace, "", "get", "create", "update", "delete")
	// Where the inventory's namespace is not there, it is made.
	add(namespaces, "", "", "get", "create", "patch")
	return sorted(set)
}

// OfRelease are the rights on what Helm stores of a release in namespace.
func OfRelease(namespace string, readOnly bool) []Right {
	verbs := []string{"list", "patch"}
	if readOnly {
		verbs = verbs[:1]
	}
	var all []Right
	for _, resource := range []schema.GroupResource{secrets, configMaps} {
		for _, verb := range verbs {
			all = append(all, Right{Verb: verb, Resource: resource, Namespace: namespace})
		}
	}
	return all
}

// reasons are the rights to find out why an object is not ready.
func reasons(u Use, add func(schema.GroupResource, string, string, ...string)) {
	if path := images.PodSpecPath(u.ID.GroupKind); path != nil && u.Content != nil {
		// The review of a preview looks whether a node has these labels.
		if selector := bundle.At[map[string]any](u.Content.Object, slices.Concat(path, []string{"nodeSelector"})...); len(selector) > 0 {
			add(schema.GroupResource{Resource: "nodes"}, "", "", "list")
		}
	}
	switch u.ID.GroupKind.String() {
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "Pod":
		add(schema.GroupResource{Resource: "pods"}, u.ID.Namespace, "", "list")
		add(schema.GroupResource{Resource: "events"}, u.ID.Namespace, "", "list")
		add(schema.GroupResource{Resource: "pods/log"}, u.ID.Namespace, "", "get")
		if u.ID.GroupKind.Group == "apps" { // for the review of a preview
			add(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, u.ID.Namespace, "", "list")
		}
		if u.ID.GroupKind.Kind == "Deployment" {
			add(schema.GroupResource{Group: "apps", Resource: "replicasets"}, u.ID.Namespace, "", "list")
		}
	case "PersistentVolumeClaim":
		add(schema.GroupResource{Resource: "events"}, u.ID.Namespace, "", "list")
		add(classes, "", "", "list")
	}
}

// guards are the rights to see what a Namespace or CRD holds before it is
// deleted, and whether a kind is not served because nothing defines it.
func guards(u Use, add func(schema.GroupResource, string, string, ...string)) {
	gk := u.ID.GroupKind
	if bundle.HoldsObjects(gk) || !scheme.Scheme.IsGroupRegistered(gk.Group) {
		add(crds, "", "", "get", "list")
		add(apiServices, "", "", "get", "list")
	}
	switch {
	case !slices.Contains(u.Verbs, "delete"):
	case gk == bundle.NamespaceKind:
		add(schema.GroupResource{Group: "*", Resource: "*"}, u.ID.Name, "", "list")
	case gk == bundle.CRDKind:
		if d, ok := bundle.DefinitionOf(u.Content); ok {
			add(d.Resource(), "", "", "list")
		}
	}
}

// migrates are the rights to rewrite the objects of a CRD in another version.
func migrates(u Use, add func(schema.GroupResource, string, string, ...string)) {
	d, ok := bundle.DefinitionOf(u.Content)
	if !ok || !slices.Contains(u.Verbs, "patch") {
		return
	}
	if u.Content.GetAnnotations()[bundle.OnStoredVersion] == bundle.StoredMigrate {
		add(d.Resource(), "", "", "get", "list", "update")
	}
	add(schema.GroupResource{Group: crds.Group, Resource: crds.Resource + "/status"}, "", u.ID.Name, "patch")
}

// grows are the rights to grow the claims of a StatefulSet that is recreated, and to
// keep them.
func grows(u Use, add func(schema.GroupResource, string, string, ...string)) {
	if u.ID.GroupKind != bundle.StatefulSetKind || u.Content == nil || !u.Recreates && u.Content.GetAnnotations()[bundle.OnImmutable] == "" {
		return
	}
	if len(bundle.At[[]any](u.Content.Object, "spec", "volumeClaimTemplates")) > 0 {
		add(schema.GroupResource{Resource: "persistentvolumeclaims"}, u.ID.Namespace, "", "get", "list", "patch")
		add(classes, "", "", "get")
	}
}

// grants are the rights to grant rights that one may not have oneself
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping).
func grants(u Use, add func(schema.GroupResource, string, string, ...string)) {
	if u.ID.GroupKind.Group != rbac {
		return
	}
	switch u.ID.GroupKind.Kind {
	case "Role", "ClusterRole":
		add(u.Resource, u.ID.Namespace, u.ID.Name, "escalate")
	case "RoleBinding", "ClusterRoleBinding":
		if u.Content == nil {
			return
		}
		role := schema.GroupResource{Group: rbac, Resource: "roles"}
		if bundle.At[string](u.Content.Object, "roleRef", "kind") == "ClusterRole" {
			role.Resource = "clusterroles"
		}
		// Asked of the binding's namespace, whichever kind of role it is.
		add(role, u.ID.Namespace, bundle.At[string](u.Content.Object, "roleRef", "name"), "bind")
	}
}

func sorted(set map[Right]bool) []Right {
	return slices.SortedFunc(maps.Keys(set), compare)
}

func compare(a, b Right) int {
	return cmp.Or(
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Resource.Group, b.Resource.Group),
		strings.Compare(a.Resource.Resource, b.Resource.Resource), strings.Compare(a.Name, b.Name), strings.Compare(a.Verb, b.Verb),
	)
}
