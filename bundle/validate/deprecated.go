package validate

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"brine/bundle"
)

// ending is since which minor version something is deprecated, and since which one it no
// longer works, 0 where that is not decided.
type ending struct {
	since, stops int
	instead      string
}

func (d ending) message(minor int) string {
	if d.since > minor || d.since == 0 {
		return ""
	}
	m := fmt.Sprintf("deprecated since Kubernetes 1.%d", d.since)
	if d.stops > 0 && d.stops <= minor {
		m = fmt.Sprintf("does not work since Kubernetes 1.%d", d.stops)
	} else if d.stops > 0 {
		m += fmt.Sprintf(", will not work from 1.%d on", d.stops)
	}
	if d.instead != "" {
		m += "; use " + d.instead
	}
	return m
}

// What the API server warns of: k8s.io/kubernetes/pkg/api/*/warnings.go.
var (
	deprecatedVolumes = map[string]ending{
		"gitRepo": {11, 33, "an init container that clones into an emptyDir"}, "photonPersistentDisk": {11, 16, "a CSI driver"}, "scaleIO": {16, 22, "a CSI driver"},
		"flocker": {22, 25, "a CSI driver"}, "quobyte": {22, 25, "a CSI driver"}, "storageos": {22, 25, "a CSI driver"}, "glusterfs": {25, 26, "a CSI driver"},
		"cephfs": {28, 31, "a CSI driver"}, "rbd": {28, 31, "a CSI driver"},
	}
	deprecatedAnnotations = map[string]ending{
		"scheduler.alpha.kubernetes.io/critical-pod":     {13, 16, "the field priorityClassName"},
		"security.alpha.kubernetes.io/sysctls":           {11, 11, "the field sysctls"},
		"security.alpha.kubernetes.io/unsafe-sysctls":    {11, 11, "the field sysctls"},
		"seccomp.security.alpha.kubernetes.io/pod":       {19, 27, "the field seccompProfile"},
		"container.seccomp.security.alpha.kubernetes.io": {19, 27, "the field seccompProfile"}, // and a container's name
		"container.apparmor.security.beta.kubernetes.io": {30, 0, "the field appArmorProfile"},
		"service.kubernetes.io/topology-aware-hints":     {27, 0, "service.kubernetes.io/topology-mode"},
		"volume.beta.kubernetes.io/storage-class":        {8, 0, "the field storageClassName"},
		"volume.beta.kubernetes.io/mount-options":        {31, 0, "the field mountOptions"},
		"kubernetes.io/enforce-mountable-secrets":        {32, 0, "a namespace for each"},
	}
	deprecatedLabels = map[string]ending{
		"beta.kubernetes.io/arch": {14, 0, "kubernetes.io/arch"}, "beta.kubernetes.io/os": {14, 0, "kubernetes.io/os"},
		"beta.kubernetes.io/instance-type":         {17, 0, "node.kubernetes.io/instance-type"},
		"failure-domain.beta.kubernetes.io/region": {17, 0, "topology.kubernetes.io/region"}, "failure-domain.beta.kubernetes.io/zone": {17, 0, "topology.kubernetes.io/zone"},
		"node-role.kubernetes.io/master": {20, 0, "node-role.kubernetes.io/control-plane"},
	}
	ingressClass = ending{22, 0, "the field ingressClassName"}
	externalIPs  = ending{36, 0, "a Service of type LoadBalancer, or a Gateway: kube-proxy need not implement it"}
)

// deprecatedIn are the warnings about the fields, labels and annotations of a built-in object.
func deprecatedIn(obj *bundle.Object, typed runtime.Object, minor int) (warnings []bundle.Problem) {
	warn := func(at *field.Path, d ending) {
		if message := d.message(minor); message != "" {
			warnings = append(warnings, obj.Problem(strings.TrimPrefix(at.String(), "."), message))
		}
	}
	visit(reflect.ValueOf(typed), nil, func(value any, at *field.Path) {
		switch o := value.(type) {
		case *metav1.ObjectMeta:
			for key := range o.Annotations {
				name := key
				if prefix, _, ok := strings.Cut(key, "/"); ok && strings.HasPrefix(prefix, "container.") {
					name = prefix
				}
				warn(at.Child("annotations").Key(key), deprecatedAnnotations[name])
			}
		case *networkingv1.Ingress:
			if o.Annotations["kubernetes.io/ingress.class"] != "" {
				warn(field.NewPath("metadata", "annotations").Key("kubernetes.io/ingress.class"), ingressClass)
			}
		case *corev1.ServiceSpec:
			if len(o.ExternalIPs) > 0 && o.ClusterIP != corev1.ClusterIPNone && o.Type != corev1.ServiceTypeExternalName {
				warn(at.Child("externalIPs"), externalIPs)
			}
		case *corev1.Volume:
			volumes(reflect.ValueOf(o.VolumeSource), at, warn)
		case *corev1.PersistentVolumeSpec:
			volumes(reflect.ValueOf(o.PersistentVolumeSource), at, warn)
		case *corev1.PodSpec:
			for key := range o.NodeSelector {
				warn(at.Child("nodeSelector").Key(key), deprecatedLabels[key])
			}
		case *corev1.NodeSelectorRequirement:
			warn(at.Child("key"), deprecatedLabels[o.Key])
		case *corev1.TopologySpreadConstraint:
			warn(at.Child("topologyKey"), deprecatedLabels[o.TopologyKey])
		}
	})
	return warnings
}

func volumes(source reflect.Value, at *field.Path, warn func(*field.Path, ending)) {
	for _, name := range setFields(source) {
		warn(at.Child(name), deprecatedVolumes[name])
	}
}
