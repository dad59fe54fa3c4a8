package validate

import (
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules about configuration, storage, RBAC and webhooks that look at more than one field.

func (v *values) others(value any, at *field.Path) {
	switch o := value.(type) {
	case *corev1.Namespace:
		v.text(at.Child("metadata", "name"), o.Name, validation.IsDNS1123Label)
	case *corev1.ConfigMap:
		v.size(keys(v, "data", o.Data) + keys(v, "binaryData", o.BinaryData))
		for key := range o.Data {
			v.refuseIf(o.BinaryData[key] != nil, field.Invalid(child(field.NewPath("data"), key), key, "is in binaryData, too"))
		}
	case *corev1.Secret:
		v.secret(o)
	case *corev1.PersistentVolumeClaimSpec:
		here := at.Child("resources", "requests", "storage")
		size, given := o.Resources.Requests[corev1.ResourceStorage]
		v.refuseIf(!given, field.Required(here, ""))
		v.refuseIf(given && size.Sign() <= 0, field.Invalid(here, size.String(), "must be greater than 0"))
	case *corev1.PersistentVolumeSpec:
		v.refuseIf(o.Local != nil && (o.NodeAffinity == nil || o.NodeAffinity.Required == nil), field.Required(at.Child("nodeAffinity"), "for a local volume"))
	case *corev1.LimitRangeItem:
		v.refuseIf(!strings.Contains(string(o.Type), "/") && !slices.Contains(limitTypes, o.Type), field.NotSupported(at.Child("type"), string(o.Type), limitTypes))
	case *schedulingv1.PriorityClass:
		if !strings.HasPrefix(o.Name, "system-") {
			v.number(at.Child("value"), int64(o.Value), -1<<31, 1e9)
		}
	case *rbacv1.Role:
		v.policyRules(o.Rules, true)
	case *rbacv1.ClusterRole:
		v.policyRules(o.Rules, false)
	case *rbacv1.ClusterRoleBinding:
		for i, s := range o.Subjects {
			v.refuseIf(s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "", field.Required(at.Child("subjects").Index(i).Child("namespace"), ""))
		}
	case *rbacv1.RoleRef:
		v.apiGroup(at, o.APIGroup, rbacv1.GroupName)
	case *rbacv1.Subject:
		v.subject(at, o)
	case *admissionv1.ValidatingWebhook:
		v.webhook(at, o.Name, o.ClientConfig, o.SideEffects, o.AdmissionReviewVersions)
	case *admissionv1.MutatingWebhook:
		v.webhook(at, o.Name, o.ClientConfig, o.SideEffects, o.AdmissionReviewVersions)
	}
	if o, ok := value.(metav1.Object); ok && v.minor >= staticSince && isAdmission(value) {
		v.refuseIf(strings.HasSuffix(o.GetName(), ".static.k8s.io"), field.Invalid(at.Child("metadata", "name"), o.GetName(), `names ending with ".static.k8s.io" are reserved for files of the API server`))
	}
}

// keys judges those of a ConfigMap or Secret, and returns the size of what they hold.
func keys[T string | []byte](v *values, part string, data map[string]T) (size int) {
	for key, value := range data {
		v.must(child(field.NewPath(part), key), key, validation.IsConfigMapKey(key)...)
		size += len(value)
	}
	return size
}

func (v *values) size(size int) {
	v.refuseIf(size > corev1.MaxSecretSize, field.TooLong(field.NewPath("data"), "", corev1.MaxSecretSize))
}

// secretKeys are those that the type of a Secret requires: one of several, or all.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
}

func (v *values) secret(o *corev1.Secret) {
	v.size(keys(v, "data", o.Data) + keys(v, "stringData", o.StringData))
	for _, key := range secretKeys[o.Type] {
		_, encoded := o.Data[key]
		_, plain := o.StringData[key]
		v.refuseIf(!encoded && !plain, field.Required(child(field.NewPath("data"), key), "in a Secret of type "+string(o.Type)))
	}
	v.refuseIf(o.Type == corev1.SecretTypeServiceAccountToken && o.Annotations[corev1.ServiceAccountNameKey] == "",
		field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "in a Secret of type "+string(o.Type)))
}

func (v *values) policyRules(rules []rbacv1.PolicyRule, namespaced bool) {
	for i, r := range rules {
		at, urls := field.NewPath("rules").Index(i), len(r.NonResourceURLs) > 0
		v.refuseIf(urls && namespaced, field.Invalid(at.Child("nonResourceURLs"), "", "a Role cannot have them: use a ClusterRole"))
		v.refuseIf(urls && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0, field.Invalid(at.Child("nonResourceURLs"), "", "a rule cannot have both nonResourceURLs and resources"))
		v.refuseIf(!urls && len(r.APIGroups) == 0, field.Required(at.Child("apiGroups"), `"" is the core group`))
		v.refuseIf(!urls && len(r.Resources) == 0, field.Required(at.Child("resources"), ""))
	}
}

func (v *values) subject(at *field.Path, s *rbacv1.Subject) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		v.text(at.Child("name"), s.Name, validation.IsDNS1123Subdomain)
		v.apiGroup(at, s.APIGroup, "")
	case rbacv1.UserKind, rbacv1.GroupKind:
		v.apiGroup(at, s.APIGroup, rbacv1.GroupName)
	default:
		v.refuse(field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
}

func (v *values) apiGroup(at *field.Path, group, must string) {
	v.refuseIf(group != "" && group != must, field.NotSupported(at.Child("apiGroup"), group, []string{must}))
}

func (v *values) webhook(at *field.Path, name string, client admissionv1.WebhookClientConfig, effects *admissionv1.SideEffectClass, versions []string) {
	v.refuse(validation.IsFullyQualifiedName(at.Child("name"), name)...)
	v.refuseIf((client.URL == nil) == (client.Service == nil), field.Required(at.Child("clientConfig"), "exactly one of url and service"))
	if client.URL != nil {
		v.refuseIf(!strings.HasPrefix(*client.URL, "https://"), field.Invalid(at.Child("clientConfig", "url"), *client.URL, "must begin with https://"))
	}
	v.refuseIf(effects == nil, field.Required(at.Child("sideEffects"), "None or NoneOnDryRun"))
	at = at.Child("admissionReviewVersions")
	v.refuseIf(len(versions) == 0, field.Required(at, "v1 or v1beta1"))
	v.refuseIf(len(versions) > 0 && !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1"), field.Invalid(at, strings.Join(versions, ", "), "must include v1 or v1beta1"))
}

func isAdmission(object any) bool {
	return reflect.TypeOf(object).Elem().PkgPath() == reflect.TypeFor[admissionv1.ValidatingWebhookConfiguration]().PkgPath()
}

var limitTypes = []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}
