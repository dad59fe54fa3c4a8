package inventory

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/remedy"
)

// HolderAnnotation is on every lock: its holder, a space, and who that is.
const HolderAnnotation = "brine.dev/holder"

// OwnerOf is the ID of the inventory that an object belongs to, as a member or as a part; ""
// if it belongs to none.
func OwnerOf(o metav1.Object) string {
	return cmp.Or(o.GetAnnotations()[OwningInventory], PartOfInventory(o))
}

// PartOfInventory is the ID of the inventory that an object is, or is auxiliary to, or locks; ""
// for every other object. No other inventory takes or deletes it, whatever a policy allows.
func PartOfInventory(o metav1.Object) string {
	lock := ""
	if _, locks := o.GetAnnotations()[HolderAnnotation]; locks {
		lock = DefaultID(o.GetNamespace(), strings.TrimPrefix(o.GetName(), LockName("")))
	}
	return cmp.Or(o.GetLabels()[Label], o.GetLabels()[AuxiliaryLabel], lock)
}

// MaxName is the longest name of an inventory: the names of its auxiliary
// objects begin with it.
const MaxName = 253 - len("-revision-1000000-1000")

var (
	auxiliaryMap    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-(overflow|fingerprints|origins)-\d+$`) })
	auxiliarySecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-(revision-\d+-\d+|brine-(key|plan))$`) })
)

// Auxiliary says what an object is to the inventory namespace/name itself, like
// "its lock"; "" for every other object. Such an object can be no member: the
// inventory would overwrite, and in the end delete, itself.
func Auxiliary(namespace, name string, id bundle.ID) string {
	if id.Namespace != namespace {
		return ""
	}
	rest, prefixed := strings.CutPrefix(id.Name, name)
	switch {
	case id.GroupKind == bundle.ConfigMapKind && prefixed && rest == "":
		return "the inventory itself"
	case id.GroupKind == bundle.ConfigMapKind && prefixed && auxiliaryMap().MatchString(rest):
		return "a part of the inventory"
	case id.GroupKind == bundle.SecretKind && prefixed && auxiliarySecret().MatchString(rest):
		return "a part of the inventory"
	case id.GroupKind == bundle.LeaseKind && id.Name == LockName(name):
		return "the lock of the inventory"
	}
	return ""
}

// LockName is the name of an inventory's Lease.
func LockName(inventory string) string { return "brine-" + inventory }

// OverflowName is the name of an inventory's overflow ConfigMap, from 1 on.
func OverflowName(inventory string, n int) string { return fmt.Sprintf("%s-overflow-%d", inventory, n) }

// FingerprintsName is the name of an inventory's ConfigMap of fingerprints, from 1 on.
func FingerprintsName(inventory string, n int) string {
	return fmt.Sprintf("%s-fingerprints-%d", inventory, n)
}

// OriginsName is the name of an inventory's ConfigMap of origins, from 1 on.
func OriginsName(inventory string, n int) string { return fmt.Sprintf("%s-origins-%d", inventory, n) }

// RevisionName is the name of the Secret with one part of a revision, from 0 on.
func RevisionName(inventory string, number, part int) string {
	return fmt.Sprintf("%s-revision-%d-%d", inventory, number, part)
}

// KeyName is the name of the Secret with an inventory's key.
func KeyName(inventory string) string { return inventory + "-brine-key" }

// PlanName is the name of the Secret with a saved plan.
func PlanName(inventory string) string { return inventory + "-brine-plan" }

// Reserved are the objects of a bundle that are the inventory namespace/name
// itself, or auxiliary to it: problems that stop a run before its first write.
func Reserved(namespace, name string, b *bundle.Bundle) []bundle.Problem {
	var problems []bundle.Problem
	check := func(id bundle.ID, source bundle.Source) {
		if what := Auxiliary(namespace, name, id); what != "" {
			problems = append(problems, bundle.Problem{Source: source, ID: id, Message: fmt.Sprintf(
				"this object is %s (%s/%s), which brine itself writes: take it out of the bundle, or choose another inventory with %s or %s",
				what, namespace, name, remedy.Inventory, remedy.Name)})
		}
	}
	for _, o := range b.Objects {
		check(o.ID, o.Source)
		if of := PartOfInventory(o.Content); of != "" && Auxiliary(namespace, name, o.ID) == "" {
			problems = append(problems, bundle.Problem{Source: o.Source, ID: o.ID, Message: fmt.Sprintf(
				"this object is marked as a part of inventory %q (label %s or %s, annotation %s): it can be a member of none. Take it, or the mark, out of the bundle",
				of, Label, AuxiliaryLabel, HolderAnnotation)})
		}
	}
	for _, a := range b.Absent {
		check(a.ID, a.Source)
	}
	return problems
}
