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
		v.configMap(o)
	case *corev1.Secret:
		v.secret(o)
	case *corev1.PersistentVolumeClaimSpec:
		v.claim(at, o)
	case *corev1.PersistentVolumeSpec:
		if o.Local != nil && (o.NodeAffinity == nil || o.NodeAffinity.Required == nil) {
			v.add(field.Required(at.Child("nodeAffinity"), "for a local volume"))
		}
	case *corev1.LimitRangeItem:
		if t := string(o.Type); !strings.Contains(t, "/") && !slices.Contains(limitTypes, o.Type) {
			v.add(field.NotSupported(at.Child("type"), t, limitTypes))
		}
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
			if s.Kind == rbacv1.ServiceAccountKind {
				v.needs(at.Child("subjects").Index(i).Child("namespace"), s.Namespace, nil)
			}
		}
	case *rbacv1.RoleRef:
		if o.APIGroup != "" && o.APIGroup != rbacv1.GroupName {
			v.add(field.NotSupported(at.Child("apiGroup"), o.APIGroup, []string{rbacv1.GroupName}))
		}
	case *rbacv1.Subject:
		v.subject(at, o)
	case *admissionv1.ValidatingWebhook:
		v.webhook(at, o.Name, o.ClientConfig, o.SideEffects, o.AdmissionReviewVersions)
	case *admissionv1.MutatingWebhook:
		v.webhook(at, o.Name, o.ClientConfig, o.SideEffects, o.AdmissionReviewVersions)
	}
	if o, ok := value.(metav1.Object); ok && v.minor >= staticSince && isAdmission(value) && strings.HasSuffix(o.GetName(), ".static.k8s.io") {
		v.must(at.Child("metadata", "name"), o.GetName(), `names ending with ".static.k8s.io" are reserved for files of the API server`)
	}
}

// secretKeys are those that the type of a Secret requires: one of several, or all.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
}

func (v *values) configMap(o *corev1.ConfigMap) {
	size := 0
	for key, value := range o.Data {
		v.key(child(field.NewPath("data"), key), key)
		if size += len(value); o.BinaryData[key] != nil {
			v.must(child(field.NewPath("data"), key), key, "is in binaryData, too")
		}
	}
	for key, value := range o.BinaryData {
		v.key(child(field.NewPath("binaryData"), key), key)
		size += len(value)
	}
	v.size(size)
}

func (v *values) key(at *field.Path, key string) { v.must(at, key, validation.IsConfigMapKey(key)...) }

func (v *values) size(size int) {
	if size > corev1.MaxSecretSize {
		v.add(field.TooLong(field.NewPath("data"), "", corev1.MaxSecretSize))
	}
}

func (v *values) secret(o *corev1.Secret) {
	size, has := 0, map[string]bool{}
	for key, value := range o.Data {
		size, has[key] = size+len(value), true
		v.key(child(field.NewPath("data"), key), key)
	}
	for key, value := range o.StringData {
		size, has[key] = size+len(value), true
		v.key(child(field.NewPath("stringData"), key), key)
	}
	v.size(size)
	for _, key := range secretKeys[o.Type] {
		if !has[key] {
			v.add(field.Required(child(field.NewPath("data"), key), "in a Secret of type "+string(o.Type)))
		}
	}
	if o.Type == corev1.SecretTypeServiceAccountToken && o.Annotations[corev1.ServiceAccountNameKey] == "" {
		v.add(field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "in a Secret of type "+string(o.Type)))
	}
}

func (v *values) claim(at *field.Path, o *corev1.PersistentVolumeClaimSpec) {
	here := at.Child("resources", "requests", "storage")
	if size, ok := o.Resources.Requests[corev1.ResourceStorage]; !ok {
		v.add(field.Required(here, ""))
	} else if size.Sign() <= 0 {
		v.must(here, size.String(), "must be greater than 0")
	}
}

func (v *values) policyRules(rules []rbacv1.PolicyRule, namespaced bool) {
	for i, r := range rules {
		at := field.NewPath("rules").Index(i)
		if len(r.NonResourceURLs) > 0 {
			if namespaced {
				v.must(at.Child("nonResourceURLs"), "", "a Role cannot have them: use a ClusterRole")
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				v.must(at.Child("nonResourceURLs"), "", "a rule cannot have both nonResourceURLs and resources")
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			v.add(field.Required(at.Child("apiGroups"), `"" is the core group`))
		}
		if len(r.Resources) == 0 {
			v.add(field.Required(at.Child("resources"), ""))
		}
	}
}

func (v *values) subject(at *field.Path, s *rbacv1.Subject) {
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		v.text(at.Child("name"), s.Name, validation.IsDNS1123Subdomain)
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		v.add(field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		return
	}
	if s.APIGroup != "" && s.APIGroup != group {
		v.add(field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
	}
}

func (v *values) webhook(at *field.Path, name string, client admissionv1.WebhookClientConfig, effects *admissionv1.SideEffectClass, versions []string) {
	v.errs = append(v.errs, validation.IsFullyQualifiedName(at.Child("name"), name)...)
	if (client.URL == nil) == (client.Service == nil) {
		v.add(field.Required(at.Child("clientConfig"), "exactly one of url and service"))
	}
	if client.URL != nil && !strings.HasPrefix(*client.URL, "https://") {
		v.must(at.Child("clientConfig", "url"), *client.URL, "must begin with https://")
	}
	if effects == nil {
		v.add(field.Required(at.Child("sideEffects"), "None or NoneOnDryRun"))
	} else if *effects != admissionv1.SideEffectClassNone && *effects != admissionv1.SideEffectClassNoneOnDryRun {
		v.add(field.NotSupported(at.Child("sideEffects"), *effects, []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun}))
	}
	if len(versions) == 0 {
		v.add(field.Required(at.Child("admissionReviewVersions"), "v1 or v1beta1"))
	} else if !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1") {
		v.must(at.Child("admissionReviewVersions"), strings.Join(versions, ", "), "must include v1 or v1beta1")
	}
}

func isAdmission(object any) bool {
	return reflect.TypeOf(object).Elem().PkgPath() == reflect.TypeFor[admissionv1.ValidatingWebhookConfiguration]().PkgPath()
}
