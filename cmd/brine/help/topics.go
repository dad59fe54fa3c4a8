package help

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/inventory"
	"brine/scripts/salt"
)

// brine help TOPIC prints sections of the documents, without their markup.

// Topic is a section that brine help NAME prints.
type Topic struct{ Name, Title, Body string }

// Topics are the sections of the references that lie next to the code. The
// section of a command is none: brine help COMMAND has the same flags.
func (d Documents) Topics() []Topic {
	var all []Topic
	for _, document := range []string{d.Reference, bundle.Readme(), inventory.Readme()} {
		_, sections, _ := strings.Cut(document, "\n## ")
		for section := range strings.SplitSeq(sections, "\n## ") {
			if title, body, _ := strings.Cut(section, "\n"); !strings.HasPrefix(title, "brine ") {
				name := strings.ReplaceAll(strings.ToLower(title), " ", "-")
				all = append(all, Topic{name, title, body})
			}
		}
	}
	_, body, _ := strings.Cut(d.Troubleshooting, "\n")
	all = append(all, Topic{"troubleshooting", "Troubleshooting", body})
	_, body, _ = strings.Cut(salt.Readme(), "\n")
	return append(all, Topic{"salt", "The Salt modules", body})
}

// Messages are the sections of the troubleshooting, each by the word that a message names.
func (d Documents) Messages() []Topic {
	var all []Topic
	for section := range strings.SplitSeq(d.Troubleshooting, "\n## ") {
		word, body, _ := strings.Cut(section, "\n")
		all = append(all, Topic{word, word, body})
	}
	return all[1:] // behind the title
}

// Short is the first sentence.
func (t Topic) Short() string {
	sentence, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(t.Body), "\n", " ")+" ", ". ")
	return inline(strings.TrimSuffix(strings.TrimSpace(sentence), "."))
}

func (t Topic) text() string { return strings.ToUpper(t.Title) + "\n\n" + plain(t.Body) }

// addTopics adds a command that only has a help text for each topic. A command
// of the same name gets the text.
func (d Documents) addTopics(root *cobra.Command) {
	usual := root.HelpFunc()
	commands := root.Commands()
	for _, t := range d.Messages() {
		cmd := &cobra.Command{Use: t.Name, Hidden: true}
		cmd.SetHelpFunc(func(*cobra.Command, []string) { page(cmd.Context(), cmd.OutOrStdout(), t.text()) })
		root.AddCommand(cmd)
	}
	for _, t := range d.Topics() {
		cmd := &cobra.Command{Use: t.Name, Short: t.Short()}
		if i := slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == t.Name }); i >= 0 {
			cmd = commands[i]
		} else {
			root.AddCommand(cmd)
		}
		cmd.SetHelpFunc(func(asked *cobra.Command, args []string) {
			if asked != cmd { // a command below it
				usual(asked, args)
				return
			}
			text := t.text()
			if cmd.HasSubCommands() {
				text += "\n" + usage(cmd)
			}
			page(cmd.Context(), cmd.OutOrStdout(), text)
		})
	}
}

var (
	links    = regexp.MustCompile(`\[([^\]]+)\]\([^)\s]+\)`)
	emphasis = regexp.MustCompile(`\*\*?([^*\n]+)\*\*?`)
	comments = regexp.MustCompile(`<!--.*?-->\n?`)
)

const textWidth = 90

// plain is Markdown, as the references use it, for a terminal: tables become
// lists, code is indented, and other markup is left out.
func plain(markdown string) string {
	var out strings.Builder
	fenced, table := false, 0
	for line := range strings.Lines(strings.TrimSpace(comments.ReplaceAllString(markdown, ""))) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "|") {
			table = 0
		}
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced && line != "":
			out.WriteString("    " + line + "\n")
		case fenced || strings.HasPrefix(line, "    "):
			out.WriteString(line + "\n")
		case strings.HasPrefix(line, "|"):
			if table++; table > 2 { // after the heads and the line below
				writeRow(&out, line)
			}
		default:
			out.WriteString(inline(heading(line)) + "\n")
		}
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// heading is a heading in capitals, and any other line as it is.
func heading(line string) string {
	if rest := strings.TrimLeft(line, "#"); rest != line && strings.HasPrefix(rest, " ") {
		return strings.ToUpper(rest[1:])
	}
	return line
}

func inline(text string) string {
	text = links.ReplaceAllString(text, "$1")
	if !strings.Contains(text, "`") {
		return emphasis.ReplaceAllString(text, "$1")
	}
	var out strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 0 { // not code
			part = emphasis.ReplaceAllString(part, "$1")
		}
		out.WriteString(part)
	}
	return out.String()
}

// writeRow writes the first cell of a row, and below it the others.
func writeRow(out *strings.Builder, line string) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	writeWrapped(out, "  ", cells[0])
	for _, cell := range cells[1:] {
		writeWrapped(out, "      ", cell)
	}
}

func writeWrapped(out *strings.Builder, indent, text string) {
	width := 0
	for word := range strings.FieldsSeq(inline(text)) {
		switch {
		case width == 0:
			out.WriteString(indent)
		case width+1+len(word) > textWidth:
			out.WriteString("\n" + indent)
			width = 0
		default:
			out.WriteString(" ")
			width++
		}
		out.WriteString(word)
		width += len(word)
	}
	if width > 0 {
		out.WriteString("\n")
	}
}
