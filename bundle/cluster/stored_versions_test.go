package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is owned in another version keeps its owner where the object has the field, and
// an entry without fields breaks nothing.
func TestMoveOwnership(t *testing.T) {
	u := &unstructured.Unstructured{}
	text := `{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a", "managedFields": [
		{"manager": "old", "operation": "Apply", "apiVersion": "example.com/v1alpha1", "fieldsType": "FieldsV1",
			"fieldsV1": {"f:metadata": {"f:name": {}}, "f:spec": {".": {}, "f:size": {}, "f:kept": {}, "f:list": {"k:{\"name\":\"x\"}": {}}}}},
		{"manager": "empty", "operation": "Update", "apiVersion": "example.com/v1alpha1", "fieldsType": "FieldsV1"},
		{"manager": "other", "operation": "Update", "apiVersion": "example.com/v2", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}}}]},
		"spec": {"length": 1, "kept": true, "list": []}}`
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if from := moveOwnership(u, Resource{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}, func(version string) bool { return version == "v1alpha1" }); !slices.Equal(from, []string{"v1alpha1"}) {
		t.Errorf("moved from %s", from)
	}
	want := []struct{ version, fields string }{
		{"example.com/v1", `{"f:metadata":{"f:name":{}},"f:spec":{".":{},"f:kept":{},"f:list":{"k:{\"name\":\"x\"}":{}}}}`},
		{"example.com/v1", ""},
		{"example.com/v2", `{"f:spec":{"f:size":{}}}`},
	}
	for i, entry := range u.GetManagedFields() {
		if got := raw(entry.FieldsV1); entry.APIVersion != want[i].version || got != want[i].fields {
			t.Errorf("%s owns %s in %s, want %s in %s", entry.Manager, got, entry.APIVersion, want[i].fields, want[i].version)
		}
	}
}

func raw(fields *metav1.FieldsV1) string {
	if fields == nil {
		return ""
	}
	return string(fields.GetRawBytes())
}

func TestUnservedOwnership(t *testing.T) {
	r := Resource{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}
	for text, want := range map[string]string{
		"request to convert CR to an invalid group/version: example.com/v1alpha1":              "v1alpha1",
		"update: request to convert CR to an invalid group/version: example.com/v1beta2; more": "v1beta2",
		"request to convert CR to an invalid group/version: example.com/v1":                    "", // a server that is behind
		"request to convert CR to an invalid group/version: other.com/v1alpha1":                "",
		"request to convert CR to an invalid group/version: example.com/":                      "",
		"something else": "",
	} {
		if got := UnservedOwnership(errors.New(text), r); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := UnservedOwnership(nil, r); got != "" {
		t.Errorf("no error: %q", got)
	}
}

// A cluster of one API server is asked once; otherwise every answer, each on a connection of
// its own, has to say so for five seconds.
func TestAwaitStorage(t *testing.T) {
	gadgets := Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}
	for servers, want := range map[int]time.Duration{1: oneServerDelay, 3: crdDelay, 0: crdDelay} {
		synctest.Test(t, func(t *testing.T) {
			c := fakeClient(t, Options{RetryFor: time.Nanosecond}, func(r *http.Request) (*http.Response, error) {
				text := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"gadgets","kind":"Gadget","storageVersionHash":"x"}]}`
				if strings.HasSuffix(r.URL.Path, "/leases") {
					if servers == 0 {
						return answerOf(r, 403, nil, strings.NewReader(`{}`)), nil
					}
					item := `{"metadata":{"name":"a"}}`
					text = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[` + item + strings.Repeat(","+item, servers-1) + `]}`
				}
				if strings.HasSuffix(r.URL.Path, "/gadgets") {
					text = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[]}`
				}
				return answerOf(r, 200, nil, strings.NewReader(text)), nil
			})
			begin := time.Now()
			if err := c.AwaitStorage(t.Context(), gadgets); err != nil || time.Since(begin) != want {
				t.Errorf("%d servers: after %s: %v", servers, time.Since(begin), err)
			}
		})
	}
}

// A conversion webhook that does not answer is asked for as long as any other request is
// retried, and no longer.
func TestAwaitStorageWithoutTheConversionWebhook(t *testing.T) {
	gadgets := Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}
	for answersAfter, fails := range map[time.Duration]bool{4 * time.Second: false, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			c := fakeClient(t, Options{RetryFor: 10 * time.Second}, func(r *http.Request) (*http.Response, error) {
				text := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"gadgets","kind":"Gadget","storageVersionHash":"x"}]}`
				switch {
				case strings.HasSuffix(r.URL.Path, "/gadgets") && time.Since(begin) < answersAfter:
					return answerOf(r, 500, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"conversion webhook for example.com/v1alpha1, Kind=Gadget failed: connection refused","code":500}`)), nil
				case strings.HasSuffix(r.URL.Path, "/leases"), strings.HasSuffix(r.URL.Path, "/gadgets"):
					text = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"a"}}]}`
				}
				return answerOf(r, 200, nil, strings.NewReader(text)), nil
			})
			err := c.AwaitStorage(t.Context(), gadgets)
			if took := time.Since(begin); (err != nil) != fails || fails && !strings.Contains(err.Error(), "conversion webhook for") || took > 15*time.Second {
				t.Errorf("answers after %s: after %s: %v", answersAfter, took, err)
			}
		})
	}
}

// A run that has ended ends them, with an error: nothing is taken for stored or rewritten.
func TestStoredVersionsAtTheEnd(t *testing.T) {
	why := errors.New("time ran out")
	gadgets := Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Namespaced: true}
	gadget := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}`
	run, end := context.WithCancelCause(t.Context())
	ctx := WithEnd(context.WithoutCancel(t.Context()), run)
	if WhyEnded(ctx) != nil || Ended(ctx) {
		t.Error("it has ended before its end")
	}
	end(why)
	c := fakeClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
		text := `{"kind":"GadgetList","apiVersion":"example.com/v1","metadata":{},"items":[` + gadget + `]}`
		switch {
		case r.Method != http.MethodGet:
			return answerOf(r, 409, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)), nil
		case strings.HasSuffix(r.URL.Path, "/a"):
			text = gadget
		}
		return answerOf(r, 200, nil, strings.NewReader(text)), nil
	})
	if err := c.AwaitStorage(ctx, gadgets); !errors.Is(err, why) {
		t.Errorf("await: %v", err)
	}
	if _, err := c.Rewrite(ctx, gadgets, nil); !errors.Is(err, why) {
		t.Errorf("rewrite: %v", err)
	}
}

// What other clients change again and again, or expires again and again, ends.
func TestLoopsHaveAnEnd(t *testing.T) {
	crd := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.example.com","uid":"u","resourceVersion":"1"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true}]}}`
	gadget := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}`
	gadgets := Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Namespaced: true}
	for name, try := range map[string]func(context.Context, *Client) error{
		"unstore": func(ctx context.Context, c *Client) error {
			_, err := c.Unstore(ctx, "gadgets.example.com", []string{"v0"}, "v1")
			return err
		},
		"rewrite": func(ctx context.Context, c *Client) error { _, err := c.Rewrite(ctx, gadgets, nil); return err },
		"list":    func(ctx context.Context, c *Client) error { _, err := c.List(ctx, ConfigMaps, "", "", ""); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			c := fakeClient(t, Options{}, func(r *http.Request) (*http.Response, error) {
				requests++
				switch {
				case r.Method != http.MethodGet:
					return answerOf(r, 409, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)), nil
				case r.URL.Query().Has("continue"):
					return answerOf(r, 410, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)), nil
				case strings.HasSuffix(r.URL.Path, "/configmaps"):
					return answerOf(r, 200, nil, strings.NewReader(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"x"},"items":[]}`)), nil
				case strings.HasSuffix(r.URL.Path, "/gadgets"):
					return answerOf(r, 200, nil, strings.NewReader(`{"kind":"GadgetList","apiVersion":"example.com/v1","metadata":{},"items":[`+gadget+`]}`)), nil
				case strings.HasSuffix(r.URL.Path, "/gadgets/a"):
					return answerOf(r, 200, nil, strings.NewReader(gadget)), nil
				}
				return answerOf(r, 200, nil, strings.NewReader(crd)), nil
			})
			if err := try(t.Context(), c); err == nil || requests < 2 || requests > 3*contendedTries {
				t.Errorf("%s: %d requests, error %v", name, requests, err)
			}
		})
	}
}

// A webhook may refuse the rewriting with a 404, of what the object refers to: the object is
// there still, and stored as it was.
func TestRewriteRefusedWithNotFound(t *testing.T) {
	gadget := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}`
	gadgets := Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Namespaced: true}
	there := true
	c := fakeClient(t, Options{RetryFor: time.Nanosecond}, func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPut && there:
			return answerOf(r, 404, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"kind":"secrets","name":"a"},
				"message":"admission webhook \"gadgets.example.com\" denied the request: secrets \"a\" not found"}`)), nil
		case strings.HasSuffix(r.URL.Path, "/gadgets"):
			return answerOf(r, 200, nil, strings.NewReader(`{"kind":"GadgetList","apiVersion":"example.com/v1","metadata":{},"items":[`+gadget+`]}`)), nil
		case !there:
			return answerOf(r, 404, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"kind":"gadgets","name":"a"},"message":"gadgets \"a\" not found"}`)), nil
		}
		return answerOf(r, 200, nil, strings.NewReader(gadget)), nil
	})
	if _, err := c.Rewrite(t.Context(), gadgets, nil); err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("an object that is there counts as rewritten: %v", err)
	}
	there = false
	if _, err := c.Rewrite(t.Context(), gadgets, nil); err != nil {
		t.Errorf("an object that is gone: %v", err)
	}
}

// For the server two entries of one manager in one version are one: the last counts, and what
// is in the first has no owner any more.
func TestMoveOwnershipBesideTheManagersOwn(t *testing.T) {
	u := &unstructured.Unstructured{}
	text := `{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a", "managedFields": [
		{"manager": "m", "operation": "Update", "apiVersion": "example.com/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}, "f:gone": {}}}},
		{"manager": "m", "operation": "Update", "apiVersion": "example.com/v1alpha1", "subresource": "status", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:phase": {}}}},
		{"manager": "m", "operation": "Update", "apiVersion": "example.com/v1beta1", "fieldsType": "FieldsV1"},
		{"manager": "m", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:color": {}}}}]},
		"spec": {"size": 1, "color": "red"}, "status": {"phase": "x"}}`
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	moveOwnership(u, Resource{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}, func(string) bool { return true })
	for _, entry := range u.GetManagedFields() {
		t.Log(entry.Manager, entry.Subresource, entry.APIVersion, raw(entry.FieldsV1))
	}
	owned := map[string]string{}
	for _, entry := range u.GetManagedFields() { // as the server reads them: apimachinery's BuildManagerIdentifier
		owned[entry.APIVersion+" "+entry.Subresource] = raw(entry.FieldsV1)
	}
	want := map[string]string{"example.com/v1 ": `{"f:spec":{"f:color":{},"f:size":{}}}`, "example.com/v1 status": `{"f:status":{"f:phase":{}}}`}
	if !maps.Equal(owned, want) {
		t.Errorf("owned are %s", owned)
	}
}

// Nor is such a 404 an absence for a deletion: the member would be forgotten.
func TestDeletionRefusedWithNotFound(t *testing.T) {
	c := fakeClient(t, Options{RetryFor: time.Nanosecond}, func(r *http.Request) (*http.Response, error) {
		return answerOf(r, 404, nil, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"kind":"secrets","name":"a"},
			"message":"admission webhook \"maps.example.com\" denied the request: secrets \"a\" not found"}`)), nil
	})
	live := &unstructured.Unstructured{}
	live.SetName("a")
	live.SetNamespace("shop")
	gone, err := c.Delete(t.Context(), ConfigMaps, live, Deletion{})
	if gone || err == nil || !strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "not served") {
		t.Errorf("gone: %v, error %v", gone, err)
	}
}
