package ready

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
)

// The rules of kinds that have one of their own, and the kinds that are ready when they are
// stored.

// Waits says whether objects of this kind, with these rules, have anything to
// wait for; where they do not, they need no watch. Where they do, the
// answer to the write may already be ready by Of, and needs no watch either.
func Waits(gvk schema.GroupVersionKind, rules *Rules) bool {
	if rules.expressions() {
		return true
	}
	return !nothingToWaitFor(gvk.GroupKind())
}

// The kinds that have rules of their own.
var (
	controllerKind = schema.GroupKind{Kind: "ReplicationController"}
	migrationKind  = schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}
)

// kindRule is the rule of one kind, and the fields that it looks at.
type kindRule struct {
	of     func(object, Hints) Status
	fields string
}

var kindRules = map[schema.GroupKind]kindRule{
	bundle.PodKind:                   {unhinted(pod), "status.phase, containerStatuses, conditions Ready and PodScheduled"},
	bundle.ServiceKind:               {unhinted(service), "status.loadBalancer.ingress, where spec.type is LoadBalancer"},
	bundle.NamespaceKind:             {unhinted(namespace), "status.phase"},
	bundle.PersistentVolumeClaimKind: {claim, "status.phase and capacity, conditions that end in Error"},
	bundle.JobKind:                   {unhinted(job), "status.conditions Complete, Failed and Suspended"},
	bundle.DeploymentKind:            {unhinted(deployment), "spec.replicas and those of status, conditions Progressing and Available"},
	bundle.StatefulSetKind:           {unhinted(statefulSet), "spec.replicas and those of status, revisions"},
	bundle.DaemonSetKind:             {unhinted(daemonSet), "numbers of pods in status"},
	bundle.ReplicaSetKind:            {unhinted(replicaSet), "spec.replicas and those of status"},
	controllerKind:                   {unhinted(replicaSet), "spec.replicas and those of status"},
	bundle.CRDKind:                   {unhinted(definition), "status.conditions NamesAccepted, Established and StorageMigrating"},
	bundle.APIServiceKind:            {unhinted(apiService), "status.conditions Available"},
	migrationKind:                    {unhinted(storageMigration), "status.conditions Running, Succeeded and Failed"},
	gatewayAPI("GatewayClass"):       {unhinted(gateway), "status.conditions Accepted"},
	gatewayAPI("Gateway"):            {unhinted(gateway), "conditions Accepted and Programmed in status, and those of its listeners"},
	gatewayAPI("ListenerSet"):        {unhinted(gateway), "conditions Accepted and Programmed in status, and those of its listeners"},
	gatewayAPI("HTTPRoute"):          routeRule,
	gatewayAPI("GRPCRoute"):          routeRule,
	gatewayAPI("TLSRoute"):           routeRule,
	gatewayAPI("TCPRoute"):           routeRule,
	gatewayAPI("UDPRoute"):           routeRule,
}

var routeRule = kindRule{unhinted(route), "status.parents, of the Gateways that it names: conditions Accepted and ResolvedRefs"}

func gatewayAPI(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: kind}
}

func unhinted(rule func(object) Status) func(object, Hints) Status {
	return func(o object, _ Hints) Status { return rule(o) }
}

func (r kindRule) name(gk schema.GroupKind) string { return "of " + gk.String() + ": " + r.fields }

func stored(gk schema.GroupKind) string { return "of " + gk.String() + ": ready when it is stored" }

// RuleOf says which rule decides over objects of a kind with these rules.
func RuleOf(gvk schema.GroupVersionKind, rules *Rules) string {
	gk := gvk.GroupKind()
	usual := "general: conditions, phases, errors and counts in status"
	if rule, ok := kindRules[gk]; ok {
		usual = rule.name(gk)
	} else if nothingToWaitFor(gk) {
		usual = stored(gk)
	}
	var parts []string
	if rules != nil && rules.failedWhen != nil {
		parts = append(parts, rules.failedWhen.rule("failed-when"))
	}
	if rules != nil && rules.readyWhen != nil {
		parts = append(parts, rules.readyWhen.rule("ready-when"))
	} else {
		parts = append(parts, usual)
	}
	if rules != nil && rules.Skip {
		parts = append(parts, "not waited for")
	}
	return strings.Join(parts, "; ")
}

// alwaysReady are the groups of which all kinds work as soon as they are stored, or
// have a status that is not waited for (an Ingress' address, a
// HorizontalPodAutoscaler's metrics, what a policy's type check says).
var alwaysReady = sets.New(
	"admissionregistration.k8s.io", "autoscaling", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
)

// A claim waits for a PersistentVolume, which waits for nothing; a CronJob is a schedule, its
// Jobs are not the bundle's.
var alwaysReadyKinds = bundle.Kinds("ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolume", "PodTemplate", "ResourceQuota", "Secret",
	"ServiceAccount", "ControllerRevision.apps", "CronJob.batch", "Ingress.extensions", "PodSecurityPolicy.policy", "ClusterTrustBundle.certificates.k8s.io")

func nothingToWaitFor(gk schema.GroupKind) bool {
	return alwaysReady.Has(gk.Group) || alwaysReadyKinds.Has(gk)
}

// service follows Helm: a LoadBalancer is ready when it has an address, unless
// it is given addresses by hand.
func service(o object) Status {
	if o.text("spec", "type") != "LoadBalancer" || len(o.list("spec", "externalIPs")) > 0 {
		return Status{State: Ready}
	}
	if len(o.list("status", "loadBalancer", "ingress")) > 0 {
		return Status{State: Ready}
	}
	return notReady("its load balancer has no address yet")
}

func namespace(o object) Status {
	if phase := o.text("status", "phase"); phase != "" && phase != "Active" {
		return notReady("phase is %s", phase)
	}
	return Status{State: Ready}
}

// claim is ready when it is bound, and can become what it asks for. One that is bound only when a
// pod uses it blocks nothing until a pod does (the scheduler then sets selected-node).
func claim(o object, hints Hints) Status {
	switch phase := o.text("status", "phase"); phase {
	case "Bound":
		for _, c := range o.conditions() {
			if c.status == "True" && strings.HasSuffix(c.kind, "Error") { // ControllerResizeError, NodeResizeError, ModifyVolumeError
				return notReady("%s", c.String())
			}
		}
		return grown(o)
	case "Lost":
		return failed("Lost: its volume %s does not exist any more", o.text("spec", "volumeName"))
	}
	class := o.text("spec", "storageClassName")
	annotations, _ := o.field("metadata", "annotations").(map[string]any)
	node, _ := annotations["volume.kubernetes.io/selected-node"].(string)
	switch {
	case node != "":
		return notReady("not bound: StorageClass %q is to provide its volume for node %s", class, node)
	case o.text("spec", "volumeName") != "":
		return notReady("not bound: reserved for PersistentVolume %s", o.text("spec", "volumeName"))
	case class == "":
		return notReady("not bound: it has no StorageClass, and waits for a matching PersistentVolume")
	case hints.WaitsForConsumer != nil && hints.WaitsForConsumer(class):
		return Status{State: Ready, Reason: "waits for its first consumer"}
	}
	return notReady("not bound: StorageClass %q has to provide its volume", class)
}

// grown says whether a bound claim has the size that it asks for, or only a pod that uses it is
// missing. A volume that was made by hand may be smaller for good.
func grown(o object) Status {
	annotations, _ := o.field("metadata", "annotations").(map[string]any)
	provisioned := annotations["volume.kubernetes.io/storage-provisioner"] != nil || annotations["volume.beta.kubernetes.io/storage-provisioner"] != nil
	wants, has := o.text("spec", "resources", "requests", "storage"), o.text("status", "capacity", "storage")
	wanted, err := resource.ParseQuantity(wants)
	size, err2 := resource.ParseQuantity(has)
	pending, _ := o.condition("FileSystemResizePending")
	if !provisioned || err != nil || err2 != nil || size.Cmp(wanted) >= 0 || pending.status == "True" || o.text("status", "allocatedResourceStatuses", "storage") == "NodeResizePending" {
		return Status{State: Ready}
	}
	return notReady("has %s of the %s that it asks for", has, wants)
}

// definition is a CRD: its names are accepted and it is established. Whether
// the version that is asked for is served is for discovery to say.
func definition(o object) Status {
	names, known := o.condition("NamesAccepted")
	if known && names.status == "False" {
		return failed("%s", names.String())
	}
	established, ok := o.condition("Established")
	wanted, _ := o.number("metadata", "generation")
	switch {
	case ok && established.generation > 0 && established.generation < wanted:
		return notReady("its controller has not yet seen generation %d (condition Established is of %d)", wanted, established.generation)
	case Migrating(o.unstructured()) && established.status == "True":
		migrating, _ := o.condition("StorageMigrating")
		return notReady("%s", migrating.String())
	case !ok:
		return notReady("not yet established")
	case established.status == "True" && known:
		return Status{State: Ready}
	case established.status == "True":
		return notReady("its names are not yet accepted")
	case established.status == "False" && established.reason != "Installing" && established.reason != "":
		return failed("%s", established.String())
	}
	return notReady("%s", established.String())
}

// Migrating says whether Kubernetes itself (since 1.37) is storing a CRD's objects in another
// version: the CRD changes under who works with it.
func Migrating(crd *unstructured.Unstructured) bool {
	c, _ := object{crd.Object}.condition("StorageMigrating")
	return c.status == "True"
}

// storageMigration runs to its end.
func storageMigration(o object) Status {
	if c, ok := o.condition("Failed"); ok && c.status == "True" {
		return failed("%s", c.String())
	}
	if c, ok := o.condition("Succeeded"); ok && c.status == "True" {
		return Status{State: Ready}
	}
	if c, ok := o.condition("Running"); ok {
		return notReady("%s", c.String())
	}
	return notReady("its controller has not yet seen it")
}

func apiService(o object) Status {
	c, ok := o.condition("Available")
	switch {
	case ok && c.status == "True", !ok && o.field("spec", "service") == nil:
		return Status{State: Ready}
	case !ok:
		return notReady("the API server has not tried to reach its service yet")
	}
	return notReady("%s", c.String())
}
