package images

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// Use is a field of an object of a bundle that names an image.
type Use struct {
	Found
	Object *bundle.Object
}

// InBundle are the images of a bundle, sorted by image. What its CRDs call an image is
// known, in other custom resources it is guessed.
func InBundle(objects []*bundle.Object) []Use {
	definitions := Define(bundle.Each(objects, func(o *bundle.Object) *unstructured.Unstructured { return o.Content }))
	var uses []Use
	for _, o := range objects {
		for _, f := range definitions.Of(o.Content) {
			uses = append(uses, Use{f, o})
		}
	}
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(a.Image, b.Image) })
	return uses
}

// List is a set of images that a registry has.
type List map[string]bool

// ReadList reads a List: an image a line; empty lines and what follows a # do not count.
func ReadList(r io.Reader) (List, error) {
	list := List{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			list[canonical(line)] = true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the list of images: %w", err)
	}
	return list, nil
}

// Has says whether the list has an image: by its tag, or by its digest.
func (l List) Has(image string) bool {
	image = canonical(image)
	name, digest, _ := strings.Cut(image, "@")
	repository, _ := cutTag(name)
	return l[image] || digest != "" && (l[name] && name != repository || l[repository+"@"+digest])
}

// canonical is an image with the registry and the tag that stand for none.
func canonical(image string) string {
	name, digest, pinned := strings.Cut(image, "@")
	repository, tag := cutTag(name)
	first, _, hasPath := strings.Cut(repository, "/")
	switch {
	case !hasPath:
		repository = "docker.io/library/" + repository
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		repository = "docker.io/" + repository
	}
	switch {
	case pinned && tag == "":
		return repository + "@" + digest
	case pinned:
		return repository + ":" + tag + "@" + digest
	}
	return repository + ":" + cmp.Or(tag, "latest")
}

// Lacking are the images of a bundle that a list does not have: problems, and warnings
// about what is only guessed to be an image.
func Lacking(objects []*bundle.Object, list List, name string) (problems, warnings []bundle.Problem) {
	for _, use := range InBundle(objects) {
		switch {
		case list.Has(use.Image):
		case use.Guess:
			warnings = append(warnings, use.Object.Problem(use.Path, fmt.Sprintf("%s, perhaps an image, is not in %s", use.Image, name)))
		default:
			problems = append(problems, use.Object.Problem(use.Path, fmt.Sprintf("image %s is not in %s", use.Image, name)))
		}
	}
	return problems, warnings
}
