package run_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/cmd/brine/clitest"
)

// hinted are the commands that a message shows, up to its next word of prose.
var hinted = regexp.MustCompile(`brine (?:rollback \d+|history|status|inventory repair)(?: --inventory)? [a-z0-9-]+/[a-z0-9-]+|kubectl delete \w+ [a-z0-9.-]+ --namespace [a-z0-9-]+`)

// The commands that messages show about an inventory name it, and run as they stand.
func TestCommandsInMessagesRun(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Apply(clitest.ConfigMapOf("a", "{key: two}")).Want(t, 0)
	s.Apply(clitest.ConfigMapOf("a", "{key: three}")).Want(t, 0)
	s.Rollback().Want(t, 0)
	run := func(from clitest.Outcome, want string) {
		t.Helper()
		command := hinted.FindString(from.Stderr + from.Stdout)
		if !strings.HasPrefix(command, want) || !strings.Contains(command, s.NS) {
			t.Fatalf("the command is %q, not %s of %s:\n%s", command, want, s.NS, from.Stderr)
		}
		words := strings.Fields(command)
		if words[0] == "kubectl" { // delete KIND NAME --namespace NAMESPACE
			resource := map[string]string{"lease": "coordination.k8s.io/v1/leases"}[words[2]]
			if err := s.Resources(resource).Namespace(words[5]).Delete(t.Context(), words[3], metav1.DeleteOptions{}); err != nil {
				t.Errorf("%s: %v", command, err)
			}
			return
		}
		clitest.Run(t, s.Kubeconfig, words[1:]...).Want(t, 0)
	}
	run(s.Rollback().Want(t, 0), "brine rollback 1 ")
	run(s.Rollback("77").Want(t, 3).Prints(t, "no such revision"), "brine history ")

	lone := s.Other("lone")
	lone.Apply(clitest.ConfigMapOf("b", "{key: one}")).Want(t, 0)
	run(lone.Rollback().Want(t, 3), "brine history ")

	s.Merge("coordination.k8s.io/v1/leases", s.NS, "brine-lone", `{"spec":{"holderIdentity":"somebody","leaseDurationSeconds":60,"renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`)
	run(lone.Apply(clitest.ConfigMapOf("b", "{key: two}"), "--lock-timeout=0").Want(t, 5), "kubectl delete lease ")
	lone.Apply(clitest.ConfigMapOf("b", "{key: two}")).Want(t, 0)
}
