package ready

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"brine/bundle"
)

// Why an object is not ready: the way from it down to its pods, claims and Services.

// chain is the way from one object down to what keeps it.
type chain struct {
	d        *Diagnosis
	object   object
	detailed bool
	narrow   map[string]string // by namespace: the only selector whose pods are of interest

	lines []string
	// involved are the objects whose events may explain more.
	involved []object
	// logs come last, for they are long.
	logs []written
}

// written is what a container in trouble wrote.
type written struct {
	pod     object
	trouble trouble
}

// add adds a line, unless it, or one that says the same and more, is there.
func (c *chain) add(format string, args ...any) {
	line := oneLine(fmt.Sprintf(format, args...))
	for _, known := range c.lines {
		if strings.Contains(known, line) {
			return
		}
	}
	c.lines = append(c.lines, line)
}

// has says whether a line contains the message.
func (c *chain) has(message string) bool {
	message = oneLine(message)
	return message == "" || slices.ContainsFunc(c.lines, func(line string) bool { return strings.Contains(line, message) })
}

func (c *chain) follow(ctx context.Context) {
	o := c.object
	c.involved = append(c.involved, o)
	gk := o.unstructured().GroupVersionKind().GroupKind()
	switch {
	case gk == bundle.PodKind:
		c.pods(ctx, []object{o}, true)
	case gk == bundle.PersistentVolumeClaimKind:
		c.claim(ctx, o, gk.Kind)
	case gk == bundle.DeploymentKind:
		c.addConditions(o, gk.Kind)
		c.deployment(ctx, o)
	case gk == bundle.APIServiceKind:
		c.addConditions(o, gk.Kind)
		c.service(ctx, o.text("spec", "service", "namespace"), o.text("spec", "service", "name"))
	case ownsPods(gk):
		c.addConditions(o, gk.Kind)
		c.pods(ctx, c.owned(c.podsOf(ctx, o), o), false)
	default:
		c.addConditions(o, gk.Kind)
	}
	c.events(ctx)
	for _, w := range c.logs {
		c.log(ctx, w.pod, w.trouble)
	}
}

// addConditions adds an object's abnormal conditions; where there are none, the
// reason that is usual for its kind.
func (c *chain) addConditions(o object, name string) {
	before := len(c.lines)
	c.conditions(o, name)
	if len(c.lines) > before {
		return
	}
	if s := Of(o.unstructured(), nil, Hints{}); s.Reason != "" {
		c.add("%s: %s", name, s.Reason)
	}
}

func (c *chain) conditions(o object, name string) {
	for _, condition := range o.conditions() {
		// A ReplicaSet's are often its Deployment's too.
		if condition.abnormal() && (condition.message == "" || !c.has(condition.message)) {
			c.add("%s: %s", name, condition)
		}
	}
}

// abnormal goes by a condition's polarity.
func (c condition) abnormal() bool { return (c.status == "True") == c.inverse() }

func (c *chain) podsOf(ctx context.Context, o object) []object {
	namespace := o.text("metadata", "namespace")
	// Pods that have done their work keep nothing back.
	return c.list(ctx, podGVK, namespace, c.narrow[namespace], "status.phase!=Succeeded")
}

// owned are those of all that o controls.
func (c *chain) owned(all []object, o object) []object {
	uid := o.text("metadata", "uid")
	var mine []object
	for _, item := range all {
		for _, owner := range item.objects("metadata", "ownerReferences") {
			if uid != "" && owner.text("uid") == uid {
				mine = append(mine, item)
			}
		}
	}
	return mine
}

// deployment goes through its replica sets, newest first.
func (c *chain) deployment(ctx context.Context, o object) {
	namespace := o.text("metadata", "namespace")
	sets := c.owned(c.list(ctx, replicaSetGVK, namespace, c.narrow[namespace], ""), o)
	slices.SortStableFunc(sets, func(a, b object) int { return cmp.Compare(revision(b), revision(a)) })
	all := c.podsOf(ctx, o)
	var pods []object
	for i, set := range sets {
		if i == 0 {
			c.involved = append(c.involved, set)
			c.conditions(set, "ReplicaSet "+set.text("metadata", "name"))
		}
		pods = append(pods, c.owned(all, set)...)
	}
	c.pods(ctx, pods, false)
}

// revision is a replica set's place in its Deployment's history.
func revision(set object) int {
	annotations, _ := set.field("metadata", "annotations").(map[string]any)
	text, _ := annotations["deployment.kubernetes.io/revision"].(string)
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil {
		return 0
	}
	return n
}

// claim adds why a claim is not bound; name is how the line begins.
func (c *chain) claim(ctx context.Context, o object, name string) {
	c.addConditions(o, name)
	class := o.text("spec", "storageClassName")
	if o.text("status", "phase") == "Bound" || class == "" || o.text("spec", "volumeName") != "" {
		return
	}
	found, ok, known := c.get(ctx, storageClassGVK, "", class)
	switch {
	case !known:
	case !ok:
		c.add("StorageClass %s does not exist", class)
	default:
		mode := found.text("volumeBindingMode")
		c.add("StorageClass %s: provisioner %s, volumeBindingMode %s", class, found.text("provisioner"), cmp.Or(mode, "Immediate"))
	}
}

// service adds why nothing answers behind an APIService.
func (c *chain) service(ctx context.Context, namespace, name string) {
	if name == "" {
		return
	}
	called := title("Service", namespace, name)
	o, found, known := c.get(ctx, serviceGVK, namespace, name)
	if !known {
		return
	}
	if !found {
		c.add("%s does not exist", called)
		return
	}
	if o.text("spec", "type") == "ExternalName" {
		c.add("%s leads to %s", called, o.text("spec", "externalName"))
		return
	}
	c.involved = append(c.involved, o)
	if c.d.reader.List == nil {
		return
	}
	ready, all := 0, 0
	for _, slice := range c.list(ctx, endpointSliceGVK, namespace, "kubernetes.io/service-name="+name, "") {
		for _, endpoint := range slice.objects("endpoints") {
			all++
			if at, ok := endpoint.field("conditions", "ready").(bool); !ok || at {
				ready++
			}
		}
	}
	c.add("%s: %d of %d endpoints ready", called, ready, all)
	if ready > 0 {
		return
	}
	selector, _, _ := unstructured.NestedStringMap(o.content, "spec", "selector")
	query := labels.SelectorFromSet(selector).String()
	if query == "" {
		c.add("%s has no selector, so its endpoints are made by hand", called)
		return
	}
	pods := c.list(ctx, podGVK, namespace, query, "status.phase!=Succeeded")
	if len(pods) == 0 {
		c.add("%s: no Pod matches its selector %s", called, query)
		return
	}
	c.pods(ctx, pods, false)
}
