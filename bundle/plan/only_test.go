package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/order"
	"brine/inventory"
)

func TestChoose(t *testing.T) {
	made := func(gk schema.GroupKind, namespace, name, file, sls, dependsOn string) *bundle.Object {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(gk.WithVersion("v1"))
		u.SetName(name)
		u.SetNamespace(namespace)
		u.SetLabels(map[string]string{"app": name})
		if dependsOn != "" {
			u.SetAnnotations(map[string]string{bundle.DependsOn: dependsOn})
		}
		return &bundle.Object{ID: bundle.ID{GroupKind: gk, Namespace: namespace, Name: name}, GVK: gk.WithVersion("v1"), Content: u, Source: bundle.Source{File: file, SLS: sls}}
	}
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	g, problems := order.Build([]*bundle.Object{
		made(bundle.ConfigMapKind, "shop", "web", "/srv/shop/web.yaml", "shop.web", "/namespaces/shop/ConfigMap/base"),
		made(deployment, "shop", "web", "/srv/shop/web.yaml", "shop.web", ""),
		made(bundle.ConfigMapKind, "shop", "base", "/srv/shop/base.yaml", "shop.base", ""),
		made(bundle.NamespaceKind, "", "other", "/srv/other.yaml", "", ""),
	}, order.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, test := range []struct {
		only  string
		needs bool
		want  string
	}{
		{"app=web", false, "ConfigMap shop/web, Deployment.apps shop/web"},
		{"app notin (web, base)", false, "Namespace other"},
		{"ConfigMap/web", false, "ConfigMap shop/web"},
		{"configmap/shop/*", false, "ConfigMap shop/base, ConfigMap shop/web"},
		{"Deployment.apps/*", false, "Deployment.apps shop/web"},
		{"*/shop/web", false, "ConfigMap shop/web, Deployment.apps shop/web"},
		{"ConfigMap/web", true, "ConfigMap shop/base, ConfigMap shop/web"},
		{"shop/base.yaml", false, "ConfigMap shop/base"},
		{"./shop/base.yaml", false, "ConfigMap shop/base"},
		{"/srv/shop", false, "ConfigMap shop/base, ConfigMap shop/web, Deployment.apps shop/web"},
		{"shop.*", false, "ConfigMap shop/base, ConfigMap shop/web, Deployment.apps shop/web"},
		{"shop.base", false, "ConfigMap shop/base"},
		{"Namespace/other", false, "Namespace other"},
		{"Namespace/x/other", false, ""},
		{"web.yml", false, ""},
		{"app==", false, ""},
		{"", false, ""},
		{"a=b=c", false, ""},
	} {
		chosen, problems := Choose(g, []string{test.only}, test.needs)
		var names []string
		for o := range chosen {
			names = append(names, bundle.Name(o.ID))
		}
		slices.Sort(names)
		if got := strings.Join(names, ", "); got != test.want || (got == "") != (len(problems) > 0) {
			t.Errorf("%q selects %q, want %q: %v", test.only, got, test.want, problems)
		}
	}
}

// A partial run that makes a namespace again makes all forget what Jobs have done there.
func TestForgottenWithItsNamespace(t *testing.T) {
	job, elsewhere, ns := bundle.ID{GroupKind: bundle.JobKind, Namespace: "shop", Name: "once"}, bundle.ID{GroupKind: bundle.JobKind, Namespace: "b", Name: "once"}, bundle.ID{GroupKind: bundle.NamespaceKind, Name: "shop"}
	fingerprints := map[bundle.ID]inventory.Fingerprint{job: {Completed: "x"}, elsewhere: {Completed: "x"}, ns: {UID: "old"}}
	live := bundletest.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: new}}")
	for _, s := range []*Step{{ID: ns, Object: &bundle.Object{}}, {ID: ns, Object: &bundle.Object{}, Live: live}} {
		left, found := (&Plan{Steps: []*Step{s}}).Forgotten(fingerprints)
		if !found || left[job].Completed != "" || left[elsewhere].Completed != "x" {
			t.Errorf("%v: %v", s.Live, left)
		}
	}
	live.SetUID("old")
	for _, s := range []*Step{{ID: ns, Object: &bundle.Object{}, Live: live}, {ID: ns, Object: &bundle.Object{}, Unread: errors.New("no answer")}} {
		if _, found := (&Plan{Steps: []*Step{s}}).Forgotten(fingerprints); found {
			t.Errorf("%v: forgotten", s)
		}
	}
}
