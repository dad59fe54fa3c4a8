package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	var offline [][]string
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
			} else if args := argumentsOf(upper.Replace(match[1])); slices.Contains([]string{"check", "images", "rbac", "version"}, args[0]) {
				offline = append(offline, args)
			}
		}
	}
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
	for _, text := range []string{remedy.ApplyOutputOf("kustomize build shop"), remedy.ForCluster("--context=prod", "--kubeconfig=clusters/prod.yaml").Repair("platform", "shop")} {
		if why := takes(upper.Replace(text)); why != "" {
			t.Errorf("a message shows %q: %s", text, why)
		}
	}

	// What needs no cluster is run.
	t.Chdir(t.TempDir())
	for _, file := range []string{"shop/web.yaml", "shop-before/web.yaml", "shop.yaml", "BUNDLE", "testdata/sample/web.yaml"} {
		write(t, file, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: 'nginx:1.28'}]}\n")
	}
	write(t, "mirrored.txt", "nginx:1.28\n")
	for _, args := range offline {
		runs(t, "", args...)
	}
	if len(offline) < 5 {
		t.Errorf("only %v were run", offline)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runs is what a command prints, which has to succeed.
func runs(t *testing.T, in string, args ...string) string {
	t.Helper()
	var out, err bytes.Buffer
	if code := Run(t.Context(), Streams{In: strings.NewReader(in), Out: &out, Err: &err}, args); code != 0 {
		t.Errorf("brine %s: exit code %d, %s%s", strings.Join(args, " "), code, &out, &err)
	}
	return out.String()
}

// The commands that messages show do what they are shown for, as they stand there. (The one that
// repairs an inventory is run by inventory/admin's tests.)
func TestCommandsOfMessagesRun(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	t.Chdir(t.TempDir())
	write(t, "shop/kustomization.yaml", "resources: [a.yaml]\n")
	write(t, "shop/a.yaml", object)
	var refusal bytes.Buffer
	if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &refusal, Err: &refusal}, []string{"check", "-f", "shop"}); code != 3 {
		t.Fatalf("exit code %d: %s", code, &refusal)
	}
	_, shown, _ := strings.Cut(refusal.String(), ": run kustomize build shop | ")
	shown, _, _ = strings.Cut(shown, "\n")
	if got := runs(t, object, append(argumentsOf(strings.Replace(shown, "NAME", "shop", 1)), "--dry-run=client")...); !strings.Contains(got, "ConfigMap") {
		t.Errorf("%q prints %q", shown, got)
	}
	for _, help := range []string{remedy.HelpConflict, remedy.HelpDamaged, remedy.HelpExpiredPlan, remedy.HelpImmutable, remedy.HelpLocked, remedy.HelpMaxPrune} {
		if got := runs(t, "", argumentsOf(help)...); len(got) < 80 {
			t.Errorf("%s prints %q", help, got)
		}
	}
}

// brine help WORD prints the section of the troubleshooting, and a message names it.
func TestHelpOfMessages(t *testing.T) {
	words := helpTexts.Messages()
	if len(words) < 15 {
		t.Errorf("only %d messages are explained", len(words))
	}
	all := line(t, "brine", "help", "troubleshooting")
	for _, word := range words {
		help := line(t, "brine", "help", word.Name)
		_, body, _ := strings.Cut(help, "\n\n")
		if len(body) < 80 || !strings.Contains(all, strings.TrimSpace(body)) {
			t.Errorf("brine help %s prints %q", word.Name, help)
		}
	}
	if list := line(t, "brine", "--help"); strings.Contains(list, "expired-plan") || !strings.Contains(list, "troubleshooting") {
		t.Errorf("brine --help lists the words of messages, or not the troubleshooting:\n%s", list)
	}
}
