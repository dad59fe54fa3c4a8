package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

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
