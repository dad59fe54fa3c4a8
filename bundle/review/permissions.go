package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
)

// What rules of RBAC permit, and what is dangerous in it.

// permission is one verb on one resource, or on a path of the server.
type permission struct {
	verb, group, resource, name string // name "" is every name
	path                        string
}

// permissions are those of a role's rules.
func permissions(role map[string]any) []permission {
	var all []permission
	for _, rule := range bundle.Items[map[string]any](role, "rules") {
		names := bundle.Items[string](rule, "resourceNames")
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range bundle.Items[string](rule, "verbs") {
			for _, path := range bundle.Items[string](rule, "nonResourceURLs") {
				all = append(all, permission{verb: verb, path: path})
			}
			for _, group := range bundle.Items[string](rule, "apiGroups") {
				for _, resource := range bundle.Items[string](rule, "resources") {
					for _, name := range names {
						all = append(all, permission{verb: verb, group: group, resource: resource, name: name})
					}
				}
			}
		}
	}
	return all
}

// covers says whether a permission holds another one.
func (p permission) covers(q permission) bool {
	if p.path != "" || q.path != "" {
		prefix, wild := strings.CutSuffix(p.path, "*")
		return matches(p.verb, q.verb) && (p.path == q.path || wild && strings.HasPrefix(q.path, prefix))
	}
	sub := strings.HasPrefix(p.resource, "*/") && strings.HasSuffix(q.resource, p.resource[1:])
	return matches(p.verb, q.verb) && matches(p.group, q.group) && (matches(p.resource, q.resource) || sub) && (p.name == "" || p.name == q.name)
}

// matches says whether a word is another one, or stands for all.
func matches(have, want string) bool { return have == "*" || have == want }

// heaviest is the weight of rights that lead to all others at once.
const heaviest = 1000

// notable are the most dangerous of rights, and whether one of them opens the cluster:
// wide says that they hold in all of it, or where its own components run. weight puts them
// in an order: first what gives all other rights, then what gives those of every
// ServiceAccount, then how many there are.
func notable(all []permission, wide bool) (text string, severe bool, weight int) {
	var what bundle.Groups[string, string] // by what is done
	most := 0
	for _, p := range all {
		verb, object, opens := p.danger(wide)
		if verb == "" {
			continue
		}
		severe = severe || opens
		if !slices.Contains(what.Of[verb], object) {
			what.Add(verb, object)
			weight++
		}
		switch {
		case !opens:
		case verb == "do" || verb == "escalate" || verb == "bind" || verb == "impersonate" || p.group == rbac:
			most = heaviest
		case verb == "start" || verb == "use" || verb == "make" || object == "Secrets" && verb != "read":
			most = max(most, heaviest/2)
		}
	}
	weight += most
	if slices.Contains(what.Of["do"], "everything") {
		return "do everything", true, weight
	}
	parts := make([]string, 0, len(what.Keys))
	for _, verb := range what.Keys {
		list := strings.Join(what.Of[verb], ", ")
		if i := strings.LastIndex(list, ", "); i >= 0 {
			list = list[:i] + " and" + list[i+1:]
		}
		parts = append(parts, verb+" "+list)
	}
	return strings.Join(parts, "; "), severe, weight
}

// danger says what is dangerous about a permission, "" where nothing is: by the page
// "Role Based Access Control Good Practices" of Kubernetes' documentation. opens: it
// leads to other rights, or to the Secrets of others.
func (p permission) danger(wide bool) (verb, object string, opens bool) {
	reads := p.verb == "*" || p.verb == "get" || p.verb == "list" || p.verb == "watch"
	writes := p.verb == "*" || p.verb == "create" || p.verb == "update" || p.verb == "patch"
	builtin := bundle.IsBuiltIn(p.group)
	switch {
	case p.path != "":
		return "", "", false
	case p.verb == "*" && p.group == "*" && p.resource == "*":
		return "do", "everything", true
	case p.verb == "escalate" || p.verb == "bind" || p.verb == "impersonate":
		return p.verb, p.resource, true
	case p.resource == "*":
		return p.verb, fmt.Sprintf("everything of group %q", p.group), builtin
	case p.group == certificates && (p.verb == "sign" || p.verb == "approve"):
		return p.verb + " certificates of signer", cmp.Or(p.name, "* (any)"), true
	case p.group == certificates && p.resource == "certificatesigningrequests/approval" && writes:
		return "approve", "certificates", true
	case p.group == "" && p.resource == "secrets" && p.name == "" && reads && !writes:
		return "read", "Secrets", wide
	case p.group == "" && p.resource == "secrets" && p.name == "" && writes:
		return map[bool]string{true: "read and write", false: "write"}[reads], "Secrets", wide
	case p.group == "" && slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward", "nodes/proxy"}, p.resource):
		return "use", p.resource, true
	case p.group == "" && p.resource == "pods/ephemeralcontainers" && writes:
		return "use", p.resource, true
	case p.group == "" && p.resource == "serviceaccounts/token" && writes:
		return "make", "tokens of ServiceAccounts", wide || p.name == ""
	case writes && (p.group == rbac || p.group == admission || p.group == bundle.CRDKind.Group || p.group == bundle.APIServiceKind.Group) && !strings.Contains(p.resource, "/"):
		return "write", p.resource, true
	case writes && p.group == "" && (p.resource == "nodes" || p.resource == "namespaces" || p.resource == "persistentvolumes"):
		return "write", p.resource, true
	case writes && !strings.Contains(p.resource, "/") && (p.group == "" && p.resource == "pods" || p.group == "apps" || p.group == "batch"):
		return "start", "pods", wide
	case p.verb == "*" && builtin:
		return "do everything with", p.resource, true
	case writes && p.name == "" && isRouting(p.group, p.resource):
		return "redirect traffic by", p.resource, false
	}
	return "", "", false
}

// isRouting says whether objects of a kind decide where traffic goes.
func isRouting(group, resource string) bool {
	switch group {
	case "":
		return resource == "services" || resource == "endpoints"
	case "discovery.k8s.io":
		return resource == "endpointslices"
	case "networking.k8s.io", "extensions":
		return resource == "ingresses"
	}
	return group == "gateway.networking.k8s.io" && !strings.Contains(resource, "/") && (resource == "gateways" || strings.HasSuffix(resource, "routes"))
}

const certificates = "certificates.k8s.io"

// sentences are rights in a few lines: "get, list: pods, services".
func sentences(all []permission) []string {
	var verbs bundle.Groups[string, string] // by what they are about
	for _, p := range all {
		what := p.resource
		if p.group != "" {
			what += "." + p.group
		}
		if p.name != "" {
			what += " " + p.name
		}
		if p.path != "" {
			what = p.path
		}
		if !slices.Contains(verbs.Of[what], p.verb) {
			verbs.Add(what, p.verb)
		}
	}
	var about bundle.Groups[string, string] // by their verbs
	for _, what := range verbs.Keys {
		about.Add(strings.Join(verbs.Of[what], ", "), what)
	}
	return bundle.Each(about.Keys, func(words string) string { return words + ": " + strings.Join(about.Of[words], ", ") })
}
