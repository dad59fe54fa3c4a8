package order

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// index finds objects by the fields that refer to them.
type index struct {
	objs []*bundle.Object
	byID map[bundle.ID]int
	// byKind are the objects of each kind, in the order of the text.
	byKind map[schema.GroupKind][]int
	// loose finds objects of cluster-scoped kinds by kind and name: a bundle
	// that no server has seen yet may still give them a namespace.
	loose map[bundle.ID]int
	// crds is by the kind that a CRD defines.
	crds      map[schema.GroupKind]crd
	defined   map[string][]crd // by group
	workloads []workload
	// byLabel and byNamespace find workloads by what their pods carry.
	byLabel     map[podLabel][]int
	byNamespace map[string][]int
}

type crd struct {
	object int
	plural string
}

// workload is an object that makes pods, or a pod.
type workload struct {
	object    int
	namespace string
	pod       map[string]any // the pod's spec
	labels    labels.Set     // the pod's
}

type podLabel struct{ namespace, key, value string }

func newIndex(objs []*bundle.Object) index {
	x := index{
		objs:        objs,
		byID:        make(map[bundle.ID]int, len(objs)),
		byKind:      map[schema.GroupKind][]int{},
		loose:       map[bundle.ID]int{},
		crds:        map[schema.GroupKind]crd{},
		defined:     map[string][]crd{},
		byLabel:     map[podLabel][]int{},
		byNamespace: map[string][]int{},
	}
	for i, o := range objs {
		x.add(i, o)
	}
	return x
}

func (x *index) add(i int, o *bundle.Object) {
	gk := o.ID.GroupKind
	x.byKind[gk] = append(x.byKind[gk], i)
	// Of those that have only a generateName none can be found by name.
	if _, twice := x.byID[o.ID]; !twice && o.ID.Name != "" {
		x.byID[o.ID] = i
	}
	if clusterScoped.Has(gk) {
		x.loose[bundle.ID{GroupKind: gk, Name: o.ID.Name}] = i
	}
	if gk == bundle.CRDKind {
		d, _ := bundle.DefinitionOf(o.Content)
		c := crd{object: i, plural: d.Plural}
		x.crds[d.Kind] = c
		x.defined[d.Kind.Group] = append(x.defined[d.Kind.Group], c)
		return
	}
	pod, meta := podTemplate(o)
	if pod == nil {
		return
	}
	w := len(x.workloads)
	set := bundle.Texts(meta, "labels")
	ns := o.ID.Namespace
	x.workloads = append(x.workloads, workload{object: i, namespace: ns, pod: pod, labels: set})
	x.byNamespace[ns] = append(x.byNamespace[ns], w)
	for k, v := range set {
		at := podLabel{ns, k, v}
		x.byLabel[at] = append(x.byLabel[at], w)
	}
}

// podTemplate gives the pod's spec and metadata of an object that makes pods,
// be it a built-in kind or a custom resource of the usual shape
// (spec.template.spec.containers); nil for all others.
func podTemplate(o *bundle.Object) (spec, metadata map[string]any) {
	c := content(o)
	switch o.ID.GroupKind {
	case bundle.PodKind:
		return bundle.At[map[string]any](c, "spec"), bundle.At[map[string]any](c, "metadata")
	case bundle.CronJobKind:
		c = bundle.At[map[string]any](c, "spec", "jobTemplate")
	}
	template := bundle.At[map[string]any](c, "spec", "template")
	spec = bundle.At[map[string]any](template, "spec")
	if len(bundle.At[[]any](spec, "containers")) == 0 {
		return nil, nil
	}
	return spec, bundle.At[map[string]any](template, "metadata")
}

// find is the index of an object, -1 when the bundle does not have it.
func (x *index) find(gk schema.GroupKind, namespace, name string) int {
	if i, ok := x.byID[bundle.ID{GroupKind: gk, Namespace: namespace, Name: name}]; ok {
		return i
	}
	if i, ok := x.loose[bundle.ID{GroupKind: gk, Name: name}]; ok {
		return i
	}
	return -1
}

// selected are the workloads of a namespace whose pods carry the labels that
// want asks for and, where rest is given, match it too. It looks only at those
// that have the rarest of the labels.
func (b *builder) selected(rule, namespace string, want map[string]string, rest labels.Selector) []int {
	candidates := b.byNamespace[namespace]
	for k, v := range want {
		if with := b.byLabel[podLabel{namespace, k, v}]; len(with) < len(candidates) {
			candidates = with
		}
	}
	all := labels.SelectorFromSet(want)
	var found []int
	for _, w := range candidates {
		if !b.pair(rule) {
			break
		}
		set := b.workloads[w].labels
		if all.Matches(set) && (rest == nil || rest.Matches(set)) {
			found = append(found, w)
		}
	}
	return found
}

// plural is the resource of a kind: what its CRD says, or else the usual
// lower-case plural, which holds for all built-in kinds.
func (x *index) plural(gk schema.GroupKind) string {
	if c, ok := x.crds[gk]; ok && c.plural != "" {
		return c.plural
	}
	kind := strings.ToLower(gk.Kind)
	if n := len(kind); n > 1 && kind[n-1] == 'y' && strings.IndexByte("aeiou", kind[n-2]) >= 0 {
		return kind + "s" // Gateway
	}
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
	return plural.Resource
}

// clusterScoped are the kinds that are found by name alone.
var clusterScoped = bundle.Kinds("Namespace", "PersistentVolume", "CustomResourceDefinition.apiextensions.k8s.io", "APIService.apiregistration.k8s.io",
	"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io", "PriorityClass.scheduling.k8s.io", "RuntimeClass.node.k8s.io",
	"StorageClass.storage.k8s.io", "VolumeAttributesClass.storage.k8s.io", "IngressClass.networking.k8s.io", "DeviceClass.resource.k8s.io",
	"GatewayClass.gateway.networking.k8s.io", "ClusterTrustBundle.certificates.k8s.io",
	"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io",
	"ValidatingAdmissionPolicy.admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
	"MutatingAdmissionPolicy.admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io")

// IsClusterScoped says whether objects of a kind that others name are found by name alone.
func IsClusterScoped(gk schema.GroupKind) bool { return clusterScoped.Has(gk) }

func (x *index) labels(i int) labels.Set {
	return bundle.Texts(content(x.objs[i]), "metadata", "labels")
}

// These functions read fields of any type: an unexpected one is nil, and
// the server reports what is wrong with it.

func content(o *bundle.Object) map[string]any {
	if o.Content == nil {
		return nil
	}
	return o.Content.Object
}

func annotation(o *bundle.Object, key string) (string, bool) {
	v, ok := bundle.At[any](content(o), "metadata", "annotations", key).(string)
	return v, ok
}
