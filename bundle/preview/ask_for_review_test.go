package preview_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/cmd/brine/clitest"
)

// risks are those of a preview, as "type Kind name: text".
func risks(t testing.TB, o clitest.Outcome) []string {
	t.Helper()
	if o.Result == nil || o.Result.Review == nil {
		t.Fatalf("no review:\n%s\n%s", o.Stderr, clitest.Clip(o.Stdout))
	}
	var found []string
	for _, r := range o.Result.Review.Risks {
		text := string(r.Type) + " " + r.Objects[0].Kind + " " + r.Objects[0].Name + ": " + r.Text
		found = append(found, strings.Join(append([]string{text}, r.Details...), "; "))
	}
	return found
}

// A preview names first what is dangerous, as the cluster itself says it: pods that
// restart and their PodDisruptionBudgets, resources that go with their CRD.
func TestReviewOfAnUpgrade(t *testing.T) {
	s := clitest.New(t)
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: '{ns}'}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"
	before := clitest.Documents(clitest.Deployment("web", 1, "1m"), clitest.ConfigMap("settings"), budget, clitest.Widgets, clitest.Widget)
	s.Apply(before).Want(t, 0)
	s.Eventually("the budget is observed", func() bool {
		u := s.Live("policy/v1/poddisruptionbudgets", s.NS, "web")
		healthy, _, _ := unstructured.NestedInt64(u.Object, "status", "currentHealthy")
		return healthy == 1
	})
	after := clitest.Documents(strings.Replace(clitest.Deployment("web", 1, "1m"), "1m", "2m", 1), clitest.ConfigMap("settings"), budget)

	p := s.Proxied()
	got := s.Preview(after, "--force-namespaces").Want(t, 0)
	want := []string{
		"data CustomResourceDefinition widgets." + s.NS + ".example.com: the kind Widget is deleted with all its resources: 1 resource",
		"restart Deployment web: its only pod restarts; the new one has to be ready first (container c: resources); PodDisruptionBudget web allows no disruption now (minAvailable 1): a rollout does not ask it, a drain of a node does",
	}
	if found := risks(t, got); !slices.Equal(found, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	var asked []string
	for _, r := range p.Requests() {
		if r.Method == http.MethodGet && (strings.HasSuffix(r.Path, "/poddisruptionbudgets") && !r.Query.Has("labelSelector") || strings.HasSuffix(r.Path, "/widgets")) {
			asked = append(asked, r.Path)
		}
	}
	if len(asked) != 2 {
		t.Errorf("the review asked %q", asked)
	}
	for _, w := range p.Writes() {
		if !w.Query.Has("dryRun") {
			t.Errorf("it wrote: %s %s", w.Method, w.Path)
		}
	}
	s.Preview(after, "--force-namespaces", "-o", "text").Want(t, 0).Prints(t, "Dangerous:", "Data is deleted: 1 object", "Pods restart: 1 object, 1 pod",
		"Deployment "+s.NS+"/web: its only pod restarts")
	s.Preview(after, "--force-namespaces", "-o", "html").Want(t, 0).Prints(t, `id="dangerous"`, "the kind Widget is deleted")
	// Nothing dangerous asks nothing.
	quiet := strings.Replace(before, "key: value", "key: other", 1)
	first := len(p.Requests())
	if found := risks(t, s.Preview(quiet).Want(t, 0)); len(found) > 0 {
		t.Errorf("dangerous: %q", found)
	}
	for _, r := range p.Requests()[first:] {
		if strings.HasSuffix(r.Path, "/poddisruptionbudgets") && !r.Query.Has("labelSelector") {
			t.Errorf("the review asked %s", r.Path)
		}
	}
}

// What may not be read is unknown, and not absent.
func TestReviewWithoutRights(t *testing.T) {
	s := clitest.New(t)
	bundleText := clitest.Deployment("web", 1, "1m")
	s.Apply(bundleText).Want(t, 0)
	file := s.File(bundleText)
	text := clitest.RBAC(t, "-f", file, "--inventory", s.Inventory, "--role", s.NS+"-deployer", "--service-account", s.NS+"/deployer")
	clitest.Grant(t, s.Cluster, strings.ReplaceAll(text, "poddisruptionbudgets", "others"))
	var got clitest.Outcome
	s.Everywhere("the rights are known to the server", func() bool {
		got = s.Preview(strings.Replace(bundleText, "1m", "2m", 1), "--as", "system:serviceaccount:"+s.NS+":deployer")
		return got.Exit == 0
	})
	want := "its PodDisruptionBudgets are unknown: no right to list poddisruptionbudgets.policy"
	if found := risks(t, got); len(found) != 1 || !strings.Contains(found[0], want) {
		t.Errorf("got %q, want %q", found, want)
	}
}

// Pods that name what is neither in the bundle nor on the cluster are dangerous. What is
// asked is bounded: a GET of each of a few names of a kind, one LIST of more.
func TestPodsThatNameWhatIsNotThere(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("there")).Want(t, 0)
	pod := "      nodeSelector: {example.com/none: such}\n      priorityClassName: none-such\n      serviceAccountName: own\n      volumes:\n" +
		"      - {name: a, configMap: {name: there}}\n      - {name: b, configMap: {name: gone}}\n      - {name: c, secret: {secretName: perhaps, optional: true}}\n" +
		"      - {name: d, persistentVolumeClaim: {claimName: data}}\n"
	for i := range 4 {
		pod += fmt.Sprintf("      - {name: s%d, secret: {secretName: key-%d}}\n", i, i)
	}
	after := clitest.Documents(clitest.ConfigMap("there"), clitest.ServiceAccount("own"), strings.Replace(clitest.Deployment("web", 2, "1m"), "      containers:\n", pod+"      containers:\n", 1))
	p := s.Proxied()
	got := s.Preview(after).Want(t, 0)
	want := []string{
		"missing Deployment web: its pods are refused: PriorityClass none-such (neither in the bundle nor on the cluster)",
		"missing Deployment web: its pods do not start: ConfigMap gone, Secret key-0, Secret key-1, Secret key-2, Secret key-3 (neither in the bundle nor on the cluster)",
		"missing Deployment web: its pods stay Pending: PersistentVolumeClaim data (neither in the bundle nor on the cluster)",
		"missing Deployment web: its pods stay Pending: no node has the labels of its nodeSelector (example.com/none=such)",
	}
	wantRisks(t, got, want)
	if place := regexp.MustCompile(`ConfigMap gone: spec\.template\.spec\.volumes\[1\]\.configMap\.name \([^ ]+\.yaml:\d+\)`); !place.MatchString(got.Stdout) {
		t.Errorf("no %s", place)
	}
	var asked []string
	for _, r := range p.Requests() {
		if r.Method == http.MethodGet && regexp.MustCompile(`/(nodes|secrets|configmaps/gone|persistentvolumeclaims|priorityclasses)(/[^/]*)?$`).MatchString(r.Path) && !r.Query.Has("labelSelector") && !strings.Contains(r.Path, "-revision-") {
			asked = append(asked, r.Path[strings.LastIndex(r.Path, "/")+1:])
		}
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"data", "gone", "nodes", "none-such", "secrets"}) {
		t.Errorf("the review asked %q", asked)
	}
	if starts := got.Result.Review.Starts; len(starts) != 1 || starts[0].Pods != 2 || starts[0].Object.Name != "web" {
		t.Errorf("new pods: %+v", starts)
	}
	s.Preview(after, "-o", "text").Want(t, 0).Prints(t, "Pods name what is missing: 1 object\n", "Pods: 2 are new", "New pods: 1 workload, 2 pods:\n  Deployment "+s.NS+"/web: 2 pods",
		"Checked, nothing found:\n  deleted data, deleted workloads and Services, recreated objects, restarting pods, ", "dry run, nothing was written: ")
	// Without the right to read them nothing is said to be missing.
	file := s.File(after)
	text := clitest.RBAC(t, "-f", file, "--inventory", s.Inventory, "--role", s.NS+"-deployer", "--service-account", s.NS+"/deployer")
	clitest.Grant(t, s.Cluster, text)
	s.Everywhere("the rights are known to the server", func() bool {
		got = s.Preview(after, "--as", "system:serviceaccount:"+s.NS+":deployer")
		return got.Exit == 0
	})
	r := got.Result.Review
	if !slices.ContainsFunc(r.Unchecked, func(u review.Unchecked) bool {
		return strings.Contains(u.What, "PriorityClass none-such") && strings.Contains(u.Why, "no right to get priorityclasses")
	}) || slices.Contains(r.Clear, review.Missing) {
		t.Errorf("not checked: %+v; clear: %q", r.Unchecked, r.Clear)
	}
}

// A ConfigMap or Secret that lacks the key that pods name is like one that is not there.
// It is read at most once, and no value is shown.
func TestPodsThatNameKeysThatAreNotThere(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: {ns}}\nstringData: {user: hidden-user, ca: hidden-ca}\n")
	s.Apply(clitest.Documents(clitest.ConfigMapOf("ours", "{level: high, file: a}"), clitest.ConfigMapOf("same", "{level: high}"))).Want(t, 0)
	pod := "      volumes:\n      - {name: a, secret: {secretName: theirs, items: [{key: ca, path: a}, {key: crt, path: b}]}}\n      - {name: b, configMap: {name: ours, items: [{key: file, path: a}]}}\n"
	env := "env: [{name: A, valueFrom: {secretKeyRef: {name: theirs, key: user}}}, {name: B, valueFrom: {secretKeyRef: {name: theirs, key: password}}}," +
		" {name: C, valueFrom: {configMapKeyRef: {name: same, key: level}}}, {name: D, valueFrom: {configMapKeyRef: {name: ours, key: none, optional: true}}}], image: "
	web := strings.NewReplacer("      containers:\n", pod+"      containers:\n", "image: ", env).Replace(clitest.Deployment("web", 1, "1m"))
	after := clitest.Documents(clitest.ConfigMapOf("ours", "{level: low}"), clitest.ConfigMapOf("same", "{level: high}"), web)
	p := s.Proxied()
	got := s.Preview(after).Want(t, 0)
	want := []string{
		"missing Deployment web: its pods do not start: key crt of Secret theirs, key password of Secret theirs (it has no such key on the cluster)",
		"missing Deployment web: its pods do not start: key file of ConfigMap ours (deleted by this run)",
	}
	wantRisks(t, got, want)
	reads := slices.DeleteFunc(p.Requests(), func(r clustertest.Request) bool { return !strings.HasSuffix(r.Path, "/secrets/theirs") })
	if len(reads) != 1 || strings.Contains(got.Stdout+got.Stderr, "hidden") {
		t.Errorf("it was read %d times, or a value was printed:\n%s", len(reads), clitest.Clip(strings.ReplaceAll(got.Stdout, "hidden", "(a value)")))
	}
}

// Long changes are shown in short: a CRD's by its fields, an object's that is new by
// its parts, a file's in a ConfigMap line by line. With -v they are shown whole.
func TestPreviewInShort(t *testing.T) {
	s := clitest.New(t)
	pumps := clitest.PumpCRD
	s.Apply(clitest.Documents(pumps, clitest.ConfigMapOf("file", `{app.conf: "a = 1 \nb = 2\nc = 3\n"}`))).Want(t, 0)
	next := clitest.Documents(strings.Replace(pumps, "limit: {type: integer}", "limit: {type: integer}\n              unit: {type: string}", 1),
		clitest.ConfigMapOf("file", `{app.conf: "a = 1 \nb = 3\nc = 3\n"}`), clitest.Deployment("web", 1, "1m"))
	s.Preview(next, "-o", "text").Want(t, 0).Prints(t, "1 field added\n", "+ v1 spec.unit: added (string)",
		"@@ data[\"app.conf\"] @@\n    @@ -1,3 +1,3 @@\n     a = 1 \n    -b = 2\n    +b = 3\n     c = 3\n",
		"spec.selector (", "-v or -o json show all of it")
	whole := s.Preview(next, "-o", "text", "-v").Want(t, 0).Prints(t, "unit:", "image: registry.k8s.io/pause:3.10")
	if strings.Contains(whole.Stdout, "1 field added") {
		t.Errorf("-v shows fields:\n%s", whole.Stdout)
	}
	got := s.Preview(next).Want(t, 0)
	if o := got.Object(t, "CustomResourceDefinition", "pumps."+s.NS+".example.com"); o.Schema == nil || len(o.Schema.Fields) != 1 || o.Schema.Fields[0].Field != "spec.unit" {
		t.Errorf("the fields are %+v", o.Schema)
	}
}

// The upgrade of a real platform: its objects are on a cluster, and the preview of
// the next release names what a reviewer asks.
func TestReviewOfARealPlatform(t *testing.T) {
	before, after := clitest.RealBundle(t, "metalk8s-old"), clitest.RealBundle(t, "metalk8s-new")
	c := clustertest.New(t)
	brine := func(args ...string) clitest.Outcome {
		return clitest.Run(t, c.Kubeconfig, append(args, "--inventory", "kube-system/metalk8s")...)
	}
	brine("apply", "-f", before, "--wait=applied").Want(t, 0)
	got := brine("preview", "-f", after).Want(t, 0)
	r := got.Result.Review
	named := func(kind review.Type) (names []string) {
		for _, risk := range r.Risks {
			for _, o := range risk.Objects {
				if risk.Type == kind {
					names = append(names, bundle.Name(o.ID()))
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	for kind, want := range map[review.Type][]string{
		review.Data:    nil,
		review.Deleted: {"Deployment.apps metalk8s-ingress/ingress-nginx-defaultbackend", "Service metalk8s-ingress/ingress-nginx-defaultbackend", "ServiceAccount metalk8s-ingress/ingress-nginx-backend"},
		review.Restart: {
			"DaemonSet.apps metalk8s-ingress/ingress-nginx-control-plane-controller", "DaemonSet.apps metalk8s-ingress/ingress-nginx-controller",
			"DaemonSet.apps metalk8s-logging/fluent-bit", "Deployment.apps metalk8s-auth/dex", "StatefulSet.apps metalk8s-logging/loki",
		},
		review.Missing: {"DaemonSet.apps metalk8s-ingress/ingress-nginx-controller", "DaemonSet.apps metalk8s-logging/fluent-bit", "Deployment.apps metalk8s-auth/dex", "StatefulSet.apps metalk8s-logging/loki"},
		review.Webhook: {"MutatingWebhookConfiguration.admissionregistration.k8s.io cert-manager-webhook", "ValidatingWebhookConfiguration.admissionregistration.k8s.io cert-manager-webhook"},
	} {
		if found := named(kind); !slices.Equal(found, want) {
			t.Errorf("%s: %q, want %q", kind, found, want)
		}
	}
	// Every binding that is new widens somebody's rights.
	for _, o := range got.Result.Objects {
		if o.Action == plan.Created && strings.HasSuffix(o.Kind, "Binding") && !slices.Contains(named(review.Rights), bundle.Name(o.ID())) {
			t.Errorf("%s is not among the rights that widen", bundle.Name(o.ID()))
		}
	}
	var severe []string
	for _, risk := range r.Risks {
		if risk.Severe {
			severe = append(severe, risk.Subject)
		}
	}
	if slices.Sort(severe); !slices.Equal(severe, []string{"ServiceAccount metalk8s-certs/cert-manager", "ServiceAccount metalk8s-certs/cert-manager-cainjector", "ServiceAccount metalk8s-logging/loki"}) {
		t.Errorf("dangerous rights: %q", severe)
	}
	counted := r.Unversioned
	for _, v := range r.Versions {
		counted += v.Objects
	}
	if all := got.Result.Summary.Created + got.Result.Summary.Configured + got.Result.Summary.Pruned; counted != all || len(r.Starts) != 3 {
		t.Errorf("the versions count %d of %d objects; new pods: %+v", counted, all, r.Starts)
	}
	changed := 0
	for _, s := range r.Same {
		if s.Labels {
			changed += len(s.Objects)
		}
	}
	if changed != 36 || len(r.Images) != 9 || len(r.Versions) != 5 {
		t.Errorf("%d objects change in their versions alone, %d images, %d versions", changed, len(r.Images), len(r.Versions))
	}
	text := brine("preview", "-f", after, "-o", "text").Want(t, 0)
	text.Prints(t, "registry.local/metalk8s/dex v2.37.0 → v2.40.0: Deployment metalk8s-auth/dex",
		"an argument of its pods names what is missing: Service metalk8s-ui/metalk8s-ui (neither in the bundle nor on the cluster)\n",
		"container controller: args --default-backend-service $(POD_NAMESPACE)/ingress-nginx-defaultbackend → metalk8s-ui/metalk8s-ui",
		"DaemonSet metalk8s-ingress/ingress-nginx-controller names it now, no longer after the change (container controller: argument --default-backend-service)\n",
		"ingress-nginx: chart 4.7.1 → 4.10.3, version 1.8.1 → 1.10.3 (24 objects)",
		"19 objects: only app.kubernetes.io/version 1.8.1 → 1.10.3, helm.sh/chart ingress-nginx-4.7.1 → ingress-nginx-4.10.3")
	if strings.Contains(text.Stdout, "owning-inventory") || strings.Contains(text.Stdout, "applyset.kubernetes.io") {
		t.Error("the diffs show ownership metadata")
	}
	// The page stays small: its size, and how many elements a browser makes of it before
	// anything is opened.
	page := brine("preview", "-f", after, "-o", "html").Want(t, 0).Stdout
	elements := len(regexp.MustCompile(`<[a-z]`).FindAllString(page, -1))
	t.Logf("the page: %d bytes, %d elements", len(page), elements)
	if len(page) > 300_000 || elements > 5000 {
		t.Errorf("the page has %d bytes and %d elements", len(page), elements)
	}
	if got.Result.ExitCode != report.ExitOK {
		t.Errorf("exit code %d", got.Result.ExitCode)
	}
}

// wantRisks compares the risks of a preview, sorted.
func wantRisks(t *testing.T, got clitest.Outcome, want []string) {
	t.Helper()
	var texts []string
	for _, r := range got.Result.Review.Risks {
		texts = append(texts, string(r.Type)+" "+r.Objects[0].Kind+" "+r.Objects[0].Name+": "+r.Text)
	}
	if slices.Sort(texts); !slices.Equal(texts, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
}

// A CRD that changes is held against the resources that are there: what they lose, and
// which of them do not fit, by name.
func TestReviewOfLiveResourcesOfAChangedCRD(t *testing.T) {
	crd := func(fields string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: "pumps.{ns}.example.com"}
spec:
  group: "{ns}.example.com"
  scope: Namespaced
  names: {plural: pumps, singular: pump, kind: Pump, listKind: PumpList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: ` + fields + `}}}}
`
	}
	s := clitest.New(t)
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.NS+".example.com")
	old, ours := crd("{size: {type: integer}, color: {type: string}}"), clitest.Pump("ours", "  size: 9\n  color: red\n")
	s.Apply(clitest.Documents(old, ours)).Want(t, 0)
	s.Create(s.NS+".example.com/v1/pumps", clitest.Pump("theirs", "  size: 9\n  color: red\n"))
	s.Create(s.NS+".example.com/v1/pumps", clitest.Pump("small", "  size: 1\n"))
	found := func(text string) (details []string) {
		for _, r := range s.Preview(text).Want(t, 0).Result.Review.Risks {
			if r.Type == review.API {
				details = append(details, r.Details...)
			}
		}
		return details
	}
	want := []string{
		"Pump." + s.NS + ".example.com " + s.NS + "/theirs spec.color: the field is lost with the next write",
		"Pump." + s.NS + ".example.com " + s.NS + "/theirs spec.size: Invalid value: 9: should be less than or equal to 5: the server lets it pass until that field changes (Kubernetes 1.30 and later)",
	}
	got := found(clitest.Documents(crd("{size: {type: integer, maximum: 5}}"), clitest.Pump("ours", "  size: 3\n")))
	if len(got) < 2 || !slices.Equal(got[len(got)-2:], want) {
		t.Errorf("got %q", got)
	}
	if got := found(clitest.Documents(crd("{size: {type: integer}, color: {type: string}, more: {type: string}}"), ours)); len(got) > 0 {
		t.Errorf("a field more: %q", got)
	}
}
