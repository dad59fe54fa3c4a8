package plan

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/order"
	"brine/inventory"
)

var update = flag.Bool("update", false, "write the printed plans into testdata/build")

// TestBuild: each document of testdata/build/*.yaml is a case: data in, the
// printed plan out. Its last key is want, so that -update can write it again.
func TestBuild(t *testing.T) {
	files, err := filepath.Glob("testdata/build/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs := strings.Split(string(text), "\n---\n")
		for i, doc := range docs {
			c := buildCase{}
			if err := yaml.UnmarshalStrict([]byte(doc), &c); err != nil {
				t.Fatalf("%s: %v:\n%s", file, err, doc)
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+c.Name, func(t *testing.T) {
				got := c.run(t)
				if *update {
					head, _, _ := strings.Cut(doc, "\nwant:")
					docs[i] = head + "\nwant: |\n  " + strings.ReplaceAll(cmp.Or(got, "nothing to do"), "\n", "\n  ")
				} else if want := strings.TrimSpace(c.Want); cmp.Or(got, "nothing to do") != want {
					t.Errorf("got\n%s\n\nwant\n%s", got, want)
				}
			})
		}
		if *update {
			all := strings.TrimRight(strings.Join(docs, "\n---\n"), "\n") + "\n"
			if err := os.WriteFile(file, []byte(all), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

type objects []unstructured.Unstructured

// buildCase is one case. Objects are named as messages name them, like
// "Deployment.apps ns/name".
type buildCase struct {
	Name    string
	Options struct {
		Options
		Policy               string
		Undo, NamespaceNamed bool
	}
	// Unplaced: the bundle's objects name no namespace; what they have is the kubeconfig's.
	Unplaced       bool
	Bundle, Absent objects
	// Ours are live members with the inventory's ownership metadata, Live other
	// live objects, exactly as they are written.
	Ours, Live objects
	// Members are in the inventory besides Ours.
	Members []string
	// MovingTo is of members whose move to another inventory began.
	MovingTo map[string]string
	// Origins are of members; Other: of an object that was there before under the name.
	Origins map[string]struct {
		inventory.Origin
		Other bool
	}
	// Creating is of members that a killed run was to create.
	Creating map[string]int
	// Unknown is why nothing can be known about objects.
	Unknown map[string]string
	// Outside are owners that are neither members nor in the bundle.
	Outside        objects
	OutsideUnknown map[string]string
	// Contents are those of Namespaces and CRDs.
	Contents map[string]bundle.Contents
	// Stored are the numbers of objects of CRDs, Lost what they would lose.
	Stored map[string]int
	Lost   map[string][]string
	// Invalid objects were left out of the bundle.
	Invalid []string
	// Last is the run that left the fingerprints: without it there are none, and
	// what it does not say was as it is now.
	// Completed are the Jobs that it saw complete.
	Last *struct {
		Bundle, Ours objects
		Completed    []string
	}
	// Keys is the key of hashes of Secrets, "one" or "two", or that of the last
	// run and that of this one: "one then two", "none then one".
	Keys string
	Want string
}

func (c *buildCase) run(t *testing.T) string {
	t.Helper()
	in := c.input(t)
	before, same := c.input(t), c.input(t)
	p, problems := Build(in)
	got := printed(p, problems)
	if again := printed(Build(in)); again != got {
		t.Errorf("the second plan of the same is another one:\n%s", again)
	}
	if !reflect.DeepEqual(before.Live, same.Live) {
		t.Fatal("the fixture is not the same twice")
	}
	if !reflect.DeepEqual(in.Live, before.Live) || !reflect.DeepEqual(in.Graph, before.Graph) || !reflect.DeepEqual(in.Inventory.Members, before.Inventory.Members) {
		t.Error("the plan changed what it was made from")
	}
	if p != nil {
		sound(t, p, in.Inventory)
		left, _ := p.Forgotten(in.Inventory.Fingerprints)
		for _, s := range p.Steps {
			if in.Inventory.Fingerprints[s.ID].Completed != left[s.ID].Completed {
				got += "\nruns again: " + bundle.Name(s.ID)
			}
		}
	}
	return got
}

// sound is what holds of every plan.
func sound(t *testing.T, p *Plan, inv *inventory.Inventory) {
	t.Helper()
	seen := map[bundle.ID]bool{}
	deleting := false
	for i := range p.Steps {
		if p.waits(i, i) {
			t.Errorf("%s waits for itself", bundle.Name(p.Steps[i].ID))
		}
	}
	for i, s := range p.Steps {
		if seen[s.ID] && s.ID.Name != "" {
			t.Errorf("two steps for %s", bundle.Name(s.ID))
		}
		seen[s.ID] = true
		if deleting = deleting || s.Deletes(); deleting != s.Deletes() {
			t.Errorf("%s is applied after a deletion", bundle.Name(s.ID))
		}
		for _, n := range s.Needs {
			if n.Step == i || n.Step < 0 || n.Step >= len(p.Steps) || n.Step > i && !n.Timing && !p.Steps[n.Step].First {
				t.Errorf("%s needs step %d, and is step %d", bundle.Name(s.ID), n.Step, i)
			} else if p.Steps[n.Step].Deletes() != s.Deletes() && !p.Steps[n.Step].First {
				t.Errorf("%s needs %s, and only one of them is a deletion", bundle.Name(s.ID), bundle.Name(p.Steps[n.Step].ID))
			}
		}
		if s.Deletes() || s.ID.Name == "" || s.Action == Unchanged && s.Body == nil {
			continue
		}
		sent := &unstructured.Unstructured{}
		if err := sent.UnmarshalJSON(s.Body); err != nil {
			t.Error(err)
		}
		if !Owned(sent, inv.ID) || sent.GetLabels()[inventory.PartOf] != inv.ApplySetID() || len(s.Ignored) == 0 && s.Desired != DesiredHash(s.Body) {
			t.Errorf("%s is sent as %s", bundle.Name(s.ID), s.Body)
		}
	}
	for _, id := range p.Forget {
		if _, member := inv.Members[id]; !member || seen[id] {
			t.Errorf("%s is forgotten: member %v, planned %v", bundle.Name(id), member, seen[id])
		}
	}
}

func (c *buildCase) input(t *testing.T) Input {
	t.Helper()
	inv := inventory.Empty("home", "inv", "inv")
	inv.Members, inv.Origins = map[bundle.ID]inventory.Status{}, map[bundle.ID]inventory.Origin{}
	options := c.Options.Options
	options.Undo, options.NamespaceNamed = c.Options.Undo, c.Options.NamespaceNamed
	if name := c.Options.Policy; name != "" {
		for options.Policy.String() != name {
			options.Policy++ // panics on an unknown name
		}
	}
	in := Input{
		Inventory: inv, Options: options, Live: map[bundle.ID]*unstructured.Unstructured{}, Unknown: map[bundle.ID]error{},
		Contents: map[bundle.ID]bundle.Contents{}, Stored: map[bundle.ID]Stored{}, Invalid: sets.Set[bundle.ID]{},
	}
	for _, u := range branded(c.Ours, inv) {
		in.Live[idOf(u)], inv.Members[idOf(u)] = u, inventory.Status{}
	}
	for _, u := range withUIDs(c.Live) {
		in.Live[idOf(u)] = u
	}
	for _, name := range c.Members {
		inv.Members[named(t, name)] = inventory.Status{}
	}
	for name, to := range c.MovingTo {
		inv.Members[named(t, name)] = inventory.Status{MovingTo: to}
	}
	for name, o := range c.Origins {
		id := named(t, name)
		inv.Members[id] = inventory.Status{Creating: inv.Members[id].Creating, MovingTo: inv.Members[id].MovingTo}
		if live := in.Live[id]; live != nil && !o.Other {
			o.Origin = o.Of(live.GetUID())
		}
		inv.Origins[id] = o.Origin
	}
	for name, run := range c.Creating {
		inv.Members[named(t, name)] = inventory.Status{Creating: run}
	}
	for name, why := range c.Unknown {
		in.Unknown[named(t, name)] = errors.New(why)
	}
	in.Owners = Owners{Of: map[types.UID][]types.UID{}, Unknown: map[types.UID]Unreadable{}}
	add := func(u *unstructured.Unstructured) {
		for _, ref := range u.GetOwnerReferences() {
			in.Owners.Of[u.GetUID()] = append(in.Owners.Of[u.GetUID()], ref.UID)
		}
	}
	for _, u := range withUIDs(c.Outside) {
		add(u)
	}
	for _, u := range in.Live {
		add(u)
	}
	for name, why := range c.OutsideUnknown {
		in.Owners.Unknown[types.UID(name)] = Unreadable{ID: named(t, name), Err: errors.New(why)}
	}
	for name, contents := range c.Contents {
		in.Contents[named(t, name)] = contents
	}
	for name, count := range c.Stored {
		in.Stored[named(t, name)] = Stored{Count: count, Lost: c.Lost[name]}
		if count < 0 {
			in.Stored[named(t, name)] = Stored{Err: errors.New("forbidden")}
		}
	}
	for _, name := range c.Invalid {
		in.Invalid.Insert(named(t, name))
	}
	for _, u := range c.Absent {
		in.Absent = append(in.Absent, &bundle.Absent{ID: idOf(&u), GVK: u.GroupVersionKind()})
	}
	var problems []bundle.Problem
	all := bundled(c.Bundle)
	for _, o := range all {
		o.Unplaced = c.Unplaced
	}
	in.Graph, problems = order.Build(all, order.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c.fingerprint(t, &in)
	return in
}

// fingerprint gives the inventory the fingerprints that the last run left.
func (c *buildCase) fingerprint(t *testing.T, in *Input) {
	t.Helper()
	keys := map[string]*inventory.Key{"one": inventory.NewKey("home", "inv"), "two": inventory.NewKey("home", "inv")}
	was, is, _ := strings.Cut(c.Keys, " then ")
	if is == "" {
		is = was
	}
	in.Inventory.Key = keys[was]
	defer func() { in.Inventory.Key = keys[is] }()
	if c.Last == nil {
		return
	}
	from, ours := c.Last.Bundle, c.Last.Ours
	if from == nil {
		from = c.Bundle
	}
	if ours == nil {
		ours = c.Ours
	}
	live := map[bundle.ID]*unstructured.Unstructured{}
	for _, u := range branded(ours, in.Inventory) {
		live[idOf(u)] = u
	}
	in.Inventory.Fingerprints = map[bundle.ID]inventory.Fingerprint{}
	last := Input{Inventory: in.Inventory}
	last.ignored = fields.Of(bundled(from), in.Options.IgnoreFields)
	for _, o := range bundled(from) {
		s, err := last.apply(o)
		if err != nil {
			t.Fatal(err)
		}
		if known, ok := live[o.ID]; ok {
			if f, ok := s.Fingerprint(known, false); ok {
				in.Inventory.Fingerprints[o.ID] = f
			}
		}
		if slices.Contains(c.Last.Completed, bundle.Name(o.ID)) {
			in.Inventory.Fingerprints[o.ID] = s.WithCompletion(in.Inventory.Fingerprints[o.ID])
		}
	}
}

func withUIDs(all objects) []*unstructured.Unstructured {
	var live []*unstructured.Unstructured
	for i := range all {
		u := all[i].DeepCopy()
		if u.GetUID() == "" {
			u.SetUID(types.UID(bundle.Name(idOf(u))))
		}
		live = append(live, u)
	}
	return live
}

func branded(all objects, inv *inventory.Inventory) []*unstructured.Unstructured {
	live := withUIDs(all)
	for _, u := range live {
		inv.SetOwner(u)
	}
	return live
}

func bundled(all objects) []*bundle.Object {
	var of []*bundle.Object
	for i := range all {
		u := all[i].DeepCopy()
		of = append(of, &bundle.Object{ID: idOf(u), GVK: u.GroupVersionKind(), Content: u})
	}
	return of
}

// named is the id that bundle.Name writes so.
func named(t *testing.T, text string) bundle.ID {
	t.Helper()
	id := bundle.ID{}
	kind, name, _ := strings.Cut(text, " ")
	id.GroupKind.Kind, id.GroupKind.Group, _ = strings.Cut(kind, ".")
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		id.Namespace, name = namespace, rest
	}
	if id.Name = name; bundle.Name(id) != text {
		t.Fatalf("%q names no object", text)
	}
	return id
}

// printed is all of a plan that anybody can see.
func printed(p *Plan, problems []bundle.Problem) string {
	var out bytes.Buffer
	for _, problem := range problems {
		fmt.Fprintln(&out, "stopped:", problem.Error())
	}
	if p == nil {
		return strings.TrimSpace(out.String())
	}
	for _, s := range p.Steps {
		fmt.Fprint(&out, s.Action, " ", bundle.Name(s.ID), flags(p, s))
		if s.Reason != "" {
			fmt.Fprint(&out, ": ", s.Reason)
		}
		fmt.Fprintln(&out)
		for _, n := range s.Needs {
			strength := ""
			switch {
			case n.Timing:
				strength = " (timing only)"
			case n.Weak:
				strength = " (weak)"
			}
			fmt.Fprintf(&out, "  %s %s%s: %s\n", n.WantOf(s), bundle.Name(p.Steps[n.Step].ID), strength, n.Reason)
		}
	}
	for _, id := range p.Forget {
		fmt.Fprintln(&out, "forget", bundle.Name(id))
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(&out, "warning:", w)
	}
	for _, r := range p.Refused {
		fmt.Fprintln(&out, "refused:", r.Error())
	}
	return strings.TrimSpace(out.String())
}

func flags(p *Plan, s *Step) string {
	var all []string
	flag := func(name string, on bool) {
		if on {
			all = append(all, name)
		}
	}
	flag("member", s.Member)
	flag("not recorded", !s.Deletes() && !slices.Contains(p.Add, s.ID))
	flag("live", !s.Deletes() && s.Live != nil)
	flag("Terminating", s.Terminating != nil)
	flag("may be recreated", s.Recreate == WithDependents)
	flag("may be recreated: orphan", s.Recreate == OrphanFirst)
	flag("blocked", s.Blocked != "")
	flag("kept", s.Kept)
	flag("shared", s.Shared)
	flag(fmt.Sprint("priority ", s.Priority), s.Priority > 0)
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}
