package review

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/images"
	"brine/bundle/plan"
)

// Services that are deleted, and who names them.

// setting is a text in an object that may name a Service: an argument or a variable of a
// container.
type setting struct {
	key, value string // "--backend-service", "shop/web"
	where      string // "container app: argument --backend-service"
	path       string
}

// settingsOf are the arguments and variables of a pod spec. References to variables in
// them are replaced where these are known.
func settingsOf(pod map[string]any, path, namespace string) []setting {
	var found []setting
	for _, list := range []string{"initContainers", "containers"} {
		for i, container := range bundle.Items[map[string]any](pod, list) {
			name, at := "container "+bundle.At[string](container, "name")+": ", fmt.Sprintf("%s.%s[%d]", path, list, i)
			known := map[string]string{}
			expand := func(text string) string {
				return variable().ReplaceAllStringFunc(text, func(ref string) string {
					if v, ok := known[ref[2:len(ref)-1]]; ok {
						return v
					}
					return ref
				})
			}
			for j, env := range bundle.Items[map[string]any](container, "env") {
				key := bundle.At[string](env, "name")
				known[key] = expand(bundle.At[string](env, "value"))
				if bundle.At[string](env, "valueFrom", "fieldRef", "fieldPath") == "metadata.namespace" {
					known[key] = namespace
				}
				found = append(found, setting{key, known[key], name + "variable " + key, fmt.Sprintf("%s.env[%d].value", at, j)})
			}
			for _, field := range []string{"command", "args"} {
				flag := ""
				for j, text := range bundle.Items[string](container, field) {
					key, value, given := strings.Cut(text, "=")
					given = given && strings.HasPrefix(text, "-")
					if !given {
						key, value = flag, text
					}
					if flag = ""; strings.HasPrefix(text, "-") && !given {
						flag = text
					}
					found = append(found, setting{key, expand(value), strings.TrimSpace(name + "argument " + key), fmt.Sprintf("%s.%s[%d]", at, field, j)})
				}
			}
		}
	}
	return found
}

var (
	variable = bundle.Pattern(`\$\([\w.-]+\)`)
	// hint finds names of settings whose values may be Services, noHint those of which
	// they are something else.
	hint       = bundle.Pattern(`(?i)service|svc|backend|host|ur[li]|addr|endpoint|upstream|server`)
	noHint     = bundle.Pattern(`(?i)account|image|cidr`)
	serviceKey = bundle.Pattern(`(?i)(?:service|svc)$`)
	nameInNS   = bundle.Pattern(`^([a-z0-9][a-z0-9-]*)/([a-z][a-z0-9-]*)$`)
)

// service is the one that an argument like --default-backend-service=ns/name names.
func (s setting) service() (id bundle.ID, ok bool) {
	m := nameInNS().FindStringSubmatch(s.value)
	if m == nil || !strings.HasPrefix(s.key, "-") || !serviceKey().MatchString(s.key) {
		return id, false
	}
	return bundle.ID{GroupKind: bundle.ServiceKind, Namespace: m[1], Name: m[2]}, true
}

// namesService says whether a setting of a pod in a namespace names a Service: as ns/name,
// as a host name, or alone where the name of the setting says so.
func (s setting) namesService(id bundle.ID, namespace string) bool {
	if noHint().MatchString(s.key) || !strings.Contains(s.value, id.Name) {
		return false
	}
	name, ns := regexp.QuoteMeta(id.Name), regexp.QuoteMeta(id.Namespace)
	const start, end = `(?:^|://|[=,@\s"'\[])`, `(?:$|[:/,\s"'\]])`
	patterns := []string{start + name + `\.` + ns + `(?:\.svc[a-z0-9.-]*)?` + end}
	if namespace == id.Namespace {
		patterns = append(patterns, `://`+name+end, start+name+`:\d`)
	}
	if hint().MatchString(s.key) {
		patterns = append(patterns, `^`+ns+`/`+name+`(?:$|:)`)
		if namespace == id.Namespace {
			patterns = append(patterns, `^`+name+`$`)
		}
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(s.value) })
}

// naming is where an object names a Service; "" where it does not.
func naming(in bundle.ID, object map[string]any, id bundle.ID) string {
	if path := images.PodSpecPath(in.GroupKind); path != nil {
		for _, s := range settingsOf(bundle.At[map[string]any](object, path...), "", in.Namespace) {
			if s.namesService(id, in.Namespace) {
				return s.where
			}
		}
		return ""
	}
	if slices.Contains(backends(in, object), id) {
		return "its backend"
	}
	return ""
}

// backends are the Services to which an Ingress, a route, a webhook or an APIService sends
// requests.
func backends(in bundle.ID, object map[string]any) (found []bundle.ID) {
	add := func(service map[string]any) {
		if kind := bundle.At[string](service, "kind"); kind == "" || kind == bundle.ServiceKind.Kind {
			namespace := cmp.Or(bundle.At[string](service, "namespace"), in.Namespace)
			found = append(found, bundle.ID{GroupKind: bundle.ServiceKind, Namespace: namespace, Name: bundle.At[string](service, "name")})
		}
	}
	items := bundle.Items[map[string]any]
	switch gk := in.GroupKind; {
	case gk == schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}:
		add(bundle.At[map[string]any](object, "spec", "defaultBackend", "service"))
		for _, rule := range items(object, "spec", "rules") {
			for _, path := range items(rule, "http", "paths") {
				add(bundle.At[map[string]any](path, "backend", "service"))
			}
		}
	case gk.Group == "gateway.networking.k8s.io":
		for _, rule := range items(object, "spec", "rules") {
			for _, ref := range items(rule, "backendRefs") {
				add(ref)
			}
		}
	case gk.Group == admission:
		for _, hook := range items(object, "webhooks") {
			add(bundle.At[map[string]any](hook, "clientConfig", "service"))
		}
	case gk == bundle.APIServiceKind:
		add(bundle.At[map[string]any](object, "spec", "service"))
	}
	return found
}

// clients are the objects of the change that name a Service which is deleted, those that
// still do afterwards first.
func (r *reviewer) clients(id bundle.ID) (still, now []string) {
	for _, c := range r.changes {
		if c.Action == plan.Pruned {
			continue
		}
		if where := naming(c.ID, content(latest(c)), id); where != "" {
			still = append(still, plain(c.ID)+" still names it afterwards ("+where+")")
		} else if where := naming(c.ID, content(c.Before), id); where != "" {
			now = append(now, plain(c.ID)+" names it now, no longer after the change ("+where+")")
		}
	}
	return still, now
}

// unserved is about a Service that is deleted.
func (r *reviewer) unserved(c *Change) {
	still, now := r.clients(c.ID)
	text := "its clients no longer reach anything; "
	switch n := len(still) + len(now); {
	case n == 0:
		text += "no other object of the bundle or the inventory names it"
	case len(still) > 0:
		text += plural(len(still), "object still names it", "objects still name it")
	default:
		text += plural(n, "object names", "objects name") + " it now, none after the change"
	}
	r.add(Deleted, c, 0, slices.Concat(still, now), "%s", text)
}
