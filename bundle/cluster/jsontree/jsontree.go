// Package jsontree decodes JSON objects as apimachinery's util/json does, in a third of its
// time, and with less memory: short strings are shared. It knows no kinds.
package jsontree

import (
	"bytes"
	stdjson "encoding/json"
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"
)

// Unmarshal decodes an object. Integers are int64, other numbers float64. What it cannot read
// is util/json's to decode, or to refuse.
func Unmarshal(text []byte) (map[string]any, error) { return (*Shared)(nil).Unmarshal(text) }

// Shared are values that were decoded, by their text: entries of managedFields and their
// fieldsV1, and of the items of lists their labels, their annotations, and all beside their
// metadata. They take most of the memory of small objects, and of many objects most are equal.
// Objects that are decoded with the same Shared share them: they may not be changed in place.
type Shared struct {
	values map[string]any
	tries  map[string]*tries // by key
}

// tries are how often a value of a key was looked for, and how often it was known.
type tries struct{ all, found int }

// Unmarshal is Unmarshal of an object that shares.
func (s *Shared) Unmarshal(text []byte) (map[string]any, error) {
	if s != nil && s.values == nil {
		s.values, s.tries = map[string]any{}, map[string]*tries{}
	}
	d, _ := decoders.Get().(*decoder)
	defer d.release()
	d.text, d.at, d.known = text, 0, s
	value, ok := d.value(0, "")
	if object, isObject := value.(map[string]any); ok && isObject && d.next() == 0 && d.at == len(text) {
		return object, nil
	}
	var slow map[string]any
	err := json.Unmarshal(text, &slow)
	return slow, err
}

// Changed are the texts of shared values that are not what their text says: they were changed
// in place, and with them all objects that share them. Tests ask for it.
func (s *Shared) Changed() (texts []string) {
	for text, value := range s.values {
		if was, err := Unmarshal([]byte(`{"value":` + text + `}`)); err != nil || !reflect.DeepEqual(was["value"], value) {
			texts = append(texts, text)
		}
	}
	return texts
}

const (
	deepest = 1000 // util/json ends at 10,000
	short   = 40   // the longest strings that are shared: keys, names of managers, times
	slots   = 512  // for them
	most    = 4096 // values that are Shared: there may be a time of its own in each entry
	longest = 2048 // bytes of one, as the text is kept as well
	enough  = 256  // tries, after which a key is given up of which less than one in rare was known
	rare    = 8
)

// decoder reads text. Its functions return false at what they cannot read.
type decoder struct {
	text   []byte
	at     int
	keys   []string   // of the objects that are not closed yet
	values []any      // the same, and of arrays
	seen   [slots]any // short strings, each where its hash says
	known  *Shared
}

var (
	decoders = sync.Pool{New: func() any { return &decoder{} }}
	seed     = maphash.MakeSeed()
)

func (d *decoder) release() {
	d.close(0, 0)
	d.text, d.known = nil, nil
	decoders.Put(d)
}

// close forgets the keys and values of what is no longer open.
func (d *decoder) close(keys, values int) {
	clear(d.keys[keys:])
	clear(d.values[values:])
	d.keys, d.values = d.keys[:keys], d.values[:values]
}

// next is the next byte that is no space; it stays. 0: the end, or a byte that is none of JSON's.
func (d *decoder) next() byte {
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take goes past the next byte if it is c.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

// value is that of a key: "" is none.
func (d *decoder) value(depth int, key string) (any, bool) {
	if c := d.next(); d.known != nil && (c == '{' || c == '[') && isShared(depth, key) {
		return d.shareable(depth, key)
	}
	return d.decode(depth, key)
}

func (d *decoder) decode(depth int, key string) (any, bool) {
	switch c := d.next(); {
	case depth > deepest:
		return nil, false
	case c == '{':
		return d.object(depth, key)
	case c == '[':
		return d.array(depth, key)
	case c == '"':
		return d.quoted()
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case c == 'n':
		return nil, d.word("null")
	}
	return d.number()
}

func (d *decoder) word(word string) bool {
	found := bytes.HasPrefix(d.text[d.at:], []byte(word))
	d.at += len(word)
	return found
}

// object is that of a key.
func (d *decoder) object(depth int, of string) (any, bool) {
	d.at++
	keys, values := len(d.keys), len(d.values)
	for open := !d.take('}'); open; {
		if d.next() != '"' {
			return nil, false
		}
		name, ok := d.quoted()
		key, _ := name.(string)
		if !ok || !d.take(':') {
			return nil, false
		}
		d.keys = append(d.keys, key)
		switch key {
		case "managedFields", "labels", "annotations":
			if of != "metadata" {
				key = "" // of others
			}
		case "fieldsV1":
			if of != entry {
				key = ""
			}
		}
		if !d.element(depth, key) {
			return nil, false
		}
		if open = d.take(','); !open && !d.take('}') {
			return nil, false
		}
	}
	object := make(map[string]any, len(d.keys)-keys)
	for i, key := range d.keys[keys:] {
		object[key] = d.values[values+i]
	}
	d.close(keys, values)
	return object, true
}

func (d *decoder) array(depth int, key string) (any, bool) {
	d.at++
	values, inside := len(d.values), ""
	if key == "managedFields" {
		inside = entry
	}
	for open := !d.take(']'); open; {
		if !d.element(depth, inside) {
			return nil, false
		}
		if open = d.take(','); !open && !d.take(']') {
			return nil, false
		}
	}
	array := make([]any, len(d.values)-values)
	copy(array, d.values[values:])
	d.close(len(d.keys), values)
	return array, true
}

func (d *decoder) element(depth int, key string) bool {
	value, ok := d.value(depth+1, key)
	d.values = append(d.values, value)
	return ok
}

const entry = "entry" // stands for the key of what is in managedFields

const (
	inItem     = 3 // the depth of the fields of a list's items
	inMetadata = 4
)

func isShared(depth int, key string) bool {
	switch key {
	case "fieldsV1", entry:
		return true
	case "labels", "annotations":
		return depth == inMetadata
	case "", "metadata":
		return false
	}
	return depth == inItem
}

// shareable is the value that was decoded of the same text before, or else one to be known.
func (d *decoder) shareable(depth int, key string) (any, bool) {
	tried := d.known.tries[key]
	if tried == nil {
		tried = &tries{}
		d.known.tries[key] = tried
	}
	if tried.all >= enough && tried.found*rare < tried.all {
		return d.decode(depth, key)
	}
	tried.all++
	start, end := d.at, d.end()
	if value, ok := d.known.values[string(d.text[start:end])]; ok {
		tried.found++
		d.at = end
		return value, true
	}
	value, ok := d.decode(depth, key)
	if ok && d.at-start <= longest && len(d.known.values) < most {
		d.known.values[string(d.text[start:d.at])] = value
	}
	return value, ok
}

// end is where the object or array that begins here ends.
func (d *decoder) end() int {
	open := 0
	for i := d.at; i < len(d.text); i++ {
		switch d.text[i] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '"':
			for i++; i < len(d.text) && d.text[i] != '"'; i++ {
				if d.text[i] == '\\' {
					i++
				}
			}
		}
		if open <= 0 {
			return min(i+1, len(d.text))
		}
	}
	return len(d.text)
}

// quoted is a string.
func (d *decoder) quoted() (any, bool) {
	start := d.at + 1
	for i := start; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '"':
			d.at = i + 1
			return d.shared(d.text[start:i]), true
		case c < ' ':
			return nil, false
		case c == '\\' || c >= utf8.RuneSelf:
			return d.escaped(start)
		}
	}
	return nil, false
}

// escaped is a string that holds more than printable ASCII.
func (d *decoder) escaped(start int) (any, bool) {
	end := start
	for ; end < len(d.text) && d.text[end] != '"'; end++ {
		if d.text[end] == '\\' {
			end++
		}
	}
	if end >= len(d.text) {
		return nil, false
	}
	d.at = end + 1
	var text string
	err := stdjson.Unmarshal(d.text[start-1:d.at], &text)
	return text, err == nil
}

func (d *decoder) shared(text []byte) any {
	if len(text) > short {
		return string(text)
	}
	known := &d.seen[maphash.Bytes(seed, text)%slots]
	if last, ok := (*known).(string); !ok || last != string(text) {
		*known = string(text)
	}
	return *known
}

func (d *decoder) number() (any, bool) {
	start, whole := d.at, true
	for ; d.at < len(d.text) && strings.IndexByte("+-.0123456789Ee", d.text[d.at]) >= 0; d.at++ {
		whole = whole && d.text[d.at] != '.' && d.text[d.at]|0x20 != 'e'
	}
	text := string(d.text[start:d.at])
	if !stdjson.Valid(d.text[start:d.at]) {
		return nil, false
	}
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}
