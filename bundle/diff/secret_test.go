package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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
			t.Errorf("%s shows value number %d of a Secret", where, i)
		}
	}
}

func TestSecretsAreMaskedAndTheirChangesSeen(t *testing.T) {
	d := Objects(object(t, secret), object(t, secretAfter), Options{Context: 20})
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
	for _, one := range []Diff{Objects(object(t, secret), nil, Options{}), Objects(nil, object(t, secretAfter), Options{})} {
		leak(t, "a creation or deletion", one.Unified)
	}
	if !Equal(object(t, secret), object(t, secret)) || Equal(object(t, secret), object(t, secretAfter)) {
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
			u := object(t, text)
			before := fmt.Sprint(u.Object)
			m := Mask(u)
			leak(t, "the masked object", fmt.Sprint(m.Object))
			if !strings.Contains(fmt.Sprint(m.Object), "***") {
				t.Error("nothing is masked")
			}
			if fmt.Sprint(u.Object) != before {
				t.Error("the object itself was changed")
			}
			d := Objects(u, Mask(u), Options{})
			leak(t, "a diff", d.Unified+fmt.Sprint(d.Changes))
		})
	}
	plain := object(t, deployment)
	if fmt.Sprint(Mask(plain).Object) != fmt.Sprint(plain.Object) || Mask(nil) != nil {
		t.Error("Mask changes what is no Secret")
	}
	sealed := object(t, "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a}\nspec: {encryptedData: {a: x}}")
	if strings.Contains(fmt.Sprint(Mask(sealed).Object), "***") {
		t.Error("a SealedSecret is encrypted already")
	}
}

func TestRedact(t *testing.T) {
	multi := `
apiVersion: v1
kind: Secret
metadata: {name: a}
stringData:
  key: |
    first line VALUE
    second line VALUE
  short: ab
  number: 12345678
`
	for name, test := range map[string]struct{ object, text, want string }{
		"raw":          {secretAfter, "bad AFTERVALUE.", "bad ***."},
		"encoded":      {secretAfter, "bad QUZURVJWQUxVRQ==.", "bad ***."},
		"decoded":      {secretAfter, "bad KEPTVALUE.", "bad ***."},
		"last applied": {secret, "bad OLDVALUE, T0xEVkFMVUU=", "bad ***, ***"},
		"a line":       {multi, `"second line VALUE"`, `"***"`},
		"quoted":       {multi, `"first line VALUE\nsecond line VALUE\n"`, `"***"`},
		"a number":     {multi, "got &value.valueUnstructured{Value:12345678}", "got &value.valueUnstructured{Value:***}"},
		"a short word": {multi, "ab is about ab", "*** is about ***"},
		"no secret":    {deployment, "web:1", "web:1"},
		"none":         {"", "text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Redact(test.text, object(t, test.object))
			leak(t, "the text", got)
			if got != test.want {
				t.Errorf("it is not %q", test.want)
			}
		})
	}
}
