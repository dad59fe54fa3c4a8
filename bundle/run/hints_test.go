package run_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/cmd/brine/clitest"
)

// hinted are the commands that a message shows, up to its next word of prose.
var hinted = regexp.MustCompile(`(?:brine (?:rollback \d+|history|status|inventory repair)(?: --inventory)? [a-z0-9-]+/[a-z0-9-]+|kubectl (?:delete|describe) [a-z.0-9]+ [a-z0-9.-]+)(?: --[a-z]+(?:=[^\s;,"]+| [a-z0-9-]+))*`)

// The commands that messages show about an inventory name it, and the cluster as the user did
// by flags, and run as they stand.
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
			t.Fatalf("the command is %q, not %s of %s:\n%s%s", command, want, s.NS, from.Stderr, from.Stdout)
		}
		words := strings.Fields(command)
		if words[0] == "brine" {
			clitest.Command(t.Context(), nil, words[1:]...).Want(t, 0)
			return
		}
		flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
		namespace, kubeconfig := flags.StringP("namespace", "n", "", ""), flags.String("kubeconfig", "", "")
		if err := flags.Parse(words[2:]); err != nil || *kubeconfig != s.Kubeconfig || flags.NArg() != 2 {
			t.Fatalf("%s: %v", command, err)
		}
		objects := s.Resources(map[string]string{"lease.coordination.k8s.io": "coordination.k8s.io/v1/leases", "pod": "v1/pods"}[flags.Arg(0)]).Namespace(*namespace)
		var err error
		if words[1] == "delete" {
			err = objects.Delete(t.Context(), flags.Arg(1), metav1.DeleteOptions{})
		} else {
			_, err = objects.Get(t.Context(), flags.Arg(1), metav1.GetOptions{})
		}
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	run(s.Rollback().Want(t, 0), "brine rollback 1 ")
	run(s.Rollback("77").Want(t, 3).Prints(t, "no such revision"), "brine history ")

	lone := s.Other("lone")
	lone.Apply(clitest.ConfigMapOf("b", "{key: one}")).Want(t, 0)
	run(lone.Rollback().Want(t, 3), "brine history ")

	s.Merge("coordination.k8s.io/v1/leases", s.NS, "brine-lone", `{"spec":{"holderIdentity":"somebody","leaseDurationSeconds":60,"renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`)
	run(lone.Apply(clitest.ConfigMapOf("b", "{key: two}"), "--lock-timeout=0").Want(t, 5), "kubectl delete lease.coordination.k8s.io ")
	lone.Apply(clitest.ConfigMapOf("b", "{key: two}")).Want(t, 0)

	// A pod that no node takes, and that has failed.
	pod := clitest.PodWith("late", "nodeSelector: {none: such}")
	s.Create("v1/pods", pod)
	if _, err := s.Resources("v1/pods").Namespace(s.NS).Patch(t.Context(), "late", types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	run(s.Other("late").Apply(pod, "--inventory-policy=adopt-all", "-o", "text").Want(t, 4), "kubectl describe pod ")
}
