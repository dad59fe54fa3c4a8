package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Discovery: what is served.

// serves says whether the API server that is asked serves a kind yet.
func (s *Server) serves(k Kind) bool {
	return k.Plural != s.Away && (s.Lag == 0 || !k.isCustom() || time.Since(s.since[k]) >= s.Lag)
}

// notServed is how a server answers for what it does not serve: in words of its own where it
// is of a group that it has by itself.
func notServed(r *http.Request, group string) *http.Response {
	if !slices.ContainsFunc(builtIn, func(k Kind) bool { return k.Group == group }) {
		return Answer(r, http.StatusNotFound, "text/plain; charset=utf-8", io.NopCloser(strings.NewReader("404 page not found\n")))
	}
	return answerJSON(r, http.StatusNotFound, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
		Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	})
}

// discover answers for what is served.
func (s *Server) discover(r *http.Request) *http.Response {
	path := strings.Trim(r.URL.Path, "/")
	aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") && !s.Older
	const contentType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	if known := s.found[path]; aggregated && s.Away == "" && s.Lag == 0 && known != nil {
		return Answer(r, http.StatusOK, contentType, io.NopCloser(bytes.NewReader(known)))
	}
	switch {
	case path == "version":
		return answerJSON(r, http.StatusOK, map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.1"})
	case (path == "api" || path == "apis") && aggregated:
		groups := map[string]map[string][]any{} // by group and version
		for _, k := range s.kinds {
			if (k.Group == "") == (path == "api") && s.serves(k) {
				scope := "Cluster"
				if k.Namespaced {
					scope = "Namespaced"
				}
				if groups[k.Group] == nil {
					groups[k.Group] = map[string][]any{}
				}
				groups[k.Group][k.Version] = append(groups[k.Group][k.Version], map[string]any{
					"resource": k.Plural, "responseKind": k.response(), "scope": scope, "singularResource": strings.ToLower(k.Kind), "verbs": k.verbs(),
				})
			}
		}
		var items []any
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			var versions []any
			for _, version := range slices.Backward(slices.Sorted(maps.Keys(groups[group]))) {
				versions = append(versions, map[string]any{"version": version, "freshness": "Current", "resources": groups[group][version]})
			}
			items = append(items, map[string]any{"metadata": map[string]any{"name": group}, "versions": versions})
		}
		text, _ := json.Marshal(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items})
		if s.Away == "" && s.Lag == 0 {
			if s.found == nil {
				s.found = map[string][]byte{}
			}
			s.found[path] = text
		}
		return Answer(r, http.StatusOK, contentType, io.NopCloser(bytes.NewReader(text)))
	}
	switch path {
	case "api":
		return answerJSON(r, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "apis":
		return answerJSON(r, http.StatusOK, s.groups())
	}
	return s.groupVersion(r, path)
}

// groups are what a server before Kubernetes 1.27 answers.
func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	versions := map[string][]metav1.GroupVersionForDiscovery{}
	for _, k := range s.kinds {
		if v := (metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}); k.Group != "" && s.serves(k) && !slices.Contains(versions[k.Group], v) {
			versions[k.Group] = append(versions[k.Group], v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		slices.SortFunc(versions[name], func(a, b metav1.GroupVersionForDiscovery) int { return strings.Compare(b.Version, a.Version) })
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name, Versions: versions[name], PreferredVersion: versions[name][0]})
	}
	return list
}

// verbs come in another order for custom resources. A collection of Namespaces is not deleted.
func (k Kind) verbs() []string {
	switch {
	case k.isCustom():
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	case k.Kind == "Namespace":
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// response is the kind that a resource answers with: the server's own say only its name.
func (k Kind) response() map[string]any {
	if k.isCustom() {
		return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
	}
	return map[string]any{"group": "", "version": "", "kind": k.Kind}
}

func (s *Server) groupVersion(r *http.Request, path string) *http.Response {
	gv, ok := strings.CutPrefix(path, "apis/")
	if !ok {
		gv, _ = strings.CutPrefix(path, "api/")
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for _, k := range s.kinds {
		if k.GroupVersion().String() == gv && s.serves(k) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.Plural, Kind: k.Kind, Namespaced: k.Namespaced, Verbs: k.verbs(), StorageVersionHash: s.storageHash(k)})
		}
	}
	if len(list.APIResources) == 0 {
		return notServed(r, "")
	}
	return answerJSON(r, http.StatusOK, list)
}

// Served lets CRDs be served at once that are not yet.
func (s *Server) Served() { clear(s.fresh) }
