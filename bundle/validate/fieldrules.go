package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules about single fields of built-in kinds, in a table.

// rule judges one field of a struct. A pointer that is nil is not judged, others by their value.
type rule func(v *values, at *field.Path, value reflect.Value)

// fieldRules are the rules about single fields, by the name in JSON; those about the struct
// itself have none. TestFieldRulesAreOfFields finds a name that the struct does not have.
var fieldRules = map[reflect.Type]map[string]rule{
	reflect.TypeFor[appsv1.DeploymentSpec]():                     {"replicas": count, "minReadySeconds": count, "revisionHistoryLimit": count},
	reflect.TypeFor[appsv1.ReplicaSetSpec]():                     {"replicas": count, "minReadySeconds": count},
	reflect.TypeFor[appsv1.DaemonSetSpec]():                      {"minReadySeconds": count, "revisionHistoryLimit": count},
	reflect.TypeFor[appsv1.StatefulSetSpec]():                    {"replicas": count, "minReadySeconds": count, "serviceName": optional(validation.IsDNS1123Label)},
	reflect.TypeFor[corev1.ReplicationControllerSpec]():          {"replicas": count, "minReadySeconds": count},
	reflect.TypeFor[batchv1.JobSpec]():                           {"parallelism": count, "completions": count, "backoffLimit": count, "ttlSecondsAfterFinished": count, "backoffLimitPerIndex": count, "maxFailedIndexes": count, "activeDeadlineSeconds": count},
	reflect.TypeFor[batchv1.CronJobSpec]():                       {"schedule": need(cronSchedule), "startingDeadlineSeconds": count, "successfulJobsHistoryLimit": count, "failedJobsHistoryLimit": count},
	reflect.TypeFor[policyv1.PodDisruptionBudgetSpec]():          {"minAvailable": valueOf((*values).anyPercent), "maxUnavailable": valueOf((*values).anyPercent)},
	reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec](): {"maxReplicas": from(1, noLimit), "minReplicas": count}, // 0 is for metrics of other objects
	reflect.TypeFor[autoscalingv2.CrossVersionObjectReference](): {"kind": given, "name": given},
	reflect.TypeFor[autoscalingv2.MetricSpec]():                  {"type": oneOf(autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType)},

	reflect.TypeFor[corev1.PodSpec](): {
		"activeDeadlineSeconds": from(1, 1<<31-1), "serviceAccountName": optional(validation.IsDNS1123Subdomain), "priorityClassName": optional(validation.IsDNS1123Subdomain),
		"nodeName": optional(validation.IsDNS1123Subdomain), "hostname": optional(validation.IsDNS1123Label), "subdomain": optional(validation.IsDNS1123Label),
		"runtimeClassName": writtenText(validation.IsDNS1123Subdomain), "nodeSelector": valueOf((*values).labels), "containers": given,
	},
	reflect.TypeFor[corev1.Container]():                         {"name": need(validation.IsDNS1123Label), "image": given},
	reflect.TypeFor[corev1.ContainerPort]():                     {"name": optional(validation.IsValidPortName), "containerPort": port, "hostPort": from(0, highPort)},
	reflect.TypeFor[corev1.VolumeMount]():                       {"name": given, "mountPath": given, "subPath": optional(pathBelow)},
	reflect.TypeFor[corev1.EnvVar]():                            {"name": need(validation.IsRelaxedEnvVarName)},
	reflect.TypeFor[corev1.EnvVarSource]():                      {"": one(true, "the source of a variable")},
	reflect.TypeFor[corev1.ConfigMapKeySelector]():              {"key": need(validation.IsConfigMapKey), "name": given},
	reflect.TypeFor[corev1.SecretKeySelector]():                 {"key": need(validation.IsConfigMapKey), "name": given},
	reflect.TypeFor[corev1.ObjectFieldSelector]():               {"fieldPath": given},
	reflect.TypeFor[corev1.EnvFromSource]():                     {"prefix": optional(validation.IsRelaxedEnvVarName), "": one(true, "the source of variables")},
	reflect.TypeFor[corev1.ConfigMapEnvSource]():                {"name": need(validation.IsDNS1123Subdomain)},
	reflect.TypeFor[corev1.SecretEnvSource]():                   {"name": need(validation.IsDNS1123Subdomain)},
	reflect.TypeFor[corev1.Probe]():                             {"initialDelaySeconds": count, "timeoutSeconds": count, "periodSeconds": count, "successThreshold": count, "failureThreshold": count, "terminationGracePeriodSeconds": from(1, noLimit)},
	reflect.TypeFor[corev1.ProbeHandler]():                      {"": one(true, "the handler of a probe")},
	reflect.TypeFor[corev1.LifecycleHandler]():                  {"": one(true, "the handler of a hook")},
	reflect.TypeFor[corev1.HTTPGetAction]():                     {"port": valueOf((*values).portOrName)},
	reflect.TypeFor[corev1.TCPSocketAction]():                   {"port": valueOf((*values).portOrName)},
	reflect.TypeFor[corev1.GRPCAction]():                        {"port": port},
	reflect.TypeFor[corev1.ExecAction]():                        {"command": given},
	reflect.TypeFor[corev1.SecurityContext]():                   {"runAsUser": userID, "runAsGroup": userID},
	reflect.TypeFor[corev1.PodSecurityContext]():                {"runAsUser": userID, "runAsGroup": userID, "fsGroup": userID},
	reflect.TypeFor[corev1.Volume]():                            {"name": need(validation.IsDNS1123Label)},
	reflect.TypeFor[corev1.VolumeSource]():                      {"": one(false, "the source of a volume")},
	reflect.TypeFor[corev1.SecretVolumeSource]():                {"secretName": given, "defaultMode": mode},
	reflect.TypeFor[corev1.ConfigMapVolumeSource]():             {"name": given, "defaultMode": mode},
	reflect.TypeFor[corev1.ProjectedVolumeSource]():             {"defaultMode": mode},
	reflect.TypeFor[corev1.DownwardAPIVolumeSource]():           {"defaultMode": mode},
	reflect.TypeFor[corev1.KeyToPath]():                         {"key": given, "path": need(pathBelow), "mode": mode},
	reflect.TypeFor[corev1.PersistentVolumeClaimVolumeSource](): {"claimName": given},
	reflect.TypeFor[corev1.HostPathVolumeSource]():              {"path": need(noBacksteps)},
	reflect.TypeFor[corev1.NodeSelectorRequirement]():           {"key": optional(validation.IsQualifiedName)},
	reflect.TypeFor[corev1.PodAffinityTerm]():                   {"topologyKey": need(validation.IsQualifiedName)},
	reflect.TypeFor[corev1.WeightedPodAffinityTerm]():           {"weight": from(1, 100)},
	reflect.TypeFor[corev1.PreferredSchedulingTerm]():           {"weight": from(1, 100)},
	reflect.TypeFor[corev1.TopologySpreadConstraint]():          {"maxSkew": from(1, noLimit), "topologyKey": given, "whenUnsatisfiable": given},
	reflect.TypeFor[corev1.Toleration]():                        {"key": optional(validation.IsQualifiedName)},
	reflect.TypeFor[corev1.HostAlias]():                         {"ip": valueOf((*values).ip)},

	reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): {"accessModes": given, "storageClassName": optional(validation.IsDNS1123Subdomain)},
	reflect.TypeFor[corev1.PersistentVolumeSpec]():      {"capacity": all(given, valueOf((*values).quantities)), "accessModes": given, "storageClassName": optional(validation.IsDNS1123Subdomain)},
	reflect.TypeFor[corev1.PersistentVolumeSource]():    {"": one(true, "the source of a volume")},
	reflect.TypeFor[corev1.ResourceQuotaSpec]():         {"hard": valueOf((*values).quantities)},
	reflect.TypeFor[storagev1.StorageClass]():           {"provisioner": need(func(s string) []string { return validation.IsQualifiedName(strings.ToLower(s)) })},

	reflect.TypeFor[corev1.ServiceSpec]():             {"selector": valueOf((*values).labels)},
	reflect.TypeFor[corev1.ServicePort]():             {"name": optional(validation.IsDNS1123Label), "port": port, "nodePort": from(0, highPort), "appProtocol": optional(validation.IsQualifiedName)},
	reflect.TypeFor[networkingv1.IngressSpec]():       {"ingressClassName": writtenText(validation.IsDNS1123Subdomain)},
	reflect.TypeFor[networkingv1.IngressTLS]():        {"secretName": optional(validation.IsDNS1123Subdomain)},
	reflect.TypeFor[networkingv1.IngressBackend]():    {"": one(true, "a service or a resource")},
	reflect.TypeFor[networkingv1.NetworkPolicyPort](): {"port": valueOf((*values).portOrName)},

	reflect.TypeFor[rbacv1.PolicyRule]():              {"verbs": given},
	reflect.TypeFor[rbacv1.RoleRef]():                 {"kind": oneOf("Role", "ClusterRole"), "name": given},
	reflect.TypeFor[rbacv1.Subject]():                 {"name": given},
	reflect.TypeFor[admissionv1.ValidatingWebhook]():  {"timeoutSeconds": from(1, 30), "sideEffects": effects},
	reflect.TypeFor[admissionv1.MutatingWebhook]():    {"timeoutSeconds": from(1, 30), "sideEffects": effects},
	reflect.TypeFor[admissionv1.ServiceReference]():   {"name": given, "namespace": given, "port": port, "path": optional(absolutePath)},
	reflect.TypeFor[admissionv1.RuleWithOperations](): {"operations": given, "apiGroups": given, "apiVersions": given, "resources": given},
}

const (
	noLimit  = 1<<63 - 1
	highPort = 65535
)

var (
	count, port, mode, userID = from(0, noLimit), from(1, highPort), from(0, 0o777), from(0, 1<<31-1)

	effects = oneOf(admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)
)

// judgeFields judges the fields of a struct by the table.
func (v *values) judgeFields(of reflect.Value, at *field.Path) {
	rules := fieldRules[of.Type()]
	if judge := rules[""]; judge != nil {
		judge(v, at, of)
	}
	if len(rules) == 0 {
		return
	}
	for _, f := range reflect.VisibleFields(of.Type()) {
		name := jsonName(f)
		if judge, value := rules[name], reflect.Indirect(of.FieldByIndex(f.Index)); judge != nil && name != "" && value.IsValid() {
			judge(v, at.Child(name), value)
		}
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// given wants a text or a list that is not empty.
func given(v *values, at *field.Path, value reflect.Value) {
	v.refuseIf(value.Len() == 0, field.Required(at, ""))
}

func all(rules ...rule) rule {
	return func(v *values, at *field.Path, value reflect.Value) {
		for _, judge := range rules {
			judge(v, at, value)
		}
	}
}

// need wants a text, and judges it.
func need(check func(string) []string) rule {
	return func(v *values, at *field.Path, value reflect.Value) { v.needs(at, value.String(), check) }
}

// optional judges a text that may be empty.
func optional(check func(string) []string) rule {
	return func(v *values, at *field.Path, value reflect.Value) { v.text(at, value.String(), check) }
}

// writtenText judges a text that may be left out, but not empty.
func writtenText(check func(string) []string) rule {
	return func(v *values, at *field.Path, value reflect.Value) {
		v.must(at, value.String(), check(value.String())...)
	}
}

// oneOf wants one of some words.
func oneOf[T ~string](words ...T) rule {
	return func(v *values, at *field.Path, value reflect.Value) {
		if word := T(value.String()); !slices.Contains(words, word) {
			v.refuse(field.NotSupported(at, word, words))
		}
	}
}

// from wants a number from one to another.
func from(least, most int64) rule {
	return func(v *values, at *field.Path, value reflect.Value) { v.number(at, value.Int(), least, most) }
}

// one wants exactly one field of a struct, or at most one.
func one(atLeast bool, what string) rule {
	return func(v *values, at *field.Path, of reflect.Value) {
		set := setFields(of)
		switch {
		case len(set) == 0 && atLeast:
			v.refuse(field.Required(at, "must have "+what))
		case len(set) > 1:
			v.refuse(field.Forbidden(at.Child(set[1]), fmt.Sprintf("may not be set together with %s: only one is %s", set[0], what)))
		}
	}
}

// setFields are the pointers of a struct that are not nil.
func setFields(of reflect.Value) (names []string) {
	for i := range of.NumField() {
		if f := of.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			names = append(names, jsonName(of.Type().Field(i)))
		}
	}
	return names
}

// valueOf judges a value of one type.
func valueOf[T any](judge func(*values, *field.Path, T)) rule {
	return func(v *values, at *field.Path, value reflect.Value) {
		if t, ok := reflect.TypeAssert[T](value); ok {
			judge(v, at, t)
		}
	}
}

func (v *values) portOrName(at *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		v.number(at, int64(port.IntVal), 1, highPort)
	} else {
		v.must(at, port.StrVal, validation.IsValidPortName(port.StrVal)...)
	}
}

func (v *values) anyPercent(at *field.Path, n intstr.IntOrString) { v.countOrPercent(at, &n, 0) }

func (v *values) labels(at *field.Path, labels map[string]string) {
	v.refuse(v1validation.ValidateLabels(labels, at)...)
}

func absolutePath(path string) []string {
	if strings.HasPrefix(path, "/") {
		return nil
	}
	return []string{"must start with a '/'"}
}
