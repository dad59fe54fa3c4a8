package order

import (
	"cmp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Edges of workloads: what their pods name, and the quotas, limits and network policies for
// them.

var (
	networkPolicyKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
	limitRangeKind    = schema.GroupKind{Kind: "LimitRange"}
	quotaKind         = schema.GroupKind{Kind: "ResourceQuota"}
)

// reference is a field by which objects name others of a kind. Its path leads
// through all items of a list; "*" is each field of a mapping.
type reference struct {
	path string
	kind schema.GroupKind
	verb string // in reasons, before kind and name
}

// What is optional in a pod is still named: a pod that starts without it
// does not see it later.
var podReferences = []reference{
	{"imagePullSecrets.name", bundle.SecretKind, "pulls images with"},
	{"priorityClassName", bundle.PriorityClassKind, "priority by"},
	{"runtimeClassName", bundle.RuntimeClassKind, "runs in"},
	{"resourceClaims.resourceClaimName", schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaim"}, "uses"},
	{"resourceClaims.resourceClaimTemplateName", schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}, "uses"},
	{"volumes.configMap.name", bundle.ConfigMapKind, "mounts"},
	{"volumes.secret.secretName", bundle.SecretKind, "mounts"},
	{"volumes.azureFile.secretName", bundle.SecretKind, "mounts with"},
	{"volumes.persistentVolumeClaim.claimName", bundle.PersistentVolumeClaimKind, "mounts"},
	{"volumes.projected.sources.configMap.name", bundle.ConfigMapKind, "mounts"},
	{"volumes.projected.sources.secret.name", bundle.SecretKind, "mounts"},
	{"volumes.projected.sources.clusterTrustBundle.name", trustBundleKind, "mounts"},
	{"volumes.ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName", bundle.VolumeAttributesClassKind, "claims volumes of"},
	{"volumes.*.secretRef.name", bundle.SecretKind, "mounts with"},
	{"volumes.*.nodePublishSecretRef.name", bundle.SecretKind, "mounts with"},
}

var containerReferences = []reference{
	{"envFrom.configMapRef.name", bundle.ConfigMapKind, "environment from"},
	{"envFrom.secretRef.name", bundle.SecretKind, "environment from"},
	{"env.valueFrom.configMapKeyRef.name", bundle.ConfigMapKind, "environment from"},
	{"env.valueFrom.secretKeyRef.name", bundle.SecretKind, "environment from"},
}

// follow are the objects to which the references in a value, which is at a path, lead.
func follow(v any, at string, references []reference) (found []Reference) {
	for _, r := range references {
		each(v, r.path, at, nil, func(text, at string, in map[string]any) {
			optional, _ := in["optional"].(bool)
			at = strings.TrimPrefix(at, ".")
			found = append(found, Reference{r.kind, text, at, r.verb, optional, keysIn(in, at[:strings.LastIndex(at, ".")+1])})
		})
	}
	return found
}

// each calls do with the texts that a path leads to, with where they are, and with the
// mapping around them.
func each(v any, path, at string, in map[string]any, do func(text, at string, in map[string]any)) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			each(item, path, at+"["+strconv.Itoa(i)+"]", in, do)
		}
	case map[string]any:
		key, rest, _ := strings.Cut(path, ".")
		if key != "*" {
			each(v[key], rest, at+"."+key, v, do)
			return
		}
		for name, value := range v {
			each(value, rest, at+"."+name, v, do)
		}
	case string:
		if path == "" && v != "" {
			do(v, at, in)
		}
	}
}

// Reference is an object that another one, or a pod spec, names.
type Reference struct {
	Kind schema.GroupKind
	Name string
	// Path is the field, in the object or the pod spec. It is "" for what is named by default.
	Path string
	// Verb is what is done with it: "mounts".
	Verb string
	// Optional: the pod starts without it.
	Optional bool
	// Keys are those of a ConfigMap or Secret that it needs.
	Keys []PodKey
}

// PodKey is a key of a ConfigMap or Secret that a pod spec names, and the field.
type PodKey struct{ Name, Path string }

// PodReferences are the objects that a pod spec names.
func PodReferences(pod map[string]any) []Reference {
	account := Reference{Kind: bundle.ServiceAccountKind, Name: accountName(pod), Verb: "runs as"}
	if account.Name != "default" {
		account.Path = "serviceAccountName"
	}
	found := append([]Reference{account}, follow(pod, "", podReferences)...)
	for _, containers := range []string{"initContainers", "containers", "ephemeralContainers"} {
		found = append(found, follow(pod[containers], containers, containerReferences)...)
	}
	return found
}

// keysIn are the keys that a mapping asks of the object that it names.
func keysIn(in map[string]any, at string) (keys []PodKey) {
	each(in, "key", "", nil, func(key, _ string, _ map[string]any) { keys = append(keys, PodKey{key, at + "key"}) })
	each(in["items"], "key", at+"items", nil, func(key, at string, _ map[string]any) { keys = append(keys, PodKey{key, at}) })
	return keys
}

// workloadNeeds adds what pod templates name, and what brine.dev/digest-of names:
// pods are to start with what their digest is of.
func (b *builder) workloadNeeds() {
	makers := b.secretMakers()
	for _, w := range b.workloads {
		name := func(gk schema.GroupKind, name, verb string) {
			b.name(w.object, gk, w.namespace, name, verb)
			if gk == bundle.SecretKind {
				for _, maker := range makers[nsName{w.namespace, name}] {
					b.need(w.object, maker, Applied, named, verb+" Secret "+name+" made by "+b.named(maker))
				}
			}
		}
		for _, r := range PodReferences(w.pod) {
			name(r.Kind, r.Name, r.Verb)
		}
		if bundle.At[string](w.pod, "priorityClassName") == "" {
			b.byDefault(w.object, bundle.PriorityClassKind, "")
		}
		for _, v := range bundle.Items[map[string]any](w.pod, "volumes") {
			if claim := bundle.At[map[string]any](v, "ephemeral", "volumeClaimTemplate", "spec"); claim != nil {
				b.storageClass(w.object, claim)
			}
		}
		of, _ := annotation(b.objs[w.object], bundle.DigestOf)
		for ref := range strings.SplitSeq(of, ",") {
			resource, object, _ := strings.Cut(strings.TrimSpace(ref), "/")
			if gk, ok := bundle.DigestKinds[resource]; ok {
				name(gk, object, "digest of")
			}
		}
	}
}

// accountName is the ServiceAccount that a pod runs as.
func accountName(pod map[string]any) string {
	return cmp.Or(bundle.At[string](pod, "serviceAccountName"), bundle.At[string](pod, "serviceAccount"), "default")
}

type nsName struct{ namespace, name string }

// secretMakers are the custom resources known to make a Secret that a pod may
// name. Without these edges a webhook could hold back what its own backend
// waits for.
func (b *builder) secretMakers() map[nsName][]int {
	makers := map[nsName][]int{}
	for gk := range makesSecret {
		for _, i := range b.byKind[gk] {
			id := b.objs[i].ID
			made := nsName{id.Namespace, MadeSecret(id, content(b.objs[i]))}
			makers[made] = append(makers[made], i)
		}
	}
	return makers
}

// makesSecret is where custom resources name the Secret that their controllers make.
var makesSecret = map[schema.GroupKind][]string{
	{Group: "cert-manager.io", Kind: "Certificate"}:        {"spec", "secretName"},
	{Group: "external-secrets.io", Kind: "ExternalSecret"}: {"spec", "target", "name"},
	{Group: "bitnami.com", Kind: "SealedSecret"}:           {"spec", "template", "metadata", "name"},
}

// MadeSecret is the name of the Secret that a controller makes of a custom resource;
// "" where it makes none.
func MadeSecret(id bundle.ID, content map[string]any) string {
	path := makesSecret[id.GroupKind]
	if path == nil {
		return ""
	}
	name := bundle.At[string](content, path...)
	if name == "" && id.GroupKind.Kind != "Certificate" {
		name = id.Name
	}
	return name
}

// storageClass is the class of a claim. "" asks for none; without the field the
// default one is filled in at admission.
func (b *builder) storageClass(from int, claim map[string]any) {
	if class, given := claim["storageClassName"]; given && class != nil {
		b.name(from, bundle.StorageClassKind, "", bundle.At[string](claim, "storageClassName"), "of")
		return
	}
	b.byDefault(from, bundle.StorageClassKind, "storageclass.kubernetes.io/is-default-class")
}

// policies adds what has to stand before the pods that it is for: quotas and
// limits, which only judge new pods, and network policies, which would leave
// pods open until they come.
func (b *builder) policies() {
	for _, p := range []struct {
		kind       schema.GroupKind
		rule, verb string
	}{
		{limitRangeKind, "LimitRanges and workloads", "limited by "},
		{quotaKind, "ResourceQuotas and workloads", "limited by "},
		{networkPolicyKind, "NetworkPolicies and workloads", "restricted by "},
	} {
		for _, i := range b.byKind[p.kind] {
			podSelector := bundle.At[map[string]any](content(b.objs[i]), "spec", "podSelector")
			for _, w := range b.selected(p.rule, b.objs[i].ID.Namespace, bundle.Texts(podSelector, "matchLabels"), labelSelector(podSelector)) {
				b.need(b.workloads[w].object, i, Applied, policy, p.verb+b.named(i))
			}
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
