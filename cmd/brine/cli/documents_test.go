package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brine/bundle/remedy"
)

// Every command line of brine that a document or a message shows is one that brine takes.
func TestCommandsOfDocumentsAreTaken(t *testing.T) {
	shown := regexp.MustCompile(`^(?:    +|\$ )(?:[A-Z_]+=\S+ )*(?:\S.* \| )?(?:bin/)?(brine .*)$`)
	synopsis := regexp.MustCompile(`\[|\(|…|\.{3}`)
	upper := strings.NewReplacer("NAMESPACE/NAME", "shop/shop", "VERSION", "1.33", "REVISION", "4", "--name NAME", "--name shop")
	commands := 0
	for _, file := range []string{
		"README.md", "guide.md", "troubleshooting.md", "tour.md", "../../../README.md", "../../../bundle/README.md",
		"../../../inventory/README.md", "../../../scripts/README.md", "../../../scripts/releaser/README.md", "../../../scripts/salt/README.md",
		"../../../scripts/salt/reference.md", "../../../scripts/salt/from-metalk8s.md", "../../../scripts/salt/example/README.md",
	} {
		for text := range strings.Lines(readText(t, file)) {
			match := shown.FindStringSubmatch(strings.TrimRight(text, "\n"))
			if len(match) < 2 || synopsis.MatchString(match[1]) {
				continue
			}
			commands++
			if why := takes(upper.Replace(match[1])); why != "" {
				t.Errorf("%s: %q: %s", filepath.Base(file), match[1], why)
			}
		}
	}
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
	for _, text := range []string{remedy.ApplyOutputOf("kustomize build shop"), remedy.RepairInventory("platform", "shop")} {
		if why := takes(upper.Replace(text)); why != "" {
			t.Errorf("a message shows %q: %s", text, why)
		}
	}
}

// brine help WORD prints the section of the troubleshooting, and a message names it.
func TestHelpOfMessages(t *testing.T) {
	words := messages()
	if len(words) < 15 {
		t.Errorf("only %d messages are explained", len(words))
	}
	all := line(t, "brine", "help", "troubleshooting")
	for _, word := range words {
		help := line(t, "brine", "help", word.name)
		_, body, _ := strings.Cut(help, "\n\n")
		if len(body) < 80 || !strings.Contains(all, strings.TrimSpace(body)) {
			t.Errorf("brine help %s prints %q", word.name, help)
		}
	}
	if list := line(t, "brine", "--help"); strings.Contains(list, "expired-plan") || !strings.Contains(list, "troubleshooting") {
		t.Errorf("brine --help lists the words of messages, or not the troubleshooting:\n%s", list)
	}
}
