package ready

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"brine/bundle"
)

// logged says whether a container has run, so that it has a log.
func (t trouble) logged() bool { return t.state != "waiting" || t.last != "" }

// log adds the last lines of what a container wrote before it ended, or up to
// now if it runs.
func (c *chain) log(ctx context.Context, pod object, t trouble) {
	namespace, name := pod.text("metadata", "namespace"), pod.text("metadata", "name")
	previous := t.state == "waiting"
	if c.d.reader.Logs == nil {
		return
	}
	if !c.detailed {
		c.add("log %s: not read, because many objects are not ready; see %s", t.container, c.d.reader.Commands.Logs(namespace, name, t.container, previous))
		return
	}
	text, err := c.d.reader.Logs(ctx, namespace, name, t.container, previous, maxLogTail)
	if err != nil && previous {
		// The previous run's may be gone already.
		text, err = c.d.reader.Logs(ctx, namespace, name, t.container, false, maxLogTail)
	}
	if err != nil {
		c.add("log %s: cannot be read: %s", t.container, err)
		return
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[max(0, len(lines)-maxLogTail):] {
		if line = printable(line); line != "" {
			c.lines = append(c.lines, "log "+t.container+": "+line)
		}
	}
}

// printable is a line that cannot do anything to a terminal, nor fill it.
func printable(line string) string {
	const enough = 500
	line = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, colour().ReplaceAllString(line, ""))
	return bundle.Clip(strings.TrimRight(line, " "), enough)
}

// colour are the escape sequences that programs write for terminals.
var colour = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]") })
