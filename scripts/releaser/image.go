package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user that the image runs as; distroless images have the same.
const nobody = "65532:65532"

// image writes an OCI image layout as one tar file: an index of all platforms.
// The file manifest.json in it is for "docker load" of older releases.
func (r *release) image(platforms []platform) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var compat []tarball.Descriptor
	for _, p := range platforms {
		img, err := r.platformImage(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}}})
		tag := "brine:" + r.tag()
		if len(platforms) > 1 { // an older Docker has one image a name
			tag += "-" + p.Arch
		}
		d, err := describe(img, tag)
		if err != nil {
			return err
		}
		compat = append(compat, d)
	}
	// The top of the layout names the index; tools tag it by these annotations.
	top := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
		"org.opencontainers.image.ref.name": r.tag(), "io.containerd.image.name": "docker.io/library/brine:" + r.tag(),
	}}})
	stage, err := os.MkdirTemp("", "releaser-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if _, err := layout.Write(stage, top); err != nil {
		return err
	}
	manifest, err := json.Marshal(compat)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stage, "manifest.json"), manifest, 0o644); err != nil {
		return err
	}
	entries, err := folder(stage, "")
	if err != nil {
		return err
	}
	data, err := tarred(entries, r.Date)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, r.name(platform{}, "_image.tar")), data, 0o644)
}

// roots are the certificate authorities that Mozilla trusts, as a program in a container
// looks for them: a kubeconfig without a CA, and collectors of traces, need them. Those
// that are trusted for a part of the names only have no form in such a file.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}

// platformImage is a static file, the CAs and the licences, not run as root.
func (r *release) platformImage(p platform) (v1.Image, error) {
	binary, err := os.ReadFile(r.binary(p))
	if err != nil {
		return nil, err
	}
	license, err := r.license()
	if err != nil {
		return nil, err
	}
	files, err := tarred([]entry{
		{Path: "brine", Data: binary, Executable: true},
		{Path: "etc/ssl/certs/ca-certificates.crt", Data: roots()},
		{Path: "licenses/LICENSE", Data: license},
		{Path: "licenses/THIRD-PARTY-LICENSES.txt", Data: r.Licenses.text()},
	}, r.Date)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.Date}, CreatedBy: "scripts/release " + r.Version}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.OS, p.Arch, v1.Time{Time: r.Date}
	config.Config = v1.Config{
		Entrypoint: []string{"/brine"}, User: nobody, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": "brine", "org.opencontainers.image.version": r.Version, "org.opencontainers.image.revision": r.Commit,
			"org.opencontainers.image.created": r.Date.Format(time.RFC3339), "org.opencontainers.image.licenses": spdx, "org.opencontainers.image.vendor": maintainer,
			"org.opencontainers.image.description": "Make a Kubernetes cluster match a bundle that Salt rendered",
		},
	}
	return mutate.ConfigFile(img, config)
}

// describe says to older Dockers where the parts of an image are.
func describe(img v1.Image, tag string) (tarball.Descriptor, error) {
	config, err := img.ConfigName()
	if err != nil {
		return tarball.Descriptor{}, err
	}
	d := tarball.Descriptor{Config: blob(config), RepoTags: []string{tag}}
	layers, err := img.Layers()
	if err != nil {
		return d, err
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return d, err
		}
		d.Layers = append(d.Layers, blob(digest))
	}
	return d, nil
}

func blob(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
