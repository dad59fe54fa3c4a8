package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"brine/bundle/bundletest"
)

const secrets = `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"kind":"Secret","data":{"p":"T0xEVkFMVUU="}}'}}
  data: {encoded: S0VQVFZBTFVF, wrapped: "V1JBUFBF\nRFZBTFVF"}
  stringData:
    password: 'pass"word<1>&'
    word: swordfish
    short: ab
    flag: "true"
    port: "5432"
    pin: 123456
    host: shop-db
    key: |
      -----BEGIN PRIVATE KEY-----
      MIIEvQIBADANBgkqhkiG9w0BAQEFAASC
      first line of it
      -----END PRIVATE KEY-----
    config.yaml: |
      global:
        receiver: default
        smtp_auth_password: 'mail-pass-1'
      url: http://app:url-pass-2@db.example.com/x
    .dockerconfigjson: '{"auths":{"r.example.com":{"password":"docker-pass"}}}'
- apiVersion: example.com/v1
  kind: Thing
  spec: {template: {kind: Secret, stringData: {nested: nested-value-9}}}
`

func TestText(t *testing.T) {
	var r Redactor
	r.Public("shop-db", "shop")
	r.Add(bundletest.Map(t, secrets))
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	quoted, _ := json.Marshal(`pass"word<1>&`)
	for name, test := range map[string]struct{ text, want string }{
		"encoded data, decoded":      {"bad KEPTVALUE.", "bad ***."},
		"as written":                 {"bad S0VQVFZBTFVF.", "bad ***."},
		"base64 in two lines":        {"bad WRAPPEDVALUE.", "bad ***."},
		"last applied":               {"OLDVALUE, T0xEVkFMVUU=", "***, ***"},
		"within a word":              {`xpass"word<1>&x`, "x***x"},
		"quoted by Go":               {fmt.Sprintf("%q", `pass"word<1>&`), `"***"`},
		"quoted by JSON":             {string(quoted), `"***"`},
		"in a URL":                   {"?p=pass%22word%3C1%3E%26&x=1", "?p=***&x=1"},
		"base64":                     {b64(`pass"word<1>&`), "***"},
		"a word":                     {`login "swordfish" refused, swordfish.`, `login "***" refused, ***.`},
		"a word is not in names":     {"Pod shop/swordfish-0: spec.swordfish", "Pod shop/swordfish-0: spec.swordfish"},
		"a number":                   {"Value:123456}, 1234567", "Value:***}, 1234567"},
		"common ones stay":           {`enabled: "true", port 5432, ab`, `enabled: "true", port 5432, ab`},
		"names stay":                 {"Service shop-db", "Service shop-db"},
		"a line":                     {"log: first line of it", "log: ***"},
		"a line of a key":            {"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "***"},
		"structure stays":            {"-----BEGIN PRIVATE KEY-----\nglobal:\n  receiver: default", "-----BEGIN PRIVATE KEY-----\nglobal:\n  receiver: default"},
		"a password in a file":       {"auth failed: mail-pass-1", "auth failed: ***"},
		"a password in a URL":        {"dial app:url-pass-2@db", "dial app:***@db"},
		"a password in JSON":         {"401 for docker-pass", "401 for ***"},
		"of a Secret inside another": {"nested-value-9", "***"},
		"the beginning of a value":   {"log: nested-va…, nested-va", "log: ***…, ***"},
		"two":                        {"docker-passdocker-pass", "******"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.Text(test.text); got != test.want {
				t.Errorf("%q became %q, want %q", test.text, got, test.want)
			}
		})
	}
	var none Redactor
	if got := none.Text("docker-pass"); got != "docker-pass" {
		t.Error(got)
	}
}

func TestExact(t *testing.T) {
	o := bundletest.Map(t, secrets)
	got := Exact(`invalid: "ab", true, 5432, shop-db, docker-pass, table`, o)
	if got != `invalid: "***", ***, ***, ***, ***, table` {
		t.Error(got)
	}
	if got := Exact("a true thing", map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "true"}}); got != "a true thing" {
		t.Error(got)
	}
}

// Whatever the value and the text around it: the value is not in what comes out,
// and what comes out does not change any more.
func FuzzText(f *testing.F) {
	for _, seed := range [][2]string{
		{"pass\"word<1>&", "a %s b"}, {"two\nlines of it", "%s"}, {"swordfish", "(%s)"}, {"\xff\xfe\x00binary", "%s%s"},
		{"***secret***", "x%s"}, {"aaaaaaaa", "aaa%saa"}, {"{\"a\":\"long-enough\"}", "%s"}, {"k: v\npassword: 12345678\n", "%s"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, value, around string) {
		var r Redactor
		r.AddValue(value)
		text := strings.ReplaceAll(around, "%s", " "+value+" ")
		for _, s := range []string{text, fmt.Sprintf("%q", text), base64.StdEncoding.EncodeToString([]byte(value))} {
			got := r.Text(s)
			if again := r.Text(got); again != got && !strings.Contains(value, "*") && !strings.Contains(around, "*") {
				t.Errorf("not the same when redacted again: %q, %q", got, again)
			}
			if len(value) >= longWord && !strings.Contains(value, "*") && strings.Contains(got, value) {
				t.Error("the value is in it")
			}
		}
		_ = Exact(text, map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": value}})
	})
}

func random(n int, source *rand.Rand) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(source.Uint32())
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

func manySecrets(n int) []map[string]any {
	source := rand.New(rand.NewPCG(1, 2))
	all := make([]map[string]any, n)
	for i := range all {
		all[i] = map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{
			"password": base64.StdEncoding.EncodeToString([]byte(random(18, source))),
			"tls.key":  base64.StdEncoding.EncodeToString([]byte("-----BEGIN PRIVATE KEY-----\n" + random(48, source) + "\n" + random(48, source) + "\n-----END PRIVATE KEY-----\n")),
			"url":      base64.StdEncoding.EncodeToString([]byte("https://app:" + random(12, source) + "@db.example.com/app")),
		}}
	}
	return all
}

func BenchmarkAdd5000Secrets(b *testing.B) {
	all := manySecrets(5000)
	for b.Loop() {
		var r Redactor
		for _, s := range all {
			r.Add(s)
		}
		r.Text("text")
	}
}

// BenchmarkText10000 is what 10,000 objects say: a reason of 200 bytes each, and
// a diff of 1 KiB.
func BenchmarkText10000(b *testing.B) {
	reason := strings.Repeat("Deployment does not have minimum availability, https://example.com. ", 3)[:200]
	d := strings.Repeat("+        image: registry.example.com/shop/web:1.2.3\n", 20)[:1024]
	for _, n := range []int{0, 10, 5000} {
		b.Run(fmt.Sprintf("%d_Secrets", n), func(b *testing.B) {
			var r Redactor
			for _, s := range manySecrets(n) {
				r.Add(s)
			}
			r.Text("text")
			for b.Loop() {
				for range 10_000 {
					if r.Text(reason) != reason || r.Text(d) != d {
						b.Fatal("changed")
					}
				}
			}
		})
	}
}
