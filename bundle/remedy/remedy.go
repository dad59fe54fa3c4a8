// Package remedy has the flags and commands of brine that messages name, each
// once. cmd/brine/cli tests that they exist, and that no other package below it
// names one.
package remedy

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Flags, as a user writes them.
const (
	AllowEmpty          = "--allow-empty"
	AllowGenerateName   = "--allow-generate-name"
	Cascade             = "--cascade"
	Conflicts           = "--conflicts"
	Context             = "--context"
	DryRun              = "--dry-run"
	ForceConflicts      = "--force-conflicts"
	ForceNamespaces     = "--force-namespaces"
	Namespace           = "--namespace"
	IgnoreFields        = "--ignore-fields"
	IgnoreForeignStates = "--ignore-foreign-states"
	Inventory           = "--inventory"
	InventoryID         = "--inventory-id"
	InventoryPolicy     = "--inventory-policy"
	Kubeconfig          = "--kubeconfig"
	LockTimeout         = "--lock-timeout"
	MigrateStored       = "--migrate-stored-versions"
	MaxPrune            = "--max-prune"
	Name                = "--name"
	NoPrune             = "--no-prune"
	Only                = "--only"
	PlanDigest          = "--plan-digest"
	PlanOut             = "--plan-out"
	PruneAnyway         = "--prune-anyway"
	PruneFirst          = "--prune-first"
	ReadyWhen           = "--ready-when"
	Recreate            = "--recreate"
	Revision            = "--revision"
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
	Split    = "brine inventory split"
	Rename   = "brine inventory rename"
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

// Commands makes the commands that messages show: each runs as it stands. It is the flags by
// which the user chose the cluster, which every one of them needs.
type Commands string

// ForCluster makes commands with flags, of which each is like "--context=prod".
func ForCluster(flags ...string) Commands {
	var c Commands
	for _, flag := range flags {
		if strings.ContainsFunc(flag, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
			flag = "'" + strings.ReplaceAll(flag, "'", `'\''`) + "'"
		}
		c += Commands(" " + flag)
	}
	return c
}

// plain is what no shell reads otherwise.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"

// Repair is the command that repairs an inventory.
func (c Commands) Repair(namespace, name string) string {
	return Repair + " " + Inventory + " " + namespace + "/" + name + string(c)
}

// History is the command that lists the revisions of an inventory.
func (c Commands) History(namespace, name string) string {
	return History + " " + namespace + "/" + name + string(c)
}

// Status is the command that lists the objects of an inventory.
func (c Commands) Status(inventory string) string { return Status + " " + inventory + string(c) }

// Rollback is the command that goes back to a revision of an inventory.
func (c Commands) Rollback(namespace, name, revision string) string {
	return Rollback + " " + revision + " " + Inventory + " " + namespace + "/" + name + string(c)
}

// Rename is the command that gives an inventory another name.
func (c Commands) Rename(from, to string) string { return Rename + " " + from + " " + to + string(c) }

// Split is the command that moves a member of an inventory to another one.
func (c Commands) Split(from, to string, kind schema.GroupKind, namespace, name string) string {
	return Split + " " + from + " --to " + to + " --members " + Word(kind, namespace, name) + string(c)
}

// Word chooses one object, where a flag takes KIND/NAMESPACE/NAME or KIND/NAME.
func Word(kind schema.GroupKind, namespace, name string) string {
	if namespace == "" {
		return kind.String() + "/" + name
	}
	return kind.String() + "/" + namespace + "/" + name
}

// Delete is the command that deletes an object.
func (c Commands) Delete(kind schema.GroupKind, namespace, name string) string {
	return c.kubectl("delete", kind, namespace, name)
}

// DeleteLabelled is the command that deletes the ConfigMaps and Secrets that have a label.
func (c Commands) DeleteLabelled(namespace, label string) string {
	return "kubectl delete configmaps,secrets --selector " + label + " --namespace " + namespace + string(c)
}

// Describe is the command that says what is known about an object, its events too.
func (c Commands) Describe(kind schema.GroupKind, namespace, name string) string {
	return c.kubectl("describe", kind, namespace, name)
}

func (c Commands) kubectl(verb string, kind schema.GroupKind, namespace, name string) string {
	text := "kubectl " + verb + " " + strings.ToLower(kind.String()) + " " + name
	if namespace != "" {
		text += " --namespace " + namespace
	}
	return text + string(c)
}

// Logs is the command that prints the log of a container, of its previous run if so.
func (c Commands) Logs(namespace, pod, container string, previous bool) string {
	text := "kubectl logs " + pod + " --container " + container + " --namespace " + namespace
	if previous {
		text += " --previous"
	}
	return text + string(c)
}
