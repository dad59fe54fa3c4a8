package review

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/images"
	"brine/bundle/order"
	"brine/bundle/plan"
)

// Pods and claims that name what is not there.

// reference is an object that new or changed pods, or claims, name.
type reference struct {
	id   bundle.ID
	path string
	verb string
	keys []order.PodKey // of a ConfigMap or Secret
}

// argument is the verb of what an argument names: pods need not need it to start.
const argument = "has an argument that names"

// references are the objects that the pods, or claims, of a change need and name.
func references(c *Change) []reference {
	if c.Action == plan.Pruned || c.Action == plan.Detached {
		return nil
	}
	return referencesOf(c.ID, content(latest(c)))
}

func referencesOf(by bundle.ID, after map[string]any) []reference {
	var found []reference
	add := func(gk schema.GroupKind, name, path, verb string, keys ...order.PodKey) {
		id := bundle.ID{GroupKind: gk, Namespace: by.Namespace, Name: name}
		if order.IsClusterScoped(gk) {
			id.Namespace = ""
		}
		given := gk == bundle.ServiceAccountKind && name == "default" || gk == bundle.ConfigMapKind && name == "kube-root-ca.crt" ||
			gk == bundle.PriorityClassKind && strings.HasPrefix(name, "system-")
		if given {
			return
		}
		i := slices.IndexFunc(found, func(r reference) bool { return r.id == id })
		if i < 0 {
			i = len(found)
			found = append(found, reference{id: id, path: path, verb: verb})
		}
		for _, key := range keys {
			if !slices.ContainsFunc(found[i].keys, func(k order.PodKey) bool { return k.Name == key.Name }) {
				found[i].keys = append(found[i].keys, key)
			}
		}
	}
	for _, r := range order.ClassReferences(by.GroupKind, after) {
		add(r.Kind, r.Name, r.Path, r.Verb)
	}
	path := images.PodSpecPath(by.GroupKind)
	if path == nil || after == nil {
		return found
	}
	at := strings.Join(path, ".") + "."
	pod := bundle.At[map[string]any](after, path...)
	for _, r := range order.PodReferences(pod) {
		if r.Optional {
			continue
		}
		for i := range r.Keys {
			r.Keys[i].Path = at + r.Keys[i].Path
		}
		add(r.Kind, r.Name, at+r.Path, r.Verb, r.Keys...)
	}
	classes := func(claims []map[string]any, at string, under ...string) {
		for i, claim := range claims {
			field := slices.Concat(under, []string{"spec", "storageClassName"})
			if name := bundle.At[string](claim, field...); name != "" {
				add(bundle.StorageClassKind, name, fmt.Sprintf("%s[%d].%s", at, i, strings.Join(field, ".")), "claims volumes of")
			}
		}
	}
	classes(bundle.Items[map[string]any](pod, "volumes"), at+"volumes", "ephemeral", "volumeClaimTemplate")
	if by.GroupKind == bundle.StatefulSetKind {
		classes(bundle.Items[map[string]any](after, "spec", "volumeClaimTemplates"), "spec.volumeClaimTemplates")
	}
	for _, s := range settingsOf(pod, strings.Join(path, "."), by.Namespace) {
		if id, ok := s.service(); ok {
			found = append(found, reference{id: id, path: s.path, verb: argument})
		}
	}
	return found
}

// startsPods says whether pods are made of a pod spec that is new or changed.
func startsPods(c *Change) bool {
	path := images.PodSpecPath(c.ID.GroupKind)
	if path == nil {
		return false
	}
	switch c.Action {
	case plan.Created, plan.Recreated:
		return true
	case plan.Configured:
		path = path[:len(path)-1]
		return len(c.Fields) == 0 || touches(c.Fields, strings.Join(path, "."), "spec.volumeClaimTemplates")
	}
	return false
}

// claims says whether something is new or changed that claims devices or volumes.
func claims(c *Change) bool {
	fresh := c.Action == plan.Created || c.Action == plan.Recreated || c.Action == plan.Configured && touches(c.Fields, "spec")
	return fresh && images.PodSpecPath(c.ID.GroupKind) == nil && len(references(c)) > 0
}

// named are the objects that new or changed pods, or claims, need and that do not come with the
// change, so that they have to be on the cluster: true where pods name keys of it.
func named(changes []*Change, at map[bundle.ID]*Change) map[bundle.ID]bool {
	comes := func(id bundle.ID) bool {
		c := at[id]
		return c != nil && c.Action != plan.Detached
	}
	needed := map[bundle.ID]bool{}
	for _, c := range changes {
		if !startsPods(c) && !claims(c) {
			continue
		}
		for _, r := range references(c) {
			namespace := at[bundle.ID{GroupKind: bundle.NamespaceKind, Name: r.id.Namespace}]
			if fresh := namespace != nil && namespace.Action == plan.Created; !comes(r.id) && !fresh {
				needed[r.id] = needed[r.id] || len(r.keys) > 0
			}
		}
	}
	for id := range made(changes) {
		delete(needed, id)
	}
	return needed
}

// made are the Secrets that controllers make of the custom resources of a change.
func made(changes []*Change) map[bundle.ID]bool {
	found := map[bundle.ID]bool{}
	for _, c := range changes {
		if name := order.MadeSecret(c.ID, content(latest(c))); name != "" && c.Action != plan.Pruned {
			found[bundle.ID{GroupKind: bundle.SecretKind, Namespace: c.ID.Namespace, Name: name}] = true
		}
	}
	return found
}

// missing is about pods that name what is not there.
func (r *reviewer) missing() {
	secrets := made(r.changes)
	unknown := map[string][]string{}
	for _, c := range r.changes {
		starts := startsPods(c) || claims(c)
		var names, details bundle.Groups[[2]string, string] // by why, and what follows from it
		before := referencesOf(c.ID, content(c.Before))
		report := func(ref reference, why, name, path string) {
			detail := path
			if at := c.place(path); at != "" {
				detail += " (" + at + ")"
			}
			r.stuck[c.ID] = r.stuck[c.ID] || blocks(ref)
			r.doubtful[c.ID] = r.doubtful[c.ID] || ref.verb == argument
			group := [2]string{why, consequence(ref)}
			names.Add(group, name)
			details.Add(group, name+": "+detail)
		}
		for _, ref := range references(c) {
			why := ""
			there := r.at[ref.id]
			switch {
			case secrets[ref.id]:
			case there != nil && there.Action == plan.Pruned:
				why = "deleted by this run"
			case !starts || there != nil && there.Action != plan.Detached:
			case r.cluster.Unknown[ref.id] != "":
				reason := r.cluster.Unknown[ref.id]
				if name := plain(ref.id); !slices.Contains(unknown[reason], name) {
					unknown[reason] = append(unknown[reason], name)
				}
			case r.cluster.Unread:
				unknown[unread] = append(unknown[unread], plain(ref.id))
			case r.cluster.Found[ref.id] == nil:
				why = "neither in the bundle nor on the cluster"
				if slices.ContainsFunc(before, func(b reference) bool { return b.id == ref.id }) {
					why += "; not new: the live " + c.ID.GroupKind.Kind + " names the same" + ready(c.Before)
				} else if maker := r.maker(ref.id); maker != "" {
					reason := "not in the bundle and not on the cluster; something may create it: " + maker + " permits it"
					unknown[reason] = append(unknown[reason], plain(ref.id))
					continue
				}
			}
			name := plain(ref.id)
			if ref.id.Namespace == c.ID.Namespace {
				name = plain(bundle.ID{GroupKind: ref.id.GroupKind, Name: ref.id.Name})
			}
			if why != "" {
				report(ref, why, name, ref.path)
				continue
			}
			for _, key := range ref.keys {
				if why := r.lacks(ref.id, key.Name, starts); why != "" && !secrets[ref.id] {
					report(ref, why, "key "+key.Name+" of "+name, key.Path)
				}
			}
		}
		for _, g := range names.Keys {
			r.add(Missing, c, 0, details.Of[g], "%s: %s (%s)", g[1], bundle.Some(names.Of[g], shownFields), g[0])
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		names := slices.Compact(slices.Sorted(slices.Values(unknown[reason])))
		r.unchecked("whether what pods name is there: "+bundle.Some(names, 2*shownFields), reason, Missing)
	}
}

// maker is the first binding of the bundle by which a ServiceAccount may create a missing
// Secret or ConfigMap; "" where there is none.
func (r *reviewer) maker(id bundle.ID) string {
	resource := map[schema.GroupKind]string{bundle.SecretKind: "secrets", bundle.ConfigMapKind: "configmaps"}[id.GroupKind]
	for _, c := range r.changes {
		if resource == "" || !isBinding(c.ID) || c.Action == plan.Pruned || c.ID.Namespace != "" && c.ID.Namespace != id.Namespace {
			continue
		}
		// The name of a new object is no part of the request that creates it.
		all, _ := r.given(c)
		creates := slices.ContainsFunc(all, func(p permission) bool { return p.covers(permission{verb: "create", resource: resource}) })
		robot := slices.ContainsFunc(subjects(latest(c), c.ID.Namespace), func(s string) bool { return strings.HasPrefix(s, "ServiceAccount ") })
		if creates && robot {
			return plain(c.ID)
		}
	}
	return ""
}

// lacks says why pods do not find a key in a ConfigMap or Secret that is there; ""
// where they do, or where that is not known. Pods that run do without a key that was
// never there. What comes without any key is for a controller to fill.
func (r *reviewer) lacks(id bundle.ID, key string, starts bool) string {
	there := r.at[id]
	switch {
	case there == nil || there.Action == plan.Detached:
		if keys, known := keysOf(r.cluster.Found[id]); starts && known && !keys[key] {
			return "it has no such key on the cluster"
		}
		return ""
	case there.Action == plan.Pruned, there.Action == plan.Failed, there.Unverified != "" && there.Before != nil:
		return ""
	}
	before, _ := keysOf(there.Before)
	keys, known := keysOf(latest(there))
	switch {
	case !known || keys[key]:
		return ""
	case before[key]:
		return "deleted by this run"
	case starts && (len(keys) > 0 || there.Before != nil):
		return "it has no such key after this run"
	}
	return ""
}

// keysOf are the keys of a ConfigMap or Secret; not known where a controller of
// Kubernetes adds some.
func keysOf(u *unstructured.Unstructured) (keys map[string]bool, known bool) {
	if u == nil || bundle.At[string](u.Object, "type") == "kubernetes.io/service-account-token" {
		return nil, false
	}
	keys = map[string]bool{}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		for key := range bundle.At[map[string]any](u.Object, field) {
			keys[key] = true
		}
	}
	return keys, true
}

// consequence is what becomes of pods that name what is not there.
func consequence(r reference) string {
	switch r.id.GroupKind {
	case bundle.ServiceAccountKind:
		return "no pod is created"
	case bundle.PriorityClassKind, bundle.RuntimeClassKind:
		return "its pods are refused"
	case bundle.PersistentVolumeClaimKind:
		return "its pods stay Pending"
	case bundle.StorageClassKind:
		return "its claims stay Pending, unless there is a volume of this class"
	case bundle.VolumeAttributesClassKind:
		return "claims of this class stay Pending"
	case bundle.DeviceClassKind:
		return "pods that claim its devices stay Pending"
	case bundle.ServiceKind:
		return "an argument of its pods names what is missing"
	}
	if strings.HasPrefix(r.verb, "pulls images") {
		return "its images are pulled without it"
	}
	return "its pods do not start"
}

// blocks says whether pods do not start without what they name.
func blocks(r reference) bool {
	return r.verb != argument && r.id.GroupKind != bundle.StorageClassKind && r.id.GroupKind != bundle.VolumeAttributesClassKind && !strings.HasPrefix(r.verb, "pulls images")
}

// ready is how many of a workload's pods are ready; "" where it has none.
func ready(u *unstructured.Unstructured) string {
	pods := podsOf(u)
	if pods == 0 {
		return ""
	}
	n, known := bundle.Integer(u.Object, "status", "readyReplicas")
	if !known {
		n, _ = bundle.Integer(u.Object, "status", "numberReady")
	}
	return fmt.Sprintf(", ready pods: %d of %d", n, pods)
}

// place is the file and line of a field; "" where the object is not in the bundle.
func (c *Change) place(path string) string {
	if c.Object == nil {
		return ""
	}
	return c.Object.Problem(path, "").Source.String()
}
