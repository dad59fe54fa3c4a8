package bundle

import (
	"sigs.k8s.io/cli-utils/pkg/object/dependson"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"
)

// FieldManager owns the fields that brine applies.
const FieldManager = "brine"

// RecreationManager owns, for the moment before it is deleted, what brine changes on
// an object that is recreated.
const RecreationManager = "brine-recreate"

// The annotations that brine reads. All others are applied as they are written.
const (
	// DependsOn names the objects that this one needs ready (cli-utils).
	DependsOn = dependson.Annotation
	// ApplyTimeMutation takes values from live objects (cli-utils).
	ApplyTimeMutation = mutation.Annotation
	// LifecycleDeletion with the value "detach" and OnRemove with the value
	// "keep": it is never deleted, but let go (cli-utils' common.NoDeletion).
	LifecycleDeletion = "client.lifecycle.config.k8s.io/deletion"
	OnRemove          = "cli-utils.sigs.k8s.io/on-remove"
	// LifecycleMutation with the value "ignore": create it if it is missing,
	// never change it (newer than cli-utils 0.37.2; kpt and Config Sync have it).
	LifecycleMutation = "client.lifecycle.config.k8s.io/mutation"
	// OnImmutable with the value Recreate: delete and create the object when the
	// server says that a field cannot be changed. With the value Orphan, its
	// dependents stay, and the new object adopts them.
	OnImmutable = Prefix + "on-immutable"
	Recreate    = "recreate"
	Orphan      = "orphan"
	// OnStoredVersion with the value StoredMigrate, on a CustomResourceDefinition:
	// objects are rewritten when a version goes in which they may be stored.
	OnStoredVersion = Prefix + "on-stored-version"
	StoredMigrate   = "migrate"
	// ReadyWhen is a CEL expression over the live object, `self`, that decides
	// when it is ready, instead of what is usual for its kind.
	ReadyWhen = Prefix + "ready-when"
	// FailedWhen is a CEL expression over `self` that says when it has failed;
	// where it does not hold, ReadyWhen or what is usual for the kind decides.
	FailedWhen = Prefix + "failed-when"
	// Timeout is how long to wait for the object, a Go duration ("90s", "10m");
	// "0" is as long as the run may take.
	Timeout = Prefix + "timeout"
	// StatusTimeout is how long to wait, after a write, for the first status of an object
	// that has none; "0" does not wait for it.
	StatusTimeout = Prefix + "status-timeout"
	// FailAfter is how long an object that is not ready may stay as it is; "0" is as long
	// as it is waited for.
	FailAfter = Prefix + "fail-after"
	// Wait with the value WaitSkip: nobody waits until the object is ready.
	Wait     = Prefix + "wait"
	WaitSkip = "skip"
	// Run with the value RunAlways makes a Job run in each apply.
	Run       = Prefix + "run"
	RunAlways = "always"
	// DigestOf names ConfigMaps and Secrets of this bundle on a workload, and
	// Digest is where their digest goes in its pod template: pods are replaced
	// when what they read changes. It takes the place of Salt's __slot__.
	DigestOf = Prefix + "digest-of"
	Digest   = Prefix + "digest"

	// IgnoreFields are JSON pointers, separated by commas, to fields that are sent
	// when the object is created, and left to others afterwards.
	IgnoreFields = Prefix + "ignore-fields"

	// Prefix is that of brine's own annotations.
	Prefix = "brine.dev/"
)
