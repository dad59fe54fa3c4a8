package apply_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// Webhooks and aggregated API servers are real ones, on loopback: a Service of
// type ExternalName leads the API server there. What its selector selects is
// the backend that has to be ready.

// loopback is a TLS server for a Service's name, not started yet.
type loopback struct {
	*httptest.Server
	port int
	ca   string // PEM, in base64
}

func newLoopback(t *testing.T, s *clitest.Fixture, service string, handler http.Handler) *loopback {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{service + "." + s.NS + ".svc", "localhost"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	l := &loopback{Server: httptest.NewUnstartedServer(handler)}
	l.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	l.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	l.port = l.Listener.Addr().(*net.TCPAddr).Port
	t.Cleanup(l.Close)
	return l
}

// notYet closes its first connections at once, as where nobody listens behind a Service.
type notYet struct {
	net.Listener
	closed atomic.Int32
}

func (l *notYet) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil || l.closed.Add(1) > 2 {
			return connection, err
		}
		_ = connection.Close()
	}
}

// service leads to it.
func (l *loopback) service(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: \"{ns}\"}\nspec: {type: ExternalName, externalName: localhost, selector: {app: %s}, ports: [{port: %d}]}\n", name, name, l.port)
}

// judge is a validating webhook that refuses ConfigMaps called "bad".
type judge struct {
	mu     sync.Mutex
	judged []string
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID       string `json:"uid"`
			Name      string `json:"name"`
			Operation string `json:"operation"`
		} `json:"request"`
	}
	_ = json.NewDecoder(r.Body).Decode(&review)
	j.mu.Lock()
	j.judged = append(j.judged, review.Request.Operation+" "+review.Request.Name)
	j.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": map[string]any{
			"uid": review.Request.UID, "allowed": review.Request.Name != "bad",
			"status": map[string]any{"message": "the judge says no"},
		},
	})
}

func (j *judge) saw(what string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Contains(j.judged, what)
}

// applyJudged applies a bundle with the webhook until the judge is asked about "good": an API
// server may not have heard of the webhook yet, and then does not ask it.
func applyJudged(t *testing.T, s *clitest.Fixture, j *judge, text string, flags ...string) clitest.Outcome {
	t.Helper()
	for range 5 {
		if result := s.Apply(text, flags...).Want(t, 0); j.saw("CREATE good") {
			return result
		}
		s.Destroy().Want(t, 0)
	}
	return s.Apply(text, flags...).Want(t, 0)
}

// webhook judges the ConfigMaps of the fixture's namespace labelled judged.
func (l *loopback) webhook() string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: "{ns}.example.com"}
webhooks:
- name: "{ns}.example.com"
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  clientConfig: {caBundle: %s, service: {name: hook, namespace: "{ns}", port: %d, path: /judge}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}
  objectSelector: {matchLabels: {judged: "yes"}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
`, l.ca, l.port)
}

const webhooks = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

// wantOrder fails the test unless one object was done before another was begun.
func wantOrder(t testing.TB, s clitest.Outcome, first, second [2]string) {
	t.Helper()
	a, b := s.Object(t, first[0], first[1]), s.Object(t, second[0], second[1])
	if a.ReadyAt == 0 || b.StartedAt < a.ReadyAt {
		t.Errorf("%s %s was begun at %v, and %s %s done at %v", b.Kind, b.Name, b.StartedAt, a.Kind, a.Name, a.ReadyAt)
	}
}

func TestWebhookIsAppliedAfterItsBackendAndBeforeItsObjects(t *testing.T) {
	s := clitest.New(t)
	j := &judge{}
	l := newLoopback(t, s, "hook", j)
	l.StartTLS()
	s.GoneAfter(webhooks, s.NS+".example.com")
	result := applyJudged(t, s, j, clitest.Documents(clitest.ConfigMap("good", "labels: {judged: \"yes\"}"), l.webhook(), l.service("hook"), clitest.Deployment("hook", 1, "1m")))
	config, backend, judged := [2]string{"ValidatingWebhookConfiguration", s.NS + ".example.com"}, [2]string{"Deployment", "hook"}, [2]string{"ConfigMap", "good"}
	wantOrder(t, result, backend, config)
	wantOrder(t, result, config, judged)
	if !j.saw("CREATE good") {
		t.Error("the webhook was not asked about what was created after it")
	}
	// One that refuses is an error, with its message.
	result = s.Apply(clitest.Documents(clitest.ConfigMap("good", "labels: {judged: \"yes\"}"), clitest.ConfigMap("bad", "labels: {judged: \"yes\"}"), l.webhook(), l.service("hook"), clitest.Deployment("hook", 1, "1m"))).Want(t, 1)
	if o := result.Did(t, "ConfigMap", "bad", plan.Failed); !strings.Contains(o.Error, "the judge says no") {
		t.Errorf("the error is %q", o.Error)
	}
	// And all of it the other way round.
	result = s.Destroy().Want(t, 0)
	wantOrder(t, result, judged, config)
	wantOrder(t, result, config, backend)
}

func TestWebhookThatIsNotAvailableYetIsRetried(t *testing.T) {
	s := clitest.New(t)
	j := &judge{}
	l := newLoopback(t, s, "hook", j)
	l.Listener = &notYet{Listener: l.Listener}
	l.StartTLS()
	s.GoneAfter(webhooks, s.NS+".example.com")
	// kwok says that the backend is ready before it answers.
	result := applyJudged(t, s, j, clitest.Documents(clitest.ConfigMap("good", "labels: {judged: \"yes\"}"), l.webhook(), l.service("hook"), clitest.Deployment("hook", 1, "1m")), "-o", "events")
	retried := false
	for line := range strings.SplitSeq(result.Stdout, "\n") {
		var event struct {
			Type, Error string
		}
		_ = json.Unmarshal([]byte(line), &event)
		retried = retried || event.Type == "retrying" && strings.Contains(event.Error, "failed calling webhook")
	}
	if !retried || !j.saw("CREATE good") {
		t.Errorf("it was not tried again until the webhook was up (asked: %v)", j.judged)
	}
	s.Destroy().Want(t, 0)
}

// things is an aggregated API server with one resource, kept in memory.
type things struct {
	group   string
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
}

func (a *things) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	root := "/apis/" + a.group + "/v1"
	rest, in := strings.CutPrefix(r.URL.Path, root)
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case in && rest == "":
		a.answer(w, 200, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": a.group + "/v1", "resources": []any{map[string]any{
			"name": "things", "singularName": "thing", "kind": "Thing", "namespaced": true, "verbs": []any{"get", "list", "patch", "delete", "create"}}}})
	case in && parts[len(parts)-1] == "things":
		items := []any{}
		for _, u := range a.objects {
			if want := r.URL.Query().Get("labelSelector"); want == "" || slices.ContainsFunc(labelsOf(u), func(l string) bool { return l == want }) {
				items = append(items, u.Object)
			}
		}
		a.answer(w, 200, map[string]any{"kind": "ThingList", "apiVersion": a.group + "/v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	case in && len(parts) == 4 && parts[2] == "things":
		a.object(w, r, parts[1], parts[3])
	default:
		a.missing(w)
	}
}

func labelsOf(u *unstructured.Unstructured) []string {
	var pairs []string
	for k, v := range u.GetLabels() {
		pairs = append(pairs, k+"="+v)
	}
	return pairs
}

func (a *things) object(w http.ResponseWriter, r *http.Request, namespace, name string) {
	key := namespace + "/" + name
	switch r.Method {
	case http.MethodPatch:
		u := &unstructured.Unstructured{}
		if err := json.NewDecoder(r.Body).Decode(&u.Object); err != nil {
			a.answer(w, 400, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400, "message": err.Error()})
			return
		}
		a.version++
		u.SetNamespace(namespace)
		u.SetResourceVersion(fmt.Sprint(a.version))
		u.SetUID(types.UID("uid-of-" + name))
		a.objects[key] = u
		a.answer(w, 200, u.Object)
	case http.MethodDelete:
		if a.objects[key] == nil {
			a.missing(w)
			return
		}
		delete(a.objects, key)
		a.answer(w, 200, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		if u := a.objects[key]; u != nil {
			a.answer(w, 200, u.Object)
			return
		}
		a.missing(w)
	}
}

func (a *things) missing(w http.ResponseWriter) {
	a.answer(w, 404, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"})
}

func (a *things) answer(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func TestAPIServiceIsAppliedAfterItsBackendAndBeforeItsObjects(t *testing.T) {
	s := clitest.NewAlone(t)
	server := &things{group: s.NS + ".example.com", objects: map[string]*unstructured.Unstructured{}}
	l := newLoopback(t, s, "things", server)
	l.StartTLS()
	service := fmt.Sprintf(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: "v1.{ns}.example.com"}
spec: {group: "{ns}.example.com", version: v1, groupPriorityMinimum: 100, versionPriority: 100, caBundle: %s, service: {name: things, namespace: "{ns}", port: %d}}
`, l.ca, l.port)
	s.GoneAfter("apiregistration.k8s.io/v1/apiservices", "v1."+s.NS+".example.com")
	thing := "apiVersion: \"{ns}.example.com/v1\"\nkind: Thing\nmetadata: {name: one, namespace: \"{ns}\"}\nspec: {size: 1}\n"
	result := s.Apply(clitest.Documents(thing, service, l.service("things"), clitest.Deployment("things", 1, "1m"))).Want(t, 0)
	registration, backend, served := [2]string{"APIService", "v1." + s.NS + ".example.com"}, [2]string{"Deployment", "things"}, [2]string{"Thing", "one"}
	wantOrder(t, result, backend, registration)
	wantOrder(t, result, registration, served)
	if server.objects[s.NS+"/one"] == nil {
		t.Error("the aggregated server has no Thing")
	}
	result = s.Destroy().Want(t, 0)
	wantOrder(t, result, served, registration)
	wantOrder(t, result, registration, backend)
	if len(server.objects) > 0 {
		t.Error("the aggregated server still has a Thing")
	}
}

func TestResourcesAreDeletedBeforeTheirOperatorAndItBeforeItsCRD(t *testing.T) {
	s := clitest.New(t)
	rights := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{ns}-operator"}
rules: [{apiGroups: ["{ns}.example.com"], resources: [widgets], verbs: [get, list, watch, update, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{ns}-operator"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{ns}-operator"}
subjects: [{kind: ServiceAccount, name: operator, namespace: "{ns}"}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator, namespace: "{ns}"}
`
	operator := strings.Replace(clitest.Deployment("operator", 1, "1m"), "      containers:", "      serviceAccountName: operator\n      containers:", 1)
	held := strings.Replace(clitest.Widget, "namespace: \"{ns}\"}", "namespace: \"{ns}\", finalizers: [example.com/operator]}", 1)
	s.Apply(clitest.Documents(held, clitest.Widgets, operator, rights)).Want(t, 0)

	// The operator lets its resources go, for as long as it is there.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			w, err := s.Resources(s.NS+".example.com/v1/widgets").Namespace(s.NS).Get(ctx, "one", metav1.GetOptions{})
			if err != nil || w.GetDeletionTimestamp() == nil {
				continue
			}
			d, err := s.Resources("apps/v1/deployments").Namespace(s.NS).Get(ctx, "operator", metav1.GetOptions{})
			if err == nil && d.GetDeletionTimestamp() == nil {
				_, _ = s.Resources(s.NS+".example.com/v1/widgets").Namespace(s.NS).Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			}
		}
	}()
	result := s.Destroy().Want(t, 0)
	crd, workload, resource := [2]string{"CustomResourceDefinition", "widgets." + s.NS + ".example.com"}, [2]string{"Deployment", "operator"}, [2]string{"Widget", "one"}
	wantOrder(t, result, resource, workload)
	wantOrder(t, result, workload, crd)
}

// A webhook of others whose Service has no pods, such as that of a half-removed knative,
// refuses objects: the error names the webhook and its Service, and the others are applied.
func TestWebhookWithoutABackendIsNamed(t *testing.T) {
	s := clitest.New(t)
	s.GoneAfter("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", s.NS)
	s.Create("v1/services", "apiVersion: v1\nkind: Service\nmetadata: {name: backend, namespace: \"{ns}\"}\nspec: {ports: [{port: 443}], selector: {app: gone}}\n")
	s.Create("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: "{ns}"}
webhooks:
- name: config.{ns}.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {namespace: "{ns}", name: backend}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}
  objectSelector: {matchLabels: {guarded: "yes"}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
`)
	guarded := func(name string) string { return clitest.ConfigMap(name, `labels: {guarded: "yes"}`) }
	s.Everywhere("the webhook is asked", func() bool {
		_, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(s.Context(), s.Parsed(guarded("probe")), metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil
	})
	got := s.Apply(clitest.Documents(guarded("a"), clitest.ConfigMap("b")), "--retry-timeout=1s").Want(t, 1)
	got.Did(t, "ConfigMap", "b", plan.Created)
	if o := got.Did(t, "ConfigMap", "a", plan.Failed); !strings.Contains(o.Error, `failed calling webhook "config.`+s.NS) || !strings.Contains(o.Error, "https://backend."+s.NS+".svc") {
		t.Errorf("it says %q", o.Error)
	}
}
