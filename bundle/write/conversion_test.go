package write_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// converter is a conversion webhook: spec.size of v1alpha1 is spec.length in v1. It
// returns what a CRD says of it, and the number of objects it has converted.
func converter(t *testing.T) (conversion string, converted *atomic.Int32) {
	t.Helper()
	converted = new(atomic.Int32)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		for _, o := range review.Request.Objects {
			converted.Add(1)
			from, to := "length", "size"
			if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
				from, to = to, from
			}
			if spec, ok := o["spec"].(map[string]any); ok && spec[from] != nil {
				spec[to] = spec[from]
				delete(spec, from)
			}
			o["apiVersion"] = review.Request.DesiredAPIVersion
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
			"response": map[string]any{"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects},
		})
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf("  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s}}}\n",
		server.URL, base64.StdEncoding.EncodeToString(ca)), converted
}

// Only a webhook can convert these objects: up, where the newer CRD brings it, and down
// to a CRD that has none, where the live one's is used until nothing is left to convert.
func TestMigrationByAConversionWebhook(t *testing.T) {
	s, _ := gadgetry(t)
	conversion, converted := converter(t)
	up := clitest.Documents(gadgets(migrates, "v1 length: {type: integer}")+conversion, gadget("v1", "ours", "length: 3"))
	down := clitest.Documents(gadgets("", "v1alpha1 size: {type: integer}, color: {type: string}"), gadget("v1alpha1", "ours", "size: 1"))
	specs := func(version, field string) string {
		t.Helper()
		var all []string
		for _, name := range []string{"ours", "theirs", "third"} {
			live := s.Live(s.NS+".example.com/"+version+"/gadgets", s.NS, name)
			if live == nil {
				t.Fatalf("%s is gone", name)
			}
			ownedIn(s, live, version)
			text, _ := json.Marshal(live.Object["spec"])
			all = append(all, string(text))
		}
		return strings.ReplaceAll(strings.Join(all, " "), field, "F")
	}
	s.Preview(up).Want(t, 0).Prints(t, "v1alpha1 goes; 3 objects to be rewritten in v1")
	s.Apply(up).Want(t, 0).Prints(t, "3 objects rewritten in v1; v1alpha1 is gone")
	if got := versions(s) + specs("v1", "length"); got != `[v1] stored [v1]{"F":3} {"F":2} {"F":2}` {
		t.Error(got)
	}
	if converted.Load() == 0 {
		t.Error("the webhook was never asked")
	}
	s.Apply(up).Want(t, 0)

	converted.Store(0)
	s.Apply(down).Want(t, 0).Prints(t, "3 objects rewritten in v1alpha1; v1 is gone")
	if got := versions(s) + specs("v1alpha1", "size"); got != `[v1alpha1] stored [v1alpha1]{"F":1} {"F":2} {"F":2}` {
		t.Error(got)
	}
	if converted.Load() == 0 {
		t.Error("the webhook was not asked on the way back")
	}
}

// A webhook that does not answer: nothing is lost, and the run says which part failed.
func TestMigrationWithoutItsWebhook(t *testing.T) {
	s, _ := gadgetry(t)
	dead := "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/convert'}}}\n"
	up := clitest.Documents(gadgets(migrates, "v1 length: {type: integer}")+dead, gadget("v1", "ours", "length: 3"))
	s.Apply(up, "--retry-timeout=3s").Want(t, report.ExitFailed).Prints(t, "the API server cannot convert what it stores, as the conversion webhook of the CRD does not answer", "nothing is lost")
	if got := versions(s); !strings.HasPrefix(got, "[v1 v1alpha1]") {
		t.Error(got)
	}
	// Now nobody can read them. What brings the webhook back is still applied,
	// and nothing that cannot be read is pruned.
	s.Apply(clitest.Documents(gadgets("", "v1 length: {type: integer}", "v1alpha1 size: {type: integer}")+dead, clitest.ConfigMap("a")), "--retry-timeout=3s").
		Want(t, report.ExitFailed).Did(t, "ConfigMap", "a", plan.Created)
	s.Apply(up, "--retry-timeout=3s").Want(t, report.ExitFailed)
	conversion, _ := converter(t)
	up = strings.Replace(up, dead, conversion, 1)
	// A preview brings no webhook back: it does not ask for it again and again.
	s.Preview(up, "--retry-timeout=1h").Want(t, 0).Did(t, "Gadget", "ours", plan.Configured)
	s.Apply(up).Want(t, 0).Did(t, "Gadget", "ours", plan.Configured)
	if got := versions(s); got != "[v1] stored [v1]" {
		t.Error(got)
	}
}
