package images

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheuses.example.com}
spec:
  group: example.com
  names: {kind: Prometheus, plural: prometheuses}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              image: {type: string}
              thanosImage: {type: string}
              imagePolicy: {type: string}
              picture: {type: object, properties: {image: {type: object, properties: {repository: {type: string}}}}}
              containers: {type: array, items: {type: object, properties: {name: {type: string}, image: {type: string}}}}
`

func TestImagesOfObjects(t *testing.T) {
	definitions := Define([]*unstructured.Unstructured{bundletest.Object(t, crd)})
	for name, c := range map[string]struct{ object, want string }{
		"a pod": {"apiVersion: v1\nkind: Pod\nspec: {initContainers: [{name: i, image: 'a:1'}], containers: [{name: c, image: 'b/c@sha256:00'}], volumes: [{name: v, image: {reference: 'd:2'}}]}",
			`spec.containers[name="c"].image=b/c@sha256:00 spec.initContainers[name="i"].image=a:1 spec.volumes[name="v"].image.reference=d:2`},
		"a CronJob": {"apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: a}]}}}}}",
			`spec.jobTemplate.spec.template.spec.containers[name="c"].image=a`},
		"arguments": {"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: a, args: [--reloader=quay.io/x/reloader:v1, --listen=/a/b:80, --url=http://a/b:1, 'quay.io/y:v2'], env: [{name: E, value: 'r:5000/z:v3'}, {name: F, value: plain}]}]}",
			`spec.containers[name="c"].args[0]?=quay.io/x/reloader:v1 spec.containers[name="c"].args[3]?=quay.io/y:v2 spec.containers[name="c"].env[name="E"].value?=r:5000/z:v3 spec.containers[name="c"].image=a`},
		"a known custom resource": {"apiVersion: example.com/v1\nkind: Prometheus\nspec: {image: 'p:1', thanosImage: 't:1', imagePolicy: Always, picture: {image: {registry: r.io, repository: q, tag: 3}}, containers: [{name: x, image: 'x:1'}]}",
			`spec.containers[name="x"].image=x:1 spec.image=p:1 spec.picture.image=r.io/q:3 spec.thanosImage=t:1`},
		"an unknown one":      {"apiVersion: other.com/v1\nkind: Thing\nspec: {image: 'p:1', imagePullPolicy: Always, title: 'a b'}", `spec.image?=p:1`},
		"an object with none": {"apiVersion: v1\nkind: ConfigMap\ndata: {image: 'p:1'}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range definitions.Of(bundletest.Object(t, c.object)) {
				mark := "="
				if f.Guess {
					mark = "?="
				}
				got = append(got, f.Path+mark+f.Image)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
		})
	}
}

func TestListOfARegistry(t *testing.T) {
	list, err := ReadList(strings.NewReader("# ours\nnginx:1\n quay.io/a/b:v1 # this one\nquay.io/a/c@sha256:11\nr:5000/x\n"))
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]bool{
		"nginx:1": true, "docker.io/library/nginx:1": true, "library/nginx:1": true, "nginx:2": false, "nginx": false,
		"quay.io/a/b:v1": true, "quay.io/a/b:v1@sha256:22": true, "quay.io/a/b@sha256:22": false,
		"quay.io/a/c@sha256:11": true, "quay.io/a/c:v9@sha256:11": true, "quay.io/a/c:v9": false, "r:5000/x:latest": true, "r:5000/x:1": false,
	} {
		if list.Has(image) != want {
			t.Errorf("%s: %v", image, !want)
		}
	}
	o := &bundle.Object{Content: bundletest.Object(t, "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: 'nginx:1', args: ['quay.io/q:1']}, {name: d, image: 'nginx:3'}]}")}
	problems, warnings := Lacking([]*bundle.Object{o}, list, "list.txt")
	if len(problems) != 1 || problems[0].Path != `spec.containers[name="d"].image` || problems[0].Message != "image nginx:3 is not in list.txt" {
		t.Errorf("%+v", problems)
	}
	if len(warnings) != 1 || warnings[0].Message != "quay.io/q:1, perhaps an image, is not in list.txt" {
		t.Errorf("%+v", warnings)
	}
}

func TestSplit(t *testing.T) {
	for image, want := range map[string][]string{
		"a": {"a", ""}, "a:1": {"a", "1"}, "r:5000/a": {"r:5000/a", ""}, "r:5000/a:1": {"r:5000/a", "1"}, "a@sha256:0": {"a", "sha256:0"}, "a:1@sha256:0": {"a", "1@sha256:0"},
	} {
		if repository, version := Split(image); !slices.Equal([]string{repository, version}, want) {
			t.Errorf("%s: %q %q", image, repository, version)
		}
	}
}
