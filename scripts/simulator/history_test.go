package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/patch"
	"brine/bundle/plan"
	"brine/bundle/plan/saved"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/bundle/shutdown"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/inventory/store"
	"brine/scripts/simulator/apiserver"
)

// canary is in every Secret, and may be nowhere else.
const canary = "canary-in-the-coal-mine"

// step is one command of a history.
type step struct {
	command   string // apply, preview, drift, destroy, rollback
	inventory string
	text      string // of the bundle
	onFailure bool   // --rollback-on-failure
	policy    plan.Policy
	force     bool // --force-conflicts
	revision  int  // of a rollback; 0 undoes the last apply
	found     bool // before it, somebody creates objects that bundles name
	guests    bool // before it, somebody creates objects that no bundle names, in namespaces and of kinds of bundles
	calm      bool // nothing disturbs it
	late      bool // API servers are behind, and no other actor acts
	refused   bool // the second request of moves is refused, most of the time
	only      []string
	patience  time.Duration // --lock-timeout
	// Of the commands about inventories: where the members go, which, and of whom an
	// adoption takes them; damaged: before it, somebody deletes what an inventory is.
	into          string
	names, owners []string
	damaged       bool
	saves         bool // --plan-out
	secret        bool // of --plan-out and --plan: in the Secret
	approved      bool // --plan-digest, of the last plan that a preview told
	lifetime      time.Duration
	later         time.Duration // it begins
	carriesOut    bool          // the last plan that was saved
	plan          *savedPlan    // --plan
	options       options
	around        surroundings
}

// place is the namespace of its inventory.
func (s step) place() string {
	if s.around.ofCopy {
		return restored
	}
	return home
}

// done is the outcome of a step.
type done struct {
	step
	actor        string
	process      *Process
	result       *report.Result
	err          error
	bundle       *bundle.Bundle
	from, to     int // of the server's log
	back         int // in it, where a run began to roll back
	began, ended time.Time
	printed      string // all events
	move         *admin.Move
	repair       *admin.Repair
	exit         int         // of the commands about inventories
	made         *saved.Plan // by --plan-out
	target       int         // the revision that a rollback goes to
	digest       string      // --plan-digest
	content      string      // digest of all that the bundle had
	behind       bool        // an API server is: a repair searches all kinds
	position     func() int  // in the server's log
}

// widgetSchema has a default, rules, and a field that may not change.
const widgetSchema = `{type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}`

// manifests are the objects of a bundle, chosen by chance.
func manifests(r *rand.Rand, inventoryName string) string {
	var b strings.Builder
	add := func(chance float64, format string, args ...any) {
		if r.Float64() < chance {
			fmt.Fprintf(&b, "---\n"+format, args...)
		}
	}
	namespace := "app"
	if inventoryName == "other" && r.IntN(3) > 0 {
		namespace = "theirs"
	}
	add(1, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	for _, name := range []string{"a", "b", "c", "d"} {
		needs := ""
		if name == "d" && strings.Contains(b.String(), "{name: a,") && r.IntN(2) == 0 {
			needs = fmt.Sprintf(", annotations: {config.kubernetes.io/depends-on: '/namespaces/%s/ConfigMap/a'}", namespace)
		}
		add(0.6, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s%s}\ndata: {value: \"%d\"}\n", name, namespace, needs, r.IntN(3))
	}
	add(0.5, "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: %s}\nstringData: {password: %s-%d}\n", namespace, canary, r.IntN(2))
	add(0.3, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", namespace)
	image := "good"
	if r.IntN(6) == 0 {
		image = "broken"
	}
	patience := 600 // what a Deployment has by default
	if r.IntN(2) == 0 {
		patience = 30
	}
	add(0.5, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: %s}\nspec:\n  replicas: 1\n  progressDeadlineSeconds: %d\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: %s}]}\n", namespace, patience, image)
	add(0.3, "apiVersion: v1\nkind: Namespace\nmetadata: {name: extra-%s}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: inner, namespace: extra-%s}\ndata: {value: \"%d\"}\n", namespace, namespace, r.IntN(2))
	schema, recreates, more := "{type: object, x-kubernetes-preserve-unknown-fields: true}", "", ""
	if r.IntN(2) == 0 {
		schema, recreates, more = widgetSchema, ", annotations: {brine.dev/on-immutable: recreate}", fmt.Sprintf(", fixed: %s", []string{"x", "y"}[r.IntN(2)])
	}
	add(0.3, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.%s.example.com}\nspec:\n  group: %s.example.com\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: %s}\n---\napiVersion: %s.example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: %s%s}\nspec: {size: %d%s}\n",
		namespace, namespace, schema, namespace, namespace, recreates, r.IntN(2), more)
	return b.String()
}

// with makes manifests that have some text.
func with(r *rand.Rand, some string) string {
	for {
		if text := manifests(r, "shop"); strings.Contains(text, some) {
			return text
		}
	}
}

// steps makes a history.
func steps(r *rand.Rand) []step {
	all := []step{{command: "apply", inventory: "shop", text: manifests(r, "shop")}}
	for range 2 + r.IntN(4) {
		s := step{inventory: "shop"}
		if r.IntN(5) == 0 {
			s.inventory = "other"
		}
		if r.IntN(6) == 0 {
			all = append(all, administration(r, all[len(all)-1])...)
			continue
		}
		switch n := r.IntN(12); {
		case n < 6:
			s.command, s.onFailure = "apply", r.IntN(4) == 0
		case n < 7:
			s.command = "preview"
		case n < 8:
			s.command = "drift"
		case n < 11:
			s.command = "rollback"
		default:
			s.command = "destroy"
		}
		if s.text = manifests(r, s.inventory); r.IntN(4) == 0 {
			s.text = all[len(all)-1].text
		}
		switch r.IntN(8) {
		case 0, 1:
			s.policy = plan.AdoptIfNoInventory
		case 2:
			s.policy = plan.AdoptAll
		}
		if s.command == "apply" && r.IntN(6) == 0 {
			s.only = []string{"ConfigMap/*/*"}
		}
		if r.IntN(3) == 0 {
			s.patience = 5 * time.Minute
		}
		if s.command == "rollback" && r.IntN(3) == 0 {
			s.revision = 1
		}
		if s.command == "preview" {
			s.saves, s.secret = true, r.IntN(2) == 0
		}
		if s.secret {
			all = append(all, previewsInSecret(r, s)...)
			continue
		}
		all = append(all, s)
		if s.saves && r.IntN(3) > 0 {
			all = append(all, step{carriesOut: true, text: s.text, calm: r.IntN(2) == 0})
		}
		if r.IntN(6) == 0 { // what another inventory takes by force, and gives back
			takes := step{command: "apply", inventory: "other", text: all[0].text, policy: plan.AdoptAll}
			all = append(all, takes, step{command: "rollback", inventory: "other", refused: true}, step{command: "apply", inventory: "shop", text: all[0].text})
		}
		switch r.IntN(10) {
		case 0: // an upgrade that fails: the old stays
			first, n := with(r, "kind: ConfigMap"), r.IntN(3)
			if n == 0 {
				first = strings.ReplaceAll(with(r, "kind: Deployment"), "image: broken", "image: good")
			}
			all = append(all, step{command: "apply", inventory: "shop", text: first, calm: true},
				step{command: "apply", inventory: "shop", text: strings.ReplaceAll(with(r, "kind: Deployment"), "image: good", "image: broken"), calm: n > 0, late: n == 0})
		case 1: // a bundle that uses a namespace, which it has not any more
			text := with(r, "{name: extra-app}")
			all = append(all, step{command: "apply", inventory: "shop", text: text, calm: true},
				step{command: "apply", inventory: "shop", text: strings.Replace(text, "apiVersion: v1\nkind: Namespace\nmetadata: {name: extra-app}\n---\n", "", 1), calm: r.IntN(3) > 0})
		case 2: // what others have in its namespaces, and of its kinds
			next := step{command: "apply", inventory: "shop", text: manifests(r, "shop"), guests: true, calm: r.IntN(3) > 0}
			if r.IntN(3) == 0 {
				next.command = "destroy"
			}
			all = append(all, step{command: "apply", inventory: "shop", text: with(r, "{name: extra-app}"), calm: true}, next)
		}
		if r.IntN(4) == 0 { // what was there before brine, and the way back
			adopts := step{command: "apply", inventory: s.inventory, text: manifests(r, s.inventory), policy: plan.AdoptIfNoInventory, found: true}
			back := step{command: "rollback", inventory: s.inventory, revision: r.IntN(2)}
			all = append(all, adopts, back, back) // repeated, it goes nowhere else
		}
	}
	return all
}

// timeout is --timeout of every command.
const timeout = 10 * time.Minute

// begin starts a step as a process.
func (w *World) begin(s step, actor string) *done {
	d := &done{step: s, actor: actor, from: len(w.server.Log), began: time.Now(), behind: len(w.behind) > 0}
	w.note("%s: %s of inventory %s%s (policy %s)", actor, s.called(), s.inventory, s.arguments(), s.policy)
	if s.secret {
		d.plan = w.planIn(s.inventory)
	}
	if s.approved {
		d.digest = w.approved[s.inventory]
	}
	ctx, _ := shutdown.WithTimeout(context.Background(), timeout)
	d.position = func() int { return len(w.server.Log) }
	d.process = w.start(ctx, actor, s.inventory, s.force, s.around.denied, func(ctx context.Context, c *cluster.Client) {
		d.carryOut(ctx, c)
		d.ended = time.Now()
		c.Close()
	})
	return d
}

// carryOut does what the command line does with a command.
func (d *done) carryOut(ctx context.Context, c *cluster.Client) {
	if d.isAdministrative() {
		d.administer(ctx, c)
		return
	}
	if d.command == "patch" {
		d.bundle, d.err = read.Bundle(ctx, read.Options{Files: []string{"-"}, Stdin: strings.NewReader(d.text)})
		if d.err == nil {
			d.result = patch.Run(ctx, c, d.bundle, patch.Options{Header: report.Header{Command: d.command, DryRun: report.None}, Namespace: "default", Manager: "brine-patch", Delete: true}, func(report.Event) {})
		}
		return
	}
	o := run.Options{
		Header:      report.Header{Command: d.command, DryRun: report.None, Inventory: report.Inventory{Namespace: d.place(), Name: d.inventory}},
		LockTimeout: d.patience, Only: d.only, Timeout: timeout, HistoryLimit: 10, Version: "simulated", Namespace: "default", Who: d.actor, Heartbeat: time.Minute,
		RollbackOnFailure: d.onFailure,
	}
	o.Planning.Policy = d.policy
	b := &bundle.Bundle{}
	switch d.command {
	case "apply", "preview":
		b, d.err = read.Bundle(ctx, read.Options{Files: []string{"-"}, Stdin: strings.NewReader(d.text), SkipInvalid: d.options.skipInvalid})
		if d.err == nil {
			b.Absent = append(d.options.absentOf(), d.around.absentPart()...)
		}
		if d.command == "preview" {
			o.DryRun = report.Server
		}
		if d.secret && d.err == nil {
			d.err = d.planInSecret(ctx, c, &o)
		}
		if d.saves && !d.secret {
			o.PlanOut = &run.PlanPlace{
				Lifetime: d.lifetime,
				Read:     func(context.Context, *store.Inventory) ([]byte, error) { return nil, nil },
				Write: func(_ context.Context, _ *store.Inventory, text []byte) (err error) {
					d.made, err = saved.ReadPlan("plan", text, "simulated")
					return err
				},
			}
		}
		if d.plan != nil && !d.secret {
			o.SavedPlan = d.plan.plan
		}
	case "destroy":
		o.Mode = run.Destroy
	case "rollback", "drift":
		o.Mode = run.Rollback // DriftFrom sets another one
		b, d.err = d.earlier(ctx, c, &o)
	}
	if d.err != nil {
		return
	}
	d.options.fill(&o)
	d.bundle, d.content = b, b.ContentDigest() // a run leaves out what is invalid
	d.result = run.Run(ctx, c, b, o, func(e report.Event) {
		text, _ := json.Marshal(e.Payload)
		d.printed += string(text) + "\n"
		if begun, is := e.Payload.(report.Started); is && d.command == "apply" && begun.Result.Command == "rollback" {
			d.back = d.position()
		}
	})
	text, _ := json.Marshal(d.result)
	d.printed += string(text)
}

// earlier reads what rollback and drift go by.
func (d *done) earlier(ctx context.Context, c *cluster.Client, o *run.Options) (*bundle.Bundle, error) {
	inv, err := store.Load(ctx, c, d.place(), d.inventory, "", "simulated")
	if err != nil {
		return nil, err
	}
	if d.command == "drift" {
		return run.DriftFrom(ctx, inv, nil, 0, o)
	}
	target := inventory.Target{Revision: inventory.Revision{Number: d.revision}}
	if d.revision == 0 {
		if target, err = inv.RollbackTarget(ctx); err != nil {
			return nil, err
		}
		d.target, o.Undoes = target.Number, inv.Latest()
	}
	content, err := inv.LoadRevision(ctx, target.Number)
	if err != nil {
		return nil, err
	}
	o.Revision, o.RevisionOptions = target.Number, content.Options
	o.Namespace, o.Planning.NamespaceNamed = cmp.Or(content.Namespace, o.Namespace), true
	return content.Bundle, nil
}

// leaveProof leaves of a killed process what its kernel would leave: the file of its run,
// which nobody has locked any more.
func (w *World) leaveProof(d *done) {
	lease := w.server.Objects[apiserver.Place{Group: "coordination.k8s.io", Resource: "leases", Namespace: home, Name: "brine-" + d.inventory}]
	if lease == nil || w.server.Holders[home+"/"+d.inventory] != d.actor {
		return
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if i := strings.LastIndexByte(holder, '/'); i >= 0 {
		_ = os.WriteFile(filepath.Join(os.TempDir(), "brine-run-"+holder[i+1:]), nil, 0o600)
	}
}
