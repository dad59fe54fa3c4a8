package review

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/images"
	"brine/bundle/plan"
)

// privileges is about what pods may do on their nodes that they could not before,
// and about namespaces that allow them more.
func (r *reviewer) privileges(c *Change) {
	if c.ID.GroupKind == bundle.NamespaceKind {
		r.podSecurity(c)
		return
	}
	path := images.PodSpecPath(c.ID.GroupKind)
	if path == nil || c.After == nil {
		return
	}
	pods, earlier := bundle.At[map[string]any](c.After.Object, path...), bundle.At[map[string]any](content(c.Before), path...)
	before := privilegesOf(earlier)
	gained := slices.DeleteFunc(privilegesOf(pods), func(p string) bool { return slices.Contains(before, p) })
	what := "its pods get: "
	if c.Action == plan.Created {
		what = "new; its pods have: "
	}
	if len(gained) > 0 {
		r.add(Privileges, c, 0, nil, "%s%s", what, bundle.Some(gained, 2*shownFields))
	}
	if was, is := accountOf(earlier), accountOf(pods); was != is && c.Before != nil && c.Action != plan.Created {
		r.add(Rights, c, 0, nil, "its pods run as ServiceAccount %s instead of %s", is, was)
	}
}

func accountOf(spec map[string]any) string {
	return cmp.Or(bundle.At[string](spec, "serviceAccountName"), bundle.At[string](spec, "serviceAccount"), "default")
}

// privilegesOf is what the pods of a pod spec may do on their nodes that pods may not
// do by default.
func privilegesOf(spec map[string]any) []string {
	found := bundle.Where([]string{"hostNetwork", "hostPID", "hostIPC"}, func(field string) bool { return bundle.At[bool](spec, field) })
	for _, volume := range bundle.Items[map[string]any](spec, "volumes") {
		if at := bundle.At[string](volume, "hostPath", "path"); at != "" {
			found = append(found, "hostPath "+at)
		}
	}
	found = append(found, contextPrivileges("pod", bundle.At[map[string]any](spec, "securityContext"))...)
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range bundle.Items[map[string]any](spec, list) {
			name := "container " + bundle.At[string](container, "name")
			found = append(found, contextPrivileges(name, bundle.At[map[string]any](container, "securityContext"))...)
			for _, port := range bundle.Items[map[string]any](container, "ports") {
				if n, ok := bundle.Integer(port, "hostPort"); ok && n > 0 && !bundle.At[bool](spec, "hostNetwork") {
					found = append(found, fmt.Sprintf("hostPort %d (%s)", n, name))
				}
			}
		}
	}
	return found
}

func contextPrivileges(where string, context map[string]any) []string {
	var found []string
	add := func(given bool, what string) {
		if given {
			found = append(found, what+" ("+where+")")
		}
	}
	if bundle.At[bool](context, "privileged") {
		found = append(found, "privileged "+where)
	}
	add(bundle.At[bool](context, "allowPrivilegeEscalation"), "privilege escalation")
	for _, capability := range bundle.Items[string](context, "capabilities", "add") {
		add(true, "capability "+capability)
	}
	user, given := bundle.Integer(context, "runAsUser")
	add(given && user == 0, "user root")
	for _, field := range []string{"seccompProfile", "appArmorProfile"} {
		add(bundle.At[string](context, field, "type") == "Unconfined", field+" Unconfined")
	}
	add(bundle.At[string](context, "procMount") == "Unmasked", "procMount Unmasked")
	return found
}

const enforce = "pod-security.kubernetes.io/enforce"

// podSecurity is about a namespace that enforces less of the Pod Security Standards.
func (r *reviewer) podSecurity(c *Change) {
	if c.Action != plan.Configured {
		return
	}
	was, is := level(c.Before), level(c.After)
	ranks := []string{"privileged", "baseline", "restricted"}
	if slices.Index(ranks, is) < slices.Index(ranks, was) {
		r.add(Privileges, c, 0, nil, "enforces Pod Security %s instead of %s", is, was)
	}
}

func level(u *unstructured.Unstructured) string {
	if u == nil {
		return "privileged"
	}
	return cmp.Or(u.GetLabels()[enforce], "privileged")
}
