//go:build linux

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"sigs.k8s.io/yaml"
)

// oci is the image for this machine's architecture, and its unpacked root.
func oci(t *testing.T) (*v1.ConfigFile, string) {
	t.Helper()
	dir := t.TempDir()
	untar(t, read(t, dist(t, "brine_*_image.tar")), dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool {
		return d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
	})
	if at < 0 {
		t.Fatalf("the index has no linux/%s: %v", runtime.GOARCH, manifest.Manifests)
	}
	img, err := index.Image(manifest.Manifests[at].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		untar(t, b.Bytes(), root)
	}
	dockerReads(t, dir, config)
	return config, root
}

// dockerReads checks what "docker load" of older releases looks for.
func dockerReads(t *testing.T, dir string, config *v1.ConfigFile) {
	t.Helper()
	var images []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(read(t, filepath.Join(dir, "manifest.json")), &images); err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		if len(read(t, filepath.Join(dir, i.Config))) > 0 && slices.ContainsFunc(i.RepoTags, func(tag string) bool {
			return tag == "brine:"+imageTag(t) && len(images) == 1 || tag == "brine:"+imageTag(t)+"-"+config.Architecture
		}) {
			for _, l := range i.Layers {
				read(t, filepath.Join(dir, l))
			}
			return
		}
	}
	t.Errorf("manifest.json has no image of %s: %v", config.Architecture, images)
}

// imageTag is the tag that the example of a Job has, too.
func imageTag(t *testing.T) string {
	t.Helper()
	tag := strings.ReplaceAll(released(t), "+", "-")
	says(t, string(read(t, dist(t, "brine_*_job.yaml"))), "image: brine:"+tag+"\n")
	return tag
}

func TestImageIsSmallAndNotRoot(t *testing.T) {
	config, root := oci(t)
	if config.Config.User != nobody || !slices.Equal(config.Config.Entrypoint, []string{"/brine"}) || len(config.Config.Cmd) != 0 {
		t.Errorf("the image runs %v %v as %q", config.Config.Entrypoint, config.Config.Cmd, config.Config.User)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != released(t) {
		t.Errorf("its label says version %q", got)
	}
	files, err := os.ReadDir(root)
	if err != nil || len(files) != 3 || files[0].Name() != "brine" {
		t.Errorf("the image holds %v (%v)", files, err)
	}
	says(t, string(read(t, filepath.Join(root, "licenses", "LICENSE"))), "Apache License")
	says(t, string(read(t, filepath.Join(root, "licenses", "THIRD-PARTY-LICENSES.txt"))), "k8s.io/client-go ")
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(read(t, filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))) {
		t.Error("the image has no CAs")
	}
	needRoot(t)
	open(t, root)
	says(t, run(t, in(root, 65532, "/brine", "version")), "brine v"+released(t))
}

// open lets other users into a root that the test made for itself.
func open(t *testing.T, root string) {
	t.Helper()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
}

// running is a control plane of the test's own.
func running(t *testing.T) string {
	t.Helper()
	cluster, dir := filepath.Join("..", "cluster"), filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() { _ = exec.Command(cluster, "down", "--dir", dir).Run() })
	return strings.TrimSpace(run(t, exec.Command(cluster, "up", "--dir", dir, "--port", "0", "--nodes", "1")))
}

// The whole way of the Job in the release: the roles that "brine rbac" writes,
// the ConfigMap, the manifest; and what its container does. No kubelet is here,
// so the image's root is laid out as one would: the mounted token, the mounted
// bundle with its links, nothing else, a root that cannot be written to.
func TestJobInsideTheCluster(t *testing.T) {
	needRoot(t)
	config, root := oci(t)
	kubeconfig := running(t)
	kube := func(stdin string, args ...string) string {
		cmd := kubectl(t, args...)
		cmd.Env, cmd.Stdin = append(os.Environ(), "KUBECONFIG="+kubeconfig), strings.NewReader(stdin)
		return run(t, cmd)
	}
	sample := t.TempDir()
	for _, name := range []string{"namespace.yaml", "settings.yaml"} {
		text := map[string]string{
			"namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
			"settings.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {mode: one}\n",
		}[name]
		if err := os.WriteFile(filepath.Join(sample, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	brine := filepath.Join(root, "brine")
	kube("", "create", "namespace", "deploy")
	roles := run(t, exec.Command(brine, "rbac", "-f", sample, "--inventory", "deploy/shop", "--service-account", "deploy/brine"))
	kube(roles, "apply", "-f", "-")
	kube("", "--namespace", "deploy", "create", "configmap", "bundle", "--from-file="+sample)
	manifest := string(read(t, dist(t, "brine_*_job.yaml")))
	kube(manifest, "apply", "-f", "-")

	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					ServiceAccountName string
					Containers         []struct {
						Image string
						Args  []string
					}
				}
			}
		}
	}
	_, text, _ := strings.Cut(manifest, "\n---\n")
	if err := yaml.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if container.Image != "brine:"+released(t) {
		t.Errorf("the Job's image is %s", container.Image)
	}
	address := mount(t, root, sample, kubeconfig, kube("", "--namespace", "deploy", "create", "token", job.Spec.Template.Spec.ServiceAccountName))
	open(t, root)
	apply := func() (string, error) {
		cmd := in(root, 65532, config.Config.Entrypoint[0], container.Args...)
		cmd.Env = append(config.Config.Env, "KUBERNETES_SERVICE_HOST="+address[0], "KUBERNETES_SERVICE_PORT="+address[1])
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := apply()
	if err != nil {
		t.Fatalf("brine in the image: %v\n%s", err, out)
	}
	says(t, out, "created     ConfigMap shop/settings  (/bundle/settings.yaml:1)", "inventory deploy/shop")
	if strings.Contains(out, "warning") {
		t.Errorf("the roles of brine rbac are not enough:\n%s", out)
	}
	if out, err = apply(); err != nil {
		t.Fatalf("brine in the image, again: %v\n%s", err, out)
	}
	says(t, out, "unchanged ")
	if mode := kube("", "--namespace", "shop", "get", "configmap", "settings", "-o", "jsonpath={.data.mode}"); mode != "one" {
		t.Errorf("the ConfigMap says %q", mode)
	}
	// What the roles do not give is refused.
	cmd := in(root, 65532, "/brine", "apply", "-f", "-", "--inventory=kube-system/other")
	cmd.Env = []string{"KUBERNETES_SERVICE_HOST=" + address[0], "KUBERNETES_SERVICE_PORT=" + address[1]}
	cmd.Stdin = strings.NewReader("apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: kube-system}\n")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 6 {
		t.Errorf("without the right to: %v, want exit code 6\n%s", err, out)
	}
}

// mount lays out what a kubelet gives a container, and returns the server's
// host and port.
func mount(t *testing.T, root, bundle, kubeconfig, token string) []string {
	t.Helper()
	var config struct {
		Clusters []struct {
			Cluster map[string]string
		}
	}
	if err := yaml.Unmarshal(read(t, kubeconfig), &config); err != nil {
		t.Fatal(err)
	}
	cluster := config.Clusters[0].Cluster
	ca, err := base64.StdEncoding.DecodeString(cluster["certificate-authority-data"])
	if err != nil {
		t.Fatal(err)
	}
	if file := cluster["certificate-authority"]; file != "" {
		ca = read(t, file)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(cluster["server"], "https://"))
	if err != nil {
		t.Fatal(err)
	}
	volume := func(at string, files map[string][]byte) {
		dir := filepath.Join(root, at)
		if err := os.MkdirAll(filepath.Join(dir, "..2026_11_21"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.Symlink("..2026_11_21", filepath.Join(dir, "..data"))
		for name, data := range files {
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "..2026_11_21", name), data, 0o644)
			}
			if err == nil {
				err = os.Symlink("..data/"+name, filepath.Join(dir, name))
			}
		}
		if err != nil {
			t.Fatal(fmt.Errorf("lay out %s: %w", at, err))
		}
	}
	volume("var/run/secrets/kubernetes.io/serviceaccount", map[string][]byte{"token": []byte(token), "ca.crt": ca, "namespace": []byte("deploy")})
	files := map[string][]byte{}
	for _, name := range []string{"namespace.yaml", "settings.yaml"} {
		files[name] = read(t, filepath.Join(bundle, name))
	}
	volume("bundle", files)
	return []string{host, port}
}
