package ready_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/bundletest"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/cmd/brine/clitest"
)

func TestGatewayAPI(t *testing.T) {
	const (
		accepted = `{type: Accepted, status: "True", observedGeneration: 2}`
		resolved = `{type: ResolvedRefs, status: "True", observedGeneration: 2}`
		done     = `{type: Programmed, status: "True", observedGeneration: 2}`
		a        = `{parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: a, namespace: shop}, controllerName: c, conditions: [` + accepted + `, ` + resolved + `]}`
		b        = `{parentRef: {name: b, namespace: infra, sectionName: https, port: 443}, controllerName: c, conditions: [` + accepted + `]}`
		old      = `{parentRef: {name: before}, controllerName: c, conditions: [{type: Accepted, status: "False", reason: NoMatchingParent, observedGeneration: 1}]}`
		stale    = `{parentRef: {name: a}, controllerName: c, conditions: [{type: Accepted, status: "True", observedGeneration: 1}]}`
		mesh     = `{group: "", kind: Service, name: web}`
		both     = `[{name: a}, {name: b, namespace: infra, sectionName: https, port: 443}]`
	)
	for _, test := range []struct {
		kind, spec, status string
		want               ready.State
		reason             string
	}{
		{"GatewayClass", "{}", `{conditions: [` + accepted + `]}`, ready.Ready, ""},
		{"GatewayClass", "{}", `{conditions: [{type: Accepted, status: Unknown, reason: Pending}]}`, ready.NotReady, "Accepted=Unknown Pending"},
		{"Gateway", "{}", `{conditions: [` + accepted + `]}`, ready.NotReady, "its controller has not yet said whether it is Programmed"},
		{"Gateway", "{}", `{conditions: [` + accepted + `, {type: Programmed, status: "True", observedGeneration: 1}]}`, ready.NotReady, "Programmed=True of generation 1, not 2"},
		{"Gateway", "{}", `{conditions: [` + accepted + `, ` + done + `], listeners: [{name: https, conditions: [{type: ResolvedRefs, status: "False", reason: InvalidCertificateRef}]}]}`,
			ready.NotReady, "listeners: ResolvedRefs=False InvalidCertificateRef"},
		{"Gateway", "{}", `{conditions: [` + accepted + `, ` + done + `], listeners: [{name: https, conditions: [` + resolved + `]}]}`, ready.Ready, ""},
		{"HTTPRoute", "{parentRefs: " + both + "}", `{parents: [` + a + `, ` + b + `]}`, ready.Ready, ""},
		{"GRPCRoute", "{parentRefs: " + both + "}", `{parents: [` + a + `]}`, ready.NotReady, "the controller of Gateway b has not yet said whether it is Accepted"},
		{"TLSRoute", "{parentRefs: [{name: a}]}", `{parents: [` + stale + `]}`, ready.NotReady, "parents: Accepted=True of generation 1, not 2"},
		{"TCPRoute", "{parentRefs: [{name: a}]}", `{parents: [` + a + `, ` + old + `]}`, ready.Ready, ""},
		{"UDPRoute", "{parentRefs: [{name: before}]}", `{parents: [` + old + `]}`, ready.NotReady, "parents: Accepted=False NoMatchingParent"},
		{"HTTPRoute", "{parentRefs: [{name: a}, " + mesh + "]}", `{parents: [` + a + `]}`, ready.Ready, ""},
		{"HTTPRoute", "{parentRefs: [{name: a}]}", `{}`, ready.NotReady, "the controller of Gateway a has not yet said whether it is Accepted"},
		{"HTTPRoute", "{parentRefs: [{name: a}]}", `{parents: []}`, ready.NotReady, "the controller of Gateway a has not yet said whether it is Accepted"},
		{"HTTPRoute", "{parentRefs: [" + mesh + "]}", `{}`, ready.Ready, ""},
		{"HTTPRoute", "{}", `{parents: []}`, ready.Ready, ""},
		{"Gateway", "{}", `{}`, ready.NotReady, "its controller has not yet said whether it is Accepted"},
	} {
		text := "{apiVersion: gateway.networking.k8s.io/v1, kind: " + test.kind + ", metadata: {name: x, namespace: shop, generation: 2}, spec: " + test.spec + ", status: " + test.status + "}"
		if s := ready.Of(bundletest.Object(t, text), nil, ready.Hints{}); s.State != test.want || s.Reason != test.reason {
			t.Errorf("%s\n%s: %s, want %s: %s", text, s.State, s.Reason, test.want, test.reason)
		}
	}
}

// With the CRDs of the Gateway API: a class, a Gateway and a route are applied in this order,
// whatever the text says; a controller that starts late holds what needs the route, and the
// pruning.
func TestGatewayController(t *testing.T) {
	folder := clitest.RealBundle(t, "upstream/gateway-api-new")
	s := clitest.New(t)
	var crds []string
	for _, name := range []string{"gatewayclasses", "gateways", "httproutes"} {
		text, err := os.ReadFile(filepath.Join(folder, "gateway.networking.k8s.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, string(text))
	}
	const api = "---\napiVersion: gateway.networking.k8s.io/v1\n"
	text := clitest.Documents(crds...) +
		api + "kind: HTTPRoute\nmetadata: {name: web, namespace: \"{ns}\", annotations: {brine.dev/status-timeout: 4m}}\nspec: {parentRefs: [{name: front}], rules: [{backendRefs: [{name: web, port: 80}]}]}\n" +
		api + "kind: Gateway\nmetadata: {name: front, namespace: \"{ns}\"}\nspec: {gatewayClassName: \"{ns}\", listeners: [{name: http, port: 80, protocol: HTTP}]}\n" +
		api + "kind: GatewayClass\nmetadata: {name: \"{ns}\"}\nspec: {controllerName: example.com/late}\n"
	after := "---\n" + clitest.ConfigMap("after", clitest.DependsOn("gateway.networking.k8s.io/namespaces/{ns}/HTTPRoute/web"))
	s.Apply(clitest.ConfigMap("old")).Want(t, 0)

	wrong := make(chan string, 10)
	go func() { // the controller
		defer close(wrong)
		now := metav1.Now().Format(time.RFC3339)
		say := func(kind, status string, generation string) string {
			return `{"type":"` + kind + `","status":"` + status + `","reason":"R","message":"m","lastTransitionTime":"` + now + `","observedGeneration":` + generation + `}`
		}
		set := func(resource, namespace, name, status string) {
			for range 600 {
				_, err := s.Resources("gateway.networking.k8s.io/v1/"+resource).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
				if err == nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			wrong <- "the status of " + resource + " cannot be written"
		}
		held := func(when string) {
			maps := s.Resources("v1/configmaps").Namespace(s.NS)
			if _, err := maps.Get(context.Background(), "after", metav1.GetOptions{}); err == nil {
				wrong <- "what needs the route was applied " + when
			}
			if _, err := maps.Get(context.Background(), "old", metav1.GetOptions{}); err != nil {
				wrong <- "pruned " + when
			}
		}
		parents := func(status, generation string) string {
			return `{"parents":[{"parentRef":{"name":"front"},"controllerName":"example.com/late","conditions":[` + say("Accepted", status, generation) + `,` + say("ResolvedRefs", "True", generation) + `]}]}`
		}
		set("gatewayclasses", "", s.NS, `{"conditions":[`+say("Accepted", "True", "1")+`]}`)
		set("httproutes", s.NS, "web", parents("False", "1"))
		time.Sleep(time.Second)
		held("while the route is not accepted")
		set("httproutes", s.NS, "web", parents("True", "1"))
		for range 600 { // only the pruning waits for the Gateway
			if s.ConfigMap("after") != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if s.ConfigMap("old") == nil {
			wrong <- "pruned while the Gateway is not programmed"
		}
		set("gateways", s.NS, "front", `{"conditions":[`+say("Accepted", "True", "1")+`,`+say("Programmed", "True", "1")+`]}`)
	}()
	result := s.Apply(text+after, "--timeout=5m").Want(t, 0)
	for one := range wrong {
		t.Error(one)
	}
	at := func(kind, name string) float64 { return result.Did(t, kind, name, plan.Created).ActedAt }
	if class, gateway, route := at("GatewayClass", s.NS), at("Gateway", "front"), at("HTTPRoute", "web"); class > gateway || gateway > route {
		t.Errorf("class %g, gateway %g, route %g", class, gateway, route)
	}
	result.Did(t, "ConfigMap", "old", plan.Pruned)
	// Another content has another generation, which nobody has seen.
	o := s.Apply(strings.Replace(text+after, "port: 80}]}]", "port: 81}]}]", 1), "--timeout=15s").Want(t, 4).Object(t, "HTTPRoute", "web")
	if o.Ready != "not-ready" || !strings.Contains(o.Reason, "Accepted=True of generation 1, not 2") {
		t.Errorf("%s: %s", o.Ready, o.Reason)
	}
	s.Destroy("--timeout=2m").Want(t, 0)
}
