package main_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/cmd/brine/clitest"
)

// soakCommand is a command that may be disturbed, and what it makes of the cluster.
type soakCommand struct {
	chaosCommand
	model soakBundle
}

func (k *soaker) command(next soakBundle) *soakCommand {
	c := &soakCommand{chaosCommand{name: "apply", args: []string{"apply", "-f", "{file}"}, text: next.text()}, next}
	switch dice := k.random.IntN(100); {
	case dice < 12:
		c.name, c.args = "apply --no-prune", append(c.args, "--no-prune")
		c.model = maps.Clone(k.have)
		maps.Copy(c.model, next)
	case dice < 30 && len(k.revisions) > 1:
		numbers := slices.Sorted(maps.Keys(k.revisions))
		number := numbers[k.random.IntN(max(1, len(numbers)-1))]
		c.name, c.args, c.text, c.model = "rollback", []string{"rollback", strconv.Itoa(number)}, "", k.revisions[number]
	case dice < 42 && len(k.have) > 0:
		c.name, c.args, c.text, c.model = "destroy", []string{"destroy"}, "", soakBundle{}
	}
	if len(c.model) > 0 {
		c.want = c.model.text()
	}
	return c
}

// disturbed runs a command, half of the time with a fault or a second actor.
func (k *soaker) disturbed(t *testing.T, s *clitest.Fixture, c *soakCommand) string {
	t.Helper()
	how, hows := &disturbance{}, faults()
	if c.name != "apply --no-prune" { // which would not put right what somebody did to the rest
		hows = append(hows, actors()...)
	}
	if k.random.IntN(2) == 0 {
		how = &hows[k.random.IntN(len(hows))]
	}
	both := maps.Clone(k.have)
	maps.Copy(both, c.model)
	tr := newTrial(s, objectsOf(s, both.text()), &c.chaosCommand, how, k.random)
	places := max(k.requests[c.name], 60)
	if how.fits != nil {
		places = max(places/6, 1) // most faults are of a few requests only
	}
	hit := false
	if how.name == "" {
		tr.disturbed(0).Want(t, 0)
	} else {
		hit = tr.run(t, 1+k.random.IntN(places), places)
	}
	k.requests[c.name] = max(k.requests[c.name], len(tr.proxy.Requests()))
	if t.Failed() {
		return how.name
	}
	k.cleanUp(t, tr)
	if again := tr.next("--force-conflicts", "--inventory-policy=adopt-all"); again.Exit != 0 {
		t.Fatalf("%s: after all was cleaned up it ends with exit code %d:\n%s", tr.what(), again.Exit, again.Stderr)
	}
	tr.deed = nil
	tr.ends(t, "in the end")
	if !hit {
		return ""
	}
	return how.name
}

// cleanUp takes away what the second actor left.
func (k *soaker) cleanUp(t *testing.T, tr *trial) {
	t.Helper()
	d := tr.deed
	if d == nil {
		return
	}
	// Nothing puts back half of what destroy has deleted for good.
	if tr.command.name != "destroy" || !d.lostInventory {
		if err := d.undoOnce(); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	wanted := map[string]bool{}
	if tr.command.want != "" {
		for _, o := range objectsOf(tr.Fixture, tr.command.want) {
			wanted[o.String()] = true
		}
	}
	owned := ours(tr.Fixture)
	var leftover []*target
	if d.theirs != nil && owned[d.theirs.String()] == nil {
		leftover = append(leftover, d.theirs)
	}
	if d.lostInventory {
		for name, o := range owned {
			if !wanted[name] {
				leftover = append(leftover, o)
			}
		}
	}
	background := metav1.DeletePropagationBackground
	for _, o := range leftover {
		err := clientOf(tr.Fixture, o.resource, o.namespace()).Delete(t.Context(), o.name(), metav1.DeleteOptions{PropagationPolicy: &background})
		if ignoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for _, o := range leftover {
		tr.Eventually(o.String()+" is gone", func() bool { _, err := readLive(tr.Fixture, o); return apierrors.IsNotFound(err) })
	}
}

// again: the same bundle once more changes nothing.
func (k *soaker) again(t *testing.T, s *clitest.Fixture) {
	t.Helper()
	if len(k.have) == 0 {
		return
	}
	did := s.Apply(k.have.text()).Want(t, 0)
	for _, o := range did.Result.Objects {
		if o.Action != "unchanged" {
			t.Errorf("%s %s was %s: %s", o.Kind, o.Name, o.Action, o.Reason)
		}
	}
	k.ends(t, s, k.have)
}

// previewed: a preview writes nothing, and says what the apply then does.
func (k *soaker) previewed(t *testing.T, s *clitest.Fixture, next soakBundle) {
	t.Helper()
	through := *s
	p := through.Proxied()
	preview := through.Preview(next.text()).Want(t, 0)
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("the preview wrote: %v", clitest.Describe(writes))
	}
	clitest.SameActions(t, preview, s.Apply(next.text()).Want(t, 0))
	k.ends(t, s, next)
}

// twoAtOnce: one of two runs does the work, the other waits, or is locked out.
func (k *soaker) twoAtOnce(t *testing.T, s *clitest.Fixture, next soakBundle) {
	t.Helper()
	args := []string{"apply", "-f", s.File(next.text()), "--inventory", s.Inventory, "--namespace", s.NS, "--timeout=3m"}
	var dids [2]clitest.Outcome
	var group sync.WaitGroup
	for i := range dids {
		group.Go(func() { dids[i] = clitest.Run(t, s.Kubeconfig, args...) })
	}
	group.Wait()
	for _, did := range dids {
		if did.Exit != 0 && did.Exit != 5 || dids[0].Exit+dids[1].Exit == 10 {
			t.Errorf("exit codes %d and %d:\n%s", dids[0].Exit, dids[1].Exit, did.Stderr)
		}
	}
	k.ends(t, s, next)
}

// overlap: another inventory may not take what is ours, nor leave anything.
func (k *soaker) overlap(t *testing.T, s *clitest.Fixture) {
	t.Helper()
	if k.have["always"] == "" {
		return
	}
	o := objectsOf(s, k.have["always"])[0]
	before, err := readLive(s, o)
	if err != nil {
		t.Fatal(err)
	}
	other := s.Other("other")
	did := other.Apply(clitest.Documents(strings.Replace(clitest.ConfigMap("always"), "key: value", "key: theirs", 1), clitest.ConfigMap("others")))
	if did.Exit != 1 {
		t.Errorf("exit code %d:\n%s", did.Exit, did.Stderr)
	}
	other.Destroy().Want(t, 0)
	after, err := readLive(s, o)
	if err != nil {
		t.Fatal(err)
	}
	if essence(before) != essence(after) {
		t.Errorf("another inventory changed what is ours:\n%s\n%s", essence(before), essence(after))
	}
	s.Missing("v1/configmaps", "others", "other")
	k.ends(t, s, k.have)
}

func (k *soaker) ends(t *testing.T, s *clitest.Fixture, model soakBundle) {
	t.Helper()
	c := &chaosCommand{name: "soak"}
	if len(model) > 0 {
		c.want = model.text()
	}
	tr := &trial{Fixture: s, command: c}
	tr.ends(t, "in the end")
	if names := orphans(s); len(names) > 0 {
		t.Errorf("not in the inventory: %v", names)
	}
}

// learn notes which revisions hold the bundle that this step applied.
func (k *soaker) learn(t *testing.T, s *clitest.Fixture, applied soakBundle) {
	t.Helper()
	if len(k.have) == 0 {
		k.revisions = map[int]soakBundle{} // with the inventory
		return
	}
	did := clitest.Run(t, s.Kubeconfig, "history", "--inventory", s.Inventory, "-o", "json").Want(t, 0)
	var history struct {
		Revisions []struct {
			Number int    `json:"number"`
			Result string `json:"result"`
		} `json:"revisions"`
	}
	if err := json.Unmarshal([]byte(did.Stdout), &history); err != nil {
		t.Fatal(err)
	}
	known := map[int]soakBundle{}
	for _, r := range history.Revisions {
		switch before, ok := k.revisions[r.Number]; {
		case ok:
			known[r.Number] = before
		case r.Result == "applied":
			known[r.Number] = applied
		}
	}
	k.revisions = known
}
