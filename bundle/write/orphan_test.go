package write_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/cmd/brine/clitest"
)

const (
	sets    = "apps/v1/statefulsets"
	claims  = "v1/persistentvolumeclaims"
	pods    = "v1/pods"
	classes = "storage.k8s.io/v1/storageclasses"
)

// storage makes a StorageClass of the fixture's own, and volumes that its claims get.
func storage(s *clitest.Fixture, class string, expandable bool, volumes int) {
	s.Helper()
	class = s.NS + "-" + class
	s.GoneAfter(classes, class)
	s.Create(classes, fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: kubernetes.io/no-provisioner\nallowVolumeExpansion: %v\n", class, expandable))
	for i := range volumes {
		name := class + "-" + strconv.Itoa(i)
		s.GoneAfter("v1/persistentvolumes", name)
		s.Create("v1/persistentvolumes", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: "+name+"}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"+
			"  persistentVolumeReclaimPolicy: Retain\n  storageClassName: "+class+"\n  hostPath: {path: /tmp}\n")
	}
}

// databaseOf is a StatefulSet of two pods with a claim each. more goes into its spec.
func databaseOf(class, size string, more ...string) string {
	text := `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: "{ns}", annotations: {brine.dev/on-immutable: orphan}}
spec:
  serviceName: db
  replicas: 2
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
`
	for _, m := range more {
		text += "  " + m + "\n"
	}
	return text + `  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "{ns}-` + class + `", resources: {requests: {storage: ` + size + `}}}
`
}

// listed are the objects of a resource in the fixture's namespace that have a label.
func listed(s *clitest.Fixture, resource, label string) map[string]*unstructured.Unstructured {
	s.Helper()
	list, err := s.Resources(resource).Namespace(s.NS).List(s.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		s.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		found[list.Items[i].GetName()] = &list.Items[i]
	}
	return found
}

func uidsOf(objects map[string]*unstructured.Unstructured) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all = append(all, name+" "+string(objects[name].GetUID()))
	}
	return strings.Join(all, ", ")
}

// sizesOf are the sizes that the claims of the database ask for.
func sizesOf(s *clitest.Fixture) string {
	s.Helper()
	all := listed(s, claims, "app=db")
	var sizes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		size, _, _ := unstructured.NestedString(all[name].Object, "spec", "resources", "requests", "storage")
		sizes = append(sizes, size)
		if all[name].GetDeletionTimestamp() != nil {
			s.Errorf("claim %s is being deleted", name)
		}
	}
	return strings.Join(sizes, " ")
}

// adopted waits until the pods are the very same as before, and the set's again.
func adopted(s *clitest.Fixture, before string) {
	s.Helper()
	set := s.Live(sets, s.NS, "db")
	s.Eventually("the new StatefulSet adopts the pods", func() bool {
		now := listed(s, pods, "app=db")
		for _, pod := range now {
			if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != set.GetUID() {
				return false
			}
		}
		return len(now) == 2
	})
	if now := uidsOf(listed(s, pods, "app=db")); now != before {
		s.Errorf("the pods are %s; they were %s", now, before)
	}
}

func TestOrphanKeepsPodsAndGrowsClaims(t *testing.T) {
	s := clitest.New(t)
	storage(s, "fast", true, 2)
	s.Apply(databaseOf("fast", "1Gi")).Want(t, 0)
	set, before := s.Live(sets, s.NS, "db"), uidsOf(listed(s, pods, "app=db"))
	want := []plan.Claim{{Name: "data-db-0", From: "1Gi", To: "2Gi"}, {Name: "data-db-1", From: "1Gi", To: "2Gi"}}

	shown := s.Preview(databaseOf("fast", "2Gi")).Want(t, 0).AllVerified(t)
	if o := shown.Did(t, "StatefulSet", "db", plan.Recreated); !slices.Equal(o.Claims, want) {
		t.Errorf("the preview lists %v", o.Claims)
	}
	if risks := shown.Result.Review.Risks; len(risks) != 1 || risks[0].Type != review.Recreated || !strings.Contains(risks[0].Text, "its 2 pods stay, and none restarts") ||
		!slices.Equal(risks[0].Details, []string{"claim data-db-0: 1Gi → 2Gi", "claim data-db-1: 1Gi → 2Gi"}) {
		t.Errorf("the review says %+v", risks)
	}
	s.Preview(databaseOf("fast", "2Gi"), "-o", "text").Want(t, 0).Prints(t, "claim data-db-0: 1Gi → 2Gi", "deleted without its dependents")
	if now := s.Live(sets, s.NS, "db"); now.GetUID() != set.GetUID() || sizesOf(s) != "1Gi 1Gi" {
		t.Errorf("the preview changed something: %s", sizesOf(s))
	}

	did := s.Apply(databaseOf("fast", "2Gi")).Want(t, 0)
	if o := did.Did(t, "StatefulSet", "db", plan.Recreated); !slices.Equal(o.Claims, want) {
		t.Errorf("the result lists %v", o.Claims)
	}
	if s.Live(sets, s.NS, "db").GetUID() == set.GetUID() {
		t.Error("the StatefulSet is the old one")
	}
	adopted(s, before)
	if got := sizesOf(s); got != "2Gi 2Gi" {
		t.Errorf("the claims ask for %s", got)
	}
	s.Apply(databaseOf("fast", "2Gi")).Want(t, 0).Did(t, "StatefulSet", "db", plan.Unchanged)

	// The way back shrinks nothing, and says so.
	s.Apply(databaseOf("fast", "1Gi")).Want(t, 0).Prints(t, "claim data-db-0 keeps its size 2Gi, not 1Gi: a claim never shrinks").Did(t, "StatefulSet", "db", plan.Recreated)
	adopted(s, before)
	if got := sizesOf(s); got != "2Gi 2Gi" {
		t.Errorf("the claims ask for %s", got)
	}

	// A change of the pods is rolled out by the controller.
	changed := strings.Replace(databaseOf("fast", "2Gi"), "image: ", "env: [{name: A, value: b}], image: ", 1)
	shown = s.Preview(changed).Want(t, 0)
	if risks := shown.Result.Review.Risks; len(risks) != 2 || risks[1].Type != review.Restart || risks[1].Pods != 2 || !strings.Contains(risks[0].Text, "its 2 pods stay") || strings.Contains(risks[0].Text, "none") {
		t.Errorf("the review says %+v", risks)
	}
	s.Apply(changed).Want(t, 0)
}

// What refuses the deletion is found before a claim grows, which nothing takes back.
func TestOrphanThatMayNotBeDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		annotation     string
		without, words string
		preview        int
	}{
		"it is kept":                      {"cli-utils.sigs.k8s.io/on-remove: keep, ", "", "it cannot be deleted, to create it again: ", report.ExitFailed},
		"no right to delete StatefulSets": {"", "statefulsets delete", "cannot delete resource", report.ExitUnreachable},
		"no right to patch claims":        {"", "persistentvolumeclaims patch", "cannot patch resource", report.ExitUnreachable},
		"no right to read classes":        {"", "storageclasses get", "whether StorageClass", report.ExitUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			storage(s, "fast", true, 2)
			of := func(size string) string {
				return strings.Replace(databaseOf("fast", size), "brine.dev/on-immutable", test.annotation+"brine.dev/on-immutable", 1)
			}
			s.Apply(of("1Gi")).Want(t, 0)
			set, before := s.Live(sets, s.NS, "db"), uidsOf(listed(s, pods, "app=db"))
			flags := []string{"--as", s.NS}
			clitest.Grant(t, s.Cluster, without(t, clitest.RBAC(t, "-f", s.File(of("1Gi")), "--inventory", s.Inventory, "-n", s.NS, "--role", s.NS, "--user", s.NS), test.without))
			shown := s.Preview(of("2Gi"), flags...).Want(t, test.preview)
			if resource, verb, right := strings.Cut(test.without, " "); right {
				shown.Prints(t, "missing right: "+verb+" "+resource)
			}
			s.Apply(of("2Gi"), flags...).Want(t, report.ExitFailed).Prints(t, test.words, "it is kept as it is").Did(t, "StatefulSet", "db", plan.Failed)
			if now := s.Live(sets, s.NS, "db"); now == nil || now.GetUID() != set.GetUID() || now.GetGeneration() != set.GetGeneration() {
				t.Error("the StatefulSet was changed")
			}
			if got := sizesOf(s); got != "1Gi 1Gi" {
				t.Errorf("the claims ask for %s", got)
			}
			if now := uidsOf(listed(s, pods, "app=db")); now != before {
				t.Errorf("the pods are %s; they were %s", now, before)
			}
			if test.annotation == "" { // nothing was lost
				s.Apply(of("2Gi")).Want(t, 0).Did(t, "StatefulSet", "db", plan.Recreated)
				adopted(s, before)
			}
		})
	}
}

// without is what brine rbac writes, less one right, "RESOURCE VERB".
func without(t *testing.T, roles, right string) string {
	t.Helper()
	resource, verb, given := strings.Cut(right, " ")
	before, rest, found := strings.Cut(roles, "  - "+resource+"\n")
	rule, after, _ := strings.Cut(rest, "- apiGroups:")
	if less := strings.Replace(rule, "  - "+verb+"\n", "  - deletecollection\n", 1); given && found && less != rule {
		return before + "  - " + resource + "\n" + less + "- apiGroups:" + after
	}
	if given {
		t.Fatalf("no right to %s in\n%s", right, roles)
	}
	return roles
}

// The claims grow by a saved plan, too, and a failed run that is rolled back leaves
// them as large as they are, and says so.
func TestOrphanByASavedPlanAndBack(t *testing.T) {
	s := clitest.New(t)
	storage(s, "fast", true, 2)
	s.Apply(databaseOf("fast", "1Gi")).Want(t, 0)
	before := uidsOf(listed(s, pods, "app=db"))
	file := filepath.Join(t.TempDir(), "plan.json")
	s.Preview(databaseOf("fast", "2Gi"), "--plan-out", file).Want(t, 0).Did(t, "StatefulSet", "db", plan.Recreated)
	did := s.Apply(databaseOf("fast", "2Gi"), "--plan", file).Want(t, 0)
	if o := did.Did(t, "StatefulSet", "db", plan.Recreated); len(o.Claims) != 2 || sizesOf(s) != "2Gi 2Gi" {
		t.Errorf("the result lists %v, the claims ask for %s", o.Claims, sizesOf(s))
	}
	adopted(s, before)
	never := clitest.ConfigMap("never", clitest.Annotations("brine.dev/ready-when: 'false'", "brine.dev/failed-when: 'true'"))
	back := s.Apply(clitest.Documents(databaseOf("fast", "3Gi"), never), "--rollback-on-failure").Want(t, report.ExitRolledBack).Result.Rollback
	if back == nil || !slices.ContainsFunc(back.Warnings, func(w string) bool {
		return strings.Contains(w, "claim data-db-1 keeps its size 3Gi, not 2Gi: a claim never shrinks")
	}) {
		t.Errorf("the rollback is %+v", back)
	}
	adopted(s, before)
	if got := sizesOf(s); got != "3Gi 3Gi" {
		t.Errorf("the claims ask for %s", got)
	}
	// An earlier revision that does not allow to recreate it is no way back.
	old := strings.Replace(databaseOf("fast", "2Gi"), "brine.dev/on-immutable: orphan", "a: b", 1)
	s.Apply(old).Want(t, 0)
	s.Apply(databaseOf("fast", "4Gi"), "--rollback-on-failure").Want(t, report.ExitBadBundle).Prints(t, "does not allow to recreate it")
	if got := sizesOf(s); got != "3Gi 3Gi" {
		t.Errorf("the claims ask for %s", got)
	}
}

// A class that does not allow it, and a claim that is not bound, are reported.
func TestOrphanKeepsTheSizesOfOtherClaims(t *testing.T) {
	s := clitest.New(t)
	storage(s, "slow", false, 1)
	s.Apply(databaseOf("slow", "1Gi"), "--wait=applied").Want(t, 0)
	s.Eventually("one claim is bound", func() bool {
		bound := 0
		for _, claim := range listed(s, claims, "app=db") {
			if phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase"); phase == "Bound" {
				bound++
			}
		}
		return bound == 1
	})
	for _, command := range []string{"preview", "apply"} {
		did := s.Run(command, []string{"-f", s.File(databaseOf("slow", "2Gi", "revisionHistoryLimit: 3")), "--wait=applied"}).Want(t, 0)
		text := fmt.Sprint(did.Result.Warnings)
		if !strings.Contains(text, "keeps its size 1Gi, not 2Gi: StorageClass "+s.NS+"-slow does not allow volume expansion") || !strings.Contains(text, "only a bound claim can grow, and it is Pending") {
			t.Errorf("%s warns: %s", command, text)
		}
		if o := did.Did(t, "StatefulSet", "db", plan.Recreated); len(o.Claims) != 2 {
			t.Errorf("%s lists %v", command, o.Claims)
		}
	}
	if got := sizesOf(s); got != "1Gi 1Gi" {
		t.Errorf("the claims ask for %s", got)
	}
}

// The owner references of claims that are deleted with their StatefulSet are gone
// before it is.
func TestOrphanKeepsClaimsThatAreDeletedWithTheirSet(t *testing.T) {
	s := clitest.New(t)
	storage(s, "fast", true, 3)
	policy := "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}"
	owned := func(n int, by *unstructured.Unstructured) func() bool {
		return func() bool {
			found := 0
			for _, claim := range listed(s, claims, "app=db") {
				if slices.ContainsFunc(claim.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == by.GetUID() }) {
					found++
				}
			}
			return found == n
		}
	}
	three := strings.Replace(databaseOf("fast", "1Gi", policy), "replicas: 2", "replicas: 3", 1)
	s.Apply(three).Want(t, 0)
	old := s.Live(sets, s.NS, "db")
	s.Eventually("the StatefulSet owns its claims", owned(3, old))
	s.Apply(databaseOf("fast", "1Gi", policy)).Want(t, 0) // the third claim is of no pod
	s.Eventually("the third pod goes", func() bool { return len(listed(s, pods, "app=db")) == 2 })
	before, data := uidsOf(listed(s, pods, "app=db")), uidsOf(listed(s, claims, "app=db"))
	shown := s.Preview(databaseOf("fast", "2Gi", policy)).Want(t, 0)
	for _, risk := range shown.Result.Review.Risks {
		if risk.Type == review.Data {
			t.Errorf("the review says %+v", risk)
		}
	}
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != http.MethodDelete || !strings.HasSuffix(r.Path, "/statefulsets/db") || r.DryRun {
			return clustertest.Action{}
		}
		return clustertest.Action{Before: func() {
			if !owned(0, old)() {
				t.Error("it is deleted while it owns a claim")
			}
		}}
	})
	s.Apply(databaseOf("fast", "2Gi", policy)).Want(t, 0).Did(t, "StatefulSet", "db", plan.Recreated)
	adopted(s, before)
	if now := uidsOf(listed(s, claims, "app=db")); now != data || sizesOf(s) != "2Gi 2Gi 2Gi" {
		t.Errorf("the claims are %s, they were %s: %s", now, data, sizesOf(s))
	}
	set := s.Live(sets, s.NS, "db")
	if when, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); when != "Delete" {
		t.Errorf("whenDeleted is %s", when)
	}
	s.Eventually("the new StatefulSet owns the claims of its pods", owned(2, set))
	s.Apply(databaseOf("fast", "2Gi", policy)).Want(t, 0).Did(t, "StatefulSet", "db", plan.Unchanged)
}

// What is written before a StatefulSet is deleted stays written where the deletion is refused.
func TestOrphanWhoseDeletionIsRefused(t *testing.T) {
	s := clitest.New(t)
	storage(s, "fast", true, 2)
	kept, dies := "persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}", "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}"
	renamed := func(text string) string { return strings.Replace(text, "serviceName: db", "serviceName: base", 1) }
	for _, c := range []struct {
		is, becomes string
		wrote       bool
	}{
		{databaseOf("fast", "1Gi", kept), databaseOf("fast", "2Gi", kept), true},          // its claims have grown
		{databaseOf("fast", "2Gi", dies), renamed(databaseOf("fast", "2Gi", dies)), true}, // its claims have been kept
		{databaseOf("fast", "2Gi", kept), renamed(databaseOf("fast", "2Gi", kept)), false},
	} {
		direct := s.Kubeconfig
		s.Apply(c.is).Want(t, 0)
		s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/statefulsets/db") && !r.DryRun {
				return clustertest.Action{Status: http.StatusForbidden, Message: "not now"}
			}
			return clustertest.Action{}
		})
		if o := s.Apply(c.becomes).Want(t, 1).Prints(t, "not now").Did(t, "StatefulSet", "db", plan.Failed); o.Unknown != c.wrote {
			t.Errorf("unknown is %t, not %t: %s", o.Unknown, c.wrote, o.Error)
		}
		s.Kubeconfig = direct
	}
}

// Whatever the kind, its dependents are adopted.
func TestOrphanOfOtherWorkloads(t *testing.T) {
	s := clitest.New(t)
	const selector, wider = "selector: {matchLabels: {app: web}}", "selector: {matchExpressions: [{key: app, operator: In, values: [web, shop]}]}"
	web := clitest.Deployment("web", 2, "1m")
	daemon := strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "  replicas: 1\n", "", "web", "agent").Replace(clitest.Deployment("web", 1, "1m"))
	both := clitest.Documents(web, daemon)
	s.Apply(both).Want(t, 0)
	before, agents := uidsOf(listed(s, pods, "app=web")), uidsOf(listed(s, pods, "app=agent"))
	change := strings.NewReplacer(selector, wider, strings.ReplaceAll(selector, "web", "agent"), strings.ReplaceAll(wider, "web", "agent")).Replace(both)
	s.Apply(change).Want(t, 1).Prints(t, "brine.dev/on-immutable: recreate (or orphan")
	s.Apply(change, "--recreate=Deployment:orphan,DaemonSet.apps:orphan").Want(t, 0).Did(t, "Deployment", "web", plan.Recreated)
	if now := uidsOf(listed(s, pods, "app=web")); now != before {
		t.Errorf("the pods are %s; they were %s", now, before)
	}
	if now := uidsOf(listed(s, pods, "app=agent")); now != agents {
		t.Errorf("the pods are %s; they were %s", now, agents)
	}
	away := strings.ReplaceAll(change, "values: [web, shop]", "values: [shop]")
	away = strings.Replace(away, "metadata: {labels: {app: web}}", "metadata: {labels: {app: shop}}", 1)
	s.Apply(away, "--recreate=*:orphan").Want(t, 1).Prints(t, "its selector changes", "it is kept as it is").Did(t, "Deployment", "web", plan.Failed)
	if now := uidsOf(listed(s, pods, "app=web")); now != before {
		t.Errorf("the pods are %s; they were %s", now, before)
	}
	s.Apply(change, "--recreate=Deployment:orphn").Want(t, report.ExitBadBundle).Prints(t, `--recreate: "Deployment:orphn": use KIND or KIND:orphan`)
}

// What an autoscaler made of it stays, and so do its pods.
func TestOrphanKeepsReplicasOfOthers(t *testing.T) {
	s := clitest.New(t)
	const selector, wider = "selector: {matchLabels: {app: web}}", "selector: {matchExpressions: [{key: app, operator: In, values: [web, shop]}]}"
	web := clitest.Deployment("web", 1, "1m", clitest.Annotations("brine.dev/on-immutable: orphan", "brine.dev/ignore-fields: /spec/replicas"))
	s.Apply(web).Want(t, 0)
	s.PatchAs("kube-controller-manager", "apps/v1/deployments", "web", `{"spec":{"replicas":3}}`)
	s.Eventually("there are three pods", func() bool { return len(listed(s, pods, "app=web")) == 3 })
	before := uidsOf(listed(s, pods, "app=web"))
	change := strings.Replace(web, selector, wider, 1)
	if o := s.Preview(change).Want(t, 0).Did(t, "Deployment", "web", plan.Recreated); strings.Contains(o.Diff, "-  replicas") {
		t.Errorf("the preview changes the replicas:\n%s", o.Diff)
	}
	s.Apply(change).Want(t, 0).Did(t, "Deployment", "web", plan.Recreated)
	if now := uidsOf(listed(s, pods, "app=web")); now != before {
		t.Errorf("the pods are %s; they were %s", now, before)
	}
	s.Apply(change).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
}

// A run that is killed at any write is repeated: no pod is lost, the claims grow.
func TestOrphanKilledAtAnyWrite(t *testing.T) {
	s := clitest.New(t)
	storage(s, "fast", true, 2)
	of := func(size int) string {
		return databaseOf("fast", strconv.Itoa(size)+"Gi", "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}")
	}
	s.Apply(of(1)).Want(t, 0)
	before, data := uidsOf(listed(s, pods, "app=db")), uidsOf(listed(s, claims, "app=db"))
	about := func(r clustertest.Request) bool {
		return strings.Contains(r.Path, "/statefulsets") || strings.Contains(r.Path, "/persistentvolumeclaims")
	}
	size := 1
	for n, more := 1, true; more; n++ {
		for _, after := range []bool{false, true} {
			size++
			var where string
			where, more = s.KilledAbout(about, n, after, "apply", "-f", s.File(of(size)), "--inventory", s.Inventory, "--timeout=60s")
			t.Logf("killed at %q, acted on: %v", where, after)
			s.Apply(of(size)).Want(t, 0)
			adopted(s, before)
			if now, want := uidsOf(listed(s, claims, "app=db")), fmt.Sprintf("%dGi %dGi", size, size); now != data || sizesOf(s) != want {
				t.Fatalf("the claims are %s, they were %s; they ask for %s, want %s", now, data, sizesOf(s), want)
			}
		}
		if !more && n < 7 {
			t.Errorf("there were %d writes", n-1)
		}
	}
}
