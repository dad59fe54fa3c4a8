package ready

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The general rule doubts that an object is ready which kstatus calls ready, and which
// has no rule of its own kind. It goes by what controllers have in common: the type of a
// condition, the word in a phase, counts of replicas. A doubt never says failed: some
// words mean something else in one kind or another.

// doubt says what in its status speaks against o being ready, and in which field.
func doubt(o object) (reason, field string) {
	state, ok := o.field("status").(map[string]any)
	if !ok || o.held() {
		return "", ""
	}
	said, isReady := o.condition("Ready")
	isReady = isReady && said.status == "True"
	for _, c := range o.conditions() {
		if c.doubtful(o, isReady) {
			return c.about(o), "status.conditions[" + c.kind + "]"
		}
	}
	if reason, field = doubtWords(o, "status", state, 0); reason != "" {
		return reason, field
	}
	if isReady { // the counts of one that scales may lag behind
		return "", ""
	}
	if reason, field = doubtParts(o, state); reason != "" {
		return reason, field
	}
	return doubtCounts(o, state)
}

// held: somebody paused it, so a run cannot wait for it.
func (o object) held() bool {
	return o.holds() != "" || slices.ContainsFunc(o.conditions(), func(c condition) bool {
		if c.kind == "Paused" || c.kind == "Suspended" {
			return c.status == "True"
		}
		return isHeld(c.reason)
	})
}

// holds is the field of its spec by which somebody paused it.
func (o object) holds() string {
	for _, name := range []string{"paused", "pause", "suspend", "suspended"} {
		if o.flag("spec", name) {
			return name
		}
	}
	return ""
}

// unlessHeld is s, unless o is of a kind without a rule of its own, and its spec says that its
// controller is to leave it alone: that has seen no generation of it since, nor will it.
func unlessHeld(o object, s Status) Status {
	by := o.holds()
	if _, hasRule := kindRules[o.unstructured().GroupVersionKind().GroupKind()]; by == "" || hasRule || s.State == Ready {
		return s
	}
	how := "paused"
	if strings.HasPrefix(by, "suspend") {
		how = "suspended"
	}
	return Status{State: Ready, Reason: fmt.Sprintf("%s: spec.%s holds it (%s)", how, by, s.Reason), Rule: "general: spec." + by}
}

// isHeld: "JobSuspended", but not "NotPaused", as Cluster API says of what works.
func isHeld(reason string) bool {
	negations := sets.New("not", "no", "non", "never", "un")
	words := split(reason)
	return len(words) > 0 && (words[len(words)-1] == "paused" || words[len(words)-1] == "suspended") && !slices.ContainsFunc(words, negations.Has)
}

// unseen says whether o has no status yet, or one that says nothing: nothing but empty
// values, or where conditions are meant to be, in it or in its parts, none yet and no word.
func unseen(o object) bool {
	state, _ := o.field("status").(map[string]any)
	return saysNothing(o.field("status")) || promises(state) && !slices.ContainsFunc(slices.Collect(maps.Keys(state)), func(name string) bool {
		parts := split(name)
		return len(parts) > 0 && stateEnds.Has(parts[len(parts)-1]) && !saysNothing(state[name])
	})
}

// promises: it has a list of conditions, which is empty, or a part that has.
func promises(state map[string]any) bool {
	conditions, ok := state["conditions"]
	if !ok {
		for _, v := range state {
			parts, _ := v.([]any)
			if slices.ContainsFunc(parts, func(part any) bool {
				m, ok := part.(map[string]any)
				return ok && m["conditions"] != nil && promises(m)
			}) {
				return true
			}
		}
	}
	return ok && saysNothing(conditions)
}

func saysNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !saysNothing(inner) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !saysNothing(inner) })
	}
	return v == "" || v == int64(0)
}

// doubtful: a condition that tells of trouble. Beside Ready=True only few do: most of the
// others are steps on the way, or of optional parts.
func (c condition) doubtful(o object, isReady bool) bool {
	parts := split(c.kind)
	if len(parts) == 0 {
		return false
	}
	last, ill := parts[len(parts)-1], isIll(parts)
	wanted, _ := o.number("metadata", "generation")
	switch {
	case isReady && last == "synced":
		return c.status == "False"
	case ill:
		return c.status == "True" && (!isReady || last != "warning" && parts[0] != "partially")
	case isReady:
		return false
	case c.kind == "Progressing":
		// Of a rollout it stays True, and the reason says when it is through.
		reason := split(c.reason)
		return c.status == "Unknown" || c.status == "False" && isIll(reason) || c.status == "True" && (len(reason) == 0 || !wellEnds.Has(reason[len(reason)-1]))
	case c.kind == "Running": // operators made with Ansible
		return c.status == "True" && c.reason == "Running"
	case isUnderWay(last):
		return c.status == "True"
	case last == "available" && o.count(1, "spec", "replicas") == 0:
		return false
	case wellEnds.Has(last):
		reason := split(c.reason)
		return c.status == "False" || c.status == "Unknown" || c.generation > 0 && c.generation < wanted ||
			len(reason) > 0 && reason[len(reason)-1] == "failed" // it is complete, and failed
	}
	return false
}

func isIll(parts []string) bool {
	return slices.ContainsFunc(parts, func(w string) bool { return illWords.Has(w) })
}

// isUnderWay: Creating, ScalingUp, Progress.
func isUnderWay(word string) bool {
	return underWay.Has(word) || len(word) > 4 && strings.HasSuffix(word, "ing") && !lasting.Has(word)
}

// inverse guesses a condition's polarity: most say True when all is well; those named after
// what is wrong, or under way, say False.
func (c condition) inverse() bool {
	parts := split(c.kind)
	return isIll(parts) || len(parts) > 0 && isUnderWay(parts[len(parts)-1]) && c.kind != "Progressing"
}

// about is the condition as a reason; of one that says that all is well, its generation is.
func (c condition) about(o object) string {
	if wanted, _ := o.number("metadata", "generation"); c.status == "True" && c.generation > 0 && c.generation < wanted {
		return because("%s=True of generation %d, not %d", []any{c.kind, c.generation, wanted})
	}
	return c.String()
}

// doubtWords looks at what a field of one word says, at booleans and at errors: of the
// whole status, and one level down (two where the level between only names the parts).
func doubtWords(o object, path string, at map[string]any, depth int) (reason, field string) {
	for _, name := range slices.Sorted(maps.Keys(at)) {
		parts := split(name)
		if len(parts) == 0 || elsewhere.Has(parts[0]) && depth == 0 && !isMap(at[name]) {
			continue
		}
		last := parts[len(parts)-1]
		switch value := at[name].(type) {
		case string:
			if stateEnds.Has(last) && (depth == 0 || len(parts) == 1) && unfinished(o, value) {
				return name + " is " + value, path + "." + name
			}
			if isError(parts) && value != "" && (depth == 0 || name == "error") {
				return name + ": " + value, path + "." + name
			}
		case bool:
			if !value && wellEnds.Has(last) && (depth == 0 || last == "success") {
				return name + " is false", path + "." + name
			}
		case map[string]any:
			if depth < 2 {
				if reason, field = doubtWords(o, path+"."+name, value, depth+1); reason != "" {
					return name + "." + reason, field
				}
			}
		}
	}
	return "", ""
}

func isMap(v any) bool { _, ok := v.(map[string]any); return ok }

// isError: "error", "errMsg", "failureMessage", "errorDescription".
func isError(parts []string) bool {
	return parts[0] == "error" || parts[0] == "err" || parts[0] == "failure"
}

// unfinished says whether a phase or state tells of trouble, or of something under way.
func unfinished(o object, value string) bool {
	parts := split(value)
	for _, w := range parts[:min(len(parts), 8)] { // of a sentence, its beginning
		switch {
		case illWords.Has(w), isUnderWay(w):
			return true
		case w == "running":
			kind := split(o.text("kind"))
			if len(kind) > 0 && toItsEnd.Has(kind[len(kind)-1]) {
				return true
			}
		case w == "pending":
			return true
		}
	}
	return false
}

// doubtParts looks at the conditions of parts: a route's parents, a policy's ancestors, a
// Gateway's listeners.
func doubtParts(o object, state map[string]any) (reason, field string) {
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if name == "conditions" {
			continue
		}
		parts := o.objects("status", name)
		if part, ok := state[name].(map[string]any); ok {
			parts = []object{{part}}
		}
		for _, part := range parts {
			conditions := object{map[string]any{"status": part.content}}.conditions()
			if len(parts) > 1 && slices.ContainsFunc(conditions, func(c condition) bool { return c.reason == "NoMatchingParent" }) {
				continue // of a parent that it had before
			}
			for _, c := range conditions {
				if c.doubtful(o, false) {
					return name + ": " + c.about(o), "status." + name + "[].conditions[" + c.kind + "]"
				}
			}
		}
	}
	return "", ""
}

// doubtCounts compares how many are ready with how many there should be.
func doubtCounts(o object, state map[string]any) (reason, field string) {
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if inner, ok := state[name].(map[string]any); ok && !strings.HasSuffix(name, "Template") {
			for _, key := range slices.Sorted(maps.Keys(inner)) {
				if part, ok := inner[key].(map[string]any); ok {
					if reason, field = tooFew(object{map[string]any{"status": part}}); reason != "" {
						return key + ": " + reason, "status." + name + "." + key + "." + field
					}
				}
			}
		}
	}
	reason, field = tooFew(o)
	if reason != "" {
		field = "status." + field
	}
	return reason, field
}

func tooFew(o object) (reason, field string) {
	state, _ := o.field("status").(map[string]any)
	partition, _ := o.number("spec", "updateStrategy", "rollingUpdate", "partition")
	partition = o.count(partition, "spec", "updateStrategy", "partition")
	for _, name := range slices.Sorted(maps.Keys(state)) {
		n, ok := o.number("status", name)
		parts := split(name)
		if !ok || len(parts) < 2 {
			continue
		}
		of := strings.TrimPrefix(name, parts[0])
		wanted := n
		for _, at := range [][]string{{"spec", lowerFirst(of)}, {"status", lowerFirst(of)}, {"status", "expected" + of}, {"status", "desired" + of}} {
			if w, ok := o.number(at...); ok {
				wanted = w
				break
			}
		}
		if (parts[0] == "ready" || parts[0] == "available" || parts[0] == "updated" && partition == 0) && n < wanted {
			return because("%s is %d of %d", []any{name, n, wanted}), name
		}
		if (parts[0] == "unavailable" || parts[len(parts)-1] == "unavailable") && n > 0 {
			return because("%s is %d", []any{name, n}), name
		}
	}
	return "", ""
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// split is a name's words in lower case: "ControlPlaneReady", "HEALTH_ERR" and "In-progress"
// are made of control, plane, ready; health, err; in, progress.
func split(s string) []string {
	var all []string
	var word []rune
	runes := []rune(s)
	end := func() {
		if len(word) > 0 {
			all = append(all, string(word))
		}
		word = nil
	}
	for i, r := range runes {
		if !unicode.IsLetter(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			end()
		}
		word = append(word, unicode.ToLower(r))
	}
	end()
	return all
}
