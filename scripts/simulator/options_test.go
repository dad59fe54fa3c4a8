package simulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/run"
)

// What bundles ask for by annotations, and users by flags, besides the common.

// options are those of a step that few runs have.
type options struct {
	noPrune, pruneAnyway, waitApplied, skipInvalid bool
	recreate                                       []string
	maxPrune                                       string
	cascade                                        string // --cascade
	forceNamespaces, migrate                       bool
	conflicts, takeOver                            []string
	history                                        int // --history-limit, less one; 0 is 10 revisions
	pruneFirst                                     []string
	verify, empty, deny, withNeeds, impatient      bool     // --verify full, --allow-empty, --deny, --with-needs, --fail-after
	namespace                                      string   // of the kubeconfig; "" is default
	named                                          bool     // by --namespace
	absent                                         []string // ConfigMaps of namespace app that the bundle wants absent
}

// decorate gives every third step what few have.
func decorate(r *rand.Rand, s *step) {
	if s.isAdministrative() || s.carriesOut || r.IntN(3) > 0 {
		return
	}
	for range 1 + r.IntN(2) {
		switch r.IntN(11) {
		case 0:
			s.options.noPrune = true
		case 1:
			s.options.pruneAnyway = true
		case 2:
			s.options.waitApplied = true
		case 3:
			s.options.maxPrune = []string{"0", "1", "50%"}[r.IntN(3)]
		case 4:
			s.options.history = 1 + r.IntN(3)
		case 5: // what has no room in one ConfigMap
			s.text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%d, namespace: app}\ndata: {value: \"%d\"}\n", strings.Repeat("long", 60), r.IntN(2), r.IntN(3))
		case 6, 7: // what cannot be changed
			how := []string{"", ", annotations: {brine.dev/on-immutable: recreate}", ", annotations: {brine.dev/on-immutable: orphan}"}[r.IntN(3)]
			s.text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed, namespace: app%s}\nimmutable: true\ndata: {value: \"%d\"}\n", how, r.IntN(3))
			if r.IntN(3) == 0 {
				s.options.recreate = []string{"ConfigMap"}
			}
		case 8: // a Deployment that selects other pods than before
			s.text = strings.ReplaceAll(s.text, "{app: web}", "{app: web, track: new}")
			s.options.recreate = [][]string{nil, {"Deployment.apps"}, {"*:orphan"}}[r.IntN(3)]
		case 9:
			for _, name := range []string{"a", "b", "c", "d", "fixed", "guest"} {
				if r.IntN(2) == 0 && !strings.Contains(s.text, "name: "+name+",") {
					s.options.absent = append(s.options.absent, name)
				}
			}
		case 10:
			s.options.skipInvalid = true
			s.text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: app}\n"
		}
	}
}

// fill gives a run the options of its step.
func (s options) fill(o *run.Options) {
	o.Planning.NoPrune = s.noPrune && o.Mode != run.Destroy
	o.PruneAnyway, o.WaitApplied, o.SkipInvalid = s.pruneAnyway, s.waitApplied, s.skipInvalid
	o.Planning.Recreate, o.Planning.MaxPrune = s.recreate, s.maxPrune
	o.Cascade, o.Planning.ForceNamespaces, o.Planning.TakeOverFrom = metav1.DeletionPropagation(s.cascade), s.forceNamespaces, s.takeOver
	o.Planning.MigrateStoredVersions = s.migrate
	o.Planning.Conflicts, _ = fields.ParseConflictRules(s.conflicts)
	o.Planning.PruneFirst, o.Planning.VerifyFull, o.Planning.AllowEmpty, o.WithNeeds = s.pruneFirst, s.verify, s.empty, s.withNeeds
	if o.Mode == run.Apply {
		o.Namespace, o.Planning.NamespaceNamed = s.placed(), s.named
	}
	if s.deny {
		o.Deny = denials()
	}
	if s.impatient {
		o.FailAfter = 20 * time.Second
	}
	if s.history > 0 {
		o.HistoryLimit = s.history - 1
	}
}

// wants says whether the bundle of a step wants an object absent.
func (s options) wants(gk schema.GroupKind, namespace, name string) bool {
	return gk == bundle.ConfigMapKind && namespace == "app" && slices.Contains(s.absent, name)
}

// absentOf are the objects that the bundle of a step wants absent.
func (s options) absentOf() []*bundle.Absent {
	return bundle.Each(s.absent, func(name string) *bundle.Absent {
		return &bundle.Absent{ID: bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: "app", Name: name}, GVK: bundle.ConfigMapKind.WithVersion("v1"), Source: bundle.Source{File: "-", Line: 1}}
	})
}

// homeOf is the namespace of a history's inventories: of some, one that bundles have.
func homeOf(seed uint64) string {
	if seed%5 == 4 {
		return "app"
	}
	return "default"
}
