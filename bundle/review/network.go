package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
)

// Webhooks, routes, Services and policies.

const admission = "admissionregistration.k8s.io"

// webhook is about requests that other servers are asked about, or answer.
func (r *reviewer) webhook(c *Change) {
	if c.After == nil || c.Action == plan.Configured && !touches(c.Fields, "webhooks", "spec") {
		return
	}
	verb := map[bool]string{true: "new", false: "changes"}[c.Action == plan.Created]
	switch {
	case c.ID.GroupKind == bundle.APIServiceKind:
		service := bundle.At[map[string]any](c.After.Object, "spec", "service")
		if service != nil {
			r.add(Webhook, c, 0, nil, "%s: Service %s/%s serves %s", verb, bundle.At[string](service, "namespace"), bundle.At[string](service, "name"), c.ID.Name)
		}
	case c.ID.GroupKind == bundle.CRDKind:
		if conversion := bundle.At[map[string]any](c.After.Object, "spec", "conversion"); bundle.At[string](conversion, "strategy") == "Webhook" && (c.Action == plan.Created || touches(c.Fields, "spec.conversion")) {
			service := bundle.At[map[string]any](conversion, "webhook", "clientConfig", "service")
			r.add(Webhook, c, 0, nil, "%s: a webhook converts its objects%s", verb, map[bool]string{true: ", Service " + bundle.At[string](service, "namespace") + "/" + bundle.At[string](service, "name")}[service != nil])
		}
	case c.ID.GroupKind.Group == admission && strings.HasSuffix(c.ID.GroupKind.Kind, "WebhookConfiguration"):
		r.add(Webhook, c, 0, webhooks(c.After.Object), "%s%s", verb, fieldsOf(c))
	case c.ID.GroupKind.Group == admission && strings.HasSuffix(c.ID.GroupKind.Kind, "Policy"):
		r.add(Webhook, c, 0, nil, "%s%s", verb, fieldsOf(c))
	case c.ID.GroupKind.Group == admission && strings.HasSuffix(c.ID.GroupKind.Kind, "PolicyBinding"):
		r.add(Webhook, c, 0, nil, "%s: %s %s", verb, bundle.At[string](c.After.Object, "spec", "policyName"), strings.Join(bundle.Items[string](c.After.Object, "spec", "validationActions"), ", "))
	}
}

// webhooks are those of a configuration in a line each.
func webhooks(object map[string]any) []string {
	var lines []string
	for _, hook := range bundle.Items[map[string]any](object, "webhooks") {
		about := bundle.Each(bundle.Items[map[string]any](hook, "rules"), func(rule map[string]any) string {
			return fmt.Sprintf("%s of %s in %s", strings.ToLower(strings.Join(bundle.Items[string](rule, "operations"), ", ")),
				strings.Join(bundle.Items[string](rule, "resources"), ", "), strings.Join(groups(bundle.Items[string](rule, "apiGroups")), ", "))
		})
		fails := "they go on if it cannot be reached"
		if bundle.At[string](hook, "failurePolicy") != "Ignore" {
			fails = "they fail if it cannot be reached"
		}
		where := ""
		var selector metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(bundle.At[map[string]any](hook, "namespaceSelector"), &selector) == nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			where = ", in namespaces with labels " + metav1.FormatLabelSelector(&selector)
		}
		lines = append(lines, fmt.Sprintf("%s is asked about %s%s; %s", bundle.At[string](hook, "name"), strings.Join(about, "; "), where, fails))
	}
	return lines
}

func groups(names []string) []string {
	for i, n := range names {
		if n == "" {
			names[i] = "the core group"
		}
		if n == "*" {
			names[i] = "all groups"
		}
	}
	return names
}

// touches says whether one of the fields changes, or something in it.
func touches(changes []diff.Change, fields ...string) bool {
	return slices.ContainsFunc(changes, func(c diff.Change) bool {
		return slices.ContainsFunc(fields, func(f string) bool {
			rest, ok := strings.CutPrefix(c.Path, f)
			return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
}

// fieldsOf is ": spec.a 1 → 2; spec.b", the changed fields but those of metadata.
func fieldsOf(c *Change) string {
	if c.Action != plan.Configured {
		return ""
	}
	var words []string
	for _, f := range c.Fields {
		if !strings.HasPrefix(f.Path, "metadata.") {
			words = append(words, sentence(f))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + bundle.Some(words, shownFields)
}

// sentence is a changed field with its values where they are short.
func sentence(f diff.Change) string {
	was, is := short(f.Old), short(f.New)
	switch {
	case f.Moved != "" && was == is:
		return f.Place() + ": " + is
	case f.Old == nil:
		return f.Path + " → " + is
	case f.New == nil:
		return f.Path + " " + was + " → nothing"
	}
	return f.Place() + " " + was + " → " + is
}

func short(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, _ := json.Marshal(v) // it comes from JSON
	if len(text) > 80 {
		return "…"
	}
	return string(text)
}

// network is about who reaches whom.
func (r *reviewer) network(c *Change) {
	gk := c.ID.GroupKind
	routes := gk.Kind == "Ingress" && gk.Group == "networking.k8s.io" || gk.Group == "gateway.networking.k8s.io"
	policy := gk.Kind == "NetworkPolicy" && gk.Group == "networking.k8s.io" || strings.HasSuffix(gk.Kind, "NetworkPolicy")
	after := content(c.After)
	switch {
	case c.Action == plan.Pruned && gk == bundle.ServiceKind:
		r.unserved(c)
	case c.Action == plan.Pruned && routes:
		r.add(Network, c, 0, nil, "is deleted: what it routes is no longer reached")
	case c.Action == plan.Pruned && policy:
		r.add(Network, c, 0, nil, "is deleted: what it forbids is allowed")
	case c.Action == plan.Pruned:
	case c.Action == plan.Configured && isWorkload(gk) && touches(c.Fields, "spec.selector"):
		r.add(Network, c, 0, nil, "its selector changes%s", fieldsOf(c))
	case gk != bundle.ServiceKind && !routes && !policy:
	case c.Action == plan.Configured && touches(c.Fields, "spec"):
		r.add(Network, c, 0, nil, "changes%s", fieldsOf(c))
	case c.Action == plan.Created && policy:
		r.add(Network, c, 0, nil, "new: the pods that it selects reach, or are reached by, only what it allows")
	case c.Action == plan.Created && routes:
		r.add(Network, c, 0, nil, "new%s", hosts(after))
	case c.Action == plan.Created && (bundle.At[string](after, "spec", "type") == "LoadBalancer" || bundle.At[string](after, "spec", "type") == "NodePort"):
		r.add(Network, c, 0, nil, "new: reached from outside of the cluster (%s)", bundle.At[string](after, "spec", "type"))
	}
}

// hosts are those that an Ingress or a route answers for.
func hosts(object map[string]any) string {
	found := bundle.Items[string](object, "spec", "hostnames")
	for _, rule := range bundle.Items[map[string]any](object, "spec", "rules") {
		if host := bundle.At[string](rule, "host"); host != "" {
			found = append(found, host)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return ": " + bundle.Some(found, shownFields)
}
