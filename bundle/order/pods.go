package order

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

var (
	volumeKind        = schema.GroupKind{Kind: "PersistentVolume"}
	priorityClassKind = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}
	runtimeClassKind  = schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}
	networkPolicyKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
	limitRangeKind    = schema.GroupKind{Kind: "LimitRange"}
	quotaKind         = schema.GroupKind{Kind: "ResourceQuota"}
)

// workloadNeeds adds what pod templates name. What is optional there is named
// all the same: a pod that starts without it does not see it later.
func (b *builder) workloadNeeds() {
	makers := b.secretMakers()
	for _, w := range b.workloads {
		p := podRefs{b, w.object, w.namespace, makers}
		p.account(w.pod)
		p.digests()
		for _, v := range maps(w.pod["volumes"]) {
			p.volume(v)
		}
		for _, containers := range []string{"initContainers", "containers", "ephemeralContainers"} {
			for _, c := range maps(w.pod[containers]) {
				p.environment(c)
			}
		}
		for _, c := range maps(w.pod["resourceClaims"]) {
			for _, kind := range []string{"ResourceClaim", "ResourceClaimTemplate"} {
				field := "r" + kind[1:] + "Name"
				b.name(w.object, schema.GroupKind{Group: "resource.k8s.io", Kind: kind}, w.namespace, str(c[field]), "uses")
			}
		}
		if b.objs[w.object].ID.GroupKind == bundle.StatefulSetKind {
			p.statefulSet(mapAt(content(b.objs[w.object]), "spec"))
		}
	}
}

// podRefs follows the references of one workload's pod template.
type podRefs struct {
	b         *builder
	from      int
	namespace string
	makers    map[nsName][]int
}

func (p podRefs) account(pod map[string]any) {
	b := p.b
	b.name(p.from, bundle.ServiceAccountKind, p.namespace, accountName(pod), "runs as")
	for _, s := range maps(pod["imagePullSecrets"]) {
		p.secret(str(s["name"]), "pulls images with")
	}
	if class := str(pod["priorityClassName"]); class != "" {
		b.name(p.from, priorityClassKind, "", class, "priority by")
	} else {
		p.defaultPriority()
	}
	b.name(p.from, runtimeClassKind, "", str(pod["runtimeClassName"]), "runs in")
}

// digests are what brine.dev/digest-of names: pods are to start with what their
// digest is of.
func (p podRefs) digests() {
	of, _ := annotation(p.b.objs[p.from], bundle.DigestOf)
	for ref := range strings.SplitSeq(of, ",") {
		resource, name, _ := strings.Cut(strings.TrimSpace(ref), "/")
		switch resource {
		case "configmaps", "configmap":
			p.configMap(name, "digest of")
		case "secrets", "secret":
			p.secret(name, "digest of")
		}
	}
}

// accountName is the ServiceAccount that a pod runs as.
func accountName(pod map[string]any) string {
	for _, field := range []string{"serviceAccountName", "serviceAccount"} {
		if name := str(pod[field]); name != "" {
			return name
		}
	}
	return "default"
}

func (p podRefs) defaultPriority() {
	for _, class := range p.b.byKind[priorityClassKind] {
		p.b.steps++
		if global, _ := content(p.b.objs[class])["globalDefault"].(bool); global {
			p.b.need(p.from, class, Applied, reference, "default PriorityClass")
			return
		}
	}
}

func (p podRefs) secret(name, verb string) {
	p.b.name(p.from, bundle.SecretKind, p.namespace, name, verb)
	for _, maker := range p.makers[nsName{p.namespace, name}] {
		p.b.need(p.from, maker, Applied, reference, verb+" Secret "+name+" made by "+p.b.named(maker))
	}
}

func (p podRefs) configMap(name, verb string) {
	p.b.name(p.from, bundle.ConfigMapKind, p.namespace, name, verb)
}

func (p podRefs) volume(v map[string]any) {
	p.configMap(str(mapAt(v, "configMap")["name"]), "mounts")
	p.secret(str(mapAt(v, "secret")["secretName"]), "mounts")
	p.secret(str(mapAt(v, "azureFile")["secretName"]), "mounts with")
	p.b.name(p.from, bundle.PersistentVolumeClaimKind, p.namespace, str(mapAt(v, "persistentVolumeClaim")["claimName"]), "mounts")
	for _, s := range maps(mapAt(v, "projected")["sources"]) {
		p.configMap(str(mapAt(s, "configMap")["name"]), "mounts")
		p.secret(str(mapAt(s, "secret")["name"]), "mounts")
	}
	if claim := mapAt(v, "ephemeral", "volumeClaimTemplate", "spec"); claim != nil {
		p.b.storageClass(p.from, claim)
	}
	for kind := range v {
		source := mapAt(v, kind)
		for _, field := range []string{"secretRef", "nodePublishSecretRef"} {
			p.secret(str(mapAt(source, field)["name"]), "mounts with")
		}
	}
}

func (p podRefs) environment(container map[string]any) {
	for _, from := range maps(container["envFrom"]) {
		p.configMap(str(mapAt(from, "configMapRef")["name"]), "environment from")
		p.secret(str(mapAt(from, "secretRef")["name"]), "environment from")
	}
	for _, env := range maps(container["env"]) {
		from := mapAt(env, "valueFrom")
		p.configMap(str(mapAt(from, "configMapKeyRef")["name"]), "environment from")
		p.secret(str(mapAt(from, "secretKeyRef")["name"]), "environment from")
	}
}

func (p podRefs) statefulSet(spec map[string]any) {
	p.b.name(p.from, bundle.ServiceKind, p.namespace, str(spec["serviceName"]), "its pods are named by")
	for _, t := range maps(spec["volumeClaimTemplates"]) {
		p.b.storageClass(p.from, mapAt(t, "spec"))
	}
}

type nsName struct{ namespace, name string }

// secretMakers are the custom resources known to make a Secret that a pod may
// name. Without these edges a webhook could hold back what its own backend
// waits for.
func (b *builder) secretMakers() map[nsName][]int {
	makers := map[nsName][]int{}
	for gk, path := range map[schema.GroupKind][]string{
		{Group: "cert-manager.io", Kind: "Certificate"}:        {"spec", "secretName"},
		{Group: "external-secrets.io", Kind: "ExternalSecret"}: {"spec", "target", "name"},
		{Group: "bitnami.com", Kind: "SealedSecret"}:           {"spec", "template", "metadata", "name"},
	} {
		for _, i := range b.byKind[gk] {
			id := b.objs[i].ID
			name := str(mapAt(content(b.objs[i]), path[:len(path)-1]...)[path[len(path)-1]])
			if name == "" && gk.Kind != "Certificate" {
				name = id.Name
			}
			makers[nsName{id.Namespace, name}] = append(makers[nsName{id.Namespace, name}], i)
		}
	}
	return makers
}

// volumes adds what volumes and claims name.
func (b *builder) volumes() {
	for _, i := range b.byKind[bundle.PersistentVolumeClaimKind] {
		spec := mapAt(content(b.objs[i]), "spec")
		b.storageClass(i, spec)
		b.name(i, volumeKind, "", str(spec["volumeName"]), "bound to")
	}
	for _, i := range b.byKind[volumeKind] {
		spec := mapAt(content(b.objs[i]), "spec")
		b.name(i, bundle.StorageClassKind, "", str(spec["storageClassName"]), "of")
		ref := mapAt(spec, "claimRef")
		claim := b.find(bundle.PersistentVolumeClaimKind, str(ref["namespace"]), str(ref["name"]))
		b.need(claim, i, Applied, reference, "bound to "+b.named(i))
	}
}

// storageClass is the class of a claim. "" asks for none; without the field the
// default one is filled in at admission.
func (b *builder) storageClass(from int, claim map[string]any) {
	if class, given := claim["storageClassName"]; given && class != nil {
		b.name(from, bundle.StorageClassKind, "", str(class), "of")
		return
	}
	b.byDefault(from, bundle.StorageClassKind, "storageclass.kubernetes.io/is-default-class")
}

// policies adds what has to stand before the pods that it is for: quotas and
// limits, which only judge new pods, and network policies, which would leave
// pods open until they come.
func (b *builder) policies() {
	for _, gk := range []schema.GroupKind{limitRangeKind, quotaKind} {
		rule := gk.Kind + "s and workloads"
		for _, i := range b.byKind[gk] {
			for _, w := range b.byNamespace[b.objs[i].ID.Namespace] {
				if !b.pair(rule) {
					break
				}
				b.need(b.workloads[w].object, i, Applied, policy, "limited by "+b.named(i))
			}
		}
	}
	for _, i := range b.byKind[networkPolicyKind] {
		podSelector := mapAt(content(b.objs[i]), "spec", "podSelector")
		want := stringMap(podSelector["matchLabels"])
		for _, w := range b.selected("NetworkPolicies and workloads", b.objs[i].ID.Namespace, want, labelSelector(podSelector)) {
			b.need(b.workloads[w].object, i, Applied, policy, "restricted by "+b.named(i))
		}
	}
}

// labelSelector reads a label selector; nil (which matches all) when there is none
// or when it cannot be read, which the server reports.
func labelSelector(m map[string]any) labels.Selector {
	if len(m) == 0 {
		return nil
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &typed); err != nil {
		return nil
	}
	s, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return nil
	}
	return s
}
