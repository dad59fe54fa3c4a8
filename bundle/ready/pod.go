package ready

import (
	"fmt"
	"slices"
)

// pod: kstatus calls a failed pod current, and one that could not be scheduled
// for 15 s by the local clock failed. Here the first has failed, and the second
// waits: a node may still come, and Of is no clock.
func pod(o object) Status {
	switch phase := o.text("status", "phase"); phase {
	case "Succeeded":
		return Status{State: Ready}
	case "Failed":
		return failed("%s", podFailure(o))
	case "":
		return notReady("no scheduler or kubelet has updated its status yet")
	case "Running":
		if c, ok := o.condition("Ready"); ok && c.status == "True" {
			return Status{State: Ready}
		}
	}
	troubles := containerTroubles(o)
	for _, t := range troubles {
		// One that is to run to its end may succeed at the next attempt.
		if t.reason == "CrashLoopBackOff" && o.text("spec", "restartPolicy") != "OnFailure" {
			return failed("%s", t.String())
		}
	}
	if c, ok := o.condition("PodScheduled"); ok && c.status == "False" {
		return notReady("%s", c.String())
	}
	if len(troubles) > 0 {
		return notReady("%s", troubles[0].String())
	}
	if c, ok := o.condition("Ready"); ok && c.status != "True" {
		return notReady("%s", c.String())
	}
	return notReady("phase is %s", o.text("status", "phase"))
}

// podFailure is why a pod's phase is Failed: evicted, past its deadline, or the
// container that ended badly.
func podFailure(o object) string {
	s := "phase is Failed"
	if reason := o.text("status", "reason"); reason != "" {
		s += ", " + reason
	}
	if message := o.text("status", "message"); message != "" {
		return s + ": " + message
	}
	for _, t := range containerTroubles(o) {
		return s + ": " + t.String()
	}
	return s
}

// trouble is a container that does not run as it should.
type trouble struct {
	container string
	state     string // "waiting", "terminated", "not ready"
	reason    string // "CrashLoopBackOff"; may be empty
	message   string
	last      string // how it ended the last time: "exit code 137 (OOMKilled)"
	restarts  int64
	isInit    bool
}

// String is "container app: waiting CrashLoopBackOff: back-off …, last exit code
// 1 (Error), 4 restarts".
func (t trouble) String() string {
	s := "container " + t.container + ": " + t.state
	if t.isInit {
		s = "init " + s
	}
	if t.reason != "" {
		s += " " + t.reason
	}
	if t.message != "" {
		s += ": " + t.message
	}
	if t.last != "" {
		s += ", " + t.last
	}
	if t.restarts > 0 {
		s += fmt.Sprintf(", restarted %d times", t.restarts)
	}
	return oneLine(s)
}

// commonplace are reasons for waiting that only say that a pod is starting.
var commonplace = []string{"", "ContainerCreating", "PodInitializing"}

// containerTroubles are a pod's containers that do not run as they should,
// worst first: those that wait for a reason, those that ended badly, those
// that run and are not ready.
func containerTroubles(o object) []trouble {
	var waiting, ended, late []trouble
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range o.objects("status", list) {
			t := trouble{container: c.text("name"), restarts: c.count(0, "restartCount"), isInit: list == "initContainerStatuses"}
			if end := c.field("lastState", "terminated"); end != nil {
				t.last = "last " + exit(c, "lastState")
			}
			switch {
			case c.field("state", "waiting") != nil:
				t.state, t.reason, t.message = "waiting", c.text("state", "waiting", "reason"), c.text("state", "waiting", "message")
				if !slices.Contains(commonplace, t.reason) || t.message != "" {
					waiting = append(waiting, t)
				}
			case c.count(0, "state", "terminated", "exitCode") != 0:
				t.state, t.last = "terminated, "+exit(c, "state"), ""
				t.message = c.text("state", "terminated", "message")
				ended = append(ended, t)
			case c.field("state", "running") != nil && !c.flag("ready") && !t.isInit:
				t.state = "running but not ready"
				late = append(late, t)
			}
		}
	}
	return slices.Concat(waiting, ended, late)
}

// exit is how a container ended: "exit code 137 (OOMKilled)".
func exit(c object, state string) string {
	s := fmt.Sprintf("exit code %d", c.count(0, state, "terminated", "exitCode"))
	if reason := c.text(state, "terminated", "reason"); reason != "" {
		s += " (" + reason + ")"
	}
	return s
}
