package apiserver

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Jobs run for a while, and are removed when their ttlSecondsAfterFinished is over.

// runs is how long a Job runs.
const runs = 3 * time.Second

func defaultJob(u *unstructured.Unstructured) {
	for key, value := range map[string]any{"parallelism": int64(1), "completions": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false, "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed"} {
		setDefault(u.Object, value, "spec", key)
	}
	defaultPods(u.Object, "spec", "template", "spec")
}

func defaultCronJob(u *unstructured.Unstructured) {
	for key, value := range map[string]any{"concurrencyPolicy": "Allow", "failedJobsHistoryLimit": int64(1), "successfulJobsHistoryLimit": int64(3), "suspend": false} {
		setDefault(u.Object, value, "spec", key)
	}
	setDefault(u.Object, map[string]any{}, "spec", "jobTemplate", "metadata")
	setDefault(u.Object, map[string]any{}, "spec", "jobTemplate", "spec", "template", "metadata")
	defaultPods(u.Object, "spec", "jobTemplate", "spec", "template", "spec")
}

// selectPods gives a new Job the labels by which it finds its pods.
func selectPods(u *unstructured.Unstructured) {
	uid := string(u.GetUID())
	_ = unstructured.SetNestedField(u.Object, uid, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid")
	for key, value := range map[string]string{"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid, "batch.kubernetes.io/job-name": u.GetName(), "job-name": u.GetName()} {
		_ = unstructured.SetNestedField(u.Object, value, "spec", "template", "metadata", "labels", key)
	}
	if len(u.GetLabels()) == 0 {
		labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
		u.SetLabels(labels)
	}
	u.Object["status"] = map[string]any{}
}

// fixedJob is what may not change of a Job.
func fixedJob(u, live *unstructured.Unstructured) (wrong field.ErrorList) {
	for _, key := range []string{"completions", "selector", "template", "completionMode"} {
		before, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", key)
		after, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", key)
		if !Same(before, after) {
			wrong = append(wrong, field.Invalid(field.NewPath("spec", key), after, "field is immutable"))
		}
	}
	return wrong
}

// work makes a Job begin, and end when its time is over. It returns whether that, or its removal,
// is still to come, and whether it is to be removed now.
func (s *Server) work(u *unstructured.Unstructured) (waits, expires bool) {
	status, _ := u.Object["status"].(map[string]any)
	began, _ := status["startTime"].(string)
	switch start, err := time.Parse(time.RFC3339, began); {
	case err != nil:
		u.Object["status"] = map[string]any{"startTime": time.Now().UTC().Truncate(time.Second).Format(time.RFC3339), "active": int64(1), "ready": int64(0), "terminating": int64(0)}
		return true, false
	case status["conditions"] == nil && time.Since(start) < runs:
		return true, false
	case status["conditions"] == nil:
		ended := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
		done := map[string]any{"startTime": began, "ready": int64(0), "terminating": int64(0)}
		if s.hasUnready(u) {
			done["failed"] = int64(1)
			done["conditions"] = []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit", "lastTransitionTime": ended}}
		} else {
			done["succeeded"], done["completionTime"] = int64(1), ended
			done["conditions"] = []any{map[string]any{"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"}, map[string]any{"type": "Complete", "status": "True", "reason": "CompletionsReached", "lastTransitionTime": ended}}
		}
		u.Object["status"] = done
		return true, false
	}
	ttl, has, _ := unstructured.NestedInt64(u.Object, "spec", "ttlSecondsAfterFinished")
	if !has {
		return false, false
	}
	conditions, _ := status["conditions"].([]any)
	last, _ := conditions[len(conditions)-1].(map[string]any)
	ended, _ := last["lastTransitionTime"].(string)
	at, _ := time.Parse(time.RFC3339, ended)
	expires = time.Since(at) >= time.Duration(ttl)*time.Second
	return !expires, expires
}

// hasUnready says whether a workload has an image that never gets ready.
func (s *Server) hasUnready(u *unstructured.Unstructured) bool {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		if image, _ := c.(map[string]any)["image"].(string); s.unready[image] {
			return true
		}
	}
	return false
}
