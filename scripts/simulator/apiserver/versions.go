package apiserver

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The versions of a CRD: all are converted into each other by their name alone, and objects are
// stored in one.

// versionsOf are the versions of a CRD, with what it says of each.
func versionsOf(crd *unstructured.Unstructured) (all []map[string]any) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, one := range versions {
		if v, ok := one.(map[string]any); ok {
			all = append(all, v)
		}
	}
	return all
}

// storage is the version in which a CRD says that objects are stored.
func storage(crd *unstructured.Unstructured) string {
	for _, v := range versionsOf(crd) {
		if name, _ := v["name"].(string); v["storage"] == true {
			return name
		}
	}
	return ""
}

// known is a CRD as the API server that is asked knows it, which knows what was written before since.
func (s *Server) known(crd *unstructured.Unstructured, since int) *unstructured.Unstructured {
	for i := len(s.Log) - 1; i >= since && s.Lag > 0 && time.Since(s.Log[i].Time) < s.Lag; i-- { // as it was
		if w := s.Log[i]; w.Kind.Kind == definition && w.Name == crd.GetName() && w.Before != nil {
			crd = w.Before
		}
	}
	return crd
}

// storedAs is the version in which the API server that is asked stores objects of a kind. None goes
// back to one that it has left: whoever waited for it in an earlier step would have seen it behind.
func (s *Server) storedAs(k Kind) string {
	crd := s.defining(k)
	if crd == nil {
		return k.Version
	}
	return storage(s.known(crd, s.Began))
}

// as is an object in the version of a kind. What comes in is not changed.
func (k Kind) as(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil || u.GetAPIVersion() == k.GroupVersion().String() || !k.isCustom() {
		return u
	}
	converted := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	converted.SetAPIVersion(k.GroupVersion().String())
	return converted
}

// stored is an object as it is stored.
func (s *Server) stored(k Kind, u *unstructured.Unstructured) *unstructured.Unstructured {
	if version := s.storedAs(k); k.isCustom() && version != "" {
		k.Version = version
	}
	return k.as(u)
}

// note notes the storage version of a CRD among those in which objects are stored.
func note(crd *unstructured.Unstructured) {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	if version := storage(crd); version != "" && !slices.Contains(stored, version) {
		_ = unstructured.SetNestedStringSlice(crd.Object, append(stored, version), "status", "storedVersions")
	}
}

// keepsVersions is what is wrong with a CRD that lacks a version in which objects are stored.
func keepsVersions(crd *unstructured.Unstructured) (wrong field.ErrorList) {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	for i, version := range stored {
		if !slices.ContainsFunc(versionsOf(crd), func(v map[string]any) bool { return v["name"] == version }) {
			wrong = append(wrong, field.Invalid(field.NewPath("status", "storedVersions").Index(i), version, fmt.Sprintf("missing from spec.versions; %s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %s and removes %s from status.storedVersions", version, version, version)))
		}
	}
	if version := storage(crd); version != "" && !slices.Contains(stored, version) {
		wrong = append(wrong, field.Invalid(field.NewPath("status", "storedVersions"), stored, "must have the storage version "+version))
	}
	return wrong
}

// storageHash is that of a resource in a list of resources; "" where objects are not stored so.
func (s *Server) storageHash(k Kind) string {
	if !k.isCustom() || s.storedAs(k) != k.Version {
		return ""
	}
	sum := sha256.Sum256([]byte(k.Group + "/" + k.Version + "/" + k.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// relabelling converts the objects of a CRD between its versions.
type relabelling struct {
	server *Server
	kind   Kind
}

func (c relabelling) Convert(_, _, _ any) error { return errors.New("only ConvertToVersion is asked") }

func (c relabelling) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (c relabelling) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	is := in.GetObjectKind().GroupVersionKind()
	gvk, _ := to.KindForGroupVersionKinds([]schema.GroupVersionKind{is})
	crd := c.server.defining(c.kind)
	has := func(version string) bool {
		return crd == nil || slices.ContainsFunc(versionsOf(crd), func(v map[string]any) bool { return v["name"] == version })
	}
	switch {
	case !has(gvk.Version):
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", gvk.GroupVersion())
	case !has(is.Version):
		return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", is.GroupVersion())
	}
	u := &unstructured.Unstructured{Object: maps.Clone(in.(*unstructured.Unstructured).Object)} //nolint:forcetypeassert // there are no others here
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Default: the server does that itself.
func (c relabelling) Default(runtime.Object) {}

// New is an object without any field.
func (c relabelling) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// customManager is the field manager of the real server for custom resources.
func (s *Server) customManager(k Kind, types managedfields.TypeConverter) *managedfields.FieldManager {
	c := relabelling{s, k}
	m, err := managedfields.NewDefaultCRDFieldManager(types, c, c, c, k.GroupVersionKind, k.GroupVersion(), "", nil)
	if err != nil {
		panic(err)
	}
	return m
}
