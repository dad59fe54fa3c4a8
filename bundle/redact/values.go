package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Which values an object has that are secret, and how texts may write them.

// LastApplied is the annotation in which kubectl keeps the object it applied.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// IsSecret goes by apiVersion and kind; a template inside a custom resource may
// leave the version out. A SealedSecret is encrypted, and a reference to a
// Secret holds no data.
func IsSecret(m map[string]any) bool {
	if m["kind"] != "Secret" {
		return false
	}
	return m["apiVersion"] == "v1" || m["apiVersion"] == nil && (m["data"] != nil || m["stringData"] != nil)
}

// Holds says whether an object is, or holds, a Secret. Of the built-in kinds only
// Secrets and lists do.
func Holds(u *unstructured.Unstructured) bool {
	version, kind := u.GetAPIVersion(), u.GetKind()
	group, _, grouped := strings.Cut(version, "/")
	custom := grouped && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
	return (kind == "Secret" || strings.HasSuffix(kind, "List") || custom) && Within(u.Object)
}

// Within looks for a Secret at any depth.
func Within(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if IsSecret(v) {
			return true
		}
		for _, w := range v {
			if Within(w) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, Within)
	}
	return false
}

// Values gives each value of each Secret in v to take, decoded, and as it is
// written where that is no base64.
func Values(v any, take func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if IsSecret(v) {
			secretValues(v, take)
			secretValues(lastApplied(v), take)
			return
		}
		for _, w := range v {
			Values(w, take)
		}
	case []any:
		for _, w := range v {
			Values(w, take)
		}
	}
}

// secretValues are the values in a Secret's data and stringData. Values that
// should be text and are not count too: a server quotes them when it refuses
// them.
func secretValues(m map[string]any, take func(string)) {
	scalars(m["stringData"], take)
	scalars(m["data"], func(s string) {
		encoded := strings.Join(strings.Fields(s), "")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil {
			take(string(raw))
		}
		if err != nil || base64.StdEncoding.EncodeToString(raw) != encoded {
			take(s)
		}
	})
}

// lastApplied is the object in kubectl's annotation, nil where there is none.
func lastApplied(m map[string]any) map[string]any {
	meta, _ := m["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, _ := annotations[LastApplied].(string)
	var object map[string]any
	if text == "" || json.Unmarshal([]byte(text), &object) != nil {
		return nil
	}
	return object
}

// scalars are the texts of all scalars in v.
func scalars(v any, take func(string)) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, w := range v {
			scalars(w, take)
		}
	case []any:
		for _, w := range v {
			scalars(w, take)
		}
	case string:
		take(v)
	case float64:
		for _, layout := range []string{"%v", "%f", "%.0f"} {
			take(fmt.Sprintf(layout, v))
		}
	default:
		take(fmt.Sprint(v))
	}
}

var (
	// credential finds values that have a name in a line of a configuration file,
	// and the password in a URL.
	credential = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:pass|pwd|secret|token|key|auth|cred|private)[\w.-]*["']?\s*[:=]\s*["']?([^\s"',;]+)|://[^/\s:@]*:([^/\s@]+)@`)
	})
	// structure is what a line of a configuration file is when it is none of a
	// value: a key, a plain setting, a section, a comment, PEM's first and last line.
	structure = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:[-\s]*["']?[\w./-]+["']?\s*[:=]\s*["']?[\w./-]{0,16}["']?[,|>{\[]?|\[[^\]]*\]|[#;].*|-----(?:BEGIN|END) [A-Z0-9 ]+-----|[-{}\[\](),"'\s]*)$`)
	})
)

// shortestLine of a value that has several: shorter ones are structure.
const shortestLine = 8

// parts are a value and what of it may be shown alone: its lines, the texts in a
// JSON document, passwords in configuration files and URLs.
func parts(value string) []string {
	trimmed := strings.TrimSpace(value)
	out := []string{value, trimmed}
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		var document any
		if json.Unmarshal([]byte(trimmed), &document) == nil {
			scalars(document, func(s string) { out = append(out, s) })
		}
	}
	several := strings.Contains(trimmed, "\n")
	for line := range strings.SplitSeq(trimmed, "\n") {
		line = strings.TrimSpace(line)
		if strings.ContainsAny(line, ":=") {
			for _, found := range credential().FindAllStringSubmatch(line, -1) {
				out = append(out, found[1]+found[2]) // one of them is empty
			}
		}
		if several && len(line) >= shortestLine && !structure().MatchString(line) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return s == "" })
}

// forms are the ways in which a message may show a value: as it is, quoted by Go
// or JSON, in a URL, encoded.
func forms(v string) []string {
	b := []byte(v)
	out := []string{
		v, base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b),
		base64.URLEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b),
	}
	if strings.ContainsFunc(v, special) {
		inJSON, _ := json.Marshal(v)
		out = append(out, inner(strconv.Quote(v)), inner(strconv.QuoteToASCII(v)), inner(string(inJSON)),
			strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner(string(inJSON))),
			strings.ReplaceAll(v, "'", "''"), url.QueryEscape(v), url.PathEscape(v))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// special: some way of quoting writes it in another way.
func special(r rune) bool {
	return r != '-' && r != '_' && r != '.' && r != '~' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// plain: nothing but letters, or nothing but digits.
func plain(s string) bool {
	letter := func(r rune) bool { return r < 'a' || r > 'z' && r < 0x80 }
	return !strings.ContainsFunc(strings.ToLower(s), letter) || digits(s)
}

func digits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// common values would take half of a text with them, and are no secret: short
// ones, ports, and words that Secrets hold along with the passwords. Exact masks
// them in messages about their own Secret.
func common(s string) bool {
	return len(s) < shortest || len(s) < 6 && digits(s) || words.Has(strings.ToLower(s))
}

var words = sets.New(strings.Fields(`
		true false null none undefined enabled disabled always never optional required default
		admin administrator root user username password passwd secret token key keys guest nobody anonymous
		public private local localhost test testing dev development stage staging prod production
		info debug trace warn warning error fatal host port name database data server client service
		http https grpc tcp udp amqp smtp tls ssl cluster namespace kubernetes application
		postgres postgresql mysql mariadb mongo mongodb redis rabbitmq kafka elastic elasticsearch opensearch
		grafana prometheus alertmanager minio keycloak vault registry gitlab github docker harbor`)...)
