package order

import (
	"slices"
	"strings"

	"brine/bundle"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Edges to what the server calls when it takes an object: webhooks, converters, their
// backends.

const nameLabel = "kubernetes.io/metadata.name"

// needBackend adds an edge to a Service and to the workloads that it selects,
// which have to be ready. service has a name and a namespace.
func (b *builder) needBackend(from int, service map[string]any, t tier, rule string) {
	ns, name := bundle.At[string](service, "namespace"), bundle.At[string](service, "name")
	i := b.find(bundle.ServiceKind, ns, name)
	if i < 0 {
		return
	}
	b.need(from, i, Applied, t, "backend Service "+name)
	b.need(from, b.find(schema.GroupKind{Kind: "Endpoints"}, ns, name), Applied, t, "backend Service "+name)
	for _, w := range b.backends(i, rule) {
		b.need(from, w, Ready, t, "backend of Service "+name)
	}
}

// backends are the workloads that a Service selects; found once a Service.
func (b *builder) backends(service int, rule string) []int {
	if found, ok := b.selectedBy[service]; ok {
		return found
	}
	o := b.objs[service]
	var found []int
	if want := bundle.Texts(content(o), "spec", "selector"); len(want) > 0 {
		for _, w := range b.selected(rule, o.ID.Namespace, want, nil) {
			found = append(found, b.workloads[w].object)
		}
	}
	b.selectedBy[service] = found
	return found
}

// conversions puts the resources of a CRD after the webhook that converts
// between its versions. The CRD itself needs no backend.
func (b *builder) conversions() {
	const rule = "resources and what converts them"
	for gk, c := range b.crds {
		spec := bundle.At[map[string]any](content(b.objs[c.object]), "spec", "conversion")
		service := bundle.At[map[string]any](spec, "webhook", "clientConfig", "service")
		if bundle.At[string](spec, "strategy") != "Webhook" || service == nil {
			continue
		}
		i := b.find(bundle.ServiceKind, bundle.At[string](service, "namespace"), bundle.At[string](service, "name"))
		if i < 0 {
			continue
		}
		for _, resource := range b.byKind[gk] {
			b.need(resource, i, Applied, conversion, "converted by Service "+b.objs[i].ID.Name)
			for _, w := range b.backends(i, rule) {
				if !b.pair(rule) {
					return
				}
				b.need(resource, w, Ready, conversion, "converted by "+b.named(w))
			}
		}
	}
}

// rule is one rule of a webhook of a configuration.
type rule struct {
	config     int
	name       string // of the configuration, as reasons write it
	exact      bool   // matchPolicy
	namespaces labels.Selector
	objects    labels.Selector
	versions   []string
	scope      string
}

// webhooks puts configurations after their backends, and what their rules
// match after them.
func (b *builder) webhooks() {
	rules := map[schema.GroupResource][]rule{}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, i := range b.byKind[schema.GroupKind{Group: admissionGroup, Kind: kind}] {
			for _, w := range bundle.Items[map[string]any](content(b.objs[i]), "webhooks") {
				if service := bundle.At[map[string]any](w, "clientConfig", "service"); service != nil {
					b.needBackend(i, service, backend, "webhooks and their backends")
				}
				b.hook(i, w, rules)
			}
		}
	}
	if len(rules) == 0 {
		return
	}
	for i, o := range b.objs {
		if o.ID.GroupKind.Group == admissionGroup {
			continue // never judged by webhooks, lest they lock people out
		}
		gr := schema.GroupResource{Group: o.ID.GroupKind.Group, Resource: b.plural(o.ID.GroupKind)}
		s := subject{object: i, labels: b.labels(i), resource: gr, version: o.GVK.Version, namespace: o.ID.Namespace}
		if clusterScoped.Has(o.ID.GroupKind) {
			s.namespace = ""
		}
		b.judge(s, rules, "validated or changed by ")
	}
	for _, w := range b.workloads {
		pod := schema.GroupResource{Resource: "pods"}
		s := subject{object: w.object, labels: w.labels, resource: pod, version: "v1", namespace: w.namespace}
		b.judge(s, rules, "its pods are validated or changed by ")
	}
}

// hook reads the rules of one webhook that bear on what is applied (and, of
// live objects, deleted). Rules for subresources do not.
func (b *builder) hook(config int, w map[string]any, rules map[schema.GroupResource][]rule) {
	one := rule{
		config:     config,
		name:       b.named(config),
		exact:      bundle.At[string](w, "matchPolicy") == "Exact",
		namespaces: labelSelector(bundle.At[map[string]any](w, "namespaceSelector")),
		objects:    labelSelector(bundle.At[map[string]any](w, "objectSelector")),
	}
	for _, r := range bundle.Items[map[string]any](w, "rules") {
		bears := slices.ContainsFunc(bundle.Items[string](r, "operations"), func(op string) bool {
			return op == "CREATE" || op == "UPDATE" || op == "*" || b.opts.Live && op == "DELETE"
		})
		if !bears {
			continue
		}
		one.versions, one.scope = bundle.Items[string](r, "apiVersions"), bundle.At[string](r, "scope")
		for _, group := range bundle.Items[string](r, "apiGroups") {
			for _, resource := range bundle.Items[string](r, "resources") {
				b.steps++
				if resource, ok := whole(resource); ok {
					at := schema.GroupResource{Group: group, Resource: resource}
					rules[at] = append(rules[at], one)
				}
			}
		}
	}
}

// subject is an object as a webhook would see it.
type subject struct {
	object    int
	labels    labels.Set
	resource  schema.GroupResource
	version   string
	namespace string
}

func (b *builder) judge(s subject, rules map[schema.GroupResource][]rule, reason string) {
	for _, group := range []string{s.resource.Group, "*"} {
		for _, resource := range []string{s.resource.Resource, "*"} {
			for _, r := range rules[schema.GroupResource{Group: group, Resource: resource}] {
				if !b.pair("webhooks and what they judge") {
					return
				}
				if b.matches(r, s) {
					b.need(s.object, r.config, Applied, judged, reason+r.name)
				}
			}
		}
	}
}

func (b *builder) matches(r rule, s subject) bool {
	switch {
	case r.exact && !slices.Contains(r.versions, s.version) && !slices.Contains(r.versions, "*"),
		r.scope == "Namespaced" && s.namespace == "",
		r.scope == "Cluster" && s.namespace != "",
		r.objects != nil && !r.objects.Matches(s.labels):
		return false
	case r.namespaces == nil:
		return true
	}
	ns := s.namespace
	if b.objs[s.object].ID.GroupKind == bundle.NamespaceKind {
		ns = b.objs[s.object].ID.Name
	}
	return ns == "" || b.inNamespace(r.namespaces, ns)
}

// inNamespace matches a selector against a namespace's labels. Of a namespace
// that is not in the bundle only the name is known; any other label may be
// there, so it is taken to match.
func (b *builder) inNamespace(s labels.Selector, namespace string) bool {
	i := b.find(bundle.NamespaceKind, "", namespace)
	if i >= 0 {
		set := labels.Merge(b.labels(i), labels.Set{nameLabel: namespace})
		return s.Matches(set)
	}
	requirements, _ := s.Requirements()
	return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == nameLabel && !r.Matches(labels.Set{nameLabel: namespace})
	})
}

// whole is the resource that a rule names, when the rule is for objects and not
// for a subresource alone: "pods", "*", "*/*" and "pods/*" are, "pods/status"
// is not (rules.Matcher in k8s.io/apiserver).
func whole(resource string) (string, bool) {
	name, sub, _ := strings.Cut(resource, "/")
	return name, sub == "" || sub == "*"
}
