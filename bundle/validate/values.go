package validate

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// values judges a built-in object by the rules of the API server's own validation, as far as
// they are about the kinds that most bundles hold: k8s.io/kubernetes/pkg/apis/*/validation has
// all of them. A field that is not written has its default on the server. No value of a Secret
// is in any error.
type values struct {
	minor  int // of Kubernetes
	errs   field.ErrorList
	claims []string // the volumes that a StatefulSet makes
}

func (v *values) of(obj runtime.Object) field.ErrorList {
	visit(reflect.ValueOf(obj), nil, v.judge)
	return v.errs
}

// visit shows a function every struct of an object but its status, with its path, the outer
// ones first.
func visit(v reflect.Value, at *field.Path, show func(v any, at *field.Path)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), at, show)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			visit(v.Index(i), at.Index(i), show)
		}
	case reflect.Struct:
		show(v.Addr().Interface(), at)
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			switch {
			case !v.Type().Field(i).IsExported() || name == "status" || name == "managedFields" || v.Type() == unjudged:
			case name == "":
				visit(v.Field(i), at, show)
			default:
				visit(v.Field(i), at.Child(name), show)
			}
		}
	}
}

// unjudged are the metrics of autoscalers, whose selectors are others' to read.
var unjudged = reflect.TypeFor[autoscalingv2.MetricIdentifier]()

func (v *values) add(err *field.Error) { v.errs = append(v.errs, err) }

// must adds an error about a value that breaks a rule; what is wrong with it are its reasons.
func (v *values) must(at *field.Path, value any, reasons ...string) {
	for _, reason := range reasons {
		v.add(field.Invalid(at, value, reason))
	}
}

// text judges one that may be left out.
func (v *values) text(at *field.Path, value string, rule func(string) []string) {
	if value != "" {
		v.must(at, value, rule(value)...)
	}
}

func (v *values) needs(at *field.Path, value string, rule func(string) []string) {
	if value == "" {
		v.add(field.Required(at, ""))
	} else if rule != nil {
		v.must(at, value, rule(value)...)
	}
}

// number judges a number that may be left out: p points to an int32 or int64.
func (v *values) number(at *field.Path, p any, least, most int64) {
	value := reflect.ValueOf(p)
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return
		}
		value = value.Elem()
	}
	switch n := value.Int(); {
	case n >= least && n <= most:
	case most == noLimit:
		v.must(at, n, "must be "+strconv.FormatInt(least, 10)+" or more")
	default:
		v.must(at, n, fmt.Sprintf("must be from %d to %d", least, most))
	}
}

const (
	noLimit  = 1<<63 - 1
	highPort = 65535
)

func (v *values) portOrName(at *field.Path, port intstr.IntOrString) {
	if port.Type == intstr.Int {
		v.number(at, port.IntVal, 1, highPort)
	} else {
		v.must(at, port.StrVal, validation.IsValidPortName(port.StrVal)...)
	}
}

// countOrPercent returns the number, where there is one.
func (v *values) countOrPercent(at *field.Path, n *intstr.IntOrString, most int) int {
	if n == nil {
		return -1
	}
	if n.Type == intstr.Int {
		v.number(at, n.IntVal, 0, noLimit)
		return int(n.IntVal)
	}
	if reasons := validation.IsValidPercent(n.StrVal); len(reasons) > 0 {
		v.must(at, n.StrVal, reasons...)
		return -1
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(n.StrVal, "%"))
	if most > 0 && percent > most {
		v.must(at, n.StrVal, fmt.Sprintf("must not be more than %d%%", most))
	}
	return percent
}

// one wants exactly one field of a struct, or at most one.
func (v *values) one(at *field.Path, of any, atLeast bool, what string) {
	var set []string
	s := reflect.ValueOf(of)
	for i := range s.NumField() {
		if f := s.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
			set = append(set, name)
		}
	}
	switch {
	case len(set) == 0 && atLeast:
		v.add(field.Required(at, "must have "+what))
	case len(set) > 1:
		v.add(field.Forbidden(at.Child(set[1]), fmt.Sprintf("may not be set together with %s: only one is %s", set[0], what)))
	}
}

// unique finds a name that was there before.
func (v *values) unique(seen map[string]bool, at *field.Path, name string) {
	if name != "" && seen[name] {
		v.add(field.Duplicate(at, name))
	}
	seen[name] = true
}

// child is the path of a key, as messages of brine write it.
func child(at *field.Path, key string) *field.Path {
	if strings.ContainsAny(key, "./[] ") {
		return at.Key(key)
	}
	return at.Child(key)
}

func (v *values) judge(value any, at *field.Path) {
	switch o := value.(type) {
	case *metav1.ObjectMeta:
		v.errs = append(v.errs, v1validation.ValidateLabels(o.Labels, at.Child("labels"))...)
		v.errs = append(v.errs, apivalidation.ValidateAnnotations(o.Annotations, at.Child("annotations"))...)
	case *metav1.LabelSelector:
		v.errs = append(v.errs, v1validation.ValidateLabelSelector(o, v1validation.LabelSelectorValidationOptions{}, at)...)
	case *appsv1.DeploymentSpec:
		v.workload(at, o.Replicas, o.MinReadySeconds, o.RevisionHistoryLimit, o.Selector, &o.Template)
		v.number(at.Child("progressDeadlineSeconds"), o.ProgressDeadlineSeconds, int64(o.MinReadySeconds)+1, noLimit)
		v.deploymentStrategy(at.Child("strategy"), &o.Strategy)
	case *appsv1.ReplicaSetSpec:
		v.workload(at, o.Replicas, o.MinReadySeconds, nil, o.Selector, &o.Template)
	case *corev1.ReplicationControllerSpec:
		v.replicationController(at, o)
	case *appsv1.DaemonSetSpec:
		v.workload(at, nil, o.MinReadySeconds, o.RevisionHistoryLimit, o.Selector, &o.Template)
		v.daemonSetStrategy(at.Child("updateStrategy"), &o.UpdateStrategy)
	case *appsv1.StatefulSetSpec:
		v.workload(at, o.Replicas, o.MinReadySeconds, nil, o.Selector, &o.Template)
		v.text(at.Child("serviceName"), o.ServiceName, validation.IsDNS1123Label)
		for _, c := range o.VolumeClaimTemplates {
			v.claims = append(v.claims, c.Name)
		}
	case *batchv1.JobSpec:
		v.job(at, o)
	case *batchv1.CronJobSpec:
		v.cronJob(at, o)
	case *corev1.PodSpec:
		v.pod(at, o)
	case *corev1.Container:
		v.container(at, o)
	case *corev1.EnvVar:
		v.needs(at.Child("name"), o.Name, validation.IsRelaxedEnvVarName)
		if o.ValueFrom != nil && o.Value != "" {
			v.must(at.Child("valueFrom"), "", "may not be set together with value")
		}
	case *corev1.EnvVarSource:
		v.one(at, *o, true, "the source of a variable")
	case *corev1.ConfigMapKeySelector:
		v.needs(at.Child("key"), o.Key, validation.IsConfigMapKey)
		v.needs(at.Child("name"), o.Name, nil)
	case *corev1.SecretKeySelector:
		v.needs(at.Child("key"), o.Key, validation.IsConfigMapKey)
		v.needs(at.Child("name"), o.Name, nil)
	case *corev1.ObjectFieldSelector:
		v.needs(at.Child("fieldPath"), o.FieldPath, nil)
	case *corev1.ConfigMapEnvSource:
		v.needs(at.Child("name"), o.Name, validation.IsDNS1123Subdomain)
	case *corev1.SecretEnvSource:
		v.needs(at.Child("name"), o.Name, validation.IsDNS1123Subdomain)
	case *corev1.EnvFromSource:
		v.text(at.Child("prefix"), o.Prefix, validation.IsRelaxedEnvVarName)
		v.one(at, *o, true, "the source of variables")
	case *corev1.Probe:
		v.one(at, o.ProbeHandler, true, "the handler of a probe")
		for name, n := range map[string]int32{"initialDelaySeconds": o.InitialDelaySeconds, "timeoutSeconds": o.TimeoutSeconds, "periodSeconds": o.PeriodSeconds, "successThreshold": o.SuccessThreshold, "failureThreshold": o.FailureThreshold} {
			v.number(at.Child(name), n, 0, noLimit)
		}
		v.number(at.Child("terminationGracePeriodSeconds"), o.TerminationGracePeriodSeconds, 1, noLimit)
	case *corev1.LifecycleHandler:
		v.one(at, *o, true, "the handler of a hook")
	case *corev1.HTTPGetAction:
		v.portOrName(at.Child("port"), o.Port)
	case *corev1.TCPSocketAction:
		v.portOrName(at.Child("port"), o.Port)
	case *corev1.GRPCAction:
		v.number(at.Child("port"), o.Port, 1, highPort)
	case *corev1.ExecAction:
		if len(o.Command) == 0 {
			v.add(field.Required(at.Child("command"), ""))
		}
	case *corev1.SecurityContext:
		v.number(at.Child("runAsUser"), o.RunAsUser, 0, 1<<31-1)
		v.number(at.Child("runAsGroup"), o.RunAsGroup, 0, 1<<31-1)
		if o.AllowPrivilegeEscalation != nil && !*o.AllowPrivilegeEscalation && o.Privileged != nil && *o.Privileged {
			v.must(at, "", "cannot set allowPrivilegeEscalation to false and privileged to true")
		}
	case *corev1.PodSecurityContext:
		v.number(at.Child("runAsUser"), o.RunAsUser, 0, 1<<31-1)
		v.number(at.Child("runAsGroup"), o.RunAsGroup, 0, 1<<31-1)
		v.number(at.Child("fsGroup"), o.FSGroup, 0, 1<<31-1)
	case *corev1.ResourceRequirements:
		v.resources(at, o.Requests, o.Limits)
	case *corev1.Volume:
		v.needs(at.Child("name"), o.Name, validation.IsDNS1123Label)
		v.one(at, o.VolumeSource, false, "the source of a volume")
	case *corev1.SecretVolumeSource:
		v.needs(at.Child("secretName"), o.SecretName, nil)
		v.number(at.Child("defaultMode"), o.DefaultMode, 0, 0o777)
	case *corev1.ConfigMapVolumeSource:
		v.needs(at.Child("name"), o.Name, nil)
		v.number(at.Child("defaultMode"), o.DefaultMode, 0, 0o777)
	case *corev1.ProjectedVolumeSource:
		v.number(at.Child("defaultMode"), o.DefaultMode, 0, 0o777)
	case *corev1.DownwardAPIVolumeSource:
		v.number(at.Child("defaultMode"), o.DefaultMode, 0, 0o777)
	case *corev1.KeyToPath:
		v.needs(at.Child("key"), o.Key, nil)
		v.needs(at.Child("path"), o.Path, pathBelow)
		v.number(at.Child("mode"), o.Mode, 0, 0o777)
	case *corev1.PersistentVolumeClaimVolumeSource:
		v.needs(at.Child("claimName"), o.ClaimName, nil)
	case *corev1.HostPathVolumeSource:
		v.needs(at.Child("path"), o.Path, noBacksteps)
	case *corev1.Toleration:
		v.toleration(at, o)
	case *corev1.NodeSelectorRequirement:
		v.text(at.Child("key"), o.Key, validation.IsQualifiedName)
		v.requirement(at, string(o.Operator), len(o.Values))
	case *corev1.PodAffinityTerm:
		v.needs(at.Child("topologyKey"), o.TopologyKey, validation.IsQualifiedName)
	case *corev1.WeightedPodAffinityTerm:
		v.number(at.Child("weight"), o.Weight, 1, 100)
	case *corev1.PreferredSchedulingTerm:
		v.number(at.Child("weight"), o.Weight, 1, 100)
	case *corev1.TopologySpreadConstraint:
		v.number(at.Child("maxSkew"), o.MaxSkew, 1, noLimit)
		v.needs(at.Child("topologyKey"), o.TopologyKey, nil)
		v.needs(at.Child("whenUnsatisfiable"), string(o.WhenUnsatisfiable), nil)
	case *corev1.HostAlias:
		v.ip(at.Child("ip"), o.IP)
	case *corev1.Namespace:
		v.text(field.NewPath("metadata", "name"), o.Name, validation.IsDNS1123Label)
	case *corev1.Service:
		v.text(field.NewPath("metadata", "name"), o.Name, v.serviceName)
		v.service(field.NewPath("spec"), &o.Spec)
	case *corev1.ConfigMap:
		v.configMap(o)
	case *corev1.Secret:
		v.secret(o)
	case *corev1.PersistentVolumeClaimSpec:
		v.claim(at, o)
	case *corev1.PersistentVolumeSpec:
		if len(o.Capacity) == 0 {
			v.add(field.Required(at.Child("capacity"), ""))
		}
		if len(o.AccessModes) == 0 {
			v.add(field.Required(at.Child("accessModes"), ""))
		}
		v.quantities(at.Child("capacity"), o.Capacity)
		v.text(at.Child("storageClassName"), o.StorageClassName, validation.IsDNS1123Subdomain)
		v.one(at, o.PersistentVolumeSource, true, "the source of a volume")
		if o.Local != nil && (o.NodeAffinity == nil || o.NodeAffinity.Required == nil) {
			v.add(field.Required(at.Child("nodeAffinity"), "for a local volume"))
		}
	case *corev1.LimitRangeItem:
		if t := string(o.Type); !strings.Contains(t, "/") && !slices.Contains(limitTypes, o.Type) {
			v.add(field.NotSupported(at.Child("type"), t, limitTypes))
		}
	case *corev1.ResourceQuotaSpec:
		v.quantities(at.Child("hard"), o.Hard)
	case *networkingv1.IngressSpec:
		v.ingress(at, o)
	case *networkingv1.IngressTLS:
		v.text(at.Child("secretName"), o.SecretName, validation.IsDNS1123Subdomain)
	case *networkingv1.IngressClassSpec:
		v.errs = append(v.errs, validation.IsDomainPrefixedPath(at.Child("controller"), o.Controller)...)
	case *networkingv1.IngressBackend:
		v.ingressBackend(at, o)
	case *networkingv1.NetworkPolicyPort:
		v.policyPort(at, o)
	case *networkingv1.NetworkPolicyPeer:
		if both := o.PodSelector != nil || o.NamespaceSelector != nil; both == (o.IPBlock != nil) {
			v.must(at, "", "must have selectors or an ipBlock, and not both")
		}
	case *networkingv1.IPBlock:
		v.ipBlock(at, o)
	case *policyv1.PodDisruptionBudgetSpec:
		v.countOrPercent(at.Child("minAvailable"), o.MinAvailable, 0)
		v.countOrPercent(at.Child("maxUnavailable"), o.MaxUnavailable, 0)
		if o.MinAvailable != nil && o.MaxUnavailable != nil {
			v.must(at, "", "minAvailable and maxUnavailable cannot be both set")
		}
	case *autoscalingv2.HorizontalPodAutoscalerSpec:
		v.autoscaler(at, o)
	case *autoscalingv2.CrossVersionObjectReference:
		v.needs(at.Child("kind"), o.Kind, nil)
		v.needs(at.Child("name"), o.Name, nil)
	case *autoscalingv2.MetricSpec:
		if !slices.Contains(metricTypes, o.Type) {
			v.add(field.NotSupported(at.Child("type"), o.Type, metricTypes))
		}
	case *rbacv1.Role:
		v.policyRules(o.Rules, true)
	case *rbacv1.ClusterRole:
		v.policyRules(o.Rules, false)
	case *rbacv1.ClusterRoleBinding:
		for i, s := range o.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				v.needs(field.NewPath("subjects").Index(i).Child("namespace"), s.Namespace, nil)
			}
		}
	case *rbacv1.RoleRef:
		v.roleRef(at, o)
	case *rbacv1.Subject:
		v.subject(at, o)
	case *storagev1.StorageClass:
		v.needs(field.NewPath("provisioner"), o.Provisioner, func(s string) []string { return validation.IsQualifiedName(strings.ToLower(s)) })
	case *schedulingv1.PriorityClass:
		if !strings.HasPrefix(o.Name, "system-") {
			v.number(field.NewPath("value"), o.Value, -1<<31, 1e9)
		}
	case *admissionv1.ValidatingWebhook:
		v.webhook(at, o.Name, o.ClientConfig, o.SideEffects, o.TimeoutSeconds, o.AdmissionReviewVersions)
	case *admissionv1.MutatingWebhook:
		v.webhook(at, o.Name, o.ClientConfig, o.SideEffects, o.TimeoutSeconds, o.AdmissionReviewVersions)
	case *admissionv1.RuleWithOperations:
		v.webhookRule(at, o)
	case *batchv1.CronJob:
		if len(o.Name) > maxCronJobName {
			v.must(field.NewPath("metadata", "name"), o.Name, "must be no more than 52 characters")
		}
	case *appsv1.StatefulSet:
		v.text(field.NewPath("metadata", "name"), o.Name, validation.IsDNS1123Label)
	}
	if o, ok := value.(metav1.Object); ok && v.minor >= staticSince && isAdmission(value) && strings.HasSuffix(o.GetName(), ".static.k8s.io") {
		v.must(field.NewPath("metadata", "name"), o.GetName(), `names ending with ".static.k8s.io" are reserved for files of the API server`)
	}
}

// The versions of Kubernetes since which names of Services are labels that may begin with a
// digit, addresses are read strictly, and names are reserved for files of the API server.
const (
	relaxedSince = 36
	strictSince  = 36
	staticSince  = 37

	maxCronJobName = 52
)

func isAdmission(object any) bool {
	return reflect.TypeOf(object).Elem().PkgPath() == reflect.TypeFor[admissionv1.ValidatingWebhookConfiguration]().PkgPath()
}

func (v *values) serviceName(name string) []string {
	if v.minor >= relaxedSince {
		return validation.IsDNS1123Label(name)
	}
	return validation.IsDNS1035Label(name)
}

func (v *values) ip(at *field.Path, ip string) {
	v.errs = append(v.errs, validation.IsValidIPForLegacyField(at, ip, v.minor >= strictSince, nil)...)
}

func (v *values) cidr(at *field.Path, cidr string) {
	v.errs = append(v.errs, validation.IsValidCIDRForLegacyField(at, cidr, v.minor >= strictSince, nil)...)
}

func noBacksteps(path string) []string {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}

func pathBelow(path string) []string {
	if strings.HasPrefix(path, "/") {
		return []string{"must be a relative path"}
	}
	if strings.HasPrefix(path, "..") {
		return []string{"must not start with '..'"}
	}
	return noBacksteps(path)
}

// workload judges what Deployments and the like have in common.
func (v *values) workload(at *field.Path, replicas *int32, minReady int32, history *int32, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) {
	v.number(at.Child("replicas"), replicas, 0, noLimit)
	v.number(at.Child("minReadySeconds"), minReady, 0, noLimit)
	v.number(at.Child("revisionHistoryLimit"), history, 0, noLimit)
	if p := template.Spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		v.add(field.NotSupported(at.Child("template", "spec", "restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		v.add(field.Forbidden(at.Child("template", "spec", "activeDeadlineSeconds"), "only for Pods and Jobs"))
	}
	if selector == nil {
		return
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		v.must(at.Child("selector"), "", "must not be empty")
		return
	}
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(labels.Set(template.Labels)) {
		v.must(at.Child("template", "metadata", "labels"), labels.FormatLabels(template.Labels), "the selector "+metav1.FormatLabelSelector(selector)+" does not match these labels")
	}
}

func (v *values) replicationController(at *field.Path, o *corev1.ReplicationControllerSpec) {
	v.number(at.Child("replicas"), o.Replicas, 0, noLimit)
	if o.Template == nil {
		v.add(field.Required(at.Child("template"), ""))
		return
	}
	selector := o.Selector
	if len(selector) == 0 {
		selector = o.Template.Labels
	}
	v.workload(at, nil, o.MinReadySeconds, nil, &metav1.LabelSelector{MatchLabels: selector}, o.Template)
}

func (v *values) deploymentStrategy(at *field.Path, s *appsv1.DeploymentStrategy) {
	if s.RollingUpdate == nil {
		return
	}
	at = at.Child("rollingUpdate")
	if s.Type == appsv1.RecreateDeploymentStrategyType {
		v.add(field.Forbidden(at, "may not be set when strategy type is Recreate"))
		return
	}
	unavailable := v.countOrPercent(at.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, 100)
	if surge := v.countOrPercent(at.Child("maxSurge"), s.RollingUpdate.MaxSurge, 0); surge == 0 && unavailable == 0 {
		v.must(at.Child("maxUnavailable"), 0, "may not be 0 when maxSurge is 0")
	}
}

func (v *values) daemonSetStrategy(at *field.Path, s *appsv1.DaemonSetUpdateStrategy) {
	if s.RollingUpdate == nil || s.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return
	}
	at = at.Child("rollingUpdate")
	v.countOrPercent(at.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, 100)
	v.countOrPercent(at.Child("maxSurge"), s.RollingUpdate.MaxSurge, 100)
}

func (v *values) job(at *field.Path, o *batchv1.JobSpec) {
	for name, n := range map[string]*int32{"parallelism": o.Parallelism, "completions": o.Completions, "backoffLimit": o.BackoffLimit, "ttlSecondsAfterFinished": o.TTLSecondsAfterFinished, "backoffLimitPerIndex": o.BackoffLimitPerIndex, "maxFailedIndexes": o.MaxFailedIndexes} {
		v.number(at.Child(name), n, 0, noLimit)
	}
	v.number(at.Child("activeDeadlineSeconds"), o.ActiveDeadlineSeconds, 0, noLimit)
	if o.CompletionMode != nil && *o.CompletionMode == batchv1.IndexedCompletion && o.Completions == nil && o.Parallelism != nil {
		v.add(field.Required(at.Child("completions"), "when completionMode is Indexed"))
	}
	policy, on := o.Template.Spec.RestartPolicy, at.Child("template", "spec", "restartPolicy")
	switch policy {
	case "":
		v.add(field.Required(on, "write OnFailure or Never"))
	case corev1.RestartPolicyAlways:
		v.add(field.NotSupported(on, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	}
}

func (v *values) cronJob(at *field.Path, o *batchv1.CronJobSpec) {
	if o.Schedule == "" {
		v.add(field.Required(at.Child("schedule"), ""))
	} else if strings.Contains(o.Schedule, "TZ") { // the parser panics at "TZ=0"
		v.must(at.Child("schedule"), o.Schedule, "use the field timeZone instead of TZ")
	} else if _, err := cron.ParseStandard(o.Schedule); err != nil {
		v.must(at.Child("schedule"), o.Schedule, err.Error())
	}
	v.number(at.Child("startingDeadlineSeconds"), o.StartingDeadlineSeconds, 0, noLimit)
	v.number(at.Child("successfulJobsHistoryLimit"), o.SuccessfulJobsHistoryLimit, 0, noLimit)
	v.number(at.Child("failedJobsHistoryLimit"), o.FailedJobsHistoryLimit, 0, noLimit)
}

func (v *values) pod(at *field.Path, p *corev1.PodSpec) {
	v.number(at.Child("activeDeadlineSeconds"), p.ActiveDeadlineSeconds, 1, 1<<31-1)
	v.text(at.Child("serviceAccountName"), p.ServiceAccountName, validation.IsDNS1123Subdomain)
	v.text(at.Child("priorityClassName"), p.PriorityClassName, validation.IsDNS1123Subdomain)
	v.text(at.Child("nodeName"), p.NodeName, validation.IsDNS1123Subdomain)
	v.text(at.Child("hostname"), p.Hostname, validation.IsDNS1123Label)
	v.text(at.Child("subdomain"), p.Subdomain, validation.IsDNS1123Label)
	if p.RuntimeClassName != nil {
		v.must(at.Child("runtimeClassName"), *p.RuntimeClassName, validation.IsDNS1123Subdomain(*p.RuntimeClassName)...)
	}
	v.errs = append(v.errs, v1validation.ValidateLabels(p.NodeSelector, at.Child("nodeSelector"))...)
	volumes := map[string]bool{}
	for _, name := range v.claims {
		volumes[name] = true
	}
	for _, volume := range p.Volumes {
		volumes[volume.Name] = true
	}
	if len(p.Containers) == 0 {
		v.add(field.Required(at.Child("containers"), ""))
	}
	names := map[string]bool{}
	for i := range p.Containers {
		names[p.Containers[i].Name] = true
		v.inPod(at.Child("containers").Index(i), &p.Containers[i], volumes, p.HostNetwork)
	}
	for i, c := range p.InitContainers {
		here := at.Child("initContainers").Index(i)
		v.unique(names, here.Child("name"), c.Name)
		v.inPod(here, &c, volumes, p.HostNetwork)
		if c.RestartPolicy == nil && (c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil || c.Lifecycle != nil) {
			v.add(field.Forbidden(here, "init containers without restartPolicy: Always have no probes and no lifecycle"))
		}
	}
}

// inPod judges a container by its Pod.
func (v *values) inPod(at *field.Path, c *corev1.Container, volumes map[string]bool, hostNetwork bool) {
	for i, m := range c.VolumeMounts {
		if !volumes[m.Name] && m.Name != "" {
			v.add(field.NotFound(at.Child("volumeMounts").Index(i).Child("name"), m.Name))
		}
	}
	for i, port := range c.Ports {
		if hostNetwork && port.HostPort != 0 && port.HostPort != port.ContainerPort {
			v.must(at.Child("ports").Index(i).Child("hostPort"), port.HostPort, "must be the containerPort when hostNetwork is true")
		}
	}
}

func (v *values) container(at *field.Path, c *corev1.Container) {
	v.needs(at.Child("name"), c.Name, validation.IsDNS1123Label)
	v.needs(at.Child("image"), c.Image, nil)
	names, mounts := map[string]bool{}, map[string]bool{}
	for i, port := range c.Ports {
		here := at.Child("ports").Index(i)
		v.text(here.Child("name"), port.Name, validation.IsValidPortName)
		v.unique(names, here.Child("name"), port.Name)
		v.number(here.Child("containerPort"), port.ContainerPort, 1, highPort)
		v.number(here.Child("hostPort"), port.HostPort, 0, highPort)
	}
	for i, m := range c.VolumeMounts {
		here := at.Child("volumeMounts").Index(i)
		v.needs(here.Child("name"), m.Name, nil)
		v.needs(here.Child("mountPath"), m.MountPath, nil)
		v.unique(mounts, here.Child("mountPath"), m.MountPath)
		v.text(here.Child("subPath"), m.SubPath, pathBelow)
	}
	for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "startupProbe": c.StartupProbe} {
		if probe != nil && probe.SuccessThreshold != 0 {
			v.number(at.Child(name, "successThreshold"), probe.SuccessThreshold, 1, 1)
		}
	}
}

func (v *values) resources(at *field.Path, requests, limits corev1.ResourceList) {
	for part, list := range map[string]corev1.ResourceList{"requests": requests, "limits": limits} {
		v.quantities(at.Child(part), list)
		for name := range list {
			here := child(at.Child(part), string(name))
			if n := string(name); !strings.Contains(n, "/") && !strings.HasPrefix(n, corev1.ResourceHugePagesPrefix) && !slices.Contains(containerResources, name) {
				v.add(field.NotSupported(here, name, containerResources))
			}
		}
	}
	for name, request := range requests {
		if limit, ok := limits[name]; ok && request.Cmp(limit) > 0 {
			v.must(child(at.Child("requests"), string(name)), request.String(), "must be less than or equal to the limit "+limit.String())
		}
	}
}

var (
	limitTypes  = []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}
	metricTypes = []autoscalingv2.MetricSourceType{
		autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
		autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
	}
)

var containerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

func (v *values) quantities(at *field.Path, list corev1.ResourceList) {
	for name, q := range list {
		if here := child(at, string(name)); q.Cmp(resource.Quantity{}) < 0 {
			v.must(here, q.String(), "must be 0 or more")
		}
	}
}

func (v *values) toleration(at *field.Path, t *corev1.Toleration) {
	v.text(at.Child("key"), t.Key, validation.IsQualifiedName)
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		v.must(at.Child("operator"), t.Operator, "must be Exists when the key is empty, which means all")
	}
	if t.Operator == corev1.TolerationOpExists && t.Value != "" {
		v.must(at.Child("value"), t.Value, "must be empty when the operator is Exists")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		v.must(at.Child("effect"), t.Effect, "must be NoExecute when tolerationSeconds is set")
	}
}

// requirement judges the number of an expression's values.
func (v *values) requirement(at *field.Path, operator string, count int) {
	switch operator {
	case "In", "NotIn":
		if count == 0 {
			v.add(field.Required(at.Child("values"), "for the operator "+operator))
		}
	case "Exists", "DoesNotExist":
		if count > 0 {
			v.add(field.Forbidden(at.Child("values"), "not for the operator "+operator))
		}
	case "Gt", "Lt":
		if count != 1 {
			v.add(field.Required(at.Child("values"), "exactly one for the operator "+operator))
		}
	}
}

func (v *values) service(at *field.Path, s *corev1.ServiceSpec) {
	headless := s.ClusterIP == corev1.ClusterIPNone
	switch {
	case s.Type == corev1.ServiceTypeExternalName:
		v.needs(at.Child("externalName"), strings.TrimSuffix(s.ExternalName, "."), validation.IsDNS1123Subdomain)
	case len(s.Ports) == 0 && !headless:
		v.add(field.Required(at.Child("ports"), ""))
	case headless && s.Type != "" && s.Type != corev1.ServiceTypeClusterIP:
		v.must(at.Child("clusterIP"), s.ClusterIP, "may not be None for a Service of type "+string(s.Type))
	}
	if s.ClusterIP != "" && !headless {
		v.ip(at.Child("clusterIP"), s.ClusterIP)
	}
	names, nodePorts := map[string]bool{}, map[string]bool{}
	for i, p := range s.Ports {
		here := at.Child("ports").Index(i)
		if p.Name == "" && len(s.Ports) > 1 {
			v.add(field.Required(here.Child("name"), "where there are several ports"))
		}
		v.text(here.Child("name"), p.Name, validation.IsDNS1123Label)
		v.unique(names, here.Child("name"), p.Name)
		v.number(here.Child("port"), p.Port, 1, highPort)
		if p.TargetPort.String() != "0" && p.TargetPort.String() != "" {
			v.portOrName(here.Child("targetPort"), p.TargetPort)
		}
		v.number(here.Child("nodePort"), p.NodePort, 0, highPort)
		if p.NodePort != 0 {
			v.unique(nodePorts, here.Child("nodePort"), fmt.Sprintf("%d %s", p.NodePort, p.Protocol))
			if s.Type == "" || s.Type == corev1.ServiceTypeClusterIP {
				v.add(field.Forbidden(here.Child("nodePort"), "not for a Service of type ClusterIP"))
			}
		}
		if p.AppProtocol != nil {
			v.text(here.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName)
		}
	}
	v.errs = append(v.errs, v1validation.ValidateLabels(s.Selector, at.Child("selector"))...)
	for i, ip := range s.ExternalIPs {
		v.ip(at.Child("externalIPs").Index(i), ip)
		if a, err := netip.ParseAddr(ip); err == nil && (a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast()) {
			v.must(at.Child("externalIPs").Index(i), ip, "must not be a loopback, link-local or unspecified address")
		}
	}
	if len(s.LoadBalancerSourceRanges) > 0 && s.Type != corev1.ServiceTypeLoadBalancer {
		v.add(field.Forbidden(at.Child("loadBalancerSourceRanges"), "only for a Service of type LoadBalancer"))
	}
	for i, cidr := range s.LoadBalancerSourceRanges {
		v.cidr(at.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(cidr))
	}
	if s.SessionAffinityConfig != nil && s.SessionAffinity != corev1.ServiceAffinityClientIP {
		v.add(field.Forbidden(at.Child("sessionAffinityConfig"), "only for sessionAffinity: ClientIP"))
	}
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

// secretKeys are those that the type of a Secret requires: one of several, or all.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
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
	if len(o.AccessModes) == 0 {
		v.add(field.Required(at.Child("accessModes"), ""))
	}
	here := at.Child("resources", "requests", "storage")
	if size, ok := o.Resources.Requests[corev1.ResourceStorage]; !ok {
		v.add(field.Required(here, ""))
	} else if size.Sign() <= 0 {
		v.must(here, size.String(), "must be greater than 0")
	}
	if o.StorageClassName != nil {
		v.text(at.Child("storageClassName"), *o.StorageClassName, validation.IsDNS1123Subdomain)
	}
}

func (v *values) ingress(at *field.Path, s *networkingv1.IngressSpec) {
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		v.must(at, "", "must have rules or a defaultBackend")
	}
	if s.IngressClassName != nil {
		v.must(at.Child("ingressClassName"), *s.IngressClassName, validation.IsDNS1123Subdomain(*s.IngressClassName)...)
	}
	host := func(at *field.Path, name string) {
		if strings.Contains(name, "*") {
			v.must(at, name, validation.IsWildcardDNS1123Subdomain(name)...)
			return
		}
		v.text(at, name, validation.IsDNS1123Subdomain)
	}
	for i, r := range s.Rules {
		here := at.Child("rules").Index(i)
		if host(here.Child("host"), r.Host); r.HTTP == nil {
			continue
		}
		if _, err := netip.ParseAddr(r.Host); err == nil {
			v.must(here.Child("host"), r.Host, "must be a DNS name, not an IP address")
		}
		here = here.Child("http", "paths")
		if len(r.HTTP.Paths) == 0 {
			v.add(field.Required(here, ""))
		}
		for j, p := range r.HTTP.Paths {
			strict := p.PathType != nil && *p.PathType != networkingv1.PathTypeImplementationSpecific
			if !strings.HasPrefix(p.Path, "/") && (strict || p.Path != "") {
				v.must(here.Index(j).Child("path"), p.Path, "must be an absolute path")
			}
			for _, wrong := range []string{"//", "/./", "/../", "%2f", "%2F"} {
				if strict && strings.Contains(p.Path, wrong) {
					v.must(here.Index(j).Child("path"), p.Path, "must not contain "+wrong)
				}
			}
		}
	}
	for i, tls := range s.TLS {
		for j, name := range tls.Hosts {
			host(at.Child("tls").Index(i).Child("hosts").Index(j), name)
		}
	}
}

func (v *values) ingressBackend(at *field.Path, b *networkingv1.IngressBackend) {
	v.one(at, *b, true, "a service or a resource")
	if b.Service == nil {
		return
	}
	v.needs(at.Child("service", "name"), b.Service.Name, v.serviceName)
	port := b.Service.Port
	here := at.Child("service", "port")
	switch {
	case port.Name != "" && port.Number != 0:
		v.must(here, "", "cannot set both name and number")
	case port.Name != "":
		v.must(here.Child("name"), port.Name, validation.IsValidPortName(port.Name)...)
	case port.Number != 0:
		v.number(here.Child("number"), port.Number, 1, highPort)
	default:
		v.add(field.Required(here, "name or number"))
	}
}

func (v *values) policyPort(at *field.Path, p *networkingv1.NetworkPolicyPort) {
	if p.Port != nil {
		v.portOrName(at.Child("port"), *p.Port)
	}
	if p.EndPort == nil {
		return
	}
	if p.Port == nil || p.Port.Type != intstr.Int {
		v.must(at.Child("endPort"), *p.EndPort, "only where port is a number")
		return
	}
	v.number(at.Child("endPort"), p.EndPort, int64(p.Port.IntVal), highPort)
}

func (v *values) ipBlock(at *field.Path, b *networkingv1.IPBlock) {
	if b.CIDR == "" {
		v.add(field.Required(at.Child("cidr"), ""))
		return
	}
	v.cidr(at.Child("cidr"), b.CIDR)
	outer, wrong := netip.ParsePrefix(b.CIDR)
	for i, except := range b.Except {
		v.cidr(at.Child("except").Index(i), except)
		inner, err := netip.ParsePrefix(except)
		if wrong == nil && err == nil && (!outer.Contains(inner.Addr()) || outer.Bits() >= inner.Bits()) {
			v.must(at.Child("except").Index(i), except, "must be a part of cidr")
		}
	}
}

func (v *values) autoscaler(at *field.Path, s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	v.number(at.Child("maxReplicas"), s.MaxReplicas, 1, noLimit)
	v.number(at.Child("minReplicas"), s.MinReplicas, 0, noLimit) // 0 is for metrics of other objects
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		v.must(at.Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to minReplicas")
	}
}

func (v *values) policyRules(rules []rbacv1.PolicyRule, namespaced bool) {
	for i, r := range rules {
		at := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			v.add(field.Required(at.Child("verbs"), ""))
		}
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

func (v *values) roleRef(at *field.Path, r *rbacv1.RoleRef) {
	if r.APIGroup != "" && r.APIGroup != rbacv1.GroupName {
		v.add(field.NotSupported(at.Child("apiGroup"), r.APIGroup, []string{rbacv1.GroupName}))
	}
	if r.Kind != "Role" && r.Kind != "ClusterRole" {
		v.add(field.NotSupported(at.Child("kind"), r.Kind, []string{"Role", "ClusterRole"}))
	}
	v.needs(at.Child("name"), r.Name, nil)
}

func (v *values) subject(at *field.Path, s *rbacv1.Subject) {
	v.needs(at.Child("name"), s.Name, nil)
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

func (v *values) webhook(at *field.Path, name string, client admissionv1.WebhookClientConfig, effects *admissionv1.SideEffectClass, timeout *int32, versions []string) {
	v.errs = append(v.errs, validation.IsFullyQualifiedName(at.Child("name"), name)...)
	v.number(at.Child("timeoutSeconds"), timeout, 1, 30)
	if (client.URL == nil) == (client.Service == nil) {
		v.add(field.Required(at.Child("clientConfig"), "exactly one of url and service"))
	}
	if client.URL != nil && !strings.HasPrefix(*client.URL, "https://") {
		v.must(at.Child("clientConfig", "url"), *client.URL, "must begin with https://")
	}
	if client.Service != nil {
		v.number(at.Child("clientConfig", "service", "port"), client.Service.Port, 1, highPort)
		v.needs(at.Child("clientConfig", "service", "name"), client.Service.Name, nil)
		v.needs(at.Child("clientConfig", "service", "namespace"), client.Service.Namespace, nil)
		if path := client.Service.Path; path != nil && *path != "" && !strings.HasPrefix(*path, "/") {
			v.must(at.Child("clientConfig", "service", "path"), *path, "must start with a '/'")
		}
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

func (v *values) webhookRule(at *field.Path, r *admissionv1.RuleWithOperations) {
	for name, n := range map[string]int{"operations": len(r.Operations), "apiGroups": len(r.APIGroups), "apiVersions": len(r.APIVersions), "resources": len(r.Resources)} {
		if n == 0 {
			v.add(field.Required(at.Child(name), ""))
		}
	}
}
