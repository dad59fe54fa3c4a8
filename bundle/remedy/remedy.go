// Package remedy has the flags and commands of brine that messages name, each
// once. cmd/brine/cli tests that they exist, and that no other package below it
// names one.
package remedy

import "strings"

// Flags, as a user writes them.
const (
	AllowEmpty          = "--allow-empty"
	AllowGenerateName   = "--allow-generate-name"
	Conflicts           = "--conflicts"
	Context             = "--context"
	DryRun              = "--dry-run"
	ForceConflicts      = "--force-conflicts"
	ForceNamespaces     = "--force-namespaces"
	IgnoreFields        = "--ignore-fields"
	IgnoreForeignStates = "--ignore-foreign-states"
	Inventory           = "--inventory"
	InventoryPolicy     = "--inventory-policy"
	Kubeconfig          = "--kubeconfig"
	LockTimeout         = "--lock-timeout"
	MigrateStored       = "--migrate-stored-versions"
	MaxPrune            = "--max-prune"
	Name                = "--name"
	NoPrune             = "--no-prune"
	Only                = "--only"
	PlanOut             = "--plan-out"
	PruneAnyway         = "--prune-anyway"
	PruneFirst          = "--prune-first"
	Readiness           = "--readiness"
	ReadyWhen           = "--ready-when"
	Recreate            = "--recreate"
	Revision            = "--revision"
	RefuseRemoved       = "--refuse-removed"
	Removed             = "--removed"
	RequestTimeout      = "--request-timeout"
	Role                = "--role"
	RollbackOnFailure   = "--rollback-on-failure"
	TakeOverFrom        = "--take-over-from"
	TakeOverManagers    = "--take-over-managers"
	FromInventory       = "--from-inventory"
	Timeout             = "--timeout"
	WithNeeds           = "--with-needs"
)

// Commands.
const (
	Destroy  = "brine destroy"
	History  = "brine history"
	Repair   = "brine inventory repair"
	Rollback = "brine rollback"
	Status   = "brine status"
)

// Help says more about a message.
const (
	HelpConflict    = "brine help conflict"
	HelpConnection  = "brine help connection"
	HelpDamaged     = "brine help damaged"
	HelpExpiredPlan = "brine help expired-plan"
	HelpForbidden   = "brine help forbidden"
	HelpImmutable   = "brine help immutable"
	HelpInvalid     = "brine help invalid"
	HelpKept        = "brine help kept"
	HelpLocked      = "brine help locked"
	HelpMaxPrune    = "brine help max-prune"
	HelpNoName      = "brine help no-name"
	HelpNotReady    = "brine help not-ready"
	HelpOtherOwner  = "brine help other-owner"
	HelpStorage     = "brine help storage"
	HelpUnknownKind = "brine help unknown-kind"
	HelpWebhook     = "brine help webhook" //nolint:gosec // no password: its name holds the letters p, W
)

// Flag is the flag of a name that is data, as in a saved plan.
func Flag(name string) string { return "--" + name }

// ApplyOutputOf is the command that applies what another one prints.
func ApplyOutputOf(command string) string { return command + " | brine apply -f - --name NAME" }

// RepairInventory is the command that repairs an inventory.
func RepairInventory(namespace, name string) string {
	return Repair + " " + Inventory + " " + namespace + "/" + name
}

// HistoryOf is the command that lists the revisions of an inventory.
func HistoryOf(namespace, name string) string { return History + " " + namespace + "/" + name }

// RollbackOf is the command that goes back to a revision of an inventory.
func RollbackOf(namespace, name, revision string) string {
	return Rollback + " " + revision + " " + Inventory + " " + namespace + "/" + name
}

// DeleteObject is the command that deletes an object; kind is like Deployment.apps.
func DeleteObject(kind, namespace, name string) string {
	text := "kubectl delete " + strings.ToLower(kind) + " " + name
	if namespace != "" {
		text += " --namespace " + namespace
	}
	return text
}
