package review

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"brine/bundle"
	"brine/bundle/diff"
)

// Workloads whose pods are replaced, or get fewer.

// isWorkload says whether objects of a kind keep pods running.
func isWorkload(gk schema.GroupKind) bool {
	return isRolled(gk) || gk == bundle.ReplicaSetKind
}

// podsOf is how many pods a live workload has; 0 for other kinds.
func podsOf(u *unstructured.Unstructured) int {
	if u == nil {
		return 0
	}
	gk := u.GroupVersionKind().GroupKind()
	switch {
	case gk == bundle.PodKind:
		return 1
	case !isWorkload(gk):
		return 0
	case gk == bundle.DaemonSetKind:
		n, _ := bundle.Integer(u.Object, "status", "desiredNumberScheduled")
		return n
	}
	n, known := bundle.Integer(u.Object, "status", "replicas")
	if !known {
		n, _ = bundle.Integer(u.Object, "spec", "replicas")
	}
	return n
}

// restarts says whether a change of a workload replaces its pods.
func restarts(c *Change) bool { return isRolled(c.ID.GroupKind) && len(inTemplate(c.Fields)) > 0 }

// isRolled says whether a controller replaces the pods of a changed object. A
// ReplicaSet's stay.
func isRolled(gk schema.GroupKind) bool {
	return gk == bundle.DeploymentKind || gk == bundle.DaemonSetKind || gk == bundle.StatefulSetKind
}

const template = "spec.template."

// inTemplate are the changed fields of the pods: "labels", "container app: image".
// Of their containers each field is named once, whatever changes in it; arguments with
// their values.
func inTemplate(fields []diff.Change) []string {
	var found []string
	arguments := map[string][]string{}
	for _, f := range fields {
		path, ok := strings.CutPrefix(f.Path, template)
		if !ok {
			continue
		}
		if m := inContainer().FindStringSubmatch(path); m != nil {
			path = "container " + m[1] + ": " + m[2]
			if text := argumentOf(f); text != "" && (m[2] == "args" || m[2] == "command") {
				arguments[path] = append(arguments[path], text)
			}
		} else {
			path, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "spec."), "metadata."), "[")
		}
		if !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	for i, path := range found {
		if list := arguments[path]; len(list) > 0 {
			found[i] += " " + bundle.Some(list, shownArguments)
		}
	}
	return found
}

// shownArguments is how many changed arguments of a container are shown.
const shownArguments = 3

// argumentOf is a changed argument: "--level info → debug"; "" where it only moves.
func argumentOf(f diff.Change) string {
	was, _ := f.Old.(string)
	is, _ := f.New.(string)
	name, before, ok := strings.Cut(was, "=")
	same, after, _ := strings.Cut(is, "=")
	switch {
	case was == is:
		return ""
	case was == "":
		return "adds " + clip(is)
	case is == "":
		return "removes " + clip(was)
	case ok && name == same:
		return name + " " + clip(before) + " → " + clip(after)
	}
	return clip(was) + " → " + clip(is)
}

func clip(text string) string { return bundle.Clip(text, 60) }

var inContainer = bundle.Pattern(`^spec\.(?:containers|initContainers)\[name=([^\]]*)\]\.?([^.\[]*)`)

// shownFields is how many changed fields are named of each object.
const shownFields = 6

// restart is about a workload whose pods are replaced.
func (r *reviewer) restart(c *Change) {
	if !restarts(c) {
		return
	}
	pods := podsOf(c.Before)
	if r.cluster.Unread && pods == 0 {
		r.add(Restart, c, 0, nil, "its pods restart (%s)", bundle.Some(inTemplate(c.Fields), shownFields))
		return
	}
	why := " (" + bundle.Some(inTemplate(c.Fields), shownFields) + ")"
	after := latest(c)
	strategy := bundle.At[string](after.Object, "spec", "strategy", "type") + bundle.At[string](after.Object, "spec", "updateStrategy", "type")
	details := r.budgets(c)
	if nodes := r.nodes[c.ID]; nodes != "" {
		details = append(details, nodes)
	}
	switch {
	case pods == 0:
		r.add(Restart, c, 0, nil, "has no pods now%s", why)
		return
	case bundle.At[bool](after.Object, "spec", "paused"):
		r.add(Restart, c, 0, nil, "is paused: its %s once it is resumed%s", plural(pods, "pod restarts", "pods restart"), why)
		return
	case strategy == "OnDelete":
		r.add(Restart, c, 0, nil, "its %s when somebody deletes them (updateStrategy OnDelete)%s", plural(pods, "pod restarts", "pods restart"), why)
		return
	}
	text := fmt.Sprintf("all %d pods restart, one after another", pods)
	switch down, surge := rolling(c.ID.GroupKind, after.Object, pods); {
	case strategy == "Recreate" && pods == 1:
		text = "its only pod stops before the new one starts (strategy Recreate)"
	case strategy == "Recreate":
		text = fmt.Sprintf("all %d pods stop before the new ones start (strategy Recreate)", pods)
	case pods == 1 && surge > 0 && down == 0:
		text = "its only pod restarts; the new one has to be ready first"
	case pods == 1:
		text = "its only pod restarts; until the new one is ready there is none"
	case down > 1:
		text = fmt.Sprintf("all %d pods restart, %d at once", pods, min(down, pods))
	case down == 0:
		text = fmt.Sprintf("all %d pods restart; new ones have to be ready first", pods)
	}
	if from, ok := bundle.Integer(after.Object, "spec", "updateStrategy", "rollingUpdate", "partition"); ok && from > 0 {
		text = fmt.Sprintf("the pods from number %d on restart (partition)", from)
		pods = max(pods-from, 0)
	}
	if ports := hostPorts(after.Object); ports != "" {
		text += "; while a pod restarts, nothing answers on its node's " + ports
	}
	switch {
	case r.stuck[c.ID]:
		text += "; the rollout stops at the first new pod, which does not start while what it names is missing"
	case r.doubtful[c.ID]:
		text += "; new pods may not start while what an argument names is missing"
	}
	r.add(Restart, c, pods, details, "%s%s", text, why)
	r.found[len(r.found)-1].Stuck = r.stuck[c.ID]
}

// hostPorts are the ports of nodes that the pods of a workload have: "hostPort 80, 443".
func hostPorts(object map[string]any) string {
	var ports []string
	pod := bundle.At[map[string]any](object, "spec", "template", "spec")
	for _, container := range bundle.Items[map[string]any](pod, "containers") {
		for _, port := range bundle.Items[map[string]any](container, "ports") {
			if n, ok := bundle.Integer(port, "hostPort"); ok && n > 0 {
				ports = append(ports, fmt.Sprint(n))
			}
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return "hostPort " + strings.Join(ports, ", ")
}

// scaled is about a workload that gets fewer pods.
func (r *reviewer) scaled(c *Change) {
	if was, is := replicas(c.Before), replicas(c.After); shrinks(c) {
		r.add(Deleted, c, was-is, r.budgets(c), "scales from %s to %d", plural(was, "pod", "pods"), is)
		if bundle.At[string](c.After.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete" {
			r.add(Data, c, 0, nil, "the claims of the pods that go, and their data, are deleted (persistentVolumeClaimRetentionPolicy)")
		}
	}
}

func shrinks(c *Change) bool { return c.After != nil && replicas(c.After) < replicas(c.Before) }

// replicas are those that a workload asks for; 0 for other kinds.
func replicas(u *unstructured.Unstructured) int {
	if u == nil || !isWorkload(u.GroupVersionKind().GroupKind()) {
		return 0
	}
	n, _ := bundle.Integer(u.Object, "spec", "replicas")
	return n
}

// rolling is how many of the pods may be missing at once during a rollout, and how
// many there may be beyond them.
func rolling(gk schema.GroupKind, object map[string]any, pods int) (down, surge int) {
	field := "updateStrategy"
	if gk == bundle.DeploymentKind {
		field = "strategy"
	}
	share := func(name, byDefault string, up bool) int {
		value := intstr.Parse(byDefault)
		if v := bundle.At[any](object, "spec", field, "rollingUpdate", name); v != nil {
			value = intstr.Parse(fmt.Sprint(v))
		}
		n, _ := intstr.GetScaledValueFromIntOrPercent(&value, pods, up) // an error is 0
		return n
	}
	switch gk {
	case bundle.DeploymentKind:
		down, surge = share("maxUnavailable", "25%", false), share("maxSurge", "25%", true)
		if surge == 0 {
			down = max(down, 1)
		}
	case bundle.DaemonSetKind:
		down, surge = share("maxUnavailable", "1", true), share("maxSurge", "0", true)
	default:
		down = share("maxUnavailable", "1", true)
	}
	return down, surge
}
