package apply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// A controller that starts late: the object that it has not seen yet holds its dependents
// and the pruning. One that never comes holds them for a bounded time only.
func TestFirstStatusIsWaitedFor(t *testing.T) {
	s := clitest.New(t)
	crd := strings.Replace(clitest.PumpCRD, "    storage: true\n", "    storage: true\n    subresources: {status: {}}\n", 1)
	crd = strings.Replace(crd, "          spec:\n", "          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n          spec:\n", 1)
	after := clitest.ConfigMap("after", clitest.DependsOn("{ns}.example.com/namespaces/{ns}/Pump/one"))
	s.Apply(clitest.Documents(crd, clitest.ConfigMap("old"))).Want(t, 0)

	pumps := s.Resources(s.NS + ".example.com/v1/pumps").Namespace(s.NS)
	set := func(status string) bool {
		_, err := pumps.Patch(context.Background(), "one", types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
		return err == nil
	}
	tooEarly := make(chan string, 4)
	held := func(when string) {
		maps := s.Resources("v1/configmaps").Namespace(s.NS)
		if _, err := maps.Get(context.Background(), "after", metav1.GetOptions{}); err == nil {
			tooEarly <- "after was applied " + when
		}
		if _, err := maps.Get(context.Background(), "old", metav1.GetOptions{}); err != nil {
			tooEarly <- "old was pruned " + when
		}
	}
	go func() { // the controller
		defer close(tooEarly)
		for {
			if _, err := pumps.Get(context.Background(), "one", metav1.GetOptions{}); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		held("before the Pump had a status")
		if !set(`{"phase":"Creating"}`) {
			tooEarly <- "the Pump's status cannot be written"
		}
		time.Sleep(time.Second)
		held("before the Pump was ready")
		set(`{"phase":"Ready"}`)
	}()
	one := strings.Replace(clitest.Pump("one", "  rate: 1\n"), "  name: one\n", "  name: one\n  annotations: {brine.dev/status-timeout: 4m}\n", 1)
	result := s.Apply(clitest.Documents(crd, one, after), "--timeout=5m").Want(t, 0)
	for wrong := range tooEarly {
		t.Error(wrong)
	}
	result.Did(t, "ConfigMap", "after", plan.Created)
	result.Did(t, "ConfigMap", "old", plan.Pruned)

	// Unchanged: nothing is waited for.
	s.Apply(clitest.Documents(crd, one, after)).Want(t, 0).Did(t, "Pump", "one", plan.Unchanged)

	// Nobody writes this one's, and the object says how long that may take.
	mute := strings.Replace(clitest.Pump("two", "  rate: 1\n"), "  name: two\n", "  name: two\n  annotations: {brine.dev/status-timeout: 1s}\n", 1)
	result = s.Apply(clitest.Documents(crd, one, mute, after), "--timeout=5m").Want(t, 0)
	if o := result.Object(t, "Pump", "two"); o.Ready != "ready" || !strings.Contains(o.Reason, "no status after") {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
}
