package clustertest_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/cluster/clustertest"
)

// Webhooks and aggregated API servers are real only if the API server calls a
// server that a test runs.

func TestAPIServerCallsAggregatedServerOnLoopback(t *testing.T) {
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"loopback.brine.dev/v1","resources":[]}`)
	}))
	t.Cleanup(server.Close)
	_, portText, _ := net.SplitHostPort(server.Listener.Addr().String())
	port, _ := strconv.ParseInt(portText, 10, 64)

	create(t, c, "v1", "services", ns, map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "loopback"},
		"spec": map[string]any{
			"type": "ExternalName", "externalName": "localhost",
			"ports": []any{map[string]any{"port": port}},
		},
	})
	create(t, c, "apiregistration.k8s.io/v1", "apiservices", "", map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.loopback.brine.dev"},
		"spec": map[string]any{
			"group": "loopback.brine.dev", "version": "v1",
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"name": "loopback", "namespace": ns, "port": port},
		},
	})
	services := c.Dynamic(t).Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	clustertest.Eventually(t, "the APIService is available", func() bool {
		live, err := services.Get(t.Context(), "v1.loopback.brine.dev", metav1.GetOptions{})
		if err != nil {
			return false
		}
		text, _ := live.MarshalJSON()
		return strings.Contains(string(text), `"reason":"Passed"`)
	})
}

func TestAPIServerCallsWebhookOnLoopback(t *testing.T) {
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{
				"uid": review.Request.UID, "allowed": false,
				"status": map[string]any{"message": "the webhook was here"},
			},
		})
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	create(t, c, "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "", map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "loopback.brine.dev"},
		"webhooks": []any{map[string]any{
			"name": "loopback.brine.dev", "sideEffects": "None",
			"admissionReviewVersions": []any{"v1"},
			"clientConfig":            map[string]any{"url": server.URL, "caBundle": ca},
			"namespaceSelector": map[string]any{
				"matchLabels": map[string]any{"kubernetes.io/metadata.name": ns}},
			"rules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"},
				"resources": []any{"configmaps"}, "operations": []any{"CREATE"},
			}},
		}},
	})
	maps := c.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)
	clustertest.Everywhere(t, "the webhook refuses", func() bool {
		_, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "the webhook was here")
	})
}

// create makes an object and removes it after the test.
func create(t *testing.T, c *clustertest.Cluster, apiVersion, resource, ns string, object map[string]any) {
	t.Helper()
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	// Through JSON, as an object read from a file would be.
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	client := c.Dynamic(t).Resource(gv.WithResource(resource)).Namespace(ns)
	if _, err := client.Create(t.Context(), &o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
