package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"brine/bundle"
	"brine/bundle/remedy"
)

// CRDs whose stored versions change.

// Stored is what was found of the objects of a CRD whose stored versions change.
type Stored struct {
	Count int
	// Err is why they cannot be listed. Later: the run itself may be what changes that,
	// as a conversion webhook that comes with it.
	Err   error
	Later bool
	// Lost are fields of theirs that the schema of the new version does not have.
	Lost []string
}

// Migration rewrites the objects of a CRD in another version: the server refuses to
// remove a version from a CRD while status.storedVersions names it.
type Migration struct {
	// From are the stored versions to leave, Gone those of them that the new CRD
	// does not have.
	From, Gone []string
	// To is the version in which objects are stored from then on.
	To string
	// Empty: no object was stored, so that nothing is rewritten, and no option is needed.
	Empty bool
	// Relabels: the server converts between the versions by another apiVersion only.
	Relabels bool

	served     bool     // To is
	has        []string // the versions of the new CRD
	keep       []any    // the versions in Gone, as the live CRD has them
	conversion any      // the live CRD's, where only it can convert; nil otherwise
}

// StoredVersions says which stored versions a CRD of the bundle leaves behind; nil
// if none.
func StoredVersions(desired, live *unstructured.Unstructured) *Migration {
	d, ok := bundle.DefinitionOf(desired)
	if !ok || live == nil {
		return nil
	}
	m := &Migration{}
	for _, v := range d.Versions {
		m.has = append(m.has, v.Name)
		if v.Storage {
			m.To, m.served = v.Name, v.Served
		}
	}
	m.From = slices.DeleteFunc(bundle.Items[string](live.Object, "status", "storedVersions"), func(v string) bool { return v == m.To })
	if m.To == "" || len(m.From) == 0 {
		return nil
	}
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	for _, known := range versions {
		version, _ := known.(map[string]any)
		name := bundle.At[string](version, "name")
		if slices.Contains(m.From, name) && !slices.Contains(m.has, name) {
			m.Gone = append(m.Gone, name)
			version["storage"] = false
			m.keep = append(m.keep, version)
		}
	}
	webhook := func(u *unstructured.Unstructured) bool {
		return bundle.At[string](u.Object, "spec", "conversion", "strategy") == "Webhook"
	}
	if m.Relabels = !webhook(desired) && !webhook(live); !m.Relabels && !webhook(desired) {
		m.conversion, _, _ = unstructured.NestedFieldCopy(live.Object, "spec", "conversion")
	}
	return m
}

// Moves says whether what objects own in a version is owned in another one from then on.
func (m *Migration) Moves(version string) bool {
	return !slices.Contains(m.has, version) || m.Relabels && slices.Contains(m.From, version)
}

// Migrates says whether the objects are to be rewritten: the option, or the
// annotation of the CRD in the bundle or, on the way back to an older bundle, of
// the live one.
func (o Options) Migrates(desired, live *unstructured.Unstructured) bool {
	return o.MigrateStoredVersions ||
		desired.GetAnnotations()[bundle.OnStoredVersion] == bundle.StoredMigrate || live.GetAnnotations()[bundle.OnStoredVersion] == bundle.StoredMigrate
}

// migrate plans the migration of a CRD's objects, or says why the CRD must not be
// applied. done is true if there is something to be done.
func (in *Input) migrate(p *Plan, s *Step) (done bool) {
	m := StoredVersions(s.Object.Content, s.Live)
	if m == nil {
		return false
	}
	wanted := in.Options.Migrates(s.Object.Content, s.Live)
	what := fmt.Sprintf("%s becomes the stored version", m.To)
	if len(m.Gone) > 0 {
		what = strings.Join(m.Gone, ", ") + " goes"
	} else if !wanted {
		if d, _ := bundle.DefinitionOf(s.Live); !slices.Contains(d.Versions, bundle.DefinedVersion{Name: m.To, Served: true, Storage: true}) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: %s. Objects stay stored in %s until they are written again: annotation %s: %s rewrites them",
				bundle.Name(s.ID), what, strings.Join(m.From, ", "), bundle.OnStoredVersion, bundle.StoredMigrate))
		}
		return false
	}
	found := in.Stored[s.ID]
	s.Migration = m
	s.Reason = fmt.Sprintf("%s; %s to be rewritten in %s", what, bundle.Count(found.Count, "object"), m.To)
	refuse := func(message string) {
		p.Refused = append(p.Refused, s.Object.Problem("spec.versions", message))
	}
	switch {
	case !m.served:
		refuse(fmt.Sprintf("%s, and %s, in which objects are stored then, is not served: serve it too, so that it can be seen when every API server stores in it", what, m.To))
	case found.Later && wanted:
		s.Reason = fmt.Sprintf("%s; how many objects are to be rewritten in %s is unknown: %s", what, m.To, found.Err)
	case found.Err != nil:
		s.Reason = what + "; whether objects are stored in it is unknown"
		refuse(fmt.Sprintf("%s, and the objects to be rewritten in %s cannot be listed: %s", what, m.To, found.Err))
	case len(found.Lost) > 0:
		refuse(fmt.Sprintf("%s, and the schema of %s does not have these fields, which would be lost: %s. Remove them from the objects first, or keep them in the schema",
			what, m.To, bundle.Some(found.Lost, 20)))
	case !wanted && found.Count == 0:
		m.Empty = true
		s.Reason = fmt.Sprintf("%s; no object is stored in it, so that it leaves status.storedVersions", what)
	case !wanted:
		refuse(fmt.Sprintf("%s, and %s may be stored in it: the annotation %s: %s on the CRD, or %s, rewrites them in %s first",
			what, bundle.Count(found.Count, "object"), bundle.OnStoredVersion, bundle.StoredMigrate, remedy.MigrateStored, m.To))
	}
	return true
}

// Interim is the CRD as it is applied before its objects are rewritten: the bundle's,
// with the versions that go, and with the conversion between them.
func (m *Migration) Interim(body []byte) ([]byte, error) {
	if len(m.Gone) == 0 && m.conversion == nil {
		return body, nil
	}
	crd := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &crd.Object); err != nil {
		return nil, fmt.Errorf("decode the CRD: %w", err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	err := unstructured.SetNestedSlice(crd.Object, append(versions, m.keep...), "spec", "versions")
	if err == nil && m.conversion != nil {
		err = unstructured.SetNestedField(crd.Object, m.conversion, "spec", "conversion")
	}
	if err != nil {
		return nil, fmt.Errorf("keep the versions that go: %w", err)
	}
	text, err := json.Marshal(crd.Object)
	if err != nil {
		return nil, fmt.Errorf("encode the CRD: %w", err)
	}
	return text, nil
}

// Final makes of the interim CRD, as a dry run returns it, what the bundle's would be.
func (m *Migration) Final(interim *unstructured.Unstructured, desired *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(interim.Object, "spec", "versions")
	versions = slices.DeleteFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		return slices.Contains(m.Gone, bundle.At[string](version, "name"))
	})
	_ = unstructured.SetNestedSlice(interim.Object, versions, "spec", "versions")
	_ = unstructured.SetNestedStringSlice(interim.Object, []string{m.To}, "status", "storedVersions")
	if m.conversion != nil {
		conversion, there, _ := unstructured.NestedFieldCopy(desired.Object, "spec", "conversion")
		if !there {
			conversion = map[string]any{"strategy": "None"}
		}
		_ = unstructured.SetNestedField(interim.Object, conversion, "spec", "conversion")
	}
}

// Done is what to report once count objects were rewritten.
func (m *Migration) Done(count int) string {
	text := fmt.Sprintf("%s rewritten in %s", bundle.Count(count, "object"), m.To)
	if m.Empty {
		return strings.Join(m.Gone, ", ") + " is gone; no object was stored in it"
	}
	if len(m.Gone) > 0 {
		text += "; " + strings.Join(m.Gone, ", ") + " is gone"
	}
	return text
}
