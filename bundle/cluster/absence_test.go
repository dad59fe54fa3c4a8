package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
)

// Only the API server's own Status about this very object proves that it is not there.
func TestProofOfAbsence(t *testing.T) {
	status := func(name string) string {
		text, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: `something "` + name + `" not found`, Details: &metav1.StatusDetails{Name: name},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const (
		plain   = "404 page not found\n"
		html    = "<html><body>Not Found</body></html>"
		nothing = ""
	)
	widgets := cluster.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Namespaced: true}
	configMaps := cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespaced: true}
	// PodSecurityPolicy went with 1.25.
	policies := cluster.Resource{GVR: schema.GroupVersionResource{Group: "policy", Version: "v1beta1", Resource: "podsecuritypolicies"}, GVK: schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}}
	// Workload came with 1.35.
	workloads := cluster.Resource{GVR: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha1", Resource: "workloads"}, GVK: schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha1", Kind: "Workload"}, Namespaced: true}
	for name, test := range map[string]struct {
		resource cluster.Resource
		answer   string // to the request for the object
		others   string // to those for its CRD and its APIService
		absent   bool
		served   string // the group of which an API server of its own serves another version
	}{
		"the server's own Status":                  {configMaps, status("web"), plain, true, ""},
		"a Status about another object":            {configMaps, status("shop"), status(""), false, ""},
		"a proxy's plain 404":                      {configMaps, plain, "", false, ""},
		"a proxy's page":                           {configMaps, html, "", false, ""},
		"an empty 404":                             {configMaps, nothing, "", false, ""},
		"a plain 404 for all":                      {configMaps, plain, plain, false, ""},
		"a resource, and there is no CRD":          {widgets, plain, "", true, ""},
		"one whose group has another version":      {widgets, plain, "", false, "example.com"},
		"a resource, and a plain 404 for its CRD":  {widgets, plain, plain, false, ""},
		"a resource, and an empty 404 for its CRD": {widgets, plain, nothing + " ", false, ""},
		"a CRD, and a plain 404":                   {cluster.CRDs, plain, "", false, ""},
		"a built-in kind that Kubernetes removed":  {policies, plain, "", true, ""},
		"such a kind, and a plain 404 for all":     {policies, plain, plain, false, ""},
		"a built-in kind that Kubernetes has":      {workloads, plain, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				switch {
				case r.URL.Path == "/version":
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"major":"1","minor":"37","gitVersion":"v1.37.1"}`))
					return
				case last == "web":
					last = test.answer
				case last == "apiservices" && test.others == "":
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIServiceList","metadata":{"resourceVersion":"1"},"items":[{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v2.served"},"spec":{"group":%q,"version":"v2","service":{"name":"s"}}}]}`, test.served)
					return
				case test.others == "":
					last = status(last)
				default:
					last = test.others
				}
				if strings.HasPrefix(last, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(last))
			}))
			defer server.Close()
			c, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{RetryFor: time.Nanosecond})
			if err != nil {
				t.Fatal(err)
			}
			id := bundle.ID{GroupKind: test.resource.GVK.GroupKind(), Name: "web"}
			if test.resource.Namespaced {
				id.Namespace = "shop"
			}
			live, err := c.Get(t.Context(), test.resource, id)
			switch {
			case live != nil:
				t.Errorf("there is %v", live)
			case test.absent && err != nil:
				t.Errorf("it is not proven: %v", err)
			case !test.absent && (!errors.Is(err, answers.ErrNotServed) || apierrors.IsNotFound(err)):
				t.Errorf("it is taken for absent: %v", err)
			}
			deleted, err := c.Delete(t.Context(), test.resource, &metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: "1", ResourceVersion: "1"}, cluster.Deletion{})
			if deleted != test.absent || test.absent != (err == nil) {
				t.Errorf("a DELETE says gone: %v (%v)", deleted, err)
			}
		})
	}
}

// What the server cannot decrypt or decode is no absence, and the message names it.
func TestStorageReadError(t *testing.T) {
	for name, answer := range map[string]metav1.Status{
		"a list": {Reason: metav1.StatusReasonStoreReadError, Message: "failed to read one or more secrets from the storage", Details: &metav1.StatusDetails{
			Kind: "secrets", Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Field: "/registry/secrets/shop/key", Message: "no matching prefix found"}},
		}},
		"one object": {Reason: metav1.StatusReasonInternalError, Message: "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/secrets/shop/key, ResourceVersion: 0, AdditionalErrorMsg: no matching prefix found"},
	} {
		answersAll(t, name, answer, "StorageReadError: the API server cannot decrypt or decode what it stores", "/registry/secrets/shop/key")
	}
	// Of what it has read before its CRD changed, the API server says no more than this.
	unconverted := metav1.Status{Reason: metav1.StatusReasonInternalError, Message: "Internal error occurred: conversion webhook for example.com/v1, Kind=Gadget failed: Post \"https://127.0.0.1:1/convert\": connection refused"}
	answersAll(t, "conversion", unconverted, "the API server cannot convert what it stores, as the conversion webhook of the CRD does not answer: ", "example.com/v1")
}

// answersAll has a server answer all reads, and judges their errors.
func answersAll(t *testing.T, name string, answer metav1.Status, begins, names string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer.TypeMeta, answer.Status, answer.Code = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure, http.StatusInternalServerError
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	c, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{RetryFor: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	secrets := cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Namespaced: true}
	live, one := c.Get(t.Context(), secrets, bundle.ID{GroupKind: secrets.GVK.GroupKind(), Namespace: "shop", Name: "key"})
	_, all := c.List(t.Context(), secrets, "shop", "", "")
	for _, err := range []error{one, all} {
		if live != nil || err == nil || !strings.HasPrefix(err.Error(), begins) || !strings.Contains(err.Error(), names) || !answers.Transient(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Close()
}
