package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// An event says whether it is of a preview, which run it is of, and which one in it, so
// that nobody has to remember earlier ones.
func TestEventsSayWhoseTheyAre(t *testing.T) {
	s := clitest.New(t)
	type line struct {
		Type    string `json:"type"`
		Seq     int    `json:"seq"`
		Run     string `json:"run"`
		Preview *bool  `json:"preview"`
	}
	runs := map[string]bool{}
	for _, test := range []struct {
		command, text string
		flags         []string
		preview       bool
	}{
		{"preview", clitest.ConfigMap("a"), nil, true},
		{"apply", clitest.ConfigMap("a"), []string{"--dry-run=server"}, true},
		{"apply", clitest.ConfigMap("a"), nil, false},
		{"apply", clitest.Documents(clitest.ConfigMap("a"), clitest.PodWith("late", "nodeSelector: {no-such: node}")), []string{"--rollback-on-failure", "--timeout=15s"}, false},
		{"apply", "kind: [", nil, false},
		{"preview", "kind: [", nil, true},
	} {
		for _, format := range []string{"events", "salt-events"} {
			done := s.Run(test.command, append([]string{"-f", s.File(test.text), "-o", format}, test.flags...))
			run, last := "", ""
			for i, text := range strings.Split(strings.TrimSpace(done.Stdout), "\n") {
				var l line
				if err := json.Unmarshal([]byte(text), &l); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				if run == "" {
					run = l.Run
				}
				if l.Seq != i+1 || l.Run != run || l.Preview == nil || *l.Preview != test.preview {
					t.Errorf("%s %q -o %s: line %d: %s", test.command, test.flags, format, i+1, text)
				}
				last = l.Type
			}
			if last != "finished" || run == "" || runs[run] {
				t.Errorf("%s %q -o %s: the last event is %q, the run %q: %v", test.command, test.flags, format, last, run, runs)
			}
			runs[run] = true
		}
	}
}
