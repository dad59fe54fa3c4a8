package read

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
)

// readShared reads files of the real bundles, the slots in them filled.
func readShared(t *testing.T, o Options, files ...string) *bundle.Bundle {
	t.Helper()
	dir := sharedBundles(t)
	for i, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("__slot__:salt:"), []byte("filled ")), 0o600); err != nil {
			t.Fatal(err)
		}
		files[i] = file
	}
	o.Files = files
	b, err := Bundle(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := Resolve(b, Resolver{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// What a real Salt printed gives the same objects as the manifests it rendered.
func TestReadSaltOutputOfRealBundles(t *testing.T) {
	settings := mustRead(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: metalk8s-ingress}\ndata: {mode: \"on\"}\n").Objects
	manifests := func(name string) []*bundle.Object {
		return readShared(t, Options{}, filepath.Join("metalk8s-new", name+".yaml")).Objects
	}
	for sample, want := range map[string][]*bundle.Object{
		"dex-chart":           manifests("dex-chart"),
		"nginx-ingress-chart": manifests("nginx-ingress-chart"),
		"deploy":              append(manifests("nginx-ingress-chart"), settings...),
	} {
		for _, format := range []string{"high", "low", "renderer"} {
			t.Run(sample+"."+format, func(t *testing.T) {
				o := Options{IgnoreNonKubernetesStates: true}
				auto := readShared(t, o, filepath.Join("salt-output", sample+"."+format+".json"))
				o.InputFormat = format
				if format == "renderer" {
					o.InputFormat = FormatHigh
				}
				forced := readShared(t, o, filepath.Join("salt-output", sample+"."+format+".json"))
				want := want
				if sample+format == "deployrenderer" { // one file, its include not followed
					want = settings
				}
				for _, b := range []*bundle.Bundle{auto, forced} {
					if len(b.Objects) != len(want) {
						t.Fatalf("%d objects, want %d", len(b.Objects), len(want))
					}
					for i, obj := range b.Objects {
						if obj.ID != want[i].ID || !reflect.DeepEqual(obj.Content.Object, want[i].Content.Object) {
							t.Errorf("%s is not as in its manifest", bundle.Name(obj.ID))
						}
						if obj.Source.State == "" || obj.Source.Line == 0 || obj.Source.SLS == "" && format != "renderer" {
							t.Errorf("%s: source %+v", bundle.Name(obj.ID), obj.Source)
						}
					}
					if gone := len(b.Absent); (sample == "deploy") != (gone == 1) {
						t.Fatalf("%d are to be absent", gone)
					}
				}
				if sample != "deploy" {
					return
				}
				if a := auto.Absent[0]; bundle.Name(a.ID) != "ConfigMap metalk8s-ingress/old-settings" || a.GVK.Version != "v1" || a.Source.State != "Remove old settings" {
					t.Errorf("absent: %+v", a)
				}
				if format == "renderer" {
					return
				}
				i := slices.IndexFunc(auto.Objects, func(o *bundle.Object) bool { return o.ID.Name == "settings" })
				if got := auto.Objects[i].Requisites; len(got) != 10 || got[0].Reason != "require: Wait for ingress, require: sls nginx-ingress-chart" {
					t.Errorf("requisites of settings: %v", got)
				}
			})
		}
	}
}

const highOne = `{"local": {"A": {"k.object_present": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": DATA}}, MORE]}}}`

func high(data, more string) string {
	return strings.Replace(strings.Replace(highOne, "DATA", data, 1), "MORE", more, 1)
}

// Whatever Salt prints in place of states is an error, never an empty bundle.
func TestReadRefusesWhatSaltPrintsInPlaceOfStates(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"errors":                 {`{"local": ["Rendering SLS 'base:x' failed: mapping values"]}`, "-:1: Salt did not render this: Rendering SLS 'base:x' failed"},
		"errors, not wrapped":    {`["No matching sls found for 'x' in env 'base'"]`, "Salt did not render this: No matching sls"},
		"one error":              {`{"local": "'state.show_sls' is not available."}`, "Salt did not render this: 'state.show_sls' is not available."},
		"nothing":                {`{}`, "Salt rendered nothing ({})"},
		"nothing, wrapped":       {`{"local": {}}`, "Salt rendered nothing ({})"},
		"an empty list, wrapped": {`{"local": []}`, "Salt rendered nothing ([])"},
		"null, wrapped":          {`{"local": null}`, "Salt rendered nothing (null)"},
		"YAML":                   {"local: {}\n", "Salt rendered nothing ({})"},
		"a foreign state":        {high("{}", `{"order": 1}`)[:len(high("{}", `{"order": 1}`))-2] + `, "B": {"pkg.installed": [{"name": "vim"}]}}}`, `(state "B"): pkg.installed is not an object`},
		"an object that is bad":  {high(`{"a": true}`, `{"order": 1}`), `(state "A"): ConfigMap a: data.a`},
		"an unknown requisite":   {high("{}", `{"require": [{"k": "gone"}]}`), `(state "A"): require: no state`},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := read(c.in)
			if err == nil {
				t.Fatalf("read as %d objects", len(b.Objects))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// slsutil.renderer prints what only jinja renders as text.
func TestReadTextThatSaltRendered(t *testing.T) {
	b := mustRead(t, `{"local": "#!jinja\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"}`)
	if len(b.Objects) != 2 || b.Objects[1].Source.String() != "- (the text in it):6" {
		t.Errorf("%d objects, the last at %s", len(b.Objects), b.Objects[len(b.Objects)-1].Source)
	}
	b = mustRead(t, `{"local": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}}`)
	if len(b.Objects) != 1 || b.Objects[0].ID.Name != "a" {
		t.Errorf("a single manifest under local: %v", b.Objects)
	}
}

// A forced format does not guess.
func TestReadForcedInputFormat(t *testing.T) {
	text := high("{}", `{"order": 1}`)
	for format, ok := range map[string]bool{"": true, FormatAuto: true, FormatHigh: true, FormatManifests: false, FormatLow: false} {
		_, err := Bundle(context.Background(), Options{Files: []string{"-"}, Stdin: strings.NewReader(text), InputFormat: format})
		if (err == nil) != ok {
			t.Errorf("%q: %v", format, err)
		}
	}
}

// An order that deletion cannot keep is said, and the rest goes on.
func TestReadWarnsOfARequisiteOnAnAbsence(t *testing.T) {
	b := mustRead(t, high("{}", `{"require": [{"k": "Gone"}]}`)[:len(high("{}", `{"require": [{"k": "Gone"}]}`))-2]+
		`, "Gone": {"k.object_absent": [{"name": "old"}, {"kind": "ConfigMap"}, {"apiVersion": "v1"}]}}}`)
	if len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0].Error(), `require: Gone: state "Gone" removes its object`) {
		t.Errorf("%v", b.Warnings)
	}
}

// Several files given together are one high state: requisites lead from one to
// the other, and what leads nowhere is told where it stands.
func TestReadLinksStatesOfSeveralFiles(t *testing.T) {
	folder := t.TempDir()
	state := func(id, name, requires string) string {
		return fmt.Sprintf("%s:\n  k.object_present:\n  - manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}\n  - require: [%s]\n", id, name, requires)
	}
	one, two := filepath.Join(folder, "one.sls"), filepath.Join(folder, "two.sls")
	for path, text := range map[string]string{one: state("First", "a", "{k: Second}"), two: state("Second", "b", "")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Bundle(t.Context(), Options{Files: []string{one, two}})
	if err == nil {
		err = Resolve(b, Resolver{Namespace: "ns"})
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []bundle.Requisite{{On: b.Objects[1].ID, Reason: "require: Second", Object: b.Objects[1]}}
	if got := b.Objects[0].Requisites; !reflect.DeepEqual(got, want) || b.Objects[1].ID.Name != "b" || len(b.Objects[1].Requisites) > 0 {
		t.Errorf("requisites %v and %v, want %v", got, b.Objects[1].Requisites, want)
	}
	if _, err := Bundle(t.Context(), Options{Files: []string{one}}); err == nil || !strings.Contains(err.Error(), one+":4 (state \"First\"") || !strings.Contains(err.Error(), "no state of the bundle matches {k: Second}") {
		t.Errorf("one file alone: %v", err)
	}
}

// The Salt module adds the file of each SLS to the low data.
func TestReadNamesTheFileOfAnSLS(t *testing.T) {
	low := func(fun, more string) string {
		return "# brine.dev/source: 0 compiled SLS\n" + `[{"state": "k", "fun": "` + fun + `", "__id__": "A", "name": "A", "__sls__": "x.y", "__file__": "salt://x/y/init.sls", ` +
			`"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}` + more + `}}]`
	}
	const want = `salt://x/y/init.sls (state "A", sls x.y)`
	if got := mustRead(t, low("object_present", "")).Objects[0].Source.String(); got != want {
		t.Errorf("the object is at %s, want %s", got, want)
	}
	for fun, more := range map[string]string{"object_updated": "", "object_present": `, "data": {"port": 8080}`} {
		_, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(low(fun, more)), IgnoreNonKubernetesStates: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error does not name %s: %v", fun, want, err)
		}
	}
}

// The name and namespace of object_absent are held to the rules of an object's.
func TestReadChecksTheNamesOfAbsentObjects(t *testing.T) {
	state := func(name, namespace string) string {
		return `[{"state": "k", "fun": "object_absent", "__id__": "Old", "name": ` + name + `, "kind": "ConfigMap", "apiVersion": "v1", "namespace": ` + namespace + `}]`
	}
	for in, want := range map[string]string{
		state("123", `"prod"`):       `metadata.name: must be text, and 123 is a number in YAML`,
		state(`"a"`, `"None"`):       `metadata.namespace: `,
		state(`"a b"`, `"prod"`):     `metadata.name: "a b" cannot be a name`,
		state(`"a"`, `"{{ ns }}"`):   `metadata.namespace: `,
		state(`"prod/a"`, `"prod"`):  `metadata.name: "prod/a" cannot be a name`,
		state(`"a"`, `["{{ ns }}"]`): `namespace: must be text`,
		`[{"state": "k", "fun": "object_absent", "__id__": "Old", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}}]`: `metadata.generateName: every run would create another object`,
	} {
		b, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(in), AllowGenerateName: true})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `(state "Old")`) {
			t.Errorf("%s: %v, want %s; %v", in, err, want, b)
		}
	}
	b := mustRead(t, state(`"a"`, `"prod"`))
	if len(b.Absent) != 1 || bundle.Name(b.Absent[0].ID) != "ConfigMap prod/a" {
		t.Errorf("absent: %v", b.Absent)
	}
}
