package fields

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Automatic is a field that is left to a controller because the bundle itself
// says that this controller writes it.
type Automatic struct {
	Object  *bundle.Object
	Owner   string // HorizontalPodAutoscaler.autoscaling shop/web
	pointer Pointer
}

// Problem is a warning about the bundle, which writes the field.
func (a Automatic) Problem() bundle.Problem {
	return a.Object.Problem(a.line(), fmt.Sprintf("%s writes this field, so it is sent only when the object is created: remove it from the bundle", a.Owner))
}

// String is "spec.replicas of Deployment.apps shop/web to HorizontalPodAutoscaler.autoscaling shop/web".
func (a Automatic) String() string {
	return fmt.Sprintf("%s of %s to %s", a.pointer.path(), bundle.Name(a.Object.ID), a.Owner)
}

// line is a path that leads to the field, or to one of them.
func (a Automatic) line() string { return strings.Replace(a.pointer.path(), "[*]", "[0]", 1) }

var (
	hpaKind  = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	replicas = Pointer{"spec", "replicas"}
)

// bundles are where the kinds have the certificates of an authority that an
// injector fills in.
var bundles = map[schema.GroupKind]Pointer{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {"webhooks", anyToken, "clientConfig", "caBundle"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {"webhooks", anyToken, "clientConfig", "caBundle"},
	bundle.CRDKind:        {"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	bundle.APIServiceKind: {"spec", "caBundle"},
}

// injectors are the annotations that make cert-manager's cainjector fill in a
// certificate.
var injectors = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca"}

// automatic are the replicas of workloads that a HorizontalPodAutoscaler of the
// bundle scales, and the caBundle of what has an annotation of an injector. They
// are in the order of objects.
func automatic(objects []*bundle.Object) []Automatic {
	scaler := map[bundle.ID]bundle.ID{}
	for _, o := range objects {
		if o.ID.GroupKind == hpaKind {
			ref, _, _ := unstructured.NestedStringMap(o.Content.Object, "spec", "scaleTargetRef")
			gv, _ := schema.ParseGroupVersion(ref["apiVersion"])
			scaler[bundle.ID{GroupKind: schema.GroupKind{Group: gv.Group, Kind: ref["kind"]}, Namespace: o.ID.Namespace, Name: ref["name"]}] = o.ID
		}
	}
	var all []Automatic
	for _, o := range objects {
		if by, ok := scaler[o.ID]; ok {
			all = append(all, Automatic{o, bundle.Name(by), replicas})
		}
		at, ok := bundles[o.ID.GroupKind]
		if !ok {
			continue
		}
		annotations := o.Content.GetAnnotations()
		if i := slices.IndexFunc(injectors, func(key string) bool { return annotations[key] != "" }); i >= 0 {
			all = append(all, Automatic{o, "cert-manager (" + injectors[i] + ")", at})
		}
	}
	return all
}

// Summary is one line about all fields that are left to others without being
// asked; "" if there are none.
func Summary(all []Automatic) string {
	if len(all) == 0 {
		return ""
	}
	return "brine leaves fields that the bundle writes to the controllers that own them: " + bundle.Some(bundle.Each(all, Automatic.String), 3)
}
