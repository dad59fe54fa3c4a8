package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/run"
)

// brine apply and brine preview, and the flags that they share with brine rollback.

// changeOptions are what the commands have in common that write objects: apply,
// preview and rollback.
type changeOptions struct {
	runOptions
	wait, verify, validation string
	planOptions
	ignoreFields, readiness string
	deny                    []string
	conflicts, managers     []string
}

func (c *changeOptions) flags(cmd *cobra.Command) {
	c.runOptions.flags(cmd)
	c.wait, c.verify, c.validation = "ready", "changed", "exit-early"
	c.cluster.FieldValidation = metav1.FieldValidationStrict
	c.options.Planning.Policy = plan.AdoptIfNoInventory
	enumFlag(cmd, &c.wait, "wait", "", "ready, or applied: wait only where a dependency requires it, and prune once everything is applied", "ready", "applied")
	enumFlag(cmd, &c.cluster.FieldValidation, "field-validation", "", "Strict, Warn or Ignore: what the server does about unknown fields, and brine about duplicate ones",
		metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore)
	enumFlag(cmd, &c.options.Planning.Policy, "inventory-policy", "",
		"existing objects that may become members: must-match (none), adopt-if-no-inventory (those of no inventory) or adopt-all (those of other inventories too)",
		plan.MustMatch, plan.AdoptIfNoInventory, plan.AdoptAll)
	enumFlag(cmd, &c.validation, "validation", "", "exit-early: nothing is applied if an object is invalid; or skip-invalid: apply the others, prune nothing, exit with 1", "exit-early", "skip-invalid")
	enumFlag(cmd, &c.verify, "verify", "", "changed: send nothing for objects whose fingerprint is unchanged; full: ask the server about every object", "changed", "full")
	f := cmd.Flags()
	f.BoolVar(&c.cluster.ForceConflicts, "force-conflicts", false, "overwrite fields that other field managers own, and own them: --conflicts='*=take'")
	f.StringSliceVar(&c.conflicts, "conflicts", nil, "what to do about fields that other field managers own with other values, by manager; the first match counts: kubectl*=take, kube-controller-manager=leave, *=fail")
	f.StringSliceVar(&c.managers, "take-over-managers", nil, "field managers (kubectl-client-side-apply, OpenAPI-Generator) whose fields brine takes over; fields that the bundle does not set are removed")
	f.StringSliceVar(&c.options.Planning.TakeOverFrom, "take-over-from", nil, "tools that let go of their objects: helm:[NAMESPACE/]RELEASE, argocd:APPLICATION, flux:[NAMESPACE/]KUSTOMIZATION, kapp:APP")
	f.StringVar(&c.ignoreFields, "ignore-fields", "", "file of rules (YAML) about fields that are sent when an object is created, and left to others afterwards")
	readinessFlag(f, &c.readiness)
	f.DurationVar(&c.options.FailAfter, "fail-after", 0, "wait no longer for an object that is not ready where nothing in it has changed for so long, and nothing that it needs is in progress (exit code 4); 0 waits until --timeout")
	denyFlag(f, &c.deny)
	f.BoolVar(&c.options.Planning.NoPrune, "no-prune", false, "delete nothing; objects that are not in the bundle stay in the inventory")
	f.BoolVar(&c.options.PruneAnyway, "prune-anyway", false, "prune although an object is not ready; never if an object could not be applied, nor after --timeout")
	f.StringSliceVar(&c.options.Planning.PruneFirst, "prune-first", nil, "admission policies and webhook configurations (KIND/NAME) that the bundle no longer has and that deny the others: they are pruned before anything is applied, and put back if the run fails before it prunes")
	f.BoolVar(&c.options.Planning.AllowEmpty, "allow-empty", false, "let a bundle without objects (empty, or only absent entries) prune everything")
	f.StringVar(&c.options.Planning.MaxPrune, "max-prune", "", "stop before the first write if more objects, or a greater share of the inventory (10%), would be pruned")
	f.StringSliceVar(&c.options.Planning.Recreate, "recreate", nil, "kinds (Job, Deployment.apps) whose objects are deleted and created again when a field is immutable; with :orphan behind a kind (StatefulSet:orphan) their pods and other dependents stay")
	f.BoolVar(&c.options.Planning.MigrateStoredVersions, "migrate-stored-versions", false, "rewrite the objects of a CRD when a version goes in which they may be stored, as the annotation brine.dev/on-stored-version: migrate does")
	f.IntVar(&c.options.HistoryLimit, "history-limit", 10, "revisions to keep for brine rollback, besides the last good ones; 0 saves none")
	f.StringVar(&c.options.JobID, "jid", "", "Salt's job id, for the history")
	f.StringVar(&c.planOut, "plan-out", "", "save the plan of a server dry run for apply --plan: in this file, or with the word secret in a Secret beside the inventory; a plan that is there and still holds stays as it is")
	f.DurationVar(&c.lifetime, "plan-lifetime", 0, "how long the plan of --plan-out may be carried out; 0 is a day in a Secret, and no limit in a file")
	kubernetesVersion(f, &c.kubernetes)
	completeFlag(cmd, c.conn, "recreate", kinds)
}

// settle finds the inventory, named by default after the bundle's file, and
// reads --plan.
func (c *changeOptions) settle(s Streams, file string) (run.Options, error) {
	o := c.runOptions.settle()
	o.SkipInvalid = c.validation == "skip-invalid"
	o.WaitApplied = c.wait == "applied"
	o.Planning.VerifyFull = c.verify == "full"
	for _, from := range o.Planning.TakeOverFrom {
		if !strings.Contains(from, ":") {
			s.warn(fmt.Sprintf("--take-over-from=%s: a field manager is given with --take-over-managers now; the old way goes with the next minor version", from))
		}
	}
	o.Planning.TakeOverFrom = slices.Concat(o.Planning.TakeOverFrom, c.managers)
	var err error
	o.Derived = file != "" && !c.given()
	if o.Inventory, err = c.where(file); err != nil {
		return o, err
	}
	if err := c.savedPlan(&o); err != nil {
		return o, err
	}
	if c.ignoreFields != "" { // else those of a saved plan hold
		if o.Planning.IgnoreFields, err = readRules("ignore-fields", c.ignoreFields, fields.ReadRules); err != nil {
			return o, err
		}
	}
	if o.Readiness, err = readRules("readiness", c.readiness, ready.ReadTable); err != nil {
		return o, err
	}
	if o.Deny, err = readDeny(c.deny); err != nil {
		return o, err
	}
	if err := plan.CheckRecreate(o.Planning.Recreate); err != nil {
		return o, fmt.Errorf("--recreate: %w", err)
	}
	return o, c.conflictRules(&o)
}

// conflictRules reads --conflicts. What takes everything asks the server once.
func (c *changeOptions) conflictRules(o *run.Options) error {
	rules, err := fields.ParseConflictRules(c.conflicts)
	switch {
	case err != nil:
		return fmt.Errorf("--conflicts: %w", err)
	case len(rules) == 0:
		return nil
	case c.cluster.ForceConflicts:
		return errors.New("--force-conflicts is --conflicts='*=take': give one of them")
	case rules[0] == fields.ConflictRule{Manager: "*", Do: fields.Take}:
		c.cluster.ForceConflicts = true
		return nil
	}
	o.Planning.Conflicts = rules
	return nil
}

func readinessFlag(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "readiness", "", "file of rules (YAML) about when objects of a kind are ready: KIND.GROUP and a CEL expression, or the annotations of readiness")
}

func denyFlag(f *pflag.FlagSet, paths *[]string) {
	f.StringArrayVar(paths, "deny", nil, "file of rules (YAML: a name and a CEL expression over the result of a dry run) that stop the run before its first write (exit code 3); can be given several times")
}

// readDeny reads the files of --deny.
func readDeny(paths []string) (all report.Deny, err error) {
	for _, path := range paths {
		rules, err := readRules("deny", path, report.ReadDeny)
		if err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	return all, nil
}

// readRules reads the file of a flag; without one there are no rules.
func readRules[T any](flag, path string, read func(string, []byte) (T, error)) (rules T, err error) {
	if path == "" {
		return rules, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return rules, fmt.Errorf("read the rules of --%s: %w", flag, err)
	}
	return read(path, text)
}

type applyOptions struct {
	changeOptions
	input input
}

func newApply(s Streams) *cobra.Command {
	a := &applyOptions{}
	cmd := a.command(s, &cobra.Command{Use: "apply -f BUNDLE", Short: "Make the cluster match a bundle"})
	a.dryRunFlag(cmd)
	cmd.Flags().StringVar(&a.plan, "plan", "", "do exactly what this plan of --plan-out says (a file, or the word secret); if the bundle or the cluster has changed since, do nothing (exit code 3)")
	cmd.Flags().StringVar(&a.digest, "plan-digest", "", "refuse every other plan than the one with this digest (sha256:…), which somebody approved")
	return cmd
}

func newPreview(s Streams) *cobra.Command {
	a := &applyOptions{}
	a.options.DryRun = report.Server
	return a.command(s, &cobra.Command{Use: "preview -f BUNDLE", Short: "Show what apply would do, as the server itself answers; nothing is changed"})
}

func (a *applyOptions) command(s Streams, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	a.input.flags(cmd)
	a.flags(cmd)
	cmd.Flags().BoolVar(&a.options.RollbackOnFailure, "rollback-on-failure", false, "if an object fails or is not ready, apply the last good revision again (exit code 7); a third of --timeout is kept for it")
	cmd.Flags().StringArrayVar(&a.options.Only, "only", nil, "apply only these objects, prune nothing: a label selector (app=web), KIND/NAME or KIND/NAMESPACE/NAME (* is any text), a file or folder, or an SLS; can be given several times")
	cmd.Flags().BoolVar(&a.options.WithNeeds, "with-needs", false, "with --only: also the objects that these need")
	cmd.Flags().StringSliceVar(&a.options.Planning.Removed, "removed", nil, "SLS and files that are meant to be gone, with their objects: Salt's modules stop a run that was made without one that the last run had and that the saltenv still has")
	cmd.Flags().BoolVar(&a.options.Planning.RefuseRemoved, "refuse-removed", false, "stop before the first write if objects would be pruned because an SLS or a file of the last run is no longer in the bundle; --removed allows some")
	cmd.MarkFlagsMutuallyExclusive("only", "rollback-on-failure")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.run(cmd, s, a.task(s)) }
	return cmd
}

func (a *applyOptions) task(s Streams) task {
	if len(a.input.Files) == 0 {
		return task{options: a.runOptions.settle(), err: errNoBundle}
	}
	o, err := a.settle(s, a.input.Files[0])
	o.Sources = a.input.sources()
	a.input.SkipInvalid, a.input.DuplicateKeys = o.SkipInvalid, a.cluster.FieldValidation != metav1.FieldValidationStrict
	a.input.empty = o.Planning.AllowEmpty
	a.input.ifEmpty = ". If this is intended, use " + remedy.AllowEmpty + ", which removes all objects of the inventory"
	switch {
	case err != nil:
	case o.WithNeeds && len(o.Only) == 0:
		err = errors.New("--with-needs is for --only")
	case len(o.Only) > 0 && o.DryRun == report.Client:
		err = errors.New("--only needs a cluster: it cannot be used with --dry-run=client")
	}
	var nameless error
	if errors.Is(err, errNoName) { // what is wrong with the bundle comes first
		err, nameless = nil, err
	}
	return task{o, err, func(ctx context.Context, o *run.Options) (*bundle.Bundle, error) {
		b, err := a.input.read(ctx, s)
		if err == nil {
			err = nameless
		}
		if err == nil {
			err = a.planInSecret(ctx, s, o)
		}
		return b, err
	}}
}
