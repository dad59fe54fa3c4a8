package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory"
)

// input is which bundle a command reads.
type input struct {
	files       []string
	recursive   bool
	format      string
	generate    bool
	foreign     bool
	skipInvalid bool
	partial     bool
}

func (in *input) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	in.format = read.FormatAuto
	f.StringSliceVarP(&in.files, "filename", "f", nil, "files and folders of the bundle; - is standard input")
	f.BoolVarP(&in.recursive, "recursive", "R", false, "read folders with all that is below them")
	enumFlag(cmd, &in.format, "input-format", "", "auto, manifests, high (Salt's high data) or low (its low data)",
		read.FormatAuto, read.FormatManifests, read.FormatHigh, read.FormatLow)
	f.BoolVar(&in.generate, "allow-generate-name", false, "allow objects with generateName: each run makes new ones, which are not tracked")
	f.BoolVar(&in.foreign, "ignore-foreign-states", false, "pass over Salt states that are no Kubernetes objects")
}

func (in *input) read(ctx context.Context, s streams) (*bundle.Bundle, error) {
	if len(in.files) == 0 {
		return nil, errNoBundle
	}
	return read.Bundle(ctx, read.Options{
		Files: in.files, Recursive: in.recursive, Stdin: s.in, InputFormat: in.format,
		AllowGenerateName: in.generate, IgnoreForeignStates: in.foreign, SkipInvalid: in.skipInvalid, Partial: in.partial,
	})
}

// runFlags are those of apply, preview and destroy.
type runFlags struct {
	input     input
	inventory string
	name      string
	id        string
	dryRun    string
	format    string
	report    string
	wait      string
	cascade   string
	verify    string
	// kubernetes is the version that --dry-run=client takes the server to have.
	kubernetes string
	planOut    string
	plan       string
	validation string
	detailed   bool
	quiet      bool
	verbose    bool
	heartbeat  time.Duration
	// bundle reads what is to be applied, content the revision that it was.
	bundle  func(context.Context) (*bundle.Bundle, error)
	content *inventory.Content

	cluster cluster.Options
	options apply.Options
}

func (r *runFlags) add(cmd *cobra.Command, command string) {
	f := cmd.Flags()
	r.options.Command = command
	if command != "destroy" {
		if command != "rollback" {
			r.input.flags(cmd)
		}
		r.wait = "ready"
		enumFlag(cmd, &r.wait, "wait", "", "ready, or applied: wait only where a dependency requires it, and prune once everything is applied", "ready", "applied")
		f.BoolVar(&r.cluster.ForceConflicts, "force-conflicts", false, "take fields that other field managers own")
		r.cluster.FieldValidation = metav1.FieldValidationStrict
		enumFlag(cmd, &r.cluster.FieldValidation, "field-validation", "", "Strict, Warn or Ignore: what the server does about unknown and duplicate fields",
			metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore)
		r.options.Plan.Policy = plan.AdoptIfNoInventory
		enumFlag(cmd, &r.options.Plan.Policy, "inventory-policy", "", "whose objects may be taken: must-match, adopt-if-no-inventory or adopt-all",
			plan.MustMatch, plan.AdoptIfNoInventory, plan.AdoptAll)
		f.StringSliceVar(&r.options.Plan.TakeOverFrom, "take-over-from", nil, "field managers (kubectl-client-side-apply, OpenAPI-Generator) whose fields become brine's, so that those the bundle does not set are removed")
		r.validation = "exit-early"
		enumFlag(cmd, &r.validation, "validation", "", "exit-early: nothing is applied if an object is invalid; or skip-invalid: apply the others, prune nothing, exit with 1", "exit-early", "skip-invalid")
		f.BoolVar(&r.options.Plan.NoPrune, "no-prune", false, "delete nothing; what is not in the bundle stays in the inventory")
		f.BoolVar(&r.options.PruneAnyway, "prune-anyway", false, "prune although an object failed or did not get ready within its own brine.dev/timeout; never when an object could not be applied")
		f.BoolVar(&r.options.Plan.AllowEmpty, "allow-empty", false, "let a bundle without objects (it is empty, or has nothing but absent entries) prune everything")
		f.StringVar(&r.options.Plan.MaxPrune, "max-prune", "", "stop before the first write if more objects, or a greater share of the inventory (10%), would be pruned")
		f.StringSliceVar(&r.options.Plan.Recreate, "recreate", nil, "kinds (Job, Deployment.apps) that may be deleted and created anew where a field is immutable")
		r.verify = "changed"
		enumFlag(cmd, &r.verify, "verify", "", "changed: send nothing for objects whose fingerprint says that nothing changed; full: ask the server about every object", "changed", "full")
		f.IntVar(&r.options.HistoryLimit, "history-limit", 10, "revisions to keep for brine rollback; 0 keeps none")
		f.StringVar(&r.options.JobID, "jid", "", "Salt's job id, for the history")
	}
	f.StringVar(&r.inventory, "inventory", "", "NAMESPACE/NAME of the inventory (default: --name in the kubeconfig's namespace)")
	f.StringVar(&r.name, "name", "", "name of the inventory (default: the bundle's file name)")
	f.StringVar(&r.id, "inventory-id", "", "the inventory has to have this id (cli-utils.sigs.k8s.io/inventory-id)")
	if command != "destroy" {
		kubernetesVersion(f, &r.kubernetes)
	}
	if command == "preview" {
		r.dryRun = "server"
	} else {
		r.dryRun = "none"
		enumFlag(cmd, &r.dryRun, "dry-run", "", "none, client (no cluster) or server (ask the server what would happen)", "none", "client", "server")
	}
	outputFlag(cmd, &r.format, strings.Join(output.Formats, ", "), output.Formats...)
	f.StringVar(&r.report, "report", "", "also write the result to this file: .json or .html")
	if command != "destroy" {
		f.StringVar(&r.planOut, "plan-out", "", "write the plan of a server dry run to this file, for apply --plan")
	}
	if command == "apply" {
		f.StringVar(&r.plan, "plan", "", "do exactly what this plan of --plan-out says; if the bundle or the cluster moved since, do nothing (exit code 3)")
	}
	r.cascade = "background"
	enumFlag(cmd, &r.cascade, "cascade", "", "how dependents of deleted objects go: background, foreground or orphan", "background", "foreground", "orphan")
	f.BoolVar(&r.options.Plan.ForceNamespaces, "force-namespaces", false, "delete Namespaces and CRDs even when they contain objects outside this inventory, or what they contain cannot be read")
	f.BoolVar(&r.detailed, "detailed-exitcode", false, "exit with 2 when there are changes")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "show only warnings and what went wrong")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "list unchanged objects and every reason to wait, too")
	f.DurationVar(&r.options.Timeout, "timeout", 10*time.Minute, "of the whole run, reading the bundle and waiting for the lock included; 0 is none")
	f.DurationVar(&r.cluster.RetryFor, "retry-timeout", time.Minute, "how long transient answers to one request are retried; 0 retries none")
	f.DurationVar(&r.options.LockTimeout, "lock-timeout", 0, "how long to wait for another run that holds the inventory's lock and lives; one that does not renew it within a minute is taken for dead")
	f.DurationVar(&r.heartbeat, "heartbeat", 10*time.Second, "tell what is waited for at least this often; 0 tells it only in the end")
	f.IntVar(&r.cluster.Parallel, "parallel", 0, "writes under way at once; 0: as many as the server is quick with")
}

func newApply(s streams) *cobra.Command   { return newRun(s, "apply") }
func newPreview(s streams) *cobra.Command { return newRun(s, "preview") }
func newDestroy(s streams) *cobra.Command { return newRun(s, "destroy") }

func newRun(s streams, command string) *cobra.Command {
	about := map[string]*cobra.Command{
		"apply":   {Use: "apply -f BUNDLE", Short: "Make the cluster match a bundle"},
		"preview": {Use: "preview -f BUNDLE", Short: "Show what apply would do, as the server itself answers; nothing is changed"},
		"destroy": {Use: "destroy --inventory NAMESPACE/NAME", Short: "Delete all objects of an inventory, and the inventory"},
	}
	cmd := about[command]
	cmd.Args = cobra.NoArgs
	r := &runFlags{}
	r.add(cmd, command)
	conn := newConnection(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r.bundle = func(ctx context.Context) (*bundle.Bundle, error) {
			if command == "destroy" {
				return &bundle.Bundle{}, nil
			}
			return r.input.read(ctx, s)
		}
		return r.run(cmd, s, conn)
	}
	return cmd
}

// run reads the bundle and runs it. Whatever happens, a document that was
// asked for is printed.
func (r *runFlags) run(cmd *cobra.Command, s streams, conn *connection) error {
	printer, err := r.printer(s)
	if err != nil {
		return &coded{report.ExitBadBundle, err}
	}
	ctx, stopped := apply.WithTimeout(cmd.Context(), r.options.Timeout)
	defer stopped()
	result := r.result(ctx, conn, printer)
	if err := printer.Close(); err != nil {
		return shown("print the result", err)
	}
	if err := r.writeReport(result); err != nil {
		return shown("write the report "+r.report, err)
	}
	if result.ExitCode != report.ExitOK {
		return &exit{result.ExitCode}
	}
	return nil
}

func (r *runFlags) result(ctx context.Context, conn *connection, printer output.Printer) *report.Result {
	o, b, client, err := r.prepare(ctx, conn)
	if err != nil {
		code := report.ExitBadBundle
		if c, ok := errors.AsType[*coded](err); ok {
			code = c.code
		}
		return apply.Refuse(ctx, o, code, err, printer.Event)
	}
	if o.DryRun == "client" {
		return apply.Offline(ctx, b, o, r.kubernetes, printer.Event)
	}
	return apply.Run(ctx, client, b, o, printer.Event)
}

func (r *runFlags) prepare(ctx context.Context, conn *connection) (apply.Options, *bundle.Bundle, *cluster.Client, error) {
	o := r.options
	o.DryRun, o.Version, o.Heartbeat = r.dryRun, version(), r.heartbeat
	o.Detailed = r.detailed
	o.Who = who()
	o.Plan.Destroy = o.Command == "destroy"
	var err error
	r.choices(&o)
	if (o.Command == "apply" || o.Command == "preview") && len(r.input.files) == 0 {
		return o, nil, nil, errNoBundle
	}
	o.Derived = r.inventory == "" && r.name == ""
	if o.Inventory, err = r.where(conn); err != nil {
		return o, nil, nil, err
	}
	if err := r.bind(&o); err != nil {
		return o, nil, nil, err
	}
	o.Namespace = conn.namespace()
	var client *cluster.Client
	var away error // told only if the bundle is good
	if o.DryRun != "client" {
		if client, away = conn.client(r.cluster); away == nil {
			client.StartDiscovery(ctx) // what the server serves, while the bundle is read
		}
	}
	b, err := r.bundle(ctx)
	if err != nil {
		return o, nil, nil, err
	}
	if r.nothing(b, o) {
		return o, nil, nil, errEmpty
	}
	if c := r.content; c != nil {
		o.RevisionOptions = c.Options
		o.Namespace = cmp.Or(c.Namespace, o.Namespace)
	}
	return o, b, client, away
}

var errNoBundle = errors.New("no bundle: give files or folders with -f, or - for standard input")

var errEmpty = errors.New("the bundle is empty: nothing was rendered, or nothing but comments; " +
	"if that is meant, say --allow-empty: all that the inventory holds is removed then")

// nothing: what rendered to nothing is a mistake until somebody says it is not.
func (r *runFlags) nothing(b *bundle.Bundle, o apply.Options) bool {
	return len(b.Objects)+len(b.Absent) == 0 && (o.Command == "apply" || o.Command == "preview") &&
		!o.Plan.AllowEmpty && !o.SkipInvalid
}

// choices sets what follows from flags that take words.
func (r *runFlags) choices(o *apply.Options) {
	o.SkipInvalid = r.validation == "skip-invalid"
	r.input.skipInvalid = o.SkipInvalid
	o.Cascade = map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground,
		"orphan":     metav1.DeletePropagationOrphan,
	}[r.cascade]
	o.WaitApplied = r.wait == "applied"
	o.Plan.VerifyFull = r.verify == "full"
	if r.cluster.RetryFor == 0 { // which is a minute to cluster.Options
		r.cluster.RetryFor = time.Nanosecond
	}
}

var unnamable = regexp.MustCompile(`[^a-z0-9.-]+`)

// where is the inventory: --inventory, or --name or the bundle's file name in
// the kubeconfig's namespace.
func (r *runFlags) where(conn *connection) (report.Inventory, error) {
	inv := report.Inventory{ID: r.id}
	if r.inventory != "" && r.name != "" {
		return inv, fmt.Errorf("--inventory=%s and --name=%s: one of them is enough", r.inventory, r.name)
	}
	if r.inventory != "" {
		namespace, name, ok := strings.Cut(r.inventory, "/")
		if !ok {
			namespace, name = conn.namespace(), r.inventory
		}
		inv.Namespace, inv.Name = namespace, name
		return inv, nil
	}
	inv.Namespace, inv.Name = conn.namespace(), r.name
	if inv.Name == "" && len(r.input.files) > 0 && r.input.files[0] != "-" {
		path, err := filepath.Abs(r.input.files[0])
		if err != nil {
			path = r.input.files[0]
		}
		base := filepath.Base(path)
		inv.Name = strings.Trim(unnamable.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), "-"), "-.")
	}
	if inv.Name == "" {
		return inv, errors.New("the inventory has no name: give --inventory NAMESPACE/NAME, or --name")
	}
	return inv, nil
}

func (r *runFlags) printer(s streams) (output.Printer, error) {
	o := output.Options{Format: r.format, Out: s.out, Err: s.err, Diff: r.dryRun != "none", Quiet: r.quiet, Verbose: r.verbose, Heartbeat: r.heartbeat}
	out, isFile := s.out.(*os.File)
	if err, ok := s.err.(*os.File); ok && isFile {
		o.Streams(out, err)
	}
	return output.New(o)
}

// writeReport writes --report, in the format that its name says.
func (r *runFlags) writeReport(result *report.Result) error {
	if r.report == "" {
		return nil
	}
	format, err := reportFormat(r.report)
	if err != nil {
		return err
	}
	return writeFile(r.report, func(w io.Writer) error {
		printer, err := output.New(output.Options{Format: format, Out: w, Err: discard{}})
		if err != nil {
			return err
		}
		printer.Event(report.Event{Type: report.Finished, Result: result})
		return printer.Close()
	})
}

// who is for the history: the user that Salt or sudo ran as, at this host.
func who() string {
	name := os.Getenv("SUDO_USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
