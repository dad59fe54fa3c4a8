package cluster

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
)

// What would be lost with a Namespace or CRD: not what is deleted anyway, nor what controllers
// make.

// contents says of everything found whether it would be lost.
func (s *search) contents(ctx context.Context) map[bundle.ID]bundle.Contents {
	unmanaged := map[bundle.ID][]string{}
	for _, i := range s.found {
		if s.disposable(ctx, i) {
			continue
		}
		if s.namespaces[i.id.Namespace] {
			unmanaged[namespaceID(i.id.Namespace)] = append(unmanaged[namespaceID(i.id.Namespace)], bundle.Name(i.id))
		}
		if holder, ok := s.holders[i.id.GroupKind]; ok {
			unmanaged[holder] = append(unmanaged[holder], bundle.Name(i.id))
		}
	}
	all := map[bundle.ID]bundle.Contents{}
	for _, u := range s.Holders {
		id := bundle.ID{GroupKind: u.GroupVersionKind().GroupKind(), Name: u.GetName()}
		slices.Sort(unmanaged[id])
		slices.Sort(s.unknown[id])
		all[id] = bundle.Contents{Unmanaged: slices.Compact(unmanaged[id]), Unknown: slices.Compact(s.unknown[id])}
	}
	return all
}

// disposable says whether nothing is lost with an object: it is deleted
// already, or its owners are, or it comes with the namespace.
func (s *search) disposable(ctx context.Context, i *item) bool {
	if known, ok := s.disposables[i.meta.UID]; ok {
		return known
	}
	s.disposables[i.meta.UID] = false // owners in a circle own themselves
	s.disposables[i.meta.UID] = s.judgeDisposable(ctx, i)
	return s.disposables[i.meta.UID]
}

func (s *search) judgeDisposable(ctx context.Context, i *item) bool {
	owned := func(owner metav1.OwnerReference) bool { return s.ownerGoes(ctx, i.id.Namespace, owner) }
	switch {
	case s.Counts != nil && !s.Counts(i.meta.ObjectMeta), s.Deleted.has(i.meta.UID), i.meta.DeletionTimestamp != nil:
		return true
	case s.Keeps(&i.meta):
		return false
	case s.automatic(ctx, i):
		return true
	}
	owners := i.meta.OwnerReferences
	return len(owners) > 0 && !s.Orphan && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return !owned(o) })
}

// ownerGoes says whether an owner is deleted, or gone: the garbage collector
// deletes what it owned.
func (s *search) ownerGoes(ctx context.Context, namespace string, owner metav1.OwnerReference) bool {
	if s.Deleted.has(owner.UID) {
		return true
	}
	if i, ok := s.found[owner.UID]; ok {
		return s.disposable(ctx, i)
	}
	if known, ok := s.disposables[owner.UID]; ok {
		return known
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false
	}
	gk := gv.WithKind(owner.Kind).GroupKind()
	r, err := s.client.Any(gk) // also where they were listed: it may have come since
	if err != nil {
		return false
	}
	id := bundle.ID{GroupKind: gk, Name: owner.Name}
	if r.Namespaced {
		id.Namespace = namespace
	}
	live, err := s.client.Get(ctx, r, id)
	switch {
	case err != nil:
		return false
	case live == nil || live.GetUID() != owner.UID:
		s.disposables[owner.UID] = true
		return true
	}
	return s.disposable(ctx, &item{id: id, meta: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: live.GetUID(), DeletionTimestamp: live.GetDeletionTimestamp(), OwnerReferences: live.GetOwnerReferences(), Annotations: live.GetAnnotations(), Labels: live.GetLabels(),
	}}})
}

// automatic says whether an object comes with the namespace, or with what is
// deleted in it.
func (s *search) automatic(ctx context.Context, i *item) bool {
	switch i.id.GroupKind {
	case bundle.ServiceAccountKind:
		return i.id.Name == "default"
	case bundle.ConfigMapKind:
		return i.id.Name == "kube-root-ca.crt" || i.id.Name == "openshift-service-ca.crt" || s.Auxiliary(i.id, i.meta.Labels)
	case bundle.SecretKind:
		return s.Auxiliary(i.id, i.meta.Labels) || s.isToken(ctx, i)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:
		return !s.Strict && i.meta.Labels[RoleLabel] != ""
	case bundle.PersistentVolumeClaimKind:
		return !s.Strict && s.Deleted.Claim(&i.meta)
	}
	return false
}

// isToken says whether Kubernetes made a Secret for a ServiceAccount that is there. The
// annotation alone says nothing: anybody can write it, and only the type makes it a token's.
func (s *search) isToken(ctx context.Context, i *item) bool {
	account, uid := i.meta.Annotations["kubernetes.io/service-account.name"], i.meta.Annotations["kubernetes.io/service-account.uid"]
	if account == "" || uid == "" {
		return false
	}
	secret, err := s.client.Get(ctx, Secrets, i.id)
	if err != nil || secret == nil || secret.GetUID() != i.meta.UID {
		return false
	}
	if kind := bundle.At[string](secret.Object, "type"); kind != "kubernetes.io/service-account-token" {
		return false
	}
	owner, there := s.found[types.UID(uid)]
	return there && owner.id == bundle.ID{GroupKind: bundle.ServiceAccountKind, Namespace: i.id.Namespace, Name: account}
}

// Claims says whether a StatefulSet's controller made a PersistentVolumeClaim,
// which has no owner: it is called <template>-<set>-<ordinal>, and carries the
// labels of the set's selector (kube's getPersistentVolumeClaims).
func Claims(set *unstructured.Unstructured, claim *metav1.PartialObjectMetadata) bool {
	if set.GroupVersionKind().GroupKind() != bundle.StatefulSetKind || set.GetNamespace() != claim.Namespace {
		return false
	}
	for key, value := range bundle.At[map[string]any](set.Object, "spec", "selector", "matchLabels") {
		if claim.Labels[key] != value {
			return false
		}
	}
	templates := bundle.Items[map[string]any](set.Object, "spec", "volumeClaimTemplates")
	return slices.ContainsFunc(templates, func(template map[string]any) bool {
		ordinal, ok := strings.CutPrefix(claim.Name, bundle.At[string](template, "metadata", "name")+"-"+set.GetName()+"-")
		return ok && ordinal != "" && strings.Trim(ordinal, "0123456789") == ""
	})
}
