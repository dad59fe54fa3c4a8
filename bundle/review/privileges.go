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
	before := privilegesOf(get[map[string]any](content(c.Before), path...))
	var gained []string
	for _, p := range privilegesOf(get[map[string]any](c.After.Object, path...)) {
		if !slices.Contains(before, p) {
			gained = append(gained, p)
		}
	}
	what := "its pods get: "
	if c.Action == plan.Created {
		what = "new; its pods have: "
	}
	if len(gained) > 0 {
		r.add(Privileges, c, 0, nil, "%s%s", what, bundle.Some(gained, 2*shownFields))
	}
	was, is := accountOf(get[map[string]any](content(c.Before), path...)), accountOf(get[map[string]any](c.After.Object, path...))
	if c.Before != nil && c.Action != plan.Created && was != is {
		r.add(Rights, c, 0, nil, "its pods run as ServiceAccount %s instead of %s", is, was)
	}
}

func accountOf(spec map[string]any) string {
	return cmp.Or(get[string](spec, "serviceAccountName"), get[string](spec, "serviceAccount"), "default")
}

// privilegesOf is what the pods of a pod spec may do on their nodes that pods may not
// do by default.
func privilegesOf(spec map[string]any) []string {
	var found []string
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if get[bool](spec, field) {
			found = append(found, field)
		}
	}
	for _, v := range get[[]any](spec, "volumes") {
		volume, _ := v.(map[string]any)
		if at := get[string](volume, "hostPath", "path"); at != "" {
			found = append(found, "hostPath "+at)
		}
	}
	found = append(found, contextPrivileges("pod", get[map[string]any](spec, "securityContext"))...)
	for _, list := range []string{"initContainers", "containers"} {
		for _, v := range get[[]any](spec, list) {
			container, _ := v.(map[string]any)
			name := "container " + get[string](container, "name")
			found = append(found, contextPrivileges(name, get[map[string]any](container, "securityContext"))...)
			for _, p := range get[[]any](container, "ports") {
				port, _ := p.(map[string]any)
				if n, ok := number(port["hostPort"]); ok && n > 0 && !get[bool](spec, "hostNetwork") {
					found = append(found, fmt.Sprintf("hostPort %d (%s)", n, name))
				}
			}
		}
	}
	return found
}

func contextPrivileges(where string, context map[string]any) []string {
	var found []string
	if get[bool](context, "privileged") {
		found = append(found, "privileged "+where)
	}
	if get[bool](context, "allowPrivilegeEscalation") {
		found = append(found, "privilege escalation ("+where+")")
	}
	for _, capability := range bundle.Texts(get[any](context, "capabilities", "add")) {
		found = append(found, "capability "+capability+" ("+where+")")
	}
	if user, ok := number(context["runAsUser"]); ok && user == 0 {
		found = append(found, "user root ("+where+")")
	}
	for _, field := range []string{"seccompProfile", "appArmorProfile"} {
		if get[string](context, field, "type") == "Unconfined" {
			found = append(found, field+" Unconfined ("+where+")")
		}
	}
	if mount := get[string](context, "procMount"); mount == "Unmasked" {
		found = append(found, "procMount Unmasked ("+where+")")
	}
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
