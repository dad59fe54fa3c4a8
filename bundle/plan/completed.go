package plan

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/inventory"
)

// runs plans whether a Job runs. One that ran to its end for the very spec, as the
// inventory remembers, and was removed by its TTL is done. One with the annotation
// run: always runs in each apply.
func (in *Input) runs(s *Step) {
	if s.ID.GroupKind != bundle.JobKind {
		return
	}
	s.Always = s.Object.Content.GetAnnotations()[bundle.Run] == bundle.RunAlways
	if s.hashless {
		return // what is sent depends on more than the bundle
	}
	spec, err := json.Marshal(s.Object.Content.Object["spec"])
	if err != nil {
		return
	}
	if s.spec = DesiredHash(spec); s.key != nil {
		s.spec = s.key.Short(s.spec)
	}
	s.runsIn = string(in.Namespaces[s.ID.Namespace])
	s.Completed = s.Live == nil && !s.Always && in.remembers(s) // also where it cannot be read: that disproves nothing
}

// remembers says whether a Job was seen complete for its spec, in the namespace as it is.
func (in *Input) remembers(s *Step) bool {
	if memory := in.Inventory.Fingerprints[s.ID]; memory.Completed != s.spec || !memory.IsCompletedIn(s.runsIn) {
		return false
	}
	id := bundle.ID{GroupKind: bundle.NamespaceKind, Name: s.ID.Namespace}
	live := in.Live[id]
	if live == nil {
		_, member := in.Inventory.Members[id]
		return in.Unknown[id] != nil || !member && !slices.ContainsFunc(in.Graph.Objects, func(o *bundle.Object) bool { return o.ID == id })
	}
	return in.Inventory.IsSame(id, live)
}

// WithCompletion is the fingerprint of a Job that was seen complete in this run.
func (s *Step) WithCompletion(f inventory.Fingerprint) inventory.Fingerprint {
	f.Completed, f.CompletedIn = s.spec, s.runsIn
	return f
}

// Forgotten are the fingerprints without the completed Jobs that the plan runs
// again, or whose namespace it makes again, and whether there are any. They have to be written before: a run that is
// killed would otherwise leave the memory of an earlier spec.
func (p *Plan) Forgotten(fingerprints map[bundle.ID]inventory.Fingerprint) (map[bundle.ID]inventory.Fingerprint, bool) {
	left, found, made := maps.Clone(fingerprints), false, sets.New[string]()
	for _, s := range p.Steps {
		known := left[s.ID].UID
		if s.ID.GroupKind == bundle.NamespaceKind && !s.Deletes() && (s.Live == nil && s.Unread == nil || s.Live != nil && known != "" && known != string(s.Live.GetUID())) {
			made.Insert(s.ID.Name)
		}
	}
	for id, f := range left { // also those of Jobs that a partial run does not come to
		if f.Completed != "" && made.Has(id.Namespace) {
			left[id], found = f.Applied(), true
		}
	}
	for _, s := range p.Steps {
		f := left[s.ID]
		kept := s.Completed || s.Live != nil && !s.Always && f.Completed == s.spec
		if f.Completed == "" || s.Deletes() && s.Action != Pruned || !s.Deletes() && kept {
			continue
		}
		left[s.ID], found = f.Applied(), true
	}
	return left, found
}
