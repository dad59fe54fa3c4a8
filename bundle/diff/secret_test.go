package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/bundletest"
	"brine/bundle/redact"
)

const secret = `
apiVersion: v1
kind: Secret
metadata:
  name: settings
  namespace: shop
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"apiVersion":"v1","kind":"Secret","data":{"old":"T0xEVkFMVUU="}}'
data:
  kept: S0VQVFZBTFVF
  turned: QkVGT1JFVkFMVUU=
  gone: R09ORVZBTFVF
`

const secretAfter = `
apiVersion: v1
kind: Secret
metadata:
  name: settings
  namespace: shop
data:
  kept: S0VQVFZBTFVF
  added: QURERURWQUxVRQ==
stringData:
  turned: AFTERVALUE
`

// values are what must never be shown of the two, plain and encoded.
var values = []string{"VALUE", "T0xEVkFMVUU=", "S0VQVFZBTFVF", "QkVGT1JFVkFMVUU=", "R09ORVZBTFVF", "QURERURWQUxVRQ==", "QUZURVJWQUxVRQ=="}

// leak fails without telling what leaked.
func leak(t *testing.T, where, text string) {
	t.Helper()
	for i, v := range values {
		if strings.Contains(text, v) {
			t.Fatalf("%s shows value number %d of a Secret", where, i)
		}
	}
}

func TestSecretsAreMaskedAndTheirChangesSeen(t *testing.T) {
	d := Objects(bundletest.Object(t, secret), bundletest.Object(t, secretAfter), nil)
	j, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	leak(t, "the diff", string(j))
	var got []string
	for _, c := range d.Changes {
		if strings.HasPrefix(c.Path, "data") {
			got = append(got, fmt.Sprintf("%s: %v -> %v", c.Path, c.Old, c.New))
		}
	}
	want := "[data.added: <nil> -> *** data.gone: *** -> <nil> data.turned: *** -> *** (changed)]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v", got)
	}
	for _, line := range []string{"-  turned: '***'", "+  turned: '*** (changed)'", "   kept: '***'"} {
		if !strings.Contains(d.Unified, line+"\n") {
			t.Errorf("no line %q in\n%s", line, d.Unified)
		}
	}
	for _, one := range []Diff{Objects(bundletest.Object(t, secret), nil, nil), Objects(nil, bundletest.Object(t, secretAfter), nil)} {
		leak(t, "a creation or deletion", one.Unified)
	}
	if !Equal(bundletest.Object(t, secret), bundletest.Object(t, secret)) || Equal(bundletest.Object(t, secret), bundletest.Object(t, secretAfter)) {
		t.Error("Equal does not see what changed")
	}
}

func TestMask(t *testing.T) {
	indent := func(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") }
	for name, text := range map[string]string{
		"secret":     secret,
		"stringData": secretAfter,
		"list":       "apiVersion: v1\nkind: List\nitems:\n  - " + indent(secret) + "\n  - " + indent(secretAfter),
		"in a CR":    "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec:\n  resources:\n  - " + indent(secretAfter),
		"no version": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {template: {kind: Secret, stringData: {a: AFTERVALUE}}}",
		"not a map":  "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: AVALUE",
		"not text":   "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: {b: AVALUE}, c: [AVALUE]}",
		"CR annotated": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: AVALUE}}\n" +
			"spec: {template: {kind: Secret, stringData: {a: AFTERVALUE}}}",
	} {
		t.Run(name, func(t *testing.T) {
			u := bundletest.Object(t, text)
			before := fmt.Sprint(u.Object)
			m := maskedAlone(u)
			leak(t, "the masked object", fmt.Sprint(m.Object))
			if !strings.Contains(fmt.Sprint(m.Object), "***") {
				t.Error("nothing is masked")
			}
			if fmt.Sprint(u.Object) != before {
				t.Error("the object itself was changed")
			}
			d := Objects(u, maskedAlone(u), nil)
			leak(t, "a diff", d.Unified+fmt.Sprint(d.Changes))
		})
	}
	plain := bundletest.Object(t, deployment)
	if fmt.Sprint(maskedAlone(plain).Object) != fmt.Sprint(plain.Object) || maskedAlone(nil) != nil {
		t.Error("Mask changes what is no Secret")
	}
	sealed := bundletest.Object(t, "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a}\nspec: {encryptedData: {a: x}}")
	if strings.Contains(fmt.Sprint(maskedAlone(sealed).Object), "***") {
		t.Error("a SealedSecret is encrypted already")
	}
}

// Values of Secrets do not show in the diffs of other objects, and that they
// change still does.
func TestRedact(t *testing.T) {
	var r redact.Redactor
	r.Add(bundletest.Object(t, secret).Object)
	r.Add(bundletest.Object(t, secretAfter).Object)
	from := strings.Replace(deployment, "[a, b, c]", "[KEPTVALUE, x=BEFOREVALUE, c]", 1)
	to := strings.Replace(deployment, "[a, b, c]", "[KEPTVALUE, x=AFTERVALUE, c]", 1)
	a, b := bundletest.Object(t, from), bundletest.Object(t, to)
	before := fmt.Sprint(a.Object, b.Object)
	d := Objects(a, b, r.Text)
	leak(t, "the diff", d.Unified+fmt.Sprint(d.Changes))
	if got, want := fmt.Sprint(d.Changes), "[{spec.template.spec.containers[name=app].args[1] x=*** x=*** (changed)   }]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if made := Objects(nil, b, r.Text); strings.Contains(made.Unified, "(changed)") || !strings.Contains(made.Unified, "- '***'") {
		t.Error("created: a mark of a change, or nothing masked")
	}
	if fmt.Sprint(a.Object, b.Object) != before {
		t.Error("the objects themselves were changed")
	}
}

func maskedAlone(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	m, _ := masked(u.Object, nil)
	object, _ := m.(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// Where an apply-time mutation copies a value of a Secret, it is masked, in whatever version says so.
func TestCopiesOfSecrets(t *testing.T) {
	object := func(annotation, url string, replicas int) *unstructured.Unstructured {
		return bundletest.Object(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {a: b%s}}, spec: {replicas: %d, template: {spec: {containers: [{name: c, image: i, args: [%q]}]}}}}`, annotation, replicas, url))
	}
	mutation := func(kind string) string {
		return fmt.Sprintf(`, config.kubernetes.io/apply-time-mutation: "[{sourceRef: {kind: %s, name: s}, sourcePath: $.data.url, targetPath: '$.spec.template.spec.containers[0].args[0]'}]"`, kind)
	}
	const unreadable = `, config.kubernetes.io/apply-time-mutation: "["`
	for name, test := range map[string]struct {
		before, after *unstructured.Unstructured
		shown         string // how the change of the value is shown
		replicas      bool   // another change is shown
		hides         bool
	}{
		"both":             {object(mutation("Secret"), "first-value", 1), object(mutation("Secret"), "other-value", 2), maskChanged, true, true},
		"the same value":   {object(mutation("Secret"), "first-value", 1), object(mutation("Secret"), "first-value", 2), "", true, true},
		"no more":          {object(mutation("Secret"), "first-value", 1), object("", "harmless", 2), maskChanged, true, true},
		"new":              {object("", "first-value", 1), object(mutation("Secret"), "other-value", 2), maskChanged, true, true},
		"created":          {nil, object(mutation("Secret"), "first-value", 1), mask, false, true},
		"deleted":          {object(mutation("Secret"), "first-value", 1), nil, mask, false, true},
		"it is not known":  {object(unreadable, "first-value", 1), object(unreadable, "other-value", 1), maskChanged, false, true},
		"of no Secret":     {object(mutation("ConfigMap"), "first-value", 1), object(mutation("ConfigMap"), "other-value", 2), "other-value", true, false},
		"in no annotation": {object("", "first-value", 1), object("", "other-value", 2), "other-value", true, false},
	} {
		d := Objects(test.before, test.after, nil)
		said := fmt.Sprint(d.Unified, d.Changes)
		if strings.Contains(said, "-value") == test.hides || !strings.Contains(said, test.shown) || strings.Contains(fmt.Sprint(d.Changes), "spec.replicas") != test.replicas {
			t.Errorf("%s: %s", name, strings.ReplaceAll(said, "-value", "(a value)"))
		}
		for _, u := range []*unstructured.Unstructured{test.before, test.after} {
			if u != nil && strings.Contains(fmt.Sprint(Shown(u, nil)), "-value") && strings.Contains(fmt.Sprint(u.Object), "Secret") {
				t.Errorf("%s: it shows a value", name)
			}
		}
	}
}

// The field is found where it is on the cluster, and of a Secret all values are masked as well.
func TestCopiesOfSecretsElsewhere(t *testing.T) {
	const mutation = `config.kubernetes.io/apply-time-mutation: "[{sourceRef: {kind: Secret, name: s}, sourcePath: $.data.url, targetPath: '%s'}]"`
	object := func(path, rest string) *unstructured.Unstructured {
		return bundletest.Object(t, "{metadata: {name: web, annotations: {"+fmt.Sprintf(mutation, path)+"}}, "+rest+"}")
	}
	const env = "$.spec.env[0].value"
	pods := func(items string) *unstructured.Unstructured {
		return object(env, "apiVersion: v1, kind: Pod, spec: {replicas: 1, env: ["+items+"]}")
	}
	for name, test := range map[string]struct{ before, after *unstructured.Unstructured }{
		"another item before it": {pods("{name: other, value: x}, {name: url, value: first-value}"), pods("{name: url, value: other-value}")},
		"no such field":          {object("$.spec.none", "apiVersion: v1, kind: Pod, spec: {url: first-value}"), object("$.spec.none", "apiVersion: v1, kind: Pod, spec: {url: other-value}")},
		"no path at all":         {object("$..[", "apiVersion: v1, kind: Pod, spec: {url: first-value}"), object("$..[", "apiVersion: v1, kind: Pod, spec: {url: other-value}")},
		"a Secret":               {object("$.data.url", "apiVersion: v1, kind: Secret, data: {url: Zmlyc3Q=, pin: first-value}"), object("$.data.url", "apiVersion: v1, kind: Secret, data: {url: Zmlyc3Q=, pin: other-value}")},
		"a Secret's text":        {object("$.stringData.url", "apiVersion: v1, kind: Secret, data: {pin: first-value}"), object("$.stringData.url", "apiVersion: v1, kind: Secret, stringData: {url: first-value}, data: {pin: other-value}")},
		"deleted":                {pods("{name: other, value: x}, {name: url, value: first-value}"), nil},
	} {
		d := Objects(test.before, test.after, nil)
		said := fmt.Sprint(d.Unified, d.Changes, Shown(test.before, nil))
		if strings.Contains(said, "-value") || strings.Contains(said, "Zmlyc3Q") || d.Unified == "" {
			t.Errorf("%s: a value is shown, or nothing at all", name)
		}
	}
}
