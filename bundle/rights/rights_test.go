package rights

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"brine/bundle"
	"brine/bundle/read"
	"brine/bundle/read/readtest"
	"brine/bundle/sls"
)

var update = flag.Bool("update", false, "write the printed rights into testdata")

// rightsCase is one document of testdata: a bundle in, text out. Its last key is
// want, so that -update can write it again.
type rightsCase struct {
	Name     string
	ReadOnly bool
	// Bundle is read as a file is, Salt's states too.
	Bundle string
	// Verbs are those of all uses, instead of what the bundle asks for.
	Verbs []string
	// Role and Fresh are of TestRoles.
	Role    string
	Subject string
	Fresh   []string
	Want    string
}

func eachCase(t *testing.T, file string, run func(*testing.T, rightsCase) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(text), "\n---\n")
	for i, doc := range docs {
		c := rightsCase{}
		if err := yaml.UnmarshalStrict([]byte(doc), &c); err != nil {
			t.Fatalf("%s: %v:\n%s", file, err, doc)
		}
		t.Run(c.Name, func(t *testing.T) {
			got := strings.TrimSpace(run(t, c))
			if *update {
				head, _, _ := strings.Cut(doc, "\nwant:")
				docs[i] = head + "\nwant: |\n  " + strings.ReplaceAll(got, "\n", "\n  ")
			} else if want := strings.TrimSpace(c.Want); got != want {
				t.Errorf("got\n%s\n\nwant\n%s", got, want)
			}
		})
	}
	if *update {
		all := strings.TrimRight(strings.Join(docs, "\n---\n"), "\n") + "\n"
		if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// uses are those of a case, made as brine rbac makes them.
func uses(t *testing.T, c rightsCase) []Use {
	t.Helper()
	b := readtest.Bundle(t, c.Bundle)
	if err := read.Resolve(b, read.Resolver{Namespace: "default"}); err != nil {
		t.Fatal(err)
	}
	var read []bundle.ID
	if err := sls.FillSlots(b, func(id bundle.ID) (*unstructured.Unstructured, error) {
		read = append(read, id)
		return nil, nil //nolint:nilnil // nothing is there to be read
	}); err != nil {
		t.Fatal(err)
	}
	all := Uses(b, read, c.ReadOnly)
	for i := range all {
		if c.Verbs != nil {
			all[i].Verbs = c.Verbs
		}
	}
	return all
}

// TestUses: a bundle in, what a run does with each object out.
func TestUses(t *testing.T) {
	eachCase(t, "testdata/uses.yaml", func(t *testing.T, c rightsCase) string {
		t.Helper()
		var out strings.Builder
		for _, u := range uses(t, c) {
			content := ""
			if u.Content == nil {
				content = " (no content)"
			}
			fmt.Fprintf(&out, "%s: %s: %s%s\n", bundle.Name(u.ID), u.Resource, strings.Join(u.Verbs, " "), content)
		}
		return out.String()
	})
}

// TestOf: a bundle in, the rights out. What every run needs, for its inventory in
// the namespace home, is printed by the first two cases only.
func TestOf(t *testing.T) {
	always := map[bool]map[Right]bool{true: {}, false: {}}
	for readOnly, set := range always {
		for _, r := range Of(nil, "home", readOnly) {
			set[r] = true
		}
	}
	eachCase(t, "testdata/of.yaml", func(t *testing.T, c rightsCase) string {
		t.Helper()
		wanted := Of(uses(t, c), "home", c.ReadOnly)
		var lines []string
		previous := Right{}
		for i, r := range wanted {
			if i > 0 && compare(wanted[i-1], r) >= 0 {
				t.Errorf("%s stands after %s", r, wanted[i-1])
			}
			if c.Bundle != "" && always[c.ReadOnly][r] {
				continue
			}
			verb := r.Verb
			r.Verb = ""
			if len(lines) > 0 && r == previous {
				lines[len(lines)-1] += " " + verb
				continue
			}
			previous = r
			lines = append(lines, strings.TrimSpace(r.String())+": "+verb)
		}
		for r := range always[c.ReadOnly] {
			if !strings.Contains(fmt.Sprint(wanted), r.String()) {
				t.Errorf("there is no %s", r)
			}
		}
		return strings.Join(lines, "\n")
	})
}

// TestRoles: a bundle in, roles and bindings out.
func TestRoles(t *testing.T) {
	eachCase(t, "testdata/roles.yaml", func(t *testing.T, c rightsCase) string {
		t.Helper()
		var subject *rbacv1.Subject
		kind, name, _ := strings.Cut(c.Subject, " ")
		switch kind {
		case "ServiceAccount":
			var err error
			if subject, err = ServiceAccount(name); err != nil {
				t.Fatal(err)
			}
		case "User":
			subject = User(name)
		case "Group":
			subject = Group(name)
		}
		text, err := Roles(Of(uses(t, c), "home", c.ReadOnly), c.Role, subject, c.Fresh)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	})
}

// No two inventories have roles of the same name, however long theirs are.
func TestRoleName(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("n", 200)
	for _, namespace := range []string{"a", "a-b", strings.Repeat("s", 63)} {
		for _, name := range []string{"c", "b-c", "read-only", long, long + "1", long + "2"} {
			for _, readOnly := range []bool{false, true} {
				got, of := RoleName(namespace, name, readOnly), fmt.Sprint(namespace, "/", name, readOnly)
				if other, ok := seen[got]; ok || len(got) > 253 || len(path.IsValidPathSegmentName(got)) > 0 {
					t.Errorf("%s: the roles of %s are called %q, as those of %q", of, of, got, other)
				}
				seen[got] = of
			}
		}
	}
	if got := RoleName("default", "", true); got != "brine" {
		t.Errorf("without an inventory: %s", got)
	}
}

func TestServiceAccount(t *testing.T) {
	for _, text := range []string{"", "name", "/name", "namespace/"} {
		if subject, err := ServiceAccount(text); err == nil || !strings.Contains(err.Error(), "a ServiceAccount is NAMESPACE/NAME") {
			t.Errorf("%q: %v, %v", text, subject, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	b := readtest.Bundle(t, `
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, scope: Cluster, names: {kind: Thing, plural: things}}}
---
{apiVersion: other.com/v1, kind: Thing, metadata: {name: t}}
---
{apiVersion: other.com/v1, kind: Thing, metadata: {name: u}}
`)
	builtIn := func(gvk schema.GroupVersionKind) bool { return gvk.Group == "" || gvk.Group == "apiextensions.k8s.io" }
	if got := fmt.Sprint(Unknown(b, []bundle.ID{{GroupKind: schema.GroupKind{Group: "db.com", Kind: "Base"}}, {GroupKind: bundle.JobKind}}, builtIn)); got != "[Thing.other.com Base.db.com]" {
		t.Error(got)
	}
}
