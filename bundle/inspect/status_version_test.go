package inspect_test

import (
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What another version of Kubernetes does not serve is found before the cluster gets it.
func TestStatusForAnotherVersionOfKubernetes(t *testing.T) {
	s := clitest.New(t)
	cron := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly, namespace: \"{ns}\"}\n" +
		"spec: {schedule: \"0 3 * * *\", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.k8s.io/pause:3.10}]}}}}}\n"
	s.Apply(clitest.Documents(cron, clitest.ConfigMap("a"))).Want(t, 0)
	status := func(version, format string) clitest.Outcome {
		return clitest.Run(t, s.Kubeconfig, "status", "--inventory", s.Inventory, "--kubernetes-version", version, "-o", format)
	}
	status("1.37", "json").Want(t, 0)
	const why = "Kubernetes 1.20 does not serve batch/v1 CronJob yet, which came with 1.21; write apiVersion: batch/v1beta1"
	got := status("1.20", "json").Want(t, report.ExitBadBundle)
	if o := got.Object(t, "CronJob", "nightly"); o.NotServed != why || o.Ready != report.StateReady {
		t.Errorf("the CronJob is %q: %q", o.Ready, o.NotServed)
	}
	if o := got.Object(t, "ConfigMap", "a"); o.NotServed != "" {
		t.Errorf("the ConfigMap: %q", o.NotServed)
	}
	status("1.20", "text").Want(t, report.ExitBadBundle).Prints(t, why)
	status("1.99", "text").Want(t, report.ExitBadBundle).Prints(t, "1.99: unknown version")
}
