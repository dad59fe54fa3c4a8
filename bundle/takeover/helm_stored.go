package takeover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"brine/bundle"
)

// "helm uninstall" deletes the objects of the manifest that the newest stored
// release holds. Helm 3, and Helm 4 before it verified the owner, do so whatever the
// objects' own labels and annotations say: "helm.sh/resource-policy: keep" counts in
// that manifest, not on the object (pkg/action/uninstall.go and resource_policy.go).
// Helm finds releases by the label "owner: helm" (pkg/storage/driver/secrets.go):
// without it, there is no release for it.

// HelmOwner is the label by which Helm finds what it stores of releases.
const HelmOwner = "owner"

// Selector finds what Helm stores of a release, as Helm does.
func (r Release) Selector() string { return HelmOwner + "=helm,name=" + r.Name }

// Revision is the number of the revision that a Secret or ConfigMap stores.
func Revision(stored *unstructured.Unstructured) int {
	n, _ := strconv.Atoi(stored.GetLabels()["version"]) // 0 where it is none
	return n
}

const maxRelease = 64 << 20 // of JSON

// Uninstalled are the objects that Helm would delete with the release. Their namespace
// is empty where the manifest names none.
func Uninstalled(u *unstructured.Unstructured) ([]bundle.ID, error) {
	fail := func(err error) ([]bundle.ID, error) {
		return nil, fmt.Errorf("%s: read the release: %w", bundle.Name(bundle.IDOf(u)), err)
	}
	text := bundle.At[string](u.Object, "data", "release")
	if u.GetKind() == bundle.SecretKind.Kind {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fail(err)
		}
		text = string(decoded)
	}
	manifest, err := manifestOf(text)
	if err != nil {
		return fail(err)
	}
	ids, err := idsOf(manifest)
	if err != nil {
		return fail(err)
	}
	return ids, nil
}

// manifestOf is the manifest of a release as Helm encodes it: JSON, by gzip but for
// old ones, in base64.
func manifestOf(text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		zipped, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return "", fmt.Errorf("decompress: %w", err)
		}
		if raw, err = io.ReadAll(io.LimitReader(zipped, maxRelease+1)); err != nil {
			return "", fmt.Errorf("decompress: %w", err)
		}
		if len(raw) > maxRelease {
			return "", errors.New("decompress: it is too large")
		}
	}
	var release struct {
		Manifest *string `json:"manifest"`
	}
	if err := json.Unmarshal(raw, &release); err != nil {
		return "", errors.New("decode: it is no JSON") // the error could quote it
	}
	if release.Manifest == nil {
		return "", errors.New("it has no manifest")
	}
	return *release.Manifest, nil
}

// separator is how Helm splits a manifest (pkg/release/v1/util/manifest.go).
var separator = bundle.Pattern(`(?:^|\s*\n)---\s*`)

func idsOf(manifest string) ([]bundle.ID, error) {
	var ids []bundle.ID
	for i, text := range separator().Split(strings.TrimSpace(manifest), -1) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			return nil, fmt.Errorf("document %d of the manifest is no YAML object", i+1) // the error could quote it
		}
		if len(u.Object) == 0 || keeps(u) {
			continue
		}
		items := []*unstructured.Unstructured{u}
		if u.IsList() {
			items = nil
			err := u.EachListItem(func(item runtime.Object) error {
				items = append(items, item.(*unstructured.Unstructured)) //nolint:forcetypeassert // a list of them
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("document %d of the manifest is a list that cannot be read", i+1)
			}
		}
		for _, item := range items {
			if item.GetKind() == "" || item.GetName() == "" {
				return nil, fmt.Errorf("document %d of the manifest has no kind or name", i+1)
			}
			ids = append(ids, bundle.IDOf(item))
		}
	}
	return ids, nil
}

// keeps says whether Helm leaves an object of the manifest. It leaves those with an
// unknown policy, too (filterManifestsToKeep): that they are listed here is the careful
// side.
func keeps(u *unstructured.Unstructured) bool {
	return strings.EqualFold(strings.TrimSpace(u.GetAnnotations()["helm.sh/resource-policy"]), "keep")
}
