package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"brine/bundle/cluster/clustertest"
	"brine/scripts/simulator/apiserver"
)

// TestMain has one API server: lists and watches of several would be of different caches.
func TestMain(m *testing.M) {
	_ = os.Unsetenv("BRINE_TEST_APISERVERS")
	clustertest.Main(m)
}

// known are the differences between the servers that are left, and why. Nothing else may
// differ: reason, code and body of each answer, but for what each server chooses itself
// (uids, versions, times, tokens).
var known = []struct {
	why   string
	match func(difference) bool
}{}

// request is one of a sequence. What it says is the same for both servers, but for uid and
// version: each has its own.
type request struct {
	method, path, contentType, accept string
	query                             url.Values
	body                              any
	of                                string // whose uid and version the body names
	uid, version                      string // "", now, before, never
	where                             string // metadata, preconditions, patch
	next                              bool   // the page after the last answer's
}

func (r request) String() string {
	body, _ := json.Marshal(r.body)
	text := fmt.Sprintf("%s %s?%s %s %s", r.method, r.path, r.query.Encode(), r.contentType, body)
	if r.uid+r.version != "" {
		text += fmt.Sprintf(" (uid %q, version %q in %s)", r.uid, r.version, r.where)
	}
	return text
}

type answer struct {
	code int
	body any
}

func (a answer) String() string {
	body, _ := json.Marshal(a.body)
	return fmt.Sprintf("%d %s", a.code, body)
}

type difference struct {
	request
	real, simulated answer
	at              string // the first field that differs
}

// side is one of the two servers, and what it chose.
type side struct {
	do       func(*http.Request) (*http.Response, error)
	uids     map[string][]string // by path
	versions map[string][]string
	token    string // of the next page
}

func newSide(do func(*http.Request) (*http.Response, error)) *side {
	return &side{do: do, uids: map[string][]string{}, versions: map[string][]string{}}
}

func pick(of []string, which, never string) string {
	switch {
	case which == "now" && len(of) > 0:
		return of[len(of)-1]
	case which == "before" && len(of) > 1:
		return of[len(of)-2]
	}
	return never
}

// send sends a request with this side's own uid and version.
func (s *side) send(t *testing.T, r request) *http.Response {
	t.Helper()
	var body any
	text, err := json.Marshal(r.body)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]any{}
	if r.uid != "" {
		named["uid"] = pick(s.uids[r.of], r.uid, "11111111-2222-3333-4444-555555555555")
	}
	if r.version != "" {
		named["resourceVersion"] = pick(s.versions[r.of], r.version, "1")
	}
	switch object, _ := body.(map[string]any); {
	case len(named) == 0:
	case r.where == "patch":
		var tests []any
		for _, key := range slices.Sorted(maps.Keys(named)) {
			tests = append(tests, map[string]any{"op": "test", "path": "/metadata/" + key, "value": named[key]})
		}
		operations, _ := body.([]any)
		body = slices.Concat(tests, operations)
	default:
		under, _ := object[r.where].(map[string]any)
		if under == nil {
			under = map[string]any{}
		}
		maps.Copy(under, named)
		object[r.where] = under
	}
	query := maps.Clone(r.query)
	if r.next && s.token != "" {
		query.Set("continue", s.token)
	}
	var reader io.Reader = http.NoBody
	if body != nil {
		text, _ = json.Marshal(body)
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(t.Context(), r.method, "https://server"+r.path+"?"+query.Encode(), reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "brine")
	request.Header.Set("Accept", r.accept)
	if r.accept == "" {
		request.Header.Set("Accept", "application/json")
	}
	if body != nil {
		request.Header.Set("Content-Type", r.contentType)
	}
	response, err := s.do(request)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return response
}

func (s *side) ask(t *testing.T, r request) answer {
	t.Helper()
	response := s.send(t, r)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body any
	if json.Unmarshal(text, &body) != nil {
		body = string(text)
	}
	if object, ok := body.(map[string]any); ok && response.StatusCode < 300 && !r.query.Has("dryRun") && object["kind"] != "Status" && object["items"] == nil {
		s.note(r.of, object)
	}
	s.token = ""
	if object, ok := body.(map[string]any); ok {
		metadata, _ := object["metadata"].(map[string]any)
		s.token, _ = metadata["continue"].(string)
	}
	return answer{response.StatusCode, s.plain(body)}
}

// note remembers what the server chose for an object.
func (s *side) note(path string, object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for key, of := range map[string]map[string][]string{"uid": s.uids, "resourceVersion": s.versions} {
		if value, _ := metadata[key].(string); value != "" && !slices.Contains(of[path], value) {
			of[path] = append(of[path], value)
		}
	}
}

var (
	uids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|uid-[0-9]+`)
	versions = regexp.MustCompile(`\(\d+\)`)
	stored   = regexp.MustCompile(`(precondition|object meta): \d+`) // version
	keys     = regexp.MustCompile(`Key: [^,]*,`)                     // in etcd
	suffix   = regexp.MustCompile(`generated-[a-z0-9]{5}\b`)
)

// plain takes out of an answer what each server chooses itself.
func (s *side) plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		plain := map[string]any{}
		if v["kind"] == "CustomResourceDefinition" {
			v = withoutControllers(v)
		}
		for key, value := range v {
			if key == "continue" && value == "" {
				continue
			}
			switch key {
			case "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "continue", "lastTransitionTime", "resourceVersions":
				if value != nil && value != "" {
					value = "chosen"
				}
			}
			plain[key] = s.plain(value)
			if causes, ok := plain[key].([]any); ok && (key == "causes" || key == "managedFields") { // in the order of a map, of times
				slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
		return plain
	case []any:
		plain := make([]any, 0, len(v))
		for _, one := range v {
			if object, ok := one.(map[string]any); ok { // what controllers put into each namespace
				metadata, _ := object["metadata"].(map[string]any)
				if metadata["name"] == "kube-root-ca.crt" || metadata["name"] == "default" {
					continue
				}
			}
			plain = append(plain, s.plain(one))
		}
		return plain
	case string:
		v = versions.ReplaceAllString(uids.ReplaceAllString(v, "UID"), "(VERSION)")
		v = stored.ReplaceAllString(v, "$1: VERSION")
		v = keys.ReplaceAllString(v, "Key: KEY,")
		return suffix.ReplaceAllString(v, "generated-SUFFIX")
	}
	return v
}

// withoutControllers is a CRD without what its controllers write at their own time, and
// without managed fields: the simulated server deduces the types of a CRD's fields.
func withoutControllers(v map[string]any) map[string]any {
	v = maps.Clone(v)
	delete(v, "status")
	if metadata, ok := v["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		v["metadata"] = metadata
	}
	return v
}

// firstDifference is the path of the first field in which two answers differ; "": none.
func firstDifference(a, b any) string {
	x, isX := a.(map[string]any)
	y, isY := b.(map[string]any)
	if isX && isY {
		keys := slices.Collect(maps.Keys(x))
		keys = append(keys, slices.Collect(maps.Keys(y))...)
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			if at := firstDifference(x[key], y[key]); at != "" {
				return "." + key + at
			}
		}
		return ""
	}
	p, isP := a.([]any)
	q, isQ := b.([]any)
	if isP && isQ && len(p) == len(q) {
		for i := range p {
			if at := firstDifference(p[i], q[i]); at != "" {
				return fmt.Sprintf("[%d]%s", i, at)
			}
		}
		return ""
	}
	if reflect.DeepEqual(a, b) {
		return ""
	}
	one, _ := json.Marshal(a)
	two, _ := json.Marshal(b)
	if pair := string(one) + string(two); pair == "[]null" || pair == "null[]" {
		return "" // clients read both as nothing
	}
	return fmt.Sprintf(": real %s, simulated %s", one, two)
}

func compare(r request, real, simulated answer) *difference {
	d := &difference{request: r, real: real, simulated: simulated}
	if real.code != simulated.code {
		d.at = fmt.Sprintf("code %d, simulated %d: ", real.code, simulated.code)
	}
	if d.at += firstDifference(real.body, simulated.body); d.at == "" {
		return nil
	}
	for _, one := range known {
		if one.match(*d) {
			return nil
		}
	}
	return d
}

// The simulated server answers as a real one does, for random sequences of every kind of
// request that brine sends. BRINE_TEST_SEQUENCES=N plays N more, of new seeds.
func TestAnswersAreThoseOfARealServer(t *testing.T) {
	c := clustertest.Shared(t)
	c.Needs(t, 37, "the messages that are compared")
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	if n, _ := strconv.Atoi(os.Getenv("BRINE_TEST_SEQUENCES")); n > 0 {
		for first := uint64(time.Now().Unix()) * 1000; n > 0; n-- {
			seeds = append(seeds, first+uint64(n))
		}
	}
	defineWidgets(t, c)
	requests := 0
	for _, seed := range seeds {
		requests += playBoth(t, c, seed)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d requests in %d sequences", requests, len(seeds))
}

// transport is a real server for requests whose host is none.
func transport(t *testing.T, c *clustertest.Cluster) func(*http.Request) (*http.Response, error) {
	t.Helper()
	config := c.Config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return func(r *http.Request) (*http.Response, error) {
		r.URL.Host, r.URL.Scheme = host.Host, host.Scheme
		return client.Do(r)
	}
}

var widgets = map[string]any{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.differential.example.com"},
	"spec": map[string]any{
		"group": "differential.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	},
}

// gadgets have a schema: fields that are pruned, refused, have defaults, and may not change.
var gadgets = map[string]any{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets.differential.example.com"},
	"spec": map[string]any{
		"group": "differential.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "properties": map[string]any{"spec": map[string]any{
				"type": "object", "required": []any{"size"}, "properties": map[string]any{
					"size":  map[string]any{"type": "integer", "minimum": 0, "maximum": 5},
					"mode":  map[string]any{"type": "string", "enum": []any{"a", "b"}, "default": "a"},
					"fixed": map[string]any{"type": "string", "x-kubernetes-validations": []any{map[string]any{"rule": "self == oldSelf", "message": "fixed may not change"}}},
					"parts": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
					"tags":  map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "x-kubernetes-list-type": "set"},
					"deep":  map[string]any{"type": "object", "properties": map[string]any{"level": map[string]any{"type": "integer", "default": 1}}},
				},
			}},
		}}}},
	},
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// defineWidgets creates the CRDs on the real server, and waits until it serves them.
func defineWidgets(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	real := newSide(transport(t, c))
	for _, crd := range []map[string]any{widgets, gadgets} {
		real.ask(t, request{method: "POST", path: crds, contentType: "application/json", body: crd})
	}
	served := 0
	for range 300 {
		path := "/apis/differential.example.com/v1/" + []string{"widgets", "gadgets"}[served]
		if a := real.ask(t, request{method: "GET", path: path}); a.code != http.StatusOK {
			time.Sleep(100 * time.Millisecond)
		} else if served++; served == 2 {
			return
		}
	}
	t.Fatal("the CRDs are not served")
}

// playBoth plays the sequence of a seed on both servers, and returns how many requests it had.
func playBoth(t *testing.T, c *clustertest.Cluster, seed uint64) int {
	t.Helper()
	namespace := c.Namespace(t)
	real := newSide(transport(t, c))
	server := apiserver.New()
	simulated := newSide(func(r *http.Request) (*http.Response, error) { return server.Serve(r, "brine"), nil })
	simulated.ask(t, request{method: "POST", path: "/api/v1/namespaces", contentType: "application/json", body: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}})
	simulated.ask(t, request{method: "POST", path: crds, contentType: "application/json", body: widgets})
	simulated.ask(t, request{method: "POST", path: crds, contentType: "application/json", body: gadgets})
	for range 3 {
		server.Step()
	}
	server.Served() // a CRD needs no time here
	heldBy := request{method: "POST", path: "/api/v1/namespaces", contentType: "application/json", body: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace + "-held"}}}
	both := func(r request) {
		t.Helper()
		if d := compare(r, real.ask(t, r), simulated.ask(t, r)); d != nil {
			t.Errorf("seed %d: %s\n  %s\n  real %s\n  simulated %s", seed, r, d.at, d.real, d.simulated)
		}
	}
	both(heldBy)
	defer endNamespace(both, namespace+"-held")
	for t.Context().Err() == nil { // its controllers come first
		if real.ask(t, request{method: "GET", path: "/api/v1/namespaces/" + namespace + "/serviceaccounts/default"}).code == 200 &&
			real.ask(t, request{method: "GET", path: "/api/v1/namespaces/" + namespace + "/configmaps/kube-root-ca.crt"}).code == 200 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	g := &generator{rand: rand.New(rand.NewPCG(seed, 25)), namespace: namespace}
	began := map[*side]map[string]string{real: {}, simulated: {}}
	for _, s := range []*side{real, simulated} {
		for _, k := range kinds {
			began[s][k.path(namespace, "")] = s.version(t, k.path(namespace, ""))
		}
	}
	const length = 120
	for i := range length {
		r := g.next()
		if d := compare(r, real.ask(t, r), simulated.ask(t, r)); d != nil {
			t.Errorf("seed %d, request %d: %s\n  %s\n  real %s\n  simulated %s", seed, i, r, d.at, d.real, d.simulated)
		}
	}
	for _, k := range kinds {
		path := k.path(namespace, "")
		last := k.create("the-last", g)
		r := request{method: "POST", path: path, contentType: "application/json", body: last, query: url.Values{}}
		real.ask(t, r)
		simulated.ask(t, r)
		seen, wanted := real.watch(t, path, began[real][path]), simulated.watch(t, path, began[simulated][path])
		if at := firstDifference(seen, wanted); at != "" && len(seen) != len(wanted) {
			t.Errorf("seed %d: watch of %s: %d events, simulated %d", seed, path, len(seen), len(wanted))
		} else if at != "" {
			t.Errorf("seed %d: watch of %s: event %s", seed, path, at)
		}
	}
	return length
}

// endNamespace deletes a namespace in which something has a finalizer: until that goes, nothing
// can be created there.
func endNamespace(both func(request), name string) {
	path := "/api/v1/namespaces/" + name
	object := func(name string, finalizers ...any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "finalizers": finalizers}}
	}
	const plain, merge = "application/json", "application/merge-patch+json"
	both(request{method: "POST", path: path + "/configmaps", contentType: plain, body: object("stays", "example.com/wait")})
	both(request{method: "DELETE", path: path, contentType: plain, body: map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}})
	both(request{method: "POST", path: path + "/configmaps", contentType: plain, body: object("late")})
	both(request{method: "PATCH", path: path + "/configmaps/late?fieldManager=brine", contentType: "application/apply-patch+yaml", body: object("late")})
	both(request{method: "PATCH", path: path + "/configmaps/stays", contentType: merge, body: map[string]any{"metadata": map[string]any{"finalizers": nil}}})
}

func (s *side) version(t *testing.T, path string) string {
	t.Helper()
	response := s.send(t, request{method: "GET", path: path})
	defer response.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Metadata.ResourceVersion
}

// watch returns the events since a version, until that of the object that is created last.
func (s *side) watch(t *testing.T, path, since string) (events []any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server"+path+"?watch=true&resourceVersion="+since, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Type   string
			Object map[string]any
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		metadata, _ := event.Object["metadata"].(map[string]any)
		if metadata["name"] == "the-last" {
			return events
		}
		events = append(events, map[string]any{"type": event.Type, "object": s.plain(event.Object)})
	}
	t.Fatalf("the watch of %s ended: %v", path, lines.Err())
	return nil
}

// Discovery is that of a real server, for each resource that the simulated one has: what is
// said of it, and the order of the versions.
func TestDiscoveryIsThatOfARealServer(t *testing.T) {
	c := clustertest.Shared(t)
	c.Needs(t, 37, "what is compared")
	defineWidgets(t, c)
	real := newSide(transport(t, c))
	server := apiserver.New()
	simulated := newSide(func(r *http.Request) (*http.Response, error) { return server.Serve(r, "brine"), nil })
	simulated.ask(t, request{method: "POST", path: crds, contentType: "application/json", body: widgets})
	simulated.ask(t, request{method: "POST", path: crds, contentType: "application/json", body: gadgets})
	for range 3 {
		server.Step()
	}
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, path := range []string{"/api", "/apis"} {
		r := request{method: "GET", path: path, accept: accept}
		has, says := discovered(real.ask(t, r)), discovered(simulated.ask(t, r))
		for name, resource := range says {
			if at := firstDifference(has[name], resource); at != "" {
				t.Errorf("%s: %s%s", path, name, at)
			}
		}
	}
	for _, path := range []string{"/api/v1", "/apis/apps/v1", "/apis/differential.example.com/v1", "/apis/nowhere.example.com/v1", "/version"} {
		r := request{method: "GET", path: path}
		has, says := real.ask(t, r), simulated.ask(t, r)
		if has.code != says.code {
			t.Errorf("%s: code %d, simulated %d", path, has.code, says.code)
		}
		list, _ := says.body.(map[string]any)
		for _, one := range anySlice(list["resources"]) {
			name := one.(map[string]any)["name"]
			all, _ := has.body.(map[string]any)
			same := slices.ContainsFunc(anySlice(all["resources"]), func(other any) bool {
				return other.(map[string]any)["name"] == name && firstDifference(known37(other), known37(one)) == ""
			})
			if !same {
				t.Errorf("%s: %v is not said as the real server does", path, one)
			}
		}
	}
}

func anySlice(v any) []any {
	all, _ := v.([]any)
	return all
}

// known37 is what the simulated server says of a resource, and brine reads.
func known37(v any) map[string]any {
	all := map[string]any{}
	for _, key := range []string{"name", "kind", "namespaced"} {
		all[key] = v.(map[string]any)[key]
	}
	return all
}

// discovered are the resources that an aggregated answer names, without what brine does not
// read of them.
func discovered(a answer) map[string]any {
	all := map[string]any{}
	body, _ := a.body.(map[string]any)
	for _, group := range anySlice(body["items"]) {
		g, _ := group.(map[string]any)
		metadata, _ := g["metadata"].(map[string]any)
		for i, version := range anySlice(g["versions"]) {
			v, _ := version.(map[string]any)
			name, _ := metadata["name"].(string)
			for _, resource := range anySlice(v["resources"]) {
				r, _ := resource.(map[string]any)
				said := map[string]any{"order": i, "freshness": v["freshness"]}
				for _, key := range []string{"resource", "responseKind", "scope", "verbs", "singularResource"} {
					said[key] = r[key]
				}
				all[fmt.Sprintf("%s %v %v", name, v["version"], r["resource"])] = said
			}
		}
	}
	return all
}
