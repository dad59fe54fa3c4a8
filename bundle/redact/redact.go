// Package redact masks the values of Secrets: objects come in, from which it learns
// the values; texts that may quote them (messages of servers, conditions, events,
// log lines, diffs) come in and go out masked.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Mask stands for a value. Nothing derived from the value (its length, a hash)
// may: short values can be guessed from either.
const Mask = "***"

// Redactor knows the values of Secrets. Its zero value knows none. Its methods
// may be called by several goroutines.
type Redactor struct {
	mu     sync.RWMutex
	public map[string]bool
	// pending are values to be learnt when the first text comes: a run
	// without one needs none of them.
	pending []string
	seen    map[string]bool
	filter  []uint64 // which first four bytes there are, hashed
	// index finds forms by their beginning, of as many bytes as the tier has and
	// the form allows: the values of a thousand Secrets may begin with https:// or
	// with the first line of a key.
	index [len(tiers)]map[string][]form
	// begin finds forms of one line by their first eight bytes, for values that
	// somebody has cut off.
	begin map[string][]string
}

var tiers = [...]int{32, 16, 8, 4}

// form is one way to write a value.
type form struct {
	text string
	word bool // replaced only where it is a word of its own
}

// Public are names of objects and namespaces. A value that is one of them stays:
// a mask in place of a name would only say that this name is the value.
func (r *Redactor) Public(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.public == nil {
		r.public = map[string]bool{}
	}
	for _, n := range names {
		r.public[n] = true
	}
}

// Add takes the values of all Secrets that an object is or holds.
func (r *Redactor) Add(object map[string]any) {
	var values []string
	Values(object, func(v string) { values = append(values, v) })
	r.AddValue(values...)
}

// AddValue takes single values.
func (r *Redactor) AddValue(values ...string) {
	if len(values) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, values...)
}

// learnPending gives r locked for reading, with nothing pending.
func (r *Redactor) learnPending() {
	for r.mu.RLock(); len(r.pending) > 0; r.mu.RLock() {
		r.mu.RUnlock()
		r.mu.Lock()
		for _, v := range r.pending {
			r.learn(v)
		}
		r.pending = nil
		r.mu.Unlock()
	}
}

func (r *Redactor) learn(value string) {
	if r.seen[value] {
		return
	}
	if r.seen == nil {
		r.seen, r.begin, r.filter = map[string]bool{}, map[string][]string{}, make([]uint64, 1<<filterBits/64)
		for i := range r.index {
			r.index[i] = map[string][]form{}
		}
	}
	r.seen[value] = true
	for _, part := range parts(value) {
		if common(part) || r.public[part] {
			continue
		}
		for _, text := range forms(part) {
			r.insert(text)
		}
	}
}

func (r *Redactor) insert(text string) {
	if len(text) < shortest || strings.Trim(text, "*") == "" {
		return
	}
	f := form{text: text, word: len(text) < anywhere || len(text) < longWord && plain(text)}
	tier := slices.IndexFunc(tiers[:], func(n int) bool { return n <= len(text) })
	key := text[:tiers[tier]]
	list := r.index[tier][key]
	i, found := slices.BinarySearchFunc(list, f, compare)
	if found {
		return
	}
	r.index[tier][key] = slices.Insert(list, i, f)
	if !f.word && !strings.Contains(text, "\n") {
		same := r.begin[text[:anywhere]]
		i, _ := slices.BinarySearch(same, text)
		r.begin[text[:anywhere]] = slices.Insert(same, i, text)
	}
	h := hash(text)
	r.filter[h>>6] |= 1 << (h & 63)
}

// compare puts long texts first, so that no part of a value is left.
func compare(a, b form) int {
	return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
}

const filterBits = 21

// hash is of the first four bytes.
func hash(s string) uint32 {
	first := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return (first * 0x9E3779B1) >> (32 - filterBits)
}

// How long a text has to be to be replaced at all, to be replaced also within a
// word, and to be replaced within one though it is nothing but letters or digits
// itself: "shop", "postgres" and 54321 are parts of many a name.
const (
	shortest = 4
	anywhere = 8
	longWord = 12
)

// Text is s with all values masked. A text without any is returned as it is.
func (r *Redactor) Text(s string) string {
	if len(s) < shortest {
		return s
	}
	r.learnPending()
	defer r.mu.RUnlock()
	if r.seen == nil {
		return s
	}
	var out strings.Builder
	done, cut := 0, cutOff(s, 0)
	for i := 0; i+shortest <= len(s); {
		h := hash(s[i:])
		n := 0
		if r.filter[h>>6]&(1<<(h&63)) != 0 {
			if i > cut {
				cut = cutOff(s, i)
			}
			n = r.match(s, i, cut)
		}
		if n == 0 {
			i++
			continue
		}
		out.WriteString(s[done:i])
		out.WriteString(Mask)
		i += n
		done = i
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// match is the length of the value that begins at s[i], or 0. cut is where the
// text ends, or is cut off.
func (r *Redactor) match(s string, i, cut int) int {
	rest := s[i:]
	for tier, n := range tiers {
		if len(rest) < n {
			continue
		}
		for _, f := range r.index[tier][rest[:n]] {
			if strings.HasPrefix(rest, f.text) && (!f.word || isWord(s, i, i+len(f.text))) {
				return len(f.text)
			}
		}
	}
	if cut-i < anywhere {
		return 0
	}
	begun := r.begin[rest[:anywhere]]
	if at, _ := slices.BinarySearch(begun, s[i:cut]); at < len(begun) && strings.HasPrefix(begun[at], s[i:cut]) {
		return cut - i
	}
	return 0
}

// cutOff is where the text ends behind s[from], or somebody has left something
// out.
func cutOff(s string, from int) int {
	for i := from; i < len(s); i++ {
		if s[i] == '.' && strings.HasPrefix(s[i:], "...") || s[i] == 0xe2 && strings.HasPrefix(s[i:], "…") {
			return i
		}
	}
	return len(s)
}

// isWord says whether s[start:end] is no part of a longer word, name, number or
// path.
func isWord(s string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, size := utf8.DecodeRuneInString(s[end:])
	if start > 0 && inName(before) {
		return false
	}
	if end == len(s) || !inName(after) {
		return true
	}
	// The full stop of a sentence.
	next, _ := utf8.DecodeRuneInString(s[end+size:])
	return after == '.' && (end+size == len(s) || unicode.IsSpace(next))
}

func inName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./", r)
}

// Exact masks the values of the Secrets that object is or holds, also those that
// are too short or too common for Text: for messages about this very object.
func Exact(s string, object map[string]any) string {
	var all []string
	Values(object, func(v string) {
		for _, part := range parts(v) {
			all = append(all, forms(part)...)
		}
	})
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, v := range slices.Compact(all) {
		s = replace(s, v)
	}
	return s
}

// Error masks in an error what Exact does: webhooks quote what they refuse.
func Error(err error, object map[string]any) error {
	return &masked{err, Exact(err.Error(), object)}
}

type masked struct {
	err  error
	text string
}

func (m *masked) Error() string { return m.text }

func (m *masked) Unwrap() error { return m.err }

// replace masks one value, a short or plain one only where it is a word.
func replace(s, v string) string {
	if v == "" || !strings.Contains(s, v) || strings.Trim(v, "*") == "" {
		return s
	}
	if len(v) >= shortest && !common(v) {
		return strings.ReplaceAll(s, v, Mask)
	}
	var out strings.Builder
	done := 0
	for at := 0; ; {
		i := strings.Index(s[at:], v)
		if i < 0 {
			out.WriteString(s[done:])
			return out.String()
		}
		start, end := at+i, at+i+len(v)
		if isWord(s, start, end) {
			out.WriteString(s[done:start] + Mask)
			done = end
		}
		at = end
	}
}
