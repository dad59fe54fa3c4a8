package ready

import (
	"cmp"
	"slices"
)

// The Gateway API: its conditions each say which generation they are about, and those of a
// route stand with the parents that it names. What is False, Unknown or old is found as it
// is of all kinds; here is what has to be there.

// gateway is a Gateway, its class, or a set of listeners.
func gateway(o object) Status {
	for _, kind := range []string{"Accepted", "Programmed"} {
		if _, ok := o.condition(kind); !ok && (kind == "Accepted" || o.text("kind") != "GatewayClass") {
			return notReady("its controller has not yet said whether it is %s", kind)
		}
	}
	return generic(o)
}

// parent is what a route is attached to.
type parent struct {
	group, kind, namespace, name, section string
	port                                  int64
}

func (o object) parent(ref object) parent {
	return parent{
		cmp.Or(ref.text("group"), "gateway.networking.k8s.io"), cmp.Or(ref.text("kind"), "Gateway"), cmp.Or(ref.text("namespace"), o.text("metadata", "namespace")),
		ref.text("name"), ref.text("sectionName"), ref.count(0, "port"),
	}
}

// route has to be accepted by all Gateways that it names. What others say, that it named
// before, does not count.
func route(o object) Status {
	var said []any
	for _, ref := range o.objects("spec", "parentRefs") {
		to, accepted := o.parent(ref), false
		for _, by := range o.objects("status", "parents") {
			at, _ := by.field("parentRef").(map[string]any)
			if o.parent(object{at}) == to {
				said = append(said, by.content)
				accepted = accepted || slices.ContainsFunc(by.objects("conditions"), func(c object) bool { return c.text("type") == "Accepted" })
			}
		}
		if !accepted && to.kind == "Gateway" { // of a mesh, no controller need answer
			return notReady("the controller of Gateway %s has not yet said whether it is Accepted", to.name)
		}
	}
	return generic(o.with("status", "parents", said))
}
