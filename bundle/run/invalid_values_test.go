package run_test

import (
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// What check refuses, the dry runs and apply refuse as well, with the same words, before the
// first write: objects without a mistake are not applied either.
func TestInvalidValuesAreRefusedBeforeAnyWrite(t *testing.T) {
	s := clitest.New(t)
	web := clitest.Deployment("web", 1, "1m")
	cron := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: \"{ns}\"}\nspec:\n  schedule: \"every day\"\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n"
	for what, object := range map[string]string{
		"a port":               strings.Replace(web, "{name: c,", "{name: c, ports: [{containerPort: 99999}],", 1),
		"a number":             strings.Replace(web, "replicas: 1", "replicas: -3", 1),
		"a container's name":   strings.Replace(web, "{name: c,", "{name: Web_1,", 1),
		"a schedule":           cron,
		"an unknown field":     strings.Replace(web, "replicas: 1", "replcas: 1", 1),
		"a label":              strings.Replace(web, "labels: {app: web}", "labels: {app: \"{{ .Release.Name }}\"}", 1),
		"a selector":           strings.Replace(web, "labels: {app: web}", "labels: {app: wbe}", 1),
		"one of few values":    strings.Replace(web, "{name: c,", "{name: c, imagePullPolicy: Allways,", 1),
		"a type":               strings.Replace(web, "replicas: 1", "replicas: one", 1),
		"the same name twice":  strings.Replace(clitest.Pod("twice"), "containers: [", "containers: [{name: c, image: i}, ", 1),
		"a quantity":           strings.Replace(web, `cpu: "1m"`, `cpu: "1 core"`, 1),
		"a broken CRD":         strings.Replace(clitest.Widgets, "storage: true", "storage: false", 1),
		"an object of its CRD": clitest.Documents(clitest.PumpCRD, clitest.Pump("p", "  rate: 9\n  limit: 3\n")),
	} {
		t.Run(what, func(t *testing.T) {
			s := s.Other("refused")
			p := s.Proxied()
			text := clitest.Documents(clitest.ConfigMap("fine"), object)
			checked := clitest.Command(t.Context(), nil, "check", "-f", s.File(text)).Want(t, 3)
			client := clitest.Command(t.Context(), nil, "apply", "--name=c", "--dry-run=client", "-o", "json", "-f", s.File(text)).Want(t, 3)
			for name, o := range map[string]clitest.Outcome{"client": client, "preview": s.Preview(text), "apply": s.Apply(text)} {
				o.Want(t, 3)
				if len(o.Result.Errors) == 0 {
					t.Fatalf("%s gives no reason", name)
				}
				if message := o.Result.Errors[0]; !strings.Contains(checked.Stdout, message[strings.LastIndex(message, "bundle.yaml"):]) {
					t.Errorf("%s says %q, check says\n%s", name, message, checked.Stdout)
				}
			}
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", w)
			}
			s.Missing("v1/configmaps", "fine")
			s.Apply(text, "--validation=skip-invalid").Want(t, 1).Did(t, "ConfigMap", "fine", plan.Created)
			s.Destroy().Want(t, 0)
		})
	}
}

// The server has the last word: what it takes is never refused, and what another manager
// has is no reason to write first.
func TestWhatTheServerTakesIsNotRefused(t *testing.T) {
	s := clitest.New(t)
	web := clitest.Deployment("web", 1, "1m")
	s.Apply(web).Want(t, 0)
	s.PatchAs("set-image", "apps/v1/deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"others"}]}}}}`)
	without := strings.Replace(web, "image: registry.k8s.io/pause:3.10, ", "", 1)
	clitest.Command(t.Context(), nil, "check", "-f", s.File(without)).Want(t, 3).Prints(t, "image: is required and missing")
	s.Apply(without).Want(t, 0)

	s.PatchAs("person", "apps/v1/deployments", "web", `{"spec":{"replicas":3}}`)
	wrong := strings.Replace(web, "{name: c,", "{name: c, ports: [{containerPort: 99999}],", 1)
	s.Apply(wrong).Want(t, 3).Prints(t, "must be from 1 to 65535")
	s.Preview(wrong).Want(t, 3).Prints(t, "must be from 1 to 65535")
}
