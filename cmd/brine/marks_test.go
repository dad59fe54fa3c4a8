package main

import (
	"testing"

	"brine/bundle/apply"
)

// Marks that say nothing are found before anything is written, by check and
// where there is no cluster as well.
func TestMisspeltMarks(t *testing.T) {
	text := documents(configMap("a", "annotations: {cli-utils.sigs.k8s.io/on-remove: kep}"),
		configMap("b", `annotations: {client.lifecycle.config.k8s.io/deletion: detatch, brine.dev/timout: "5m"}`), configMap("c", "annotations: {brine.dev/on-immutable: recreat}"))
	says := []string{
		"bundle.yaml:6: ", `"kep" means nothing here: write keep`, "bundle.yaml:14: ", `"detatch" means nothing here: write detach`,
		"bundle.yaml:22: ", `"recreat" means nothing here: write recreate`, "is brine.dev/timeout meant?",
	}
	late := configMap("a", `annotations: {brine.dev/timeout: "5"}`)

	s := newScene(t)
	p := s.proxied()
	s.apply(text).want(t, apply.ExitBadBundle).tells(t, says...)
	s.preview(text).want(t, apply.ExitBadBundle).tells(t, says...)
	s.apply(late).want(t, apply.ExitBadBundle).tells(t, "bundle.yaml:6: ", "not a duration")
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", writes)
	}
}

func TestMisspeltMarksWithoutACluster(t *testing.T) {
	bad := bundleFile(t, documents(configMap("a", "annotations: {cli-utils.sigs.k8s.io/on-remove: kep}"), configMap("b", `annotations: {brine.dev/timeout: soon, brine.dev/timout: "5m"}`)))
	says := []string{bad + ":6: ", `"kep" means nothing here: write keep`, bad + ":14: ", "not a duration", "is brine.dev/timeout meant?"}
	offline(t, "check", "-f", bad).want(t, apply.ExitBadBundle).tells(t, says...)
	offline(t, "apply", "--dry-run=client", "-o", "json", "-f", bad).want(t, apply.ExitBadBundle).tells(t, says...)
}
