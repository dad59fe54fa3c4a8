package order

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Edges to what must exist first (Namespace, CRD, APIService), and to what objects name
// outside of pods.

var (
	ingressKind      = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	ingressClassKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"}
)

// definitions adds what has to exist before the server takes an object at all:
// its Namespace, its CRD (established and served), the APIService of its group.
func (b *builder) definitions() {
	served := b.apiServices()
	reasons := map[string]string{} // one string a namespace, not one an object
	for i, o := range b.objs {
		if ns := o.ID.Namespace; ns != "" && !clusterScoped.Has(o.ID.GroupKind) {
			if reasons[ns] == "" {
				reasons[ns] = "namespace " + ns
			}
			b.need(i, b.find(bundle.NamespaceKind, "", ns), Applied, definition, reasons[ns])
		}
		if c, ok := b.crds[o.ID.GroupKind]; ok {
			b.need(i, c.object, Ready, definition, "defined by "+b.named(c.object))
		}
		if a, ok := served[o.GVK.GroupVersion()]; ok {
			b.need(i, a, Ready, definition, "served by "+b.named(a))
		}
	}
}

// apiServices are those with a backend other than the API server itself. They wait
// for their backends.
func (b *builder) apiServices() map[schema.GroupVersion]int {
	served := map[schema.GroupVersion]int{}
	for _, i := range b.byKind[bundle.APIServiceKind] {
		spec := bundle.At[map[string]any](content(b.objs[i]), "spec")
		service := bundle.At[map[string]any](spec, "service")
		if service == nil {
			continue
		}
		served[schema.GroupVersion{Group: bundle.At[string](spec, "group"), Version: bundle.At[string](spec, "version")}] = i
		b.needBackend(i, service, backend, "APIServices and their backends")
	}
	return served
}

// named is how reasons name an object: kind and name, the reader sees the rest.
func (b *builder) named(i int) string {
	id := b.objs[i].ID
	return id.GroupKind.Kind + " " + id.Name
}

var (
	trustBundleKind  = schema.GroupKind{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}
	gatewayKind      = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gateway"}
	gatewayClassKind = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}
)

var objectReferences = map[schema.GroupKind][]reference{
	ingressKind: {
		{"spec.ingressClassName", ingressClassKind, "of"},
		{"spec.tls.secretName", bundle.SecretKind, "TLS from"},
		{"spec.defaultBackend.service.name", bundle.ServiceKind, "routes to"},
		{"spec.rules.http.paths.backend.service.name", bundle.ServiceKind, "routes to"},
	},
	bundle.ServiceAccountKind: {{"imagePullSecrets.name", bundle.SecretKind, "pulls images with"}},
	bundle.StatefulSetKind: {
		{"spec.serviceName", bundle.ServiceKind, "its pods are named by"},
		{"spec.volumeClaimTemplates.spec.volumeAttributesClassName", bundle.VolumeAttributesClassKind, "claims volumes of"},
	},
	bundle.PersistentVolumeClaimKind: {{"spec.volumeName", bundle.PersistentVolumeKind, "bound to"}, {"spec.volumeAttributesClassName", bundle.VolumeAttributesClassKind, "of"}},
	bundle.PersistentVolumeKind:      {{"spec.storageClassName", bundle.StorageClassKind, "of"}, {"spec.volumeAttributesClassName", bundle.VolumeAttributesClassKind, "of"}},
	gatewayKind:                      {{"spec.gatewayClassName", gatewayClassKind, "of"}},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}: {
		{"spec.devices.requests.deviceClassName", bundle.DeviceClassKind, "of"}, // before v1beta2
		{"spec.devices.requests.exactly.deviceClassName", bundle.DeviceClassKind, "of"},
		{"spec.devices.requests.firstAvailable.deviceClassName", bundle.DeviceClassKind, "of"},
	},
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}: {
		{"spec.spec.devices.requests.deviceClassName", bundle.DeviceClassKind, "of"},
		{"spec.spec.devices.requests.exactly.deviceClassName", bundle.DeviceClassKind, "of"},
		{"spec.spec.devices.requests.firstAvailable.deviceClassName", bundle.DeviceClassKind, "of"},
	},
}

// ClassReferences are the classes of devices and volumes that an object names outside of
// its pods.
func ClassReferences(of schema.GroupKind, content map[string]any) []Reference {
	return slices.DeleteFunc(follow(content, "", objectReferences[of]), func(r Reference) bool {
		return r.Kind != bundle.DeviceClassKind && r.Kind != bundle.VolumeAttributesClassKind
	})
}

// references adds what objects name outside of their pods.
func (b *builder) references() {
	for i, o := range b.objs {
		c, ns := content(o), o.ID.Namespace
		spec := bundle.At[map[string]any](c, "spec")
		for _, r := range follow(c, "", objectReferences[o.ID.GroupKind]) {
			b.name(i, r.Kind, ns, r.Name, r.Verb)
		}
		switch o.ID.GroupKind {
		case ingressKind:
			_, given := annotation(o, "kubernetes.io/ingress.class")
			if _, class := spec["ingressClassName"]; !class && !given {
				b.byDefault(i, ingressClassKind, "ingressclass.kubernetes.io/is-default-class")
			}
		case bundle.HorizontalPodAutoscalerKind:
			target := bundle.At[map[string]any](spec, "scaleTargetRef")
			b.name(i, kindIn(target), ns, bundle.At[string](target, "name"), "scales")
		case bundle.SecretKind:
			account, _ := annotation(o, "kubernetes.io/service-account.name")
			b.name(i, bundle.ServiceAccountKind, ns, account, "token of")
		case bundle.PersistentVolumeClaimKind:
			b.storageClass(i, spec)
		case bundle.StatefulSetKind:
			for _, t := range bundle.Items[map[string]any](spec, "volumeClaimTemplates") {
				b.storageClass(i, bundle.At[map[string]any](t, "spec"))
			}
		case bundle.PersistentVolumeKind:
			ref := bundle.At[map[string]any](spec, "claimRef")
			claim := b.find(bundle.PersistentVolumeClaimKind, bundle.At[string](ref, "namespace"), bundle.At[string](ref, "name"))
			b.need(claim, i, Applied, named, "bound to "+b.named(i))
		}
		if o.ID.GroupKind.Group == gatewayKind.Group {
			for _, ref := range bundle.Items[map[string]any](spec, "parentRefs") { // of a route of any kind
				if kind, _ := ref["kind"].(string); kind == "" || kind == gatewayKind.Kind {
					b.name(i, gatewayKind, cmp.Or(bundle.At[string](ref, "namespace"), ns), bundle.At[string](ref, "name"), "attached to")
				}
			}
		}
		if o.ID.GroupKind.Group == admissionGroup {
			b.admissionPolicy(i, o.ID.GroupKind.Kind, spec)
		}
	}
}

// kindIn is the kind that a reference names by apiVersion and kind.
func kindIn(ref map[string]any) schema.GroupKind {
	gv, _ := schema.ParseGroupVersion(bundle.At[string](ref, "apiVersion"))
	return gv.WithKind(bundle.At[string](ref, "kind")).GroupKind()
}

// name adds an edge to an object that is referred to by name; reason is the
// verb before kind and name.
func (b *builder) name(from int, gk schema.GroupKind, namespace, name, verb string) {
	b.steps++
	if name == "" {
		return
	}
	if to := b.find(gk, namespace, name); to >= 0 {
		b.need(from, to, Applied, named, verb+" "+gk.Kind+" "+name)
	}
}

// byDefault adds an edge to the class that the server fills in at admission: an
// annotation, or the field of a PriorityClass, makes it the default.
func (b *builder) byDefault(from int, gk schema.GroupKind, key string) {
	for _, class := range b.byKind[gk] {
		b.steps++
		if v, _ := annotation(b.objs[class], key); v == "true" || content(b.objs[class])["globalDefault"] == true {
			b.need(from, class, Applied, named, "default "+gk.Kind)
			return
		}
	}
}

const admissionGroup = "admissionregistration.k8s.io"

// admissionPolicy puts a policy before its binding, what a binding names as
// parameters before it, and the CRD of the parameters before the policy, which
// is checked against it.
func (b *builder) admissionPolicy(i int, kind string, spec map[string]any) {
	switch kind {
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		param := kindIn(bundle.At[map[string]any](spec, "paramKind"))
		if c, ok := b.crds[param]; ok {
			b.need(i, c.object, Ready, named, "parameters of kind "+param.Kind)
		}
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		gk := schema.GroupKind{Group: admissionGroup, Kind: strings.TrimSuffix(kind, "Binding")}
		name := bundle.At[string](spec, "policyName")
		b.name(i, gk, "", name, "binds")
		p := b.find(gk, "", name)
		if p < 0 {
			return
		}
		ref := bundle.At[map[string]any](spec, "paramRef")
		b.name(i, kindIn(bundle.At[map[string]any](content(b.objs[p]), "spec", "paramKind")), bundle.At[string](ref, "namespace"), bundle.At[string](ref, "name"), "parameters from")
	}
}
