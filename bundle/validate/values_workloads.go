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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules about workloads and their pods that look at more than one field.

func (v *values) workloads(value any, at *field.Path) {
	switch o := value.(type) {
	case *appsv1.DeploymentSpec:
		v.workload(at, o.Selector, &o.Template)
		if p := o.ProgressDeadlineSeconds; p != nil {
			v.number(at.Child("progressDeadlineSeconds"), int64(*p), int64(o.MinReadySeconds)+1, noLimit)
		}
		v.deploymentStrategy(at.Child("strategy"), &o.Strategy)
	case *appsv1.ReplicaSetSpec:
		v.workload(at, o.Selector, &o.Template)
	case *corev1.ReplicationControllerSpec:
		v.replicationController(at, o)
	case *appsv1.DaemonSetSpec:
		v.workload(at, o.Selector, &o.Template)
		v.daemonSetStrategy(at.Child("updateStrategy"), &o.UpdateStrategy)
	case *appsv1.StatefulSet:
		v.text(at.Child("metadata", "name"), o.Name, validation.IsDNS1123Label)
	case *appsv1.StatefulSetSpec:
		v.workload(at, o.Selector, &o.Template)
		for _, c := range o.VolumeClaimTemplates {
			v.claims = append(v.claims, c.Name)
		}
	case *batchv1.JobSpec:
		v.job(at, o)
	case *batchv1.CronJob:
		if len(o.Name) > 52 {
			v.must(at.Child("metadata", "name"), o.Name, "must be no more than 52 characters")
		}
	case *batchv1.CronJobSpec:
		v.cronJob(at, o)
	case *autoscalingv2.HorizontalPodAutoscalerSpec:
		if o.MinReplicas != nil && o.MaxReplicas < *o.MinReplicas {
			v.must(at.Child("maxReplicas"), o.MaxReplicas, "must be greater than or equal to minReplicas")
		}
	case *policyv1.PodDisruptionBudgetSpec:
		if o.MinAvailable != nil && o.MaxUnavailable != nil {
			v.must(at, "", "minAvailable and maxUnavailable cannot be both set")
		}
	case *corev1.PodSpec:
		v.pod(at, o)
	case *corev1.Container:
		v.container(at, o)
	case *corev1.EnvVar:
		if o.ValueFrom != nil && o.Value != "" {
			v.must(at.Child("valueFrom"), "", "may not be set together with value")
		}
	case *corev1.SecurityContext:
		if o.AllowPrivilegeEscalation != nil && !*o.AllowPrivilegeEscalation && o.Privileged != nil && *o.Privileged {
			v.must(at, "", "cannot set allowPrivilegeEscalation to false and privileged to true")
		}
	case *corev1.ResourceRequirements:
		v.resources(at, o.Requests, o.Limits)
	case *corev1.Toleration:
		v.toleration(at, o)
	case *corev1.NodeSelectorRequirement:
		v.requirement(at, string(o.Operator), len(o.Values))
	}
}

// workload judges what Deployments and the like have in common.
func (v *values) workload(at *field.Path, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) {
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
	if o.Template == nil {
		v.add(field.Required(at.Child("template"), ""))
		return
	}
	selector := o.Selector
	if len(selector) == 0 {
		selector = o.Template.Labels
	}
	v.workload(at, &metav1.LabelSelector{MatchLabels: selector}, o.Template)
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
}

func (v *values) pod(at *field.Path, p *corev1.PodSpec) {
	volumes := map[string]bool{}
	for _, name := range v.claims {
		volumes[name] = true
	}
	for _, volume := range p.Volumes {
		volumes[volume.Name] = true
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

func (v *values) quantities(at *field.Path, list corev1.ResourceList) {
	for name, q := range list {
		if here := child(at, string(name)); q.Cmp(resource.Quantity{}) < 0 {
			v.must(here, q.String(), "must be 0 or more")
		}
	}
}

func (v *values) toleration(at *field.Path, t *corev1.Toleration) {
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

var limitTypes = []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}

var containerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
