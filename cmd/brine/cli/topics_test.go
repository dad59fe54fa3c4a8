package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brine/cmd/brine/profile"
)

// brine help TOPIC prints the section of a reference, for a terminal.
func TestHelpTopics(t *testing.T) {
	list := line(t, "brine", "--help")
	markup := regexp.MustCompile("```|\\*\\*|<!--|\\]\\(|^\\||^#")
	for _, topic := range helpTexts.Topics() {
		t.Run(topic.Name, func(t *testing.T) {
			help := line(t, "brine", "help", topic.Name)
			if !strings.HasPrefix(help, strings.ToUpper(topic.Title)+"\n\n") {
				t.Errorf("it prints %.80q", help)
			}
			for line := range strings.Lines(help) {
				if len([]rune(line)) > 101 && !strings.HasPrefix(line, "    ") { // what a program prints is as long as it is
					t.Errorf("this line is longer than 100 characters: %s", line)
				}
				if !strings.HasPrefix(line, "    ") && markup.MatchString(line) {
					t.Errorf("this line has markup: %s", line)
				}
			}
			for line := range strings.Lines(topic.Body) {
				if !strings.ContainsAny(line, "`[]*|#<") && !strings.Contains(help, line) {
					t.Errorf("a line of the document is missing: %s", line)
				}
			}
			if short := topic.Short(); topic.Name != "inventory" && !strings.Contains(list, short) || len(short) > 80 || short == "" {
				t.Errorf("brine --help does not list it with its first sentence, which is short: %q", short)
			}
		})
	}
}

// The sections of the references are the commands and the topics.
func TestHelpHasTheSectionsOfTheDocuments(t *testing.T) {
	root := newRoot(Streams{}, &profile.Profile{})
	var commands, sections, named []string
	for _, cmd := range root.Commands() {
		for _, sub := range cmd.Commands() {
			commands = append(commands, sub.CommandPath())
		}
		if cmd.Runnable() { // as brine history, which has a command of its own below it
			commands = append(commands, cmd.CommandPath())
		}
	}
	for _, topic := range helpTexts.Topics() {
		if slices.Contains(named, topic.Name) {
			t.Errorf("there are two topics %s", topic.Name)
		}
		named = append(named, topic.Name)
	}
	for _, file := range []string{"README.md", "../../../bundle/README.md", "../../../inventory/README.md"} {
		for line := range strings.Lines(readText(t, file)) {
			title, ok := strings.CutPrefix(strings.TrimSpace(line), "## ")
			switch {
			case !ok:
			case strings.HasPrefix(title, "brine "):
				sections = append(sections, title)
			case !slices.Contains(named, anchor(title)):
				t.Errorf("%s: section %q is no topic of brine help", file, title)
			}
		}
	}
	slices.Sort(commands)
	slices.Sort(sections)
	if !slices.Equal(commands, sections) {
		t.Errorf("the commands are %v, the sections about commands %v", commands, sections)
	}
	for _, want := range []string{"annotations", "exit-codes", "output", "ordering", "pruning", "readiness", "inventory", "salt"} {
		if !slices.Contains(named, want) {
			t.Errorf("there is no topic %s", want)
		}
	}
}

// What a script writes into a document is there.
func TestGeneratedPartsAreNotEmpty(t *testing.T) {
	part := regexp.MustCompile(`(?s)<!-- ((?:help|demo|salt) [^\n]*?) -->\n(.*?)<!-- end -->`)
	parts := 0
	for _, file := range []string{"README.md", "tour.md", "../../../README.md", "../../../scripts/salt/example/README.md"} {
		for _, match := range part.FindAllStringSubmatch(readText(t, file), -1) {
			if parts++; !strings.Contains(match[2], "```\n") {
				t.Errorf("%s: the part %q is empty: run scripts/readme", file, match[1])
			}
		}
	}
	if parts < 30 {
		t.Errorf("only %d parts were found", parts)
	}
}

// What is about a command below one that is a topic, too, stays its own help.
func TestHelpOfACommandThatIsATopic(t *testing.T) {
	of := line(t, "brine", "help", "inventory")
	if !strings.Contains(of, "kapply") || !strings.Contains(of, "repair ") {
		t.Errorf("it says neither what an inventory is nor its commands: %s", of)
	}
	if below := line(t, "brine", "inventory", "repair", "--help"); !strings.Contains(below, "--all-kinds") || strings.Contains(below, "ApplySet") {
		t.Errorf("brine inventory repair --help prints %s", below)
	}
}

// Every link in a document leads somewhere.
func TestDocsLinks(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	documents, links := 0, 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "dist" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		documents++
		for _, match := range link.FindAllStringSubmatch(readText(t, path), -1) {
			file, section, _ := strings.Cut(match[1], "#")
			if strings.HasPrefix(match[1], "https://") {
				continue
			}
			links++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil || section != "" && !slices.Contains(anchors(t, target), section) {
				t.Errorf("%s: the link %s leads nowhere", path, match[1])
			}
		}
		return nil
	})
	if err != nil || documents < 8 || links < 40 {
		t.Errorf("%d documents with %d links were found: %v", documents, links, err)
	}
}

// anchors are what links to the sections of a document say.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(readText(t, path)) {
		if title := strings.TrimLeft(line, "#"); title != line {
			all = append(all, anchor(strings.TrimSpace(title)))
		}
	}
	return all
}

func anchor(title string) string {
	kept := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(kept, " ", "-")
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
