package run_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"brine/bundle"
	"brine/cmd/brine/clitest"
)

// denied is a change that a rule of the README denies; see testdata/deny.yaml.
type denied struct {
	Rule, Says, Without, More string
	New                       bool
	Instead                   []string
}

func (d denied) of(base string) string {
	documents := slices.DeleteFunc(strings.Split(base, "---\n"), func(text string) bool {
		return d.Without != "" && strings.Contains(text, d.Without)
	})
	if d.More != "" {
		documents = append(documents, d.More)
	}
	text := clitest.Documents(documents...)
	if len(d.Instead) == 2 {
		text = strings.ReplaceAll(text, d.Instead[0], d.Instead[1])
	}
	return text
}

// Each rule of the README stops check, preview and apply before the first write, with its
// line; what check cannot know, it does not deny. (Salt: scripts/salt/test_deny.py.)
func TestDeny(t *testing.T) {
	_, rules, _ := strings.Cut(bundle.Readme(), "<!-- deny rules -->\n```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	content, err := os.ReadFile("testdata/deny.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests struct {
		Base  string
		Cases []denied
	}
	if err := yaml.UnmarshalStrict(content, &tests); err != nil {
		t.Fatal(err)
	}
	if len(tests.Cases) != strings.Count(rules, "\n") {
		t.Errorf("%d cases of rules:\n%s", len(tests.Cases), rules)
	}
	s := clitest.New(t)
	s.GoneAfter("v1/namespaces", s.NS+"-more")
	file := s.File(rules)
	deny := "--deny=" + file
	s.Apply(tests.Base, deny, "--wait=applied").Want(t, 0)
	members := s.Members()
	for _, test := range tests.Cases {
		text, says := test.of(tests.Base), strings.ReplaceAll(`denied by rule "`+test.Rule+`": `+test.Says, "{ns}", s.NS)
		if test.Says == "" {
			says = strings.TrimSuffix(says, ": ")
		}
		p := s.Proxied()
		preview := s.Preview(text, deny).Want(t, 3).Prints(t, says)
		apply := s.Apply(text, deny).Want(t, 3).Prints(t, says)
		for _, errors := range [][]string{preview.Result.Errors, apply.Result.Errors} {
			if !strings.HasPrefix(errors[0], file+":") {
				t.Errorf("%s: it does not say where the rule is: %v", test.Rule, errors)
			}
		}
		if w := p.Writes(); len(w) > 0 {
			t.Errorf("%s: it wrote %v", test.Rule, clitest.Describe(w))
		}
		check := clitest.Command(t.Context(), nil, "check", "-f", s.File(text), deny)
		if test.New {
			check.Want(t, 3).Prints(t, says)
		} else {
			check.Want(t, 0)
		}
	}
	if now := s.Members(); !slices.Equal(now, members) {
		t.Errorf("the inventory holds %v, want %v", now, members)
	}
	// What cannot be evaluated denies; so does what is no rule.
	s.Apply(tests.Base, "--deny="+s.File("x: self.nothing.here")).Want(t, 3).Prints(t, `denied by rule "x", because it cannot be evaluated: no such key: nothing`)
	s.Apply(tests.Base, "--deny="+s.File("x: 1 + 1")).Want(t, 3).Prints(t, ":1: x: the CEL expression gives int, not bool or a list")
	s.Apply(tests.Base, deny, "--wait=applied").Want(t, 0)
}
