// Package images finds the container images that objects name: in pod specs, in the
// fields of custom resources that their CRD calls an image, and, marked as guesses,
// in arguments and variables that look like one. It is pure.
package images

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Found is an image that an object names.
type Found struct {
	Image string
	// Path is the field, list items by their names where they have some:
	// spec.template.spec.containers[name="app"].image.
	Path string
	// Guess: nothing says that this text is an image, it only looks like one.
	Guess bool
}

// Definitions are the schemas of custom resources, by kind.
type Definitions map[schema.GroupVersionKind]map[string]any

// Define collects the schemas of the CRDs among the objects.
func Define(objects []*unstructured.Unstructured) Definitions {
	d := Definitions{}
	for _, u := range objects {
		definition, ok := bundle.DefinitionOf(u)
		if !ok {
			continue
		}
		for _, version := range bundle.Items[map[string]any](u.Object, "spec", "versions") {
			if properties := bundle.At[map[string]any](version, "schema", "openAPIV3Schema"); properties != nil {
				d[definition.Kind.WithVersion(bundle.At[string](version, "name"))] = properties
			}
		}
	}
	return d
}

// Of are the images of an object, in the order of their paths.
func (d Definitions) Of(u *unstructured.Unstructured) []Found {
	if u == nil {
		return nil
	}
	s := &search{}
	gvk := u.GroupVersionKind()
	switch properties, defined := d[gvk]; {
	case defined:
		s.custom("", u.Object, properties, false)
	case PodSpecPath(gvk.GroupKind()) == nil && !bundle.IsBuiltIn(gvk.Group):
		s.custom("", u.Object, nil, true)
	}
	if path := PodSpecPath(gvk.GroupKind()); path != nil {
		s.podSpec(strings.Join(path, "."), bundle.At[map[string]any](u.Object, path...))
	}
	slices.SortStableFunc(s.found, func(a, b Found) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(s.found, func(a, b Found) bool { return a.Path == b.Path })
}

// PodSpecPath is where objects of a kind hold a pod spec; nil where they hold none.
func PodSpecPath(gk schema.GroupKind) []string {
	switch gk {
	case bundle.PodKind:
		return []string{"spec"}
	case schema.GroupKind{Kind: "PodTemplate"}:
		return []string{"template", "spec"}
	case schema.GroupKind{Kind: "ReplicationController"}, bundle.JobKind, bundle.StatefulSetKind,
		bundle.DeploymentKind, bundle.DaemonSetKind, bundle.ReplicaSetKind:
		return []string{"spec", "template", "spec"}
	case bundle.CronJobKind:
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

type search struct{ found []Found }

func (s *search) add(path, image string, guess bool) {
	if image != "" {
		s.found = append(s.found, Found{Image: image, Path: path, Guess: guess})
	}
}

// podSpec finds the images of containers and of image volumes, and guesses at
// arguments and variables.
func (s *search) podSpec(path string, spec map[string]any) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range bundle.Items[map[string]any](spec, list) {
			at := path + "." + item(list, container, i)
			s.add(at+".image", bundle.At[string](container, "image"), false)
			s.guesses(at, container)
		}
	}
	for i, volume := range bundle.Items[map[string]any](spec, "volumes") {
		s.add(path+"."+item("volumes", volume, i)+".image.reference", bundle.At[string](volume, "image", "reference"), false)
	}
}

func (s *search) guesses(at string, container map[string]any) {
	for _, list := range []string{"command", "args"} {
		for i, word := range bundle.Items[string](container, list) {
			value := word
			if flag, v, ok := strings.Cut(word, "="); ok && strings.HasPrefix(flag, "-") {
				value = v
			}
			if looksLike(value) {
				s.add(fmt.Sprintf("%s.%s[%d]", at, list, i), value, true)
			}
		}
	}
	for i, variable := range bundle.Items[map[string]any](container, "env") {
		if value := bundle.At[string](variable, "value"); looksLike(value) {
			s.add(at+"."+item("env", variable, i)+".value", value, true)
		}
	}
}

// item names an item of a list, by its name where it has one.
func item(list string, m map[string]any, i int) string {
	if name := bundle.At[string](m, "name"); name != "" {
		return fmt.Sprintf("%s[name=%q]", list, name)
	}
	return fmt.Sprintf("%s[%d]", list, i)
}

// image is a reference with a registry or a path, and a tag or a digest.
var image = bundle.Pattern(`^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::[0-9]{2,5})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+(?::[A-Za-z0-9_][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)

func looksLike(text string) bool {
	last := text[strings.LastIndex(text, "/")+1:]
	return len(text) < 400 && last != text && strings.ContainsAny(last, ":@") && image().MatchString(text)
}

// custom walks a custom resource beside its schema. Without one every field called
// an image is a guess.
func (s *search) custom(path string, v any, properties map[string]any, guess bool) {
	switch v := v.(type) {
	case map[string]any:
		if s.split(path, v, guess) {
			return
		}
		named, others := bundle.At[map[string]any](properties, "properties"), bundle.At[map[string]any](properties, "additionalProperties")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path == "" && (key == "metadata" || key == "status" || key == "apiVersion" || key == "kind") {
				continue
			}
			field, known := named[key].(map[string]any)
			if !known {
				field = others
			}
			at := strings.TrimPrefix(path+"."+key, ".")
			text, isText := v[key].(string)
			if isText && isImage(key) && (guess || field["type"] == "string" || field == nil) && plausible(text) {
				s.add(at, text, guess || field == nil)
				continue
			}
			s.custom(at, v[key], field, guess)
		}
	case []any:
		items, _ := properties["items"].(map[string]any)
		for i, w := range v {
			m, _ := w.(map[string]any)
			s.custom(item(path, m, i), w, items, guess)
		}
	}
}

// last is the field that a path ends with.
func last(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func isImage(key string) bool {
	return key == "image" || strings.HasSuffix(key, "Image") || key == "imageName"
}

// plausible says whether a text can be an image at all.
func plausible(text string) bool {
	return text != "" && len(text) < 400 && !strings.ContainsAny(text, " \t\n{}$")
}

// split finds an image that is written in parts: registry, repository and tag.
func (s *search) split(path string, m map[string]any, guess bool) bool {
	repository := bundle.At[string](m, "repository")
	if repository == "" || !plausible(repository) || !isImage(last(path)) && m["tag"] == nil {
		return false
	}
	whole := repository
	if registry := bundle.At[string](m, "registry"); registry != "" {
		whole = registry + "/" + repository
	}
	switch tag, digest := fmt.Sprint(orEmpty(m["tag"])), fmt.Sprint(orEmpty(m["digest"])); {
	case digest != "":
		whole += "@" + digest
	case tag != "":
		whole += ":" + tag
	}
	s.add(path, whole, guess || !isImage(last(path)))
	return true
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// Split is an image in its repository and its tag or digest: "quay.io/a/b", "v1".
func Split(image string) (repository, version string) {
	if repository, digest, ok := strings.Cut(image, "@"); ok {
		if name, tag := cutTag(repository); tag != "" {
			return name, tag + "@" + digest
		}
		return repository, digest
	}
	return cutTag(image)
}

func cutTag(image string) (repository, tag string) {
	colon := strings.LastIndex(image, ":")
	if colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, ""
}

// Without are the uses of images that the others do not use.
func Without(uses, others []Use) []Use {
	there := bundle.SetOf(others, func(use Use) string { return use.Image })
	return slices.DeleteFunc(slices.Clone(uses), func(use Use) bool { return there.Has(use.Image) })
}
