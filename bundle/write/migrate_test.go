package write_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// gadgets is a CRD with these versions, each "NAME FIELDS": the first is stored.
func gadgets(annotations string, versions ...string) string {
	text := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: "gadgets.{ns}.example.com", annotations: {` + annotations + `}}
spec:
  group: "{ns}.example.com"
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
`
	for i, v := range versions {
		name, fields, _ := strings.Cut(v, " ")
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n", name, i == 0, fields)
	}
	return text
}

func gadget(version, name, spec string) string {
	return "apiVersion: \"{ns}.example.com/" + version + "\"\nkind: Gadget\nmetadata: {name: " + name + ", namespace: \"{ns}\"}\nspec: {" + spec + "}\n"
}

const (
	migrates = "brine.dev/on-stored-version: migrate"
)

// versions of the stored CRD: those it has, the stored one first, and its status.
func versions(s *clitest.Fixture) string {
	s.Helper()
	crd := s.Live("apiextensions.k8s.io/v1/customresourcedefinitions", "", "gadgets."+s.NS+".example.com")
	if crd == nil {
		s.Fatal("there is no CRD")
	}
	var names []string
	all, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range all {
		names = append(names, v.(map[string]any)["name"].(string))
	}
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return fmt.Sprint(names, " stored ", stored)
}

// gadgetry applies the CRD and a Gadget of the bundle, and has two of another client.
func gadgetry(t *testing.T) (s *clitest.Fixture, old func(annotations string) string) {
	t.Helper()
	return gadgetryOn(clitest.New(t))
}

func gadgetryOn(s *clitest.Fixture) (_ *clitest.Fixture, old func(annotations string) string) {
	s.Helper()
	old = func(annotations string) string {
		return clitest.Documents(gadgets(annotations, "v1alpha1 size: {type: integer}, color: {type: string}"), gadget("v1alpha1", "ours", "size: 1, color: red"))
	}
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "gadgets."+s.NS+".example.com")
	s.Apply(old("")).Want(s.TB, 0)
	for _, name := range []string{"theirs", "third"} {
		s.Create(s.NS+".example.com/v1alpha1/gadgets", gadget("v1alpha1", name, "size: 2"))
	}
	return s, old
}

func sizes(s *clitest.Fixture, version string) string {
	s.Helper()
	list, err := s.Resources(s.NS+".example.com/"+version+"/gadgets").Namespace(s.NS).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for _, u := range list.Items {
		size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
		all = append(all, fmt.Sprint(u.GetName(), " ", size))
		ownedIn(s, &u, version)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// ownedIn fails the test unless all fields of an object are owned in one version.
func ownedIn(s *clitest.Fixture, u *unstructured.Unstructured, version string) {
	s.Helper()
	for _, entry := range u.GetManagedFields() {
		if !strings.HasSuffix(entry.APIVersion, "/"+version) {
			s.Errorf("%s has fields that %s owns in %s", u.GetName(), entry.Manager, entry.APIVersion)
		}
	}
	if len(u.GetManagedFields()) == 0 {
		s.Errorf("nobody owns the fields of %s", u.GetName())
	}
}

func newer(annotations string) string {
	return clitest.Documents(gadgets(annotations, "v1 size: {type: integer}"), gadget("v1", "ours", "size: 3"))
}

func TestVersionThatGoesWithItsObjects(t *testing.T) {
	s, old := gadgetry(t)
	const goes = "v1alpha1 goes"
	// Not said what to do: refused before the first write.
	for _, got := range []clitest.Outcome{s.Preview(newer("")), s.Apply(newer(""))} {
		got.Want(t, report.ExitBadBundle).Prints(t, goes, "3 objects may be stored in it", migrates, "--migrate-stored-versions")
	}
	if got := versions(s); got != "[v1alpha1] stored [v1alpha1]" {
		t.Fatal(got)
	}
	preview := s.Preview(newer(migrates)).Want(t, 0)
	if o := preview.Did(t, "CustomResourceDefinition", "gadgets."+s.NS+".example.com", plan.Configured); o.Reason != "v1alpha1 goes; 3 objects to be rewritten in v1" || !strings.Contains(o.Diff, "-  - name: v1alpha1") && !strings.Contains(o.Diff, "v1alpha1") {
		t.Errorf("the preview says %q\n%s", o.Reason, o.Diff)
	}
	if got := versions(s); got != "[v1alpha1] stored [v1alpha1]" {
		t.Fatal(got)
	}
	done := s.Apply(newer(migrates)).Want(t, 0)
	if o := done.Did(t, "CustomResourceDefinition", "gadgets."+s.NS+".example.com", plan.Configured); o.Reason != "3 objects rewritten in v1; v1alpha1 is gone" {
		t.Errorf("the reason is %q", o.Reason)
	}
	if got := versions(s); got != "[v1] stored [v1]" {
		t.Error(got)
	}
	if got := sizes(s, "v1"); got != "ours 3, theirs 2, third 2" {
		t.Error(got)
	}
	s.Apply(newer(migrates)).Want(t, 0).Did(t, "CustomResourceDefinition", "gadgets."+s.NS+".example.com", plan.Unchanged)
	// Back to the older bundle, which has no annotation: that of the live CRD counts.
	s.Apply(old("")).Want(t, 0).Prints(t, "3 objects rewritten in v1alpha1; v1 is gone")
	if got := versions(s); got != "[v1alpha1] stored [v1alpha1]" {
		t.Error(got)
	}
	if got := sizes(s, "v1alpha1"); got != "ours 1, theirs 2, third 2" {
		t.Error(got)
	}
	s.Apply(newer("")).Want(t, report.ExitBadBundle).Prints(t, goes)
	s.Apply(newer(""), "--migrate-stored-versions").Want(t, 0)
	if got := versions(s); got != "[v1] stored [v1]" {
		t.Error(got)
	}
}

// While Kubernetes itself migrates the objects of a CRD, it is left alone.
func TestMigrationOfKubernetesIsWaitedFor(t *testing.T) {
	s, _ := gadgetry(t)
	crds, name := s.Resources("apiextensions.k8s.io/v1/customresourcedefinitions"), "gadgets."+s.NS+".example.com"
	migrating := func(status string) error {
		live, err := crds.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "StorageMigrating" })
		conditions = append(conditions, map[string]any{"type": "StorageMigrating", "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
		_ = unstructured.SetNestedSlice(live.Object, conditions, "status", "conditions")
		_, err = crds.UpdateStatus(context.Background(), live, metav1.UpdateOptions{})
		return err
	}
	if err := migrating("True"); err != nil {
		t.Fatal(err)
	}
	seen, early := make(chan bool), make(chan string, 1)
	s.Before(http.MethodGet, "/"+name, func() { close(seen) })
	go func() {
		defer close(early)
		select {
		case <-seen:
		case <-s.Context().Done():
			return
		}
		time.Sleep(3 * time.Second)
		live, err := crds.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			early <- err.Error()
		} else if list, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions"); len(list) != 1 {
			early <- fmt.Sprintf("the CRD was written: %v", list)
		}
		for migrating("False") != nil { // a conflict
			time.Sleep(10 * time.Millisecond)
		}
	}()
	s.Apply(newer(migrates), "--heartbeat=500ms", "-o=text").Want(t, 0).Prints(t, "waits while Kubernetes migrates its stored objects (StorageMigrating)")
	for why := range early {
		t.Error(why)
	}
	if got := versions(s); got != "[v1] stored [v1]" {
		t.Error(got)
	}
}

// Without an object nobody has to say anything, on the way up and down.
func TestVersionThatGoesWithoutObjects(t *testing.T) {
	s := clitest.New(t)
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "gadgets."+s.NS+".example.com")
	old, next := gadgets("", "v1alpha1 size: {type: integer}"), gadgets("", "v1 size: {type: integer}")
	s.Apply(old).Want(t, 0)
	name := "gadgets." + s.NS + ".example.com"
	if o := s.Preview(next).Want(t, 0).Did(t, "CustomResourceDefinition", name, plan.Configured); o.Reason != "v1alpha1 goes; no object is stored in it, so that it leaves status.storedVersions" {
		t.Errorf("the preview says %q", o.Reason)
	}
	if got := versions(s); got != "[v1alpha1] stored [v1alpha1]" {
		t.Fatal(got)
	}
	s.Apply(next).Want(t, 0).Prints(t, "v1alpha1 is gone; no object was stored in it")
	if got := versions(s); got != "[v1] stored [v1]" {
		t.Error(got)
	}
	s.Apply(old).Want(t, 0)
	// One that comes during the run may be stored in the old version: nothing is taken out.
	p := s.Before(http.MethodPatch, "/customresourcedefinitions/"+name, func() {
		s.Create(s.NS+".example.com/v1alpha1/gadgets", gadget("v1alpha1", "late", "size: 2"))
	})
	s.Apply(next).Want(t, 1).Prints(t, "came during this run", "--migrate-stored-versions")
	if got := versions(s); got != "[v1 v1alpha1] stored [v1alpha1 v1]" || len(p.Writes()) == 0 {
		t.Error(got)
	}
}

func TestFieldsThatTheNewVersionDoesNotHave(t *testing.T) {
	s, _ := gadgetry(t)
	s.Create(s.NS+".example.com/v1alpha1/gadgets", gadget("v1alpha1", "colored", "size: 2, color: blue"))
	s.Apply(newer(migrates)).Want(t, report.ExitBadBundle).Prints(t, "would be lost", s.NS+"/colored spec.color")
	if got := versions(s); got != "[v1alpha1] stored [v1alpha1]" {
		t.Error(got)
	}
}

// Another version becomes the stored one, and the old one is still served.
func TestAnotherStoredVersion(t *testing.T) {
	s, _ := gadgetry(t)
	both := func(annotations string) string {
		fields := " size: {type: integer}, color: {type: string}"
		return clitest.Documents(gadgets(annotations, "v1"+fields, "v1alpha1"+fields), gadget("v1", "ours", "size: 3"))
	}
	s.Apply(both("")).Want(t, 0).Prints(t, "Objects stay stored in v1alpha1")
	if got := versions(s); got != "[v1 v1alpha1] stored [v1alpha1 v1]" {
		t.Error(got)
	}
	s.Apply(both(migrates)).Want(t, 0).Prints(t, "3 objects rewritten in v1")
	if got := versions(s); got != "[v1 v1alpha1] stored [v1]" {
		t.Error(got)
	}
}

// A version that goes, and in which nothing is stored, but in which fields are owned.
func TestVersionThatGoesWithItsOwnership(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{"", migrates} {
		s := clitest.On(t, clustertest.Shared(t))
		fields := " size: {type: integer}"
		s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "gadgets."+s.NS+".example.com")
		s.Apply(clitest.Documents(gadgets(annotation, "v1"+fields, "v1alpha1"+fields), gadget("v1alpha1", "ours", "size: 1"))).Want(t, 0)
		s.Create(s.NS+".example.com/v1alpha1/gadgets", gadget("v1alpha1", "theirs", "size: 2"))
		up := clitest.Documents(gadgets(annotation, "v1"+fields), gadget("v1", "ours", "size: 3"), gadget("v1", "theirs", "size: 3"))
		s.Apply(up, "--force-conflicts").Want(t, 0)
		if got := sizes(s, "v1"); got != "ours 3, theirs 3" {
			t.Error(got)
		}
		// The CRD has lost the version before.
		s.Create(s.NS+".example.com/v1/gadgets", gadget("v1", "late", "size: 2"))
		s.Merge(s.NS+".example.com/v1/gadgets", s.NS, "late", `{"metadata":{"managedFields":[{"manager":"old","operation":"Update","apiVersion":"`+s.NS+`.example.com/v0","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:size":{},"f:gone":{}}}}]}}`)
		up = clitest.Documents(up, gadget("v1", "late", "size: 4"))
		s.Preview(up, "--force-conflicts").Want(t, 0).Did(t, "Gadget", "late", plan.Configured)
		s.Apply(up, "--force-conflicts").Want(t, 0)
		if got := sizes(s, "v1"); got != "late 4, ours 3, theirs 3" {
			t.Error(got)
		}
	}
}

func TestObjectsThatCannotBeListed(t *testing.T) {
	s, _ := gadgetry(t)
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/v1alpha1/gadgets") {
			return clustertest.Action{Status: http.StatusForbidden}
		}
		return clustertest.Action{}
	})
	s.Apply(newer(migrates)).Want(t, report.ExitBadBundle).Prints(t, "cannot be listed")
	if got := versions(s); got != "[v1alpha1] stored [v1alpha1]" {
		t.Error(got)
	}
}

// What is refused at any write of a migration is finished by the next run.
func TestMigrationThatIsRefused(t *testing.T) {
	for n := range 6 {
		t.Run(fmt.Sprintf("write-%d", n+1), func(t *testing.T) {
			s, _ := gadgetry(t)
			direct := s.Kubeconfig
			var mu sync.Mutex
			writes := 0
			s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
				mu.Lock()
				defer mu.Unlock()
				if !r.IsWrite() || !strings.Contains(r.Path, "gadgets") {
					return clustertest.Action{}
				}
				if writes++; writes <= n {
					return clustertest.Action{}
				}
				return clustertest.Action{Status: http.StatusForbidden}
			})
			s.Apply(newer(migrates)).Want(t, report.ExitFailed)
			s.Kubeconfig = direct
			migrated(s)
		})
	}
}

// migrated applies the newer CRD, which ends with every Gadget in v1.
func migrated(s *clitest.Fixture) {
	s.Helper()
	s.Apply(newer(migrates)).Want(s.TB, 0)
	if got := versions(s); got != "[v1] stored [v1]" {
		s.Error(got)
	}
	if got := sizes(s, "v1"); got != "ours 3, theirs 2, third 2" {
		s.Error(got)
	}
}

// So is what a run leaves that is killed at one of its writes.
func TestMigrationKilledAtWrites(t *testing.T) {
	t.Parallel()
	for n := 1; ; n += clitest.Every(3) {
		s, _ := gadgetryOn(clitest.On(t, clustertest.Shared(t)))
		write, more := s.Killed(n, n/3%2 == 0, "apply", "-f", s.File(newer(migrates)), "--inventory", s.Inventory, "-n", s.NS)
		if !more {
			if n < 10 {
				t.Errorf("it has only %d writes", n-1)
			}
			return
		}
		if migrated(s); t.Failed() {
			t.Fatalf("killed at write %d, %s", n, write)
		}
	}
}
