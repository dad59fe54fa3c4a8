package read

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/sls"
)

// Single values: what YAML 1.1, YAML 1.2 and JSON make of them.

// yaml11 are the words that are booleans to YAML 1.1, so to Salt and kubectl,
// but not to the parser. yesNo is y and n, which only kubectl reads so: Salt
// keeps them as text.
var yaml11 = map[string]bool{
	"yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

var yesNo = map[string]bool{"y": true, "n": true}

func isPlain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "text"
	case []any:
		return "list"
	}
	return "mapping"
}

func (c *converter) scalar(n *yaml.Node) any {
	switch n.Tag {
	case yaml.NodeTagString:
		if strings.HasPrefix(n.Value, "__slot__:") && !sls.CanFill(c.path.String(), n.Value) {
			c.problem(n, "Salt left a __slot__ in place, which only Salt can fill, at run time: for a checksum of a ConfigMap or Secret put the annotation brine.dev/digest-of on the workload, otherwise write the value")
		}
		if n.Style != 0 {
			return n.Value
		}
		if overflows(n) {
			c.problem(n, "%s: %v", c.shown(n), errNoNumber)
		}
		if len(n.Value) <= 3 {
			if b, ok := yaml11[n.Value]; ok {
				return b
			}
			if yesNo[strings.ToLower(n.Value)] && c.quotable() {
				c.warn(n, "%s is text to Salt, and to brine, but a boolean to kubectl: write %q or %v", n.Value, n.Value, strings.EqualFold(n.Value, "y"))
			}
		}
		return n.Value
	case yaml.NodeTagNull:
		return nil
	case yaml.NodeTagBool:
		return c.boolean(n)
	case yaml.NodeTagInt, yaml.NodeTagFloat:
		v, err := number(n.Value)
		if err != nil {
			if !c.quotable() {
				err = errNoNumber // and not what it would be as one
			}
			c.problem(n, "%s: %v", c.shown(n), err)
			return nil
		}
		if i, ok := v.(int64); ok && isOctal(n.Value) && c.quotable() {
			c.warn(n, "%s is %d here and to kubectl (octal), but Salt's own loader reads %s: write %d to be read the same everywhere", n.Value, i, strings.TrimLeft(n.Value, "0"), i)
		}
		return v
	case "!!timestamp", "!!python/unicode", "!!python/str", "tag:yaml.org,2002:python/unicode", "tag:yaml.org,2002:python/str":
		return n.Value
	}
	c.problem(n, "%s", c.badTag(n))
	return n.Value
}

func (c *converter) warn(n *yaml.Node, format string, args ...any) {
	if len(c.warnings) < maxReported {
		c.warnings = append(c.warnings, bundle.Problem{Source: c.source(n), Path: c.path.String(), Message: fmt.Sprintf(format, args...)})
	}
}

func (c *converter) boolean(n *yaml.Node) any {
	if b, ok := yaml11[n.Value]; ok { // only with a tag
		return b
	}
	switch n.Value {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	c.problem(n, "%s is not a boolean: write true or false", c.shown(n))
	return nil
}

func (c *converter) badTag(n *yaml.Node) string {
	tag := n.Tag
	switch {
	case !c.quotable(): // an unquoted password that begins with ! looks like a tag
		return "a YAML tag that has no meaning here: put a value that begins with ! in quotes"
	case strings.Contains(tag, "python/"):
		return fmt.Sprintf("the Python tag %s: the object was dumped by Python as it is; dump plain data (yaml.safe_dump, or |json in Jinja)", clip(tag))
	case tag == "!!binary":
		return "the tag !!binary: write the base64 text itself, without the tag"
	}
	return fmt.Sprintf("the tag %s means nothing to Kubernetes: remove it, or put a value that begins with ! in quotes", clip(tag))
}

// isOctal: 0644, which YAML 1.1 reads as octal.
func isOctal(s string) bool {
	return len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9'
}

// number reads a number as YAML 1.1 and kubectl do, without losing a digit. Whole floats become
// int64, as they do on their way through a server: 1.0 and 1 are the same JSON.
func number(s string) (any, error) {
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i, nil
	}
	if len(plain) > 400 { // beyond any float
		return nil, errNoNumber
	}
	if i, ok := new(big.Int).SetString(plain, 0); ok { // a server makes a float of it: 2^64 becomes 18446744073709552000
		if f, _ := new(big.Float).SetInt(i).Float64(); !math.IsInf(f, 0) {
			return nil, fmt.Errorf("a number this large loses digits in Kubernetes: put it in quotes if it is text, or write %g if the field takes a number", f)
		}
		return nil, errNoNumber
	}
	f, err := strconv.ParseFloat(plain, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return nil, errNoNumber
	case !keepsDigits(plain, f):
		return nil, fmt.Errorf("a number with these digits becomes %g in Kubernetes: put it in quotes if it is text, or write %g if the field takes a number", f, f)
	case f == math.Trunc(f) && math.Abs(f) < 1<<63:
		return int64(f), nil
	}
	return f, nil
}

// keepsDigits says whether a float is what was written, to the last digit of it: 0.1 is, also with
// the 17 digits that some programs print; 1e-400 is 0, and pi with 20 digits is another number.
func keepsDigits(written string, f float64) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(written, "+-")), "e")
	digits := strings.TrimLeft(strings.Replace(mantissa, ".", "", 1), "0")
	if digits == "" || strings.Contains(mantissa, "x") {
		return true // 0.0; or it has as many bits as a float
	}
	kept, _, _ := strings.Cut(strconv.FormatFloat(math.Abs(f), 'e', len(digits)-1, 64), "e")
	return strings.Replace(kept, ".", "", 1) == digits
}

// overflows says whether a text is a float to YAML that no float64 holds, 1.5e+400: the parser makes
// a text of it, Salt infinity.
func overflows(n *yaml.Node) bool {
	if !isPlain(n) || !strings.Contains(n.Value, ".") || !strings.ContainsAny(n.Value, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(n.Value, 64)
	return errors.Is(err, strconv.ErrRange)
}
