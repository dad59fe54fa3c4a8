package apply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// pumpWithStatus is the CRD of Pumps, with the subresource status.
func pumpWithStatus() string {
	crd := strings.Replace(clitest.PumpCRD, "    storage: true\n", "    storage: true\n    subresources: {status: {}}\n", 1)
	return strings.Replace(crd, "          spec:\n", "          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n          spec:\n", 1)
}

// A controller that starts late: the object that it has not seen yet holds its dependents
// and the pruning. One that never comes holds them for a bounded time only.
func TestFirstStatusIsWaitedFor(t *testing.T) {
	s := clitest.New(t)
	crd := pumpWithStatus()
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

// A controller that has given up, and only says from time to time that it still lives, ends
// the waiting where --fail-after says so: what needs the object is skipped, nothing is pruned.
func TestFailAfter(t *testing.T) {
	s := clitest.New(t)
	crd, after := pumpWithStatus(), clitest.ConfigMap("after", clitest.DependsOn("{ns}.example.com/namespaces/{ns}/Pump/one"))
	s.Apply(clitest.Documents(crd, clitest.ConfigMap("old"))).Want(t, 0)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pumps := s.Resources(s.NS + ".example.com/v1/pumps").Namespace(s.NS)
		for at := time.Now(); ctx.Err() == nil; at = at.Add(time.Second) {
			status := `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"ConfigError","lastProbeTime":"` + at.Format(time.RFC3339) + `"}]}}`
			_, _ = pumps.Patch(ctx, "one", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status") // until it is there
			time.Sleep(100 * time.Millisecond)
		}
	}()
	text := clitest.Documents(crd, clitest.Pump("one", "  rate: 1\n"), after)
	result := s.Apply(text, "--fail-after=2s", "--timeout=5m").Want(t, 4)
	if o := result.Object(t, "Pump", "one"); o.Ready != "not-ready" || o.Reason != "not ready, and unchanged for 2s: Ready=False ConfigError" {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	result.Did(t, "ConfigMap", "after", plan.Skipped)
	s.Exists("v1/configmaps", "old")
	// Its own limit goes over the flag.
	own := strings.Replace(text, "  name: one\n", "  name: one\n  annotations: {brine.dev/fail-after: \"0\"}\n", 1)
	s.Apply(own, "--fail-after=1s", "--timeout=8s").Want(t, 4).Prints(t, "time ran out after 8s: Ready=False ConfigError")
	own = strings.Replace(own, `"0"`, "1s", 1)
	s.Apply(own, "--timeout=5m").Want(t, 4).Prints(t, "not ready, and unchanged for 1s: Ready=False ConfigError")
	stop()
	<-done
}

// A controller that writes its condition Ready last: where another object of the kind has one,
// an object without is not ready yet.
func TestConditionReadyIsWaitedFor(t *testing.T) {
	s := clitest.New(t)
	crd, after := pumpWithStatus(), clitest.ConfigMap("after", clitest.DependsOn("{ns}.example.com/namespaces/{ns}/Pump/two"))
	pumps := func() dynamic.ResourceInterface { return s.Resources(s.NS + ".example.com/v1/pumps").Namespace(s.NS) }
	set := func(name, status string) error {
		_, err := pumps().Patch(context.Background(), name, types.MergePatchType, []byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
		return err
	}
	annotated := func(name string) string {
		return strings.Replace(clitest.Pump(name, "  rate: 1\n"), "  name: "+name+"\n", "  name: "+name+"\n  annotations: {brine.dev/status-timeout: 4m}\n", 1)
	}
	one := strings.Replace(annotated("one"), "4m", `"0"`, 1)
	s.Apply(clitest.Documents(crd, one), "--timeout=5m").Want(t, 0)
	if err := set("one", `{"conditions":[{"type":"Ready","status":"True"}]}`); err != nil {
		t.Fatal(err)
	}
	wrong := make(chan string, 1)
	go func() { // the controller
		defer close(wrong)
		for set("two", `{"address":"192.0.2.1"}`) != nil {
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Get(context.Background(), "after", metav1.GetOptions{}); err == nil {
			wrong <- "after was applied before the Pump had a condition Ready"
		}
		if err := set("two", `{"conditions":[{"type":"Ready","status":"True"}]}`); err != nil {
			wrong <- err.Error()
		}
	}()
	s.Apply(clitest.Documents(crd, one, annotated("two"), after), "--timeout=5m").Want(t, 0).Did(t, "ConfigMap", "after", plan.Created)
	for text := range wrong {
		t.Error(text)
	}
	// One that had a status without is not to have one after an update.
	if err := set("two", `{"conditions":null}`); err != nil {
		t.Fatal(err)
	}
	s.Apply(clitest.Documents(crd, one, strings.Replace(annotated("two"), "rate: 1", "rate: 2", 1), after), "--timeout=5m").Want(t, 0).Did(t, "Pump", "two", plan.Configured)
}
