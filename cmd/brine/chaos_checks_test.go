package main_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
)

// unharmed fails the test if what was not ours to change was changed.
func (tr *trial) unharmed(t testing.TB, when string) {
	t.Helper()
	d := tr.deed
	if d == nil || d.theirs == nil {
		return
	}
	now, err := readLive(tr.Fixture, d.theirs)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	gone := err != nil || now.GetUID() != d.theirs.content.GetUID() || now.GetDeletionTimestamp() != nil
	switch {
	case d.edited != nil:
		if gone {
			return // it was still ours to delete
		}
		if value, _, _ := unstructured.NestedFieldNoCopy(now.Object, d.edited...); fmt.Sprint(value) != d.value {
			t.Errorf("%s: %s: what somebody set is %v now", when, d.what, value)
		}
	case gone && !tr.tooLate(d.theirs):
		t.Errorf("%s: %s: it was deleted", when, d.what)
	case !gone && !d.kept && essence(now) != essence(d.theirs.content):
		t.Errorf("%s: %s: it was changed:\n%s\n%s", when, d.what, essence(d.theirs.content), essence(now))
	}
}

// essence is an object without what controllers write.
func essence(u *unstructured.Unstructured) string {
	u = u.DeepCopy()
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
	u.SetAnnotations(annotations)
	text, err := u.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// tooLate says whether an object went with its namespace or its CRD though
// everything was done right: what they hold was listed once more while the plan
// was carried out, the object came, or changed hands, after that, and no
// precondition of a DELETE can name what a namespace or a CRD holds.
func (tr *trial) tooLate(o *target) bool {
	requests, acted := tr.proxy.Requests(), int(tr.acted.Load())
	plural := o.resource[strings.LastIndexByte(o.resource, '/')+1:]
	holders := []string{"/api/v1/namespaces/" + o.namespace()}
	if group, _, _ := strings.Cut(o.resource, "/"); strings.Contains(group, ".example.com") {
		holders = append(holders, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+plural+"."+strings.ReplaceAll(group, "{ns}", tr.NS))
	}
	locked, listed := 0, 0
	for i, r := range requests {
		switch {
		case r.IsWrite() && strings.Contains(r.Path, "/leases") && locked == 0:
			locked = i + 1
		case isList(r, plural, o.namespace()):
			listed = i + 1
		case r.Method == http.MethodDelete && !r.DryRun && slices.Contains(holders, r.Path):
			if i+1 < acted || listed <= acted && locked > 0 && listed > locked {
				return true
			}
		}
	}
	return false
}

func isList(r clustertest.Request, plural, namespace string) bool {
	return r.Method == http.MethodGet && !r.Query.Has("watch") && !r.Query.Has("labelSelector") && strings.HasSuffix(r.Path, "/"+plural) &&
		(!strings.Contains(r.Path, "/namespaces/") || strings.Contains(r.Path, "/namespaces/"+namespace+"/"))
}

// ends fails the test unless the cluster is what the bundle says, beside what
// the second actor has a say in.
func (tr *trial) ends(t testing.TB, when string) {
	t.Helper()
	owned := ours(tr.Fixture)
	wanted := map[string]bool{}
	if tr.command.want != "" {
		for _, o := range objectsOf(tr.Fixture, tr.command.want) {
			wanted[o.String()] = true
		}
	}
	var theirs *target
	if tr.deed != nil {
		theirs = tr.deed.theirs
	}
	for name := range wanted {
		if owned[name] == nil && (theirs == nil || theirs.String() != name) {
			t.Errorf("%s: %s is not there, or not ours", when, name)
		}
	}
	for name, o := range owned {
		switch {
		case wanted[name], theirs != nil && tr.deed.edited == nil && tr.holds(o, theirs):
		case tr.deed != nil && tr.deed.lostInventory:
		default:
			t.Errorf("%s: %s is still there", when, name)
		}
	}
}

// holds says whether an object is another, or the namespace or CRD that it is in.
func (tr *trial) holds(o, other *target) bool {
	switch o.content.GetKind() {
	case "Namespace":
		return o.name() == other.namespace() || o.name() == other.name()
	case "CustomResourceDefinition":
		return strings.HasPrefix(o.name(), strings.ToLower(other.content.GetKind())+"s.") || o.name() == other.name()
	}
	return o.String() == other.String()
}
