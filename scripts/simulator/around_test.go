package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/scripts/simulator/apiserver"
)

// What is around a history, from its first step to its last: the rights of its user, the
// webhooks of its cluster, and what people and controllers do there.

// surroundings are what is around one step.
type surroundings struct {
	denied []string // rights that the user lacks: VERB RESOURCE [NAMESPACE]
	hooks  []string // what webhooks do: WORD RESOURCE [NAME]
	// Before it, what of a resource, or in a namespace, is being deleted; whether an operator
	// makes dependents, a controller writes its fields, and which tool applies.
	leaving                string
	dependents, controlled bool
	scheduled              bool // a CronJob makes a Job
	tool                   string
	planned, twice         bool // it carries out a plan that is made before; two processes do
	moved                  bool // since the plan was made, a person changed what it is about
	older                  bool // the API servers are
	// Before it, a backup is restored in another namespace, and it may be about what is there;
	// members own others; its bundle has, or wants absent, what is of another inventory.
	copied, ofCopy, owned bool
	// Operators own what others need, too, own through objects outside, and make owners during it.
	operated, through, adopting bool
	putBack                     bool // it is an old inventory object, of an earlier revision
	part                        bundle.ID
	partAbsent                  bool
}

// dimensions give the steps of a history what is around it.
var dimensions = []struct {
	name string
	give func(history *rand.Rand) func(*rand.Rand, *scene)
	from uint64 // the first seed of which a history may have it; ascending
}{
	{"rights", lackRights, firstAround},
	{"webhooks", haveWebhooks, firstAround},
	{"leaving", leave, firstAround},
	{"dependents", haveDependents, firstAround},
	{"neighbours", shareNamespaces, firstAround},
	{"plans", planAtOnce, firstAround},
	{"fields", leaveFields, firstAround},
	{"tools", useTools, firstAround},
	{"versions", changeVersions, firstAround},
	{"jobs", haveJobs, firstAround},
	{"discovery", troubleDiscovery, firstAround},
	{"annotations", haveAnnotations, firstAnnotated},
	{"patches", deleteByPatch, firstAnnotated},
	{"copies", haveCopies, firstBeside},
	{"parts", nameParts, firstBeside},
	{"owners", ownMembers, firstBeside},
	{"moves", moveAbout, firstBeside},
	{"gates", haveGates, firstFlagged},
	{"flags", haveFlags, firstFlagged},
	{"namespaces", misplace, firstMisplaced},
	{"backups", putBack, firstPutBack},
	{"failures", haveFailures, firstFailing},
	{"operators", haveOperators, firstOperated},
}

// firstAround is the first seed of which the history has surroundings: the fixed ones, and those
// that find mutations, are what they were.
const firstAround = 1000

// firstAnnotated is the first seed of which the history may have annotations or patches, for the same reason.
const firstAnnotated = 100_000_000

// firstBeside is the first seed of which the history may have copies, parts, owners, or a third inventory.
const firstBeside = 200_000_000

// firstFlagged is the first seed of which the history may have gates, or flags that few runs have.
const firstFlagged = 300_000_000

// firstMisplaced is the first seed of which the history may have kubeconfigs with different namespaces.
const firstMisplaced = 470_000_000

// firstPutBack is the first seed of which the history may have inventory objects that are put back.
const firstPutBack = 490_000_000

// firstFailing is the first seed of which the history may have more runs that fail and go back.
const firstFailing = 640_000_000

// firstOperated is the first seed of which the history may have operators that own through objects outside.
const firstOperated = 690_000_000

// around is what gives the steps of a history their surroundings: none, one dimension or two.
func around(seed uint64) func(*rand.Rand, *scene) {
	r := rand.New(rand.NewPCG(seed, 3000))
	var all []func(*rand.Rand, *scene)
	dims, known := r.IntN(3), 0
	for known < len(dimensions) && dimensions[known].from <= seed {
		known++
	}
	for ; dims > 0 && known > 0; dims-- {
		all = append(all, dimensions[r.IntN(known)].give(r))
	}
	if *dimension != "" {
		all = nil
	}
	for _, d := range dimensions {
		if slices.Contains(strings.Split(*dimension, ","), d.name) {
			all = append(all, d.give(r))
		}
	}
	return func(r *rand.Rand, one *scene) {
		for _, give := range all {
			give(r, one)
		}
	}
}

func hasDimension(name string) bool {
	for _, d := range dimensions {
		if d.name == name {
			return true
		}
	}
	return false
}

// troubleDiscovery: API servers are older than Kubernetes 1.27, or faults aim at what is asked of
// what they serve.
func troubleDiscovery(r *rand.Rand) func(*rand.Rand, *scene) {
	older := r.IntN(2) == 0
	return func(r *rand.Rand, one *scene) {
		one.step.around.older = older
		if !one.step.calm && r.IntN(3) == 0 {
			one.mood = mood{name: aimed + string(discoveries), faults: []fault{allFaults[r.IntN(len(allFaults)-1)]}, rate: 0.3, aim: discoveries}
		}
	}
}

// lackRights: a user lacks some rights, mostly for the whole history.
func lackRights(r *rand.Rand) func(*rand.Rand, *scene) {
	all := []string{
		"list secrets", "list configmaps", "list widgets", "list persistentvolumeclaims", "list customresourcedefinitions", "list namespaces", "list deployments", "list apiservices",
		"list * everywhere", "get secrets", "get customresourcedefinitions", "get namespaces", "get widgets", "read * extra-app", "read * theirs",
		"create configmaps", "create namespaces", "create customresourcedefinitions", "patch secrets", "patch namespaces", "patch customresourcedefinitions", "write * extra-app", "write widgets",
		"delete configmaps", "delete namespaces", "delete customresourcedefinitions", "delete *", "watch *", "list leases", "read events",
	}
	lacks := []string{all[r.IntN(len(all))]}
	if r.IntN(3) == 0 {
		lacks = append(lacks, all[r.IntN(len(all))])
	}
	always := r.IntN(2) == 0
	return func(r *rand.Rand, one *scene) {
		if always || r.IntN(2) == 0 {
			one.step.around.denied = append(one.step.around.denied, lacks...)
		}
	}
}

// lacks is the error of a request for which the process has no right; nil: it has it.
func (p *Process) lacks(r *http.Request) error {
	t, ok := apiserver.Parse(r.URL.Path)
	if !ok || len(p.denied) == 0 {
		return nil
	}
	verbs := []string{map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]}
	switch {
	case r.Method == http.MethodGet && t.Name != "":
		verbs[0] = "get"
	case r.URL.Query().Has("watch"):
		verbs[0] = "watch"
	case r.Method == http.MethodGet:
		verbs[0] = "list"
	case r.Method == http.MethodPatch && p.world.server.Lacks(t):
		verbs = append(verbs, "create")
	}
	name := t.Name
	for _, verb := range verbs {
		for _, one := range p.denied {
			said := append(strings.Fields(one), "")
			all := map[string]bool{"read": r.Method == http.MethodGet, "write": r.Method != http.MethodGet, verb: true}
			namespace := said[2] == "" || said[2] == t.Namespace || said[2] == "everywhere" && t.Namespace == "" && p.world.server.Namespaced(t)
			if !all[said[0]] || said[1] != "*" && said[1] != t.Resource || !namespace {
				continue
			}
			where := "at the cluster scope"
			if t.Namespace != "" {
				where = fmt.Sprintf("in the namespace %q", t.Namespace)
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: t.GV.Group, Resource: t.Resource}, name, fmt.Errorf("User %q cannot %s resource %q in API group %q %s", "simulated", verb, t.Resource, t.GV.Group, where))
		}
	}
	return nil
}

// haveWebhooks: a cluster has webhooks that refuse, change, or do not answer, mostly for the
// whole history.
func haveWebhooks(r *rand.Rand) func(*rand.Rand, *scene) {
	all := []string{
		"refuse configmaps b", "refuse secrets", "refuse deployments", "refuse widgets", "refuse namespaces extra-app", "refuse-update configmaps", "refuse-delete configmaps", "refuse-delete namespaces",
		"label configmaps", "label secrets", "inject deployments", "override configmaps c", "override configmaps", "override deployments", "finalize configmaps a",
		"silent deployments", "silent configmaps d", "away secrets", "away configmaps", "away *",
	}
	hooks := []string{all[r.IntN(len(all))]}
	if r.IntN(3) == 0 {
		hooks = append(hooks, all[r.IntN(len(all))])
	}
	always := r.IntN(2) == 0
	return func(r *rand.Rand, one *scene) {
		if always || r.IntN(2) == 0 {
			one.step.around.hooks = append(one.step.around.hooks, hooks...)
		}
	}
}

// What only a webhook writes.
const overriding, overridingReplicas = "7", int64(2)

// awayFor is how many requests a webhook does not answer that comes up then.
const awayFor = 4

// admits are the webhooks of a step: they may change u. live is nil where it is new, u where
// it goes.
func (w *World) admits(hooks []string) func(actor string, k apiserver.Kind, u, live *unstructured.Unstructured) error {
	if len(hooks) == 0 {
		return nil
	}
	asked := 0
	return func(actor string, k apiserver.Kind, u, live *unstructured.Unstructured) error {
		if actor == "system" || actor == person || k.Kind == "Lease" {
			return nil
		}
		of := cmp.Or(u, live)
		if keepsBooks(of.GetNamespace(), of.GetName()) {
			return nil
		}
		for _, hook := range hooks {
			said := append(strings.Fields(hook), "")
			if hook == gated && w.isOpen() {
				continue
			}
			if said[1] != "*" && said[1] != k.Plural || said[2] != "" && said[2] != of.GetName() {
				continue
			}
			if err := admit(said[0], u, live, &asked); err != nil {
				return err
			}
		}
		return nil
	}
}

func admit(what string, u, live *unstructured.Unstructured, asked *int) error {
	deny := func(verb string, why any) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf("admission webhook %q denied the request: no %s today: %v", "policy.example.com", verb, why)}}
	}
	set := func(value any, path ...string) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	switch {
	case what == "silent":
		return apierrors.NewInternalError(errors.New(`failed calling webhook "slow.example.com": failed to call webhook: Post "https://slow.hooks.svc:443/?timeout=10s": context deadline exceeded`))
	case what == "away":
		if *asked++; *asked <= awayFor {
			return apierrors.NewInternalError(errors.New(`failed calling webhook "new.example.com": failed to call webhook: Post "https://new.hooks.svc:443/?timeout=10s": no endpoints available for service "new"`))
		}
	case what == "refuse-delete" && u == nil:
		return deny("deletion", "keep it")
	case u == nil:
	case what == "gate":
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "gate.example.com" denied the request: no`}}
	case what == "refuse", what == "refuse-update" && live != nil:
		return deny("write", fmt.Sprint(u.Object["data"], u.Object["stringData"]))
	case what == "label":
		set("a", "metadata", "labels", "example.com/team")
	case what == "inject":
		set("in", "spec", "template", "metadata", "annotations", "example.com/sidecar")
	case what == "override" && u.GetKind() == "Deployment":
		set(overridingReplicas, "spec", "replicas")
	case what == "override" && u.Object["immutable"] != true:
		set(overriding, "data", "value")
	case what == "finalize" && live == nil:
		u.SetFinalizers([]string{apiserver.Slow})
	}
	return nil
}

// changing are the webhooks of the last step that change what is written, and refuse nothing.
func changing(scenes []scene) (s surroundings) {
	if len(scenes) == 0 {
		return s
	}
	s.older = scenes[len(scenes)-1].step.around.older
	for _, hook := range scenes[len(scenes)-1].step.around.hooks {
		if what, _, _ := strings.Cut(hook, " "); what == "label" || what == "inject" || what == "override" {
			s.hooks = append(s.hooks, hook)
		}
	}
	return s
}

// isOverridden says whether an object has what only a webhook writes. It stays while nothing of
// the object changes.
func isOverridden(u *unstructured.Unstructured) bool {
	if u == nil {
		return false
	}
	value, _, _ := unstructured.NestedString(u.Object, "data", "value")
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return value == overriding || u.GetKind() == "Deployment" && replicas == overridingReplicas
}

// toldAsItIs: what a webhook denies is no right that is missing.
func (o *oracle) toldAsItIs() (wrong []string) {
	for _, text := range errorsOf(o.d.result) {
		if strings.Contains(text, "denied the request") && strings.Contains(text, "the user cannot") {
			wrong = append(wrong, text)
		}
	}
	return wrong
}
