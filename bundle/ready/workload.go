package ready

import (
	"maps"

	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// compute is kstatus' answer for a workload, with the condition that says most
// behind its count of replicas.
func compute(o object, telling ...string) Status {
	if _, ok := o.number("status", "observedGeneration"); !ok {
		return notReady("its controller has not yet seen it")
	}
	res, err := status.Compute(o.unstructured())
	switch {
	case err != nil:
		return notReady("its status cannot be understood: %s", err)
	case res.Status == status.CurrentStatus:
		return Status{State: Ready}
	case res.Status == status.FailedStatus:
		return failed("%s", res.Message+o.telling(telling...))
	}
	return notReady("%s", res.Message+o.telling(telling...))
}

// deployment: one that is paused does not roll out, so a run
// cannot wait for it (Helm's rule too).
func deployment(o object) Status {
	s := compute(o, "ReplicaFailure=True", "Progressing=False", "Available=False")
	if s.State != Ready && o.flag("spec", "paused") {
		return Status{State: Ready, Reason: "paused: spec.paused holds its rollout (" + s.Reason + ")"}
	}
	return s
}

func replicaSet(o object) Status {
	content := maps.Clone(o.content)
	content["apiVersion"], content["kind"] = "apps/v1", "ReplicaSet"
	return compute(object{content}, "ReplicaFailure=True")
}

// statefulSet with OnDelete keeps its old pods until somebody deletes them: all
// have to be ready, none to be new. (kstatus calls it ready unseen.)
func statefulSet(o object) Status {
	replicas := o.count(1, "spec", "replicas")
	if o.text("spec", "updateStrategy", "type") == "OnDelete" {
		o = o.with("spec", "updateStrategy", map[string]any{
			"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": replicas},
		})
	}
	s := compute(o)
	// Ready pods are available minReadySeconds later; kstatus ignores that.
	available := o.count(replicas, "status", "availableReplicas")
	if s.State == Ready && o.count(0, "spec", "minReadySeconds") > 0 && available < replicas {
		return notReady("Available: %d/%d", available, replicas)
	}
	return s
}

// daemonSet with OnDelete: the same as for a StatefulSet. (kstatus waits for
// new pods without end.) One that fits no node is ready, which may be a misspelt selector.
func daemonSet(o object) Status {
	if o.text("spec", "updateStrategy", "type") == "OnDelete" {
		o = o.with("status", "updatedNumberScheduled", o.count(0, "status", "desiredNumberScheduled"))
	}
	s := compute(o)
	if s.State == Ready && o.count(0, "status", "desiredNumberScheduled") == 0 {
		s.Reason = "runs on no node: none of them fits it"
	}
	return s
}
