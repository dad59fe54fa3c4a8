package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// provisioner is what stages.yaml plays.
const provisioner = "brine.dev/simulated"

// roles are those that bundles select nodes by.
var roles = []string{"master", "infra", "control-plane"}

func (c *cluster) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.path("kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = 5 * time.Second
	return kubernetes.NewForConfig(config)
}

// poll asks again until ok answers true; until then an error is only a server
// that is not up yet, and told if time runs out.
func poll(ctx context.Context, ok func() (bool, error)) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		done, err := ok()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (last answer: %v)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func (c *cluster) waitServing(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, err
	})
}

func (c *cluster) seedAndWait(ctx context.Context) error {
	if err := c.seed(ctx); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

// seed makes what kubeadm and an administrator would have made.
func (c *cluster) seed(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	version := c.version()
	for i := range c.Nodes {
		_, err := client.CoreV1().Nodes().Create(ctx, node(i, version), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node: %w", err)
		}
	}
	for _, class := range storageClasses() {
		_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create storage class: %w", err)
		}
	}
	policy, binding := shortGracePeriod()
	admission := client.AdmissionregistrationV1()
	_, err = admission.MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // a version that does not serve them
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create admission policy: %w", err)
	}
	if _, err := admission.MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create admission policy binding: %w", err)
	}
	return nil
}

// shortGracePeriod gives the pods that controllers make a second to end. kwok
// ends them at once, but the namespace controller looks again only after half
// the period that the pods may take. Pods that someone applied stay as asked.
func shortGracePeriod() (*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: "short-grace-period.devcluster.brine.dev"}
	ignore := admissionv1.Ignore
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      &ignore,
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule: admissionv1.Rule{
							APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
						},
					},
				}},
			},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "made-by-a-controller", Expression: "has(object.metadata.ownerReferences)",
			}},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: "Object{spec: Object.spec{terminationGracePeriodSeconds: 1}}",
				},
			}},
		},
	}
	return policy, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name},
	}
}

func node(i int, version string) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		// A kubelet takes 110; benchmarks apply ten thousand objects.
		corev1.ResourcePods: resource.MustParse("5000"),
	}
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
	}
	for _, role := range roles {
		labels["node-role.kubernetes.io/"+role] = ""
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: version,
				Architecture:   runtime.GOARCH,
			},
		},
	}
}

func storageClasses() []*storagev1.StorageClass {
	immediate, waiting := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	return []*storagev1.StorageClass{{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       provisioner,
		VolumeBindingMode: &immediate,
	}, {
		ObjectMeta:        metav1.ObjectMeta{Name: "wait-first-consumer"},
		Provisioner:       provisioner,
		VolumeBindingMode: &waiting,
	}}
}

// waitReady waits until a pod could be made and would be scheduled: the
// controllers have made the default service account, and every node is ready
// and rid of the taint it starts with.
func (c *cluster) waitReady(ctx context.Context) error {
	if err := c.waitServing(ctx); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) {
		if _, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); err != nil {
			return false, err
		}
		if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return false, err
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready := 0
		for _, n := range nodes.Items {
			if isReady(n) {
				ready++
			}
		}
		return ready >= c.Nodes, fmt.Errorf("%d of %d nodes are ready", ready, c.Nodes)
	})
}

func isReady(n corev1.Node) bool {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0
		}
	}
	return false
}
