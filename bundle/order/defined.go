package order

import (
	"strings"

	"brine/bundle"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	ingressKind      = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	ingressClassKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"}
	hpaKind          = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

// definitions adds what has to exist before the server takes an object at all:
// its Namespace, its CRD (established and served), the APIService of its group.
func (b *builder) definitions() {
	served := b.apiServices()
	reasons := map[string]string{} // one string a namespace, not one an object
	for i, o := range b.objs {
		if ns := o.ID.Namespace; ns != "" && !clusterScoped[o.ID.GroupKind] {
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
		spec := mapAt(content(b.objs[i]), "spec")
		service := mapAt(spec, "service")
		if service == nil {
			continue
		}
		served[schema.GroupVersion{Group: str(spec["group"]), Version: str(spec["version"])}] = i
		b.needBackend(i, service, backend, "APIServices and their backends")
	}
	return served
}

// named is how reasons name an object: kind and name, the reader sees the rest.
func (b *builder) named(i int) string {
	id := b.objs[i].ID
	return id.GroupKind.Kind + " " + id.Name
}

// references adds what objects other than workloads name.
func (b *builder) references() {
	for i, o := range b.objs {
		c, ns := content(o), o.ID.Namespace
		spec := mapAt(c, "spec")
		switch o.ID.GroupKind {
		case ingressKind:
			b.ingress(i, spec, ns)
		case hpaKind:
			target := mapAt(spec, "scaleTargetRef")
			gv, _ := schema.ParseGroupVersion(str(target["apiVersion"]))
			gk := schema.GroupKind{Group: gv.Group, Kind: str(target["kind"])}
			b.name(i, gk, ns, str(target["name"]), "scales")
		case bundle.SecretKind:
			if account, ok := annotation(o, "kubernetes.io/service-account.name"); ok {
				b.name(i, bundle.ServiceAccountKind, ns, account, "token of")
			}
		case bundle.ServiceAccountKind:
			for _, s := range maps(c["imagePullSecrets"]) {
				b.name(i, bundle.SecretKind, ns, str(s["name"]), "pulls images with")
			}
		}
		if o.ID.GroupKind.Group == admissionGroup {
			b.admissionPolicy(i, o.ID.GroupKind.Kind, spec)
		}
	}
}

// name adds an edge to an object that is referred to by name; reason is the
// verb before kind and name.
func (b *builder) name(from int, gk schema.GroupKind, namespace, name, verb string) {
	b.steps++
	if name == "" {
		return
	}
	if to := b.find(gk, namespace, name); to >= 0 {
		b.need(from, to, Applied, reference, verb+" "+gk.Kind+" "+name)
	}
}

func (b *builder) ingress(i int, spec map[string]any, ns string) {
	if class, given := spec["ingressClassName"]; given {
		b.name(i, ingressClassKind, "", str(class), "of")
	} else if _, given := annotation(b.objs[i], "kubernetes.io/ingress.class"); !given {
		b.byDefault(i, ingressClassKind, "ingressclass.kubernetes.io/is-default-class")
	}
	for _, t := range maps(spec["tls"]) {
		b.name(i, bundle.SecretKind, ns, str(t["secretName"]), "TLS from")
	}
	route := func(to map[string]any) {
		b.name(i, bundle.ServiceKind, ns, str(mapAt(to, "service")["name"]), "routes to")
	}
	route(mapAt(spec, "defaultBackend"))
	for _, r := range maps(spec["rules"]) {
		for _, p := range maps(mapAt(r, "http")["paths"]) {
			route(mapAt(p, "backend"))
		}
	}
}

// byDefault adds an edge to the class that the server fills in at admission.
func (b *builder) byDefault(from int, gk schema.GroupKind, key string) {
	for _, class := range b.byKind[gk] {
		b.steps++
		if v, _ := annotation(b.objs[class], key); v == "true" {
			b.need(from, class, Applied, reference, "default "+gk.Kind)
			return
		}
	}
}

const admissionGroup = "admissionregistration.k8s.io"

// admissionPolicy puts a policy before its binding, what a binding names as
// parameters before it, and the CRD of the parameters before the policy, which
// is checked against it.
func (b *builder) admissionPolicy(i int, kind string, spec map[string]any) {
	param := func(of map[string]any) schema.GroupKind {
		gv, _ := schema.ParseGroupVersion(str(mapAt(of, "paramKind")["apiVersion"]))
		return schema.GroupKind{Group: gv.Group, Kind: str(mapAt(of, "paramKind")["kind"])}
	}
	switch kind {
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		if c, ok := b.crds[param(spec)]; ok {
			b.need(i, c.object, Ready, reference, "parameters of kind "+param(spec).Kind)
		}
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		gk := schema.GroupKind{Group: admissionGroup, Kind: strings.TrimSuffix(kind, "Binding")}
		name := str(spec["policyName"])
		b.name(i, gk, "", name, "binds")
		p := b.find(gk, "", name)
		if p < 0 {
			return
		}
		ref := mapAt(spec, "paramRef")
		b.name(i, param(mapAt(content(b.objs[p]), "spec")), str(ref["namespace"]), str(ref["name"]), "parameters from")
	}
}
