package bundle

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The kinds that more than one package treats differently from the others.
var (
	APIServiceKind              = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	ConfigMapKind               = schema.GroupKind{Kind: "ConfigMap"}
	CRDKind                     = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	CronJobKind                 = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	DaemonSetKind               = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	DeploymentKind              = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	DeviceClassKind             = schema.GroupKind{Group: "resource.k8s.io", Kind: "DeviceClass"}
	HorizontalPodAutoscalerKind = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	JobKind                     = schema.GroupKind{Group: "batch", Kind: "Job"}
	LeaseKind                   = schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}
	NamespaceKind               = schema.GroupKind{Kind: "Namespace"}
	PersistentVolumeClaimKind   = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	PersistentVolumeKind        = schema.GroupKind{Kind: "PersistentVolume"}
	PodKind                     = schema.GroupKind{Kind: "Pod"}
	PriorityClassKind           = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}
	ReplicaSetKind              = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	RuntimeClassKind            = schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}
	SecretKind                  = schema.GroupKind{Kind: "Secret"}
	ServiceAccountKind          = schema.GroupKind{Kind: "ServiceAccount"}
	ServiceKind                 = schema.GroupKind{Kind: "Service"}
	StatefulSetKind             = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	StorageClassKind            = schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}
	VolumeAttributesClassKind   = schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}
)

// DigestKinds are the kinds that DigestOf may name, by the words it names them with.
var DigestKinds = map[string]schema.GroupKind{"configmap": ConfigMapKind, "configmaps": ConfigMapKind, "secret": SecretKind, "secrets": SecretKind}

// HoldsObjects reports whether the deletion of an object of this kind deletes other
// objects too: a Namespace those in it, a CustomResourceDefinition those of its kind.
func HoldsObjects(gk schema.GroupKind) bool { return gk == NamespaceKind || gk == CRDKind }

// IsBuiltIn reports whether a group's name is one that Kubernetes keeps for itself.
func IsBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// Contents is what a Namespace or a CustomResourceDefinition holds that would be
// lost with it.
type Contents struct {
	// Unmanaged are objects outside of the inventory, as messages name them.
	Unmanaged []string
	// Unknown is what cannot be read, with the reason.
	Unknown []string
}

// Kinds is a set of kinds, each written KIND.GROUP.
func Kinds(names ...string) sets.Set[schema.GroupKind] {
	all := sets.New[schema.GroupKind]()
	for _, name := range names {
		all.Insert(schema.ParseGroupKind(name))
	}
	return all
}
