package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"brine/bundle/cluster"
)

// An answer that is not about the object is no proof that it is gone: it is read again.
func TestAnswersToADelete(t *testing.T) {
	for name, test := range map[string]struct {
		answer, live string
		gone, fails  bool
	}{
		"it is gone":                    {answer: `{"kind":"Status","apiVersion":"v1","status":"Success"}`, gone: true},
		"the object":                    {answer: `{"kind":"ConfigMap","metadata":{"name":"a","uid":"1"}}`, gone: true},
		"the object, with a finalizer":  {answer: `{"kind":"ConfigMap","metadata":{"name":"a","uid":"1","deletionTimestamp":"2026-01-01T00:00:00Z"}}`},
		"a Status that says failure":    {answer: `{"kind":"Status","status":"Failure"}`, live: "1", fails: true},
		"a proxy's own kind":            {answer: `{"kind":"Error","metadata":{}}`, live: "1", fails: true},
		"another object":                {answer: `{"kind":"ConfigMap","metadata":{"name":"b","uid":"2"}}`, live: "1", fails: true},
		"no JSON":                       {answer: `<html>`, live: "1", fails: true},
		"a proxy's own, and it is gone": {answer: `{"kind":"Error"}`, gone: true},
		"a proxy's own, and another one has its name": {answer: `{"kind":"Error"}`, live: "2", gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodDelete:
					_, _ = w.Write([]byte(test.answer))
				case test.live != "":
					_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"a","uid":"` + test.live + `"}}`))
				default:
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"a","kind":"configmaps"}}`))
				}
			}))
			t.Cleanup(server.Close)
			client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			gone, err := client.Delete(t.Context(), cluster.ConfigMaps, &metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "1"}, cluster.Deletion{})
			if gone != test.gone || (err != nil) != test.fails || err != nil && !strings.Contains(err.Error(), "it is still there") {
				t.Errorf("gone %t, %v", gone, err)
			}
		})
	}
}
