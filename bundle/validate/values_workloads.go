package validate

import (
	"slices"
	"strings"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"brine/bundle"
)

// Rules about workloads and their pods that look at more than one field.

func (v *values) workloads(value any, at *field.Path) {
	switch o := value.(type) {
	case *appsv1.DeploymentSpec:
		v.workload(at, o.Selector, &o.Template)
		if p := o.ProgressDeadlineSeconds; p != nil {
			v.number(at.Child("progressDeadlineSeconds"), int64(*p), int64(o.MinReadySeconds)+1, noLimit)
		}
		v.deploymentStrategy(at.Child("strategy", "rollingUpdate"), &o.Strategy)
	case *appsv1.ReplicaSetSpec:
		v.workload(at, o.Selector, &o.Template)
	case *corev1.ReplicationControllerSpec:
		v.replicationController(at, o)
	case *appsv1.DaemonSetSpec:
		v.workload(at, o.Selector, &o.Template)
		if s := o.UpdateStrategy; s.RollingUpdate != nil && s.Type != appsv1.OnDeleteDaemonSetStrategyType {
			here := at.Child("updateStrategy", "rollingUpdate")
			v.countOrPercent(here.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, 100)
			v.countOrPercent(here.Child("maxSurge"), s.RollingUpdate.MaxSurge, 100)
		}
	case *appsv1.StatefulSet:
		v.text(at.Child("metadata", "name"), o.Name, validation.IsDNS1123Label)
	case *appsv1.StatefulSetSpec:
		v.workload(at, o.Selector, &o.Template)
		for _, c := range o.VolumeClaimTemplates {
			v.claims = append(v.claims, c.Name)
		}
	case *batchv1.JobSpec:
		indexed := o.CompletionMode != nil && *o.CompletionMode == batchv1.IndexedCompletion
		v.refuseIf(indexed && o.Completions == nil && o.Parallelism != nil, field.Required(at.Child("completions"), "when completionMode is Indexed"))
		policy, on := o.Template.Spec.RestartPolicy, at.Child("template", "spec", "restartPolicy")
		v.refuseIf(policy == "", field.Required(on, "write OnFailure or Never"))
		v.refuseIf(policy == corev1.RestartPolicyAlways, field.NotSupported(on, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	case *batchv1.CronJob:
		v.refuseIf(len(o.Name) > 52, field.Invalid(at.Child("metadata", "name"), o.Name, "must be no more than 52 characters"))
	case *autoscalingv2.HorizontalPodAutoscalerSpec:
		v.refuseIf(o.MinReplicas != nil && o.MaxReplicas < *o.MinReplicas, field.Invalid(at.Child("maxReplicas"), o.MaxReplicas, "must be greater than or equal to minReplicas"))
	case *policyv1.PodDisruptionBudgetSpec:
		v.refuseIf(o.MinAvailable != nil && o.MaxUnavailable != nil, field.Invalid(at, "", "minAvailable and maxUnavailable cannot be both set"))
	case *corev1.PodSpec:
		v.pod(at, o)
	case *corev1.Container:
		v.container(at, o)
	case *corev1.EnvVar:
		v.refuseIf(o.ValueFrom != nil && o.Value != "", field.Invalid(at.Child("valueFrom"), "", "may not be set together with value"))
	case *corev1.SecurityContext:
		no, yes := o.AllowPrivilegeEscalation, o.Privileged
		v.refuseIf(no != nil && !*no && yes != nil && *yes, field.Invalid(at, "", "cannot set allowPrivilegeEscalation to false and privileged to true"))
	case *corev1.ResourceRequirements:
		v.resources(at, o.Requests, o.Limits)
	case *corev1.Toleration:
		v.refuseIf(o.Key == "" && o.Operator != corev1.TolerationOpExists, field.Invalid(at.Child("operator"), o.Operator, "must be Exists when the key is empty, which means all"))
		v.refuseIf(o.Operator == corev1.TolerationOpExists && o.Value != "", field.Invalid(at.Child("value"), o.Value, "must be empty when the operator is Exists"))
		v.refuseIf(o.TolerationSeconds != nil && o.Effect != corev1.TaintEffectNoExecute, field.Invalid(at.Child("effect"), o.Effect, "must be NoExecute when tolerationSeconds is set"))
	case *corev1.NodeSelectorRequirement:
		here, operator, count := at.Child("values"), string(o.Operator), len(o.Values)
		v.refuseIf(count == 0 && (operator == "In" || operator == "NotIn"), field.Required(here, "for the operator "+operator))
		v.refuseIf(count > 0 && (operator == "Exists" || operator == "DoesNotExist"), field.Forbidden(here, "not for the operator "+operator))
		v.refuseIf(count != 1 && (operator == "Gt" || operator == "Lt"), field.Required(here, "exactly one for the operator "+operator))
	}
}

// workload judges what Deployments and the like have in common.
func (v *values) workload(at *field.Path, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) {
	pods := at.Child("template", "spec")
	policy := template.Spec.RestartPolicy
	v.refuseIf(policy != "" && policy != corev1.RestartPolicyAlways, field.NotSupported(pods.Child("restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	v.refuseIf(template.Spec.ActiveDeadlineSeconds != nil, field.Forbidden(pods.Child("activeDeadlineSeconds"), "only for Pods and Jobs"))
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
	if o.Template == nil {
		v.refuse(field.Required(at.Child("template"), ""))
		return
	}
	selector := o.Selector
	if len(selector) == 0 {
		selector = o.Template.Labels
	}
	v.workload(at, &metav1.LabelSelector{MatchLabels: selector}, o.Template)
}

func (v *values) deploymentStrategy(at *field.Path, s *appsv1.DeploymentStrategy) {
	switch {
	case s.RollingUpdate == nil:
	case s.Type == appsv1.RecreateDeploymentStrategyType:
		v.refuse(field.Forbidden(at, "may not be set when strategy type is Recreate"))
	default:
		unavailable := v.countOrPercent(at.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, 100)
		surge := v.countOrPercent(at.Child("maxSurge"), s.RollingUpdate.MaxSurge, 0)
		v.refuseIf(surge == 0 && unavailable == 0, field.Invalid(at.Child("maxUnavailable"), 0, "may not be 0 when maxSurge is 0"))
	}
}

func cronSchedule(schedule string) []string {
	if strings.Contains(schedule, "TZ") { // the parser panics at "TZ=0"
		return []string{"use the field timeZone instead of TZ"}
	}
	if _, err := cron.ParseStandard(schedule); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func (v *values) pod(at *field.Path, p *corev1.PodSpec) {
	volumes := bundle.SetOf(p.Volumes, func(volume corev1.Volume) string { return volume.Name }).Insert(v.claims...)
	names := map[string]bool{}
	for i := range p.Containers {
		names[p.Containers[i].Name] = true
		v.inPod(at.Child("containers").Index(i), &p.Containers[i], volumes, p.HostNetwork)
	}
	for i, c := range p.InitContainers {
		here := at.Child("initContainers").Index(i)
		v.unique(names, here.Child("name"), c.Name)
		v.inPod(here, &c, volumes, p.HostNetwork)
		v.refuseIf(c.RestartPolicy == nil && (c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil || c.Lifecycle != nil),
			field.Forbidden(here, "init containers without restartPolicy: Always have no probes and no lifecycle"))
	}
}

// inPod judges a container by its Pod.
func (v *values) inPod(at *field.Path, c *corev1.Container, volumes sets.Set[string], hostNetwork bool) {
	for i, m := range c.VolumeMounts {
		v.refuseIf(m.Name != "" && !volumes.Has(m.Name), field.NotFound(at.Child("volumeMounts").Index(i).Child("name"), m.Name))
	}
	for i, port := range c.Ports {
		v.refuseIf(hostNetwork && port.HostPort != 0 && port.HostPort != port.ContainerPort,
			field.Invalid(at.Child("ports").Index(i).Child("hostPort"), port.HostPort, "must be the containerPort when hostNetwork is true"))
	}
}

func (v *values) container(at *field.Path, c *corev1.Container) {
	names, mounts := map[string]bool{}, map[string]bool{}
	for i, port := range c.Ports {
		v.unique(names, at.Child("ports").Index(i).Child("name"), port.Name)
	}
	for i, m := range c.VolumeMounts {
		v.unique(mounts, at.Child("volumeMounts").Index(i).Child("mountPath"), m.MountPath)
	}
	for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "startupProbe": c.StartupProbe} {
		if probe != nil && probe.SuccessThreshold != 0 {
			v.number(at.Child(name, "successThreshold"), int64(probe.SuccessThreshold), 1, 1)
		}
	}
}

func (v *values) resources(at *field.Path, requests, limits corev1.ResourceList) {
	for part, list := range map[string]corev1.ResourceList{"requests": requests, "limits": limits} {
		v.quantities(at.Child(part), list)
		for name := range list {
			v.refuseIf(!strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && !slices.Contains(containerResources, name),
				field.NotSupported(child(at.Child(part), string(name)), name, containerResources))
		}
	}
	for name, request := range requests {
		limit, limited := limits[name]
		v.refuseIf(limited && request.Cmp(limit) > 0, field.Invalid(child(at.Child("requests"), string(name)), request.String(), "must be less than or equal to the limit "+limit.String()))
	}
}

func (v *values) quantities(at *field.Path, list corev1.ResourceList) {
	for name, q := range list {
		v.refuseIf(q.Sign() < 0, field.Invalid(child(at, string(name)), q.String(), "must be 0 or more"))
	}
}

var containerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
