package main_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// deed is what a second actor did.
type deed struct {
	what string
	// theirs is the object that is not ours to change any more, as they left it.
	theirs *target
	// kept: it may be changed, but not deleted.
	kept bool
	// edited: it may be deleted, but what they set has to stay, while it is the
	// same object.
	edited        []string
	value         string
	lostInventory bool
	undo          func() error
	undone        bool
}

// undoOnce takes away what was done, unless that has been.
func (d *deed) undoOnce() error {
	if d.undone {
		return nil
	}
	d.undone = true
	return d.undo()
}

const marker = "example.com/somebody"

var errNothingToDo = errors.New("there is nothing to do")

func actors() []disturbance {
	refusals := []int{1, 4}
	return []disturbance{
		{name: "another inventory adopts an object", actor: adopt, exits: refusals},
		{name: "somebody creates an object first or again", actor: recreateOutside, exits: refusals, flags: []string{"--inventory-policy=must-match"}},
		{name: "somebody sets on-remove: keep", actor: keep, exits: refusals},
		{name: "somebody edits a field", actor: edit, exits: refusals},
		{name: "somebody adds a label", actor: label},
		{name: "somebody deletes an object", actor: remove, exits: refusals},
		{name: "an unmanaged object comes into a namespace", actor: intoNamespace, exits: refusals},
		{name: "an unmanaged resource of a CRD comes", actor: intoCRD, exits: refusals},
		{name: "a CRD's version is no longer served", actor: unserve, alone: true, exits: []int{1, 3, 4}},
		{name: "the inventory is edited", actor: touchInventory("inv"), exits: []int{1, 5}},
		{name: "the inventory is deleted", actor: loseInventory("inv"), exits: []int{1, 5}},
		{name: "an overflow ConfigMap is edited", actor: touchInventory("overflow"), exits: []int{1, 5}},
		{name: "an overflow ConfigMap is deleted", actor: loseInventory("overflow"), exits: []int{1, 3, 5}},
		{name: "the Lease is deleted", actor: loseLease, exits: []int{5}},
		{name: "the Lease is taken", actor: takeLease, exits: []int{5}},
		{name: "all rights are taken away", actor: takeRights, user: true, exits: []int{1, 4, 6}},
	}
}

// pick is one of the platform's objects, whether it is there or not.
func (tr *trial) pick(but ...string) *target {
	for {
		o := tr.objects[tr.random.IntN(len(tr.objects))]
		if !slices.Contains(but, o.content.GetKind()) {
			return o
		}
	}
}

// live is one of the platform's objects that is there and not on its way out.
func (tr *trial) pickLive(but ...string) (*target, error) {
	for range 10 {
		o := tr.pick(but...)
		u, err := readLive(tr.Fixture, o)
		if err == nil && u.GetDeletionTimestamp() == nil {
			return &target{resource: o.resource, content: u}, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, errNothingToDo
}

var otherOwner = map[string]any{"metadata": map[string]any{
	"annotations": map[string]any{inventory.OwningInventory: "another", marker: "adopted"},
	"labels":      map[string]any{inventory.PartOf: "applyset-another-v1"},
}}

// adopt: another inventory takes an object, or creates it before we do.
func adopt(tr *trial) (*deed, error) {
	o := tr.pick()
	u, err := patchLive(tr.Fixture, o, otherOwner)
	if apierrors.IsNotFound(err) {
		u = o.content.DeepCopy()
		return tr.makeTheirs(o, u)
	}
	if err != nil {
		return nil, err
	}
	if u.GetDeletionTimestamp() != nil {
		return nil, errNothingToDo
	}
	return &deed{what: "adopts " + o.String(), theirs: &target{resource: o.resource, content: u}, undo: func() error { return nil }}, nil
}

// makeTheirs creates an object as another inventory's.
func (tr *trial) makeTheirs(o *target, u *unstructured.Unstructured) (*deed, error) {
	annotations, labels := u.GetAnnotations(), u.GetLabels()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if labels == nil {
		labels = map[string]string{}
	}
	annotations[inventory.OwningInventory], annotations[marker] = "another", "made"
	labels[inventory.PartOf] = "applyset-another-v1"
	u.SetAnnotations(annotations)
	u.SetLabels(labels)
	made, err := clientOf(tr.Fixture, o.resource, o.namespace()).Create(context.Background(), u, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		return nil, err
	}
	return &deed{what: "creates " + o.String(), theirs: &target{resource: o.resource, content: made}, undo: func() error {
		// A destroy that is through with it does not adopt it, and keeps what contains it.
		return ignoreNotFound(clientOf(tr.Fixture, o.resource, o.namespace()).Delete(context.Background(), o.name(), metav1.DeleteOptions{}))
	}}, nil
}

// recreateOutside deletes an object and creates it again, in no inventory: it has a new UID.
func recreateOutside(tr *trial) (*deed, error) {
	o := tr.pick("Namespace", "CustomResourceDefinition", "Deployment", "Job")
	err := clientOf(tr.Fixture, o.resource, o.namespace()).Delete(context.Background(), o.name(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	u := o.content.DeepCopy()
	u.SetAnnotations(map[string]string{marker: "made"})
	made, err := clientOf(tr.Fixture, o.resource, o.namespace()).Create(context.Background(), u, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		return nil, err
	}
	return &deed{what: "makes " + o.String() + " again, in no inventory", theirs: &target{resource: o.resource, content: made}, undo: func() error {
		return clientOf(tr.Fixture, o.resource, o.namespace()).Delete(context.Background(), o.name(), metav1.DeleteOptions{})
	}}, nil
}

func keep(tr *trial) (*deed, error) {
	o, err := tr.pickLive()
	if err != nil {
		return nil, err
	}
	u, err := patchLive(tr.Fixture, o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{bundle.OnRemove: "keep"}}})
	if err != nil {
		return nil, err
	}
	return &deed{what: "annotates " + o.String(), theirs: &target{resource: o.resource, content: u}, kept: true, undo: func() error {
		u, err := patchLive(tr.Fixture, o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{bundle.OnRemove: nil}}})
		if err != nil || u.GetAnnotations()[inventory.OwningInventory] != "" || !strings.HasSuffix(o.namespace(), "-goes") {
			return ignoreNotFound(err)
		}
		// It was detached: it is an object outside the inventory, and the namespace stays
		// until somebody deletes it, with its pods.
		foreground := metav1.DeletePropagationForeground
		if err := clientOf(tr.Fixture, o.resource, o.namespace()).Delete(context.Background(), o.name(), metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			return ignoreNotFound(err)
		}
		tr.Eventually(o.String()+" is gone", func() bool { return tr.Live(o.resource, o.namespace(), o.name()) == nil })
		return nil
	}}, nil
}

func edit(tr *trial) (*deed, error) {
	o, err := tr.pickLive("Namespace", "CustomResourceDefinition", "Job", "Secret", "ServiceAccount", "Role", "RoleBinding")
	if err != nil {
		return nil, err
	}
	path, value := []string{"data", "key"}, any("by hand")
	switch o.content.GetKind() {
	case "Deployment", "StatefulSet":
		path, value = []string{"spec", "replicas"}, int64(3)
	case "Widget", "Gadget":
		path, value = []string{"spec", "size"}, int64(3)
	}
	return tr.set(o, path, value)
}

func label(tr *trial) (*deed, error) {
	o, err := tr.pickLive()
	if err != nil {
		return nil, err
	}
	return tr.set(o, []string{"metadata", "labels", marker}, "by-hand")
}

func (tr *trial) set(o *target, path []string, value any) (*deed, error) {
	change := map[string]any{}
	if err := unstructured.SetNestedField(change, value, path...); err != nil {
		return nil, err
	}
	u, err := patchLive(tr.Fixture, o, change)
	if err != nil {
		return nil, err
	}
	return &deed{what: "sets " + strings.Join(path, ".") + " of " + o.String(), theirs: &target{resource: o.resource, content: u},
		edited: path, value: fmt.Sprint(value), undo: func() error { return nil }}, nil
}

func remove(tr *trial) (*deed, error) {
	o, err := tr.pickLive("Namespace", "CustomResourceDefinition")
	if err != nil {
		return nil, err
	}
	background := metav1.DeletePropagationBackground
	if err := clientOf(tr.Fixture, o.resource, o.namespace()).Delete(context.Background(), o.name(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return nil, err
	}
	return &deed{what: "deletes " + o.String(), undo: func() error { return nil }}, nil
}

// intoNamespace and intoCRD make objects of no inventory, where it would go with
// what it is in.
func intoNamespace(tr *trial) (*deed, error) {
	namespaces := []string{"-goes", "-stays", "-comes"}
	return tr.unmanaged(configMapIn("{ns}"+namespaces[tr.random.IntN(len(namespaces))], "somebody"))
}

func intoCRD(tr *trial) (*deed, error) {
	kinds := []string{"Gadget", "Widget"}
	return tr.unmanaged(strings.Replace(platformResource(kinds[tr.random.IntN(2)]), "name: one", "name: somebody", 1))
}

func (tr *trial) unmanaged(text string) (*deed, error) {
	o := objectsOf(tr.Fixture, text)[0]
	made, err := clientOf(tr.Fixture, o.resource, o.namespace()).Create(context.Background(), o.content, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		return nil, err
	}
	return &deed{what: "creates " + o.String(), theirs: &target{resource: o.resource, content: made}, undo: func() error {
		return ignoreNotFound(clientOf(tr.Fixture, o.resource, o.namespace()).Delete(context.Background(), o.name(), metav1.DeleteOptions{}))
	}}, nil
}

// unserve makes a resource, in no inventory, of a CRD, and then the CRD's
// version is not served: what it holds cannot be read.
func unserve(tr *trial) (*deed, error) {
	d, err := intoCRD(tr)
	if err != nil {
		return nil, err
	}
	plural := strings.ToLower(d.theirs.content.GetKind()) + "s"
	crd := &target{resource: "apiextensions.k8s.io/v1/customresourcedefinitions", content: &unstructured.Unstructured{Object: map[string]any{}}}
	crd.content.SetKind("CustomResourceDefinition")
	crd.content.SetName(plural + "." + tr.NS + ".example.com")
	serve := func(served bool) (*unstructured.Unstructured, error) {
		return clientOf(tr.Fixture, crd.resource, "").Patch(context.Background(), crd.name(), types.JSONPatchType,
			fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/versions/0/served", "value": %v}]`, served), metav1.PatchOptions{FieldManager: "somebody"})
	}
	u, err := serve(false)
	if err != nil {
		return nil, err
	}
	resource := d.theirs
	return &deed{what: d.what + ", and its CRD serves no version", theirs: &target{resource: crd.resource, content: u}, kept: true, undo: func() error {
		if _, err := serve(true); err != nil {
			return err
		}
		for range 600 {
			_, err := readLive(tr.Fixture, resource)
			if err == nil {
				return d.undo()
			}
			if !apierrors.IsNotFound(err) && !apierrors.IsServiceUnavailable(err) {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
		return fmt.Errorf("%s is gone", resource)
	}}, nil
}

// stored is a ConfigMap of the inventory: its own, or one of its overflow.
func (tr *trial) stored(which string) (*target, error) {
	list, err := clientOf(tr.Fixture, "v1/configmaps", tr.NS).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		u := &list.Items[i]
		if which == "inv" && u.GetName() == "inv" || which == "overflow" && u.GetLabels()[inventory.OverflowLabel] != "" {
			return &target{resource: "v1/configmaps", content: u}, nil
		}
	}
	return nil, errNothingToDo
}

func touchInventory(which string) func(*trial) (*deed, error) {
	return func(tr *trial) (*deed, error) {
		o, err := tr.stored(which)
		if err != nil {
			return nil, err
		}
		_, err = patchLive(tr.Fixture, o, map[string]any{"metadata": map[string]any{"annotations": map[string]any{marker: "was here"}}})
		return &deed{what: "annotates " + o.String(), undo: func() error { return nil }}, err
	}
}

func loseInventory(which string) func(*trial) (*deed, error) {
	return func(tr *trial) (*deed, error) {
		o, err := tr.stored(which)
		if err != nil {
			return nil, err
		}
		// What it holds is lost. Put back, nothing is.
		saved := o.content.DeepCopy()
		for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
			unstructured.RemoveNestedField(saved.Object, "metadata", field)
		}
		err = clientOf(tr.Fixture, o.resource, tr.NS).Delete(context.Background(), o.name(), metav1.DeleteOptions{})
		return &deed{what: "deletes " + o.String(), lostInventory: true, undo: func() error {
			_, err := clientOf(tr.Fixture, o.resource, tr.NS).Create(context.Background(), saved, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				err = nil
			}
			return err
		}}, err
	}
}

func (tr *trial) lease() *target {
	o := &target{resource: "coordination.k8s.io/v1/leases", content: &unstructured.Unstructured{Object: map[string]any{"kind": "Lease"}}}
	o.content.SetNamespace(tr.NS)
	o.content.SetName("brine-inv")
	return o
}

func loseLease(tr *trial) (*deed, error) {
	o := tr.lease()
	err := clientOf(tr.Fixture, o.resource, tr.NS).Delete(context.Background(), o.name(), metav1.DeleteOptions{})
	return &deed{what: "deletes " + o.String(), undo: func() error { return nil }}, err
}

func takeLease(tr *trial) (*deed, error) {
	o := tr.lease()
	_, err := patchLive(tr.Fixture, o, map[string]any{"spec": map[string]any{"holderIdentity": "elsewhere/1/2", "leaseDurationSeconds": 1,
		"renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")}})
	return &deed{what: "takes " + o.String(), undo: func() error { return nil }}, err
}

// grantAll makes a user an administrator, by a binding of the fixture's own.
func grantAll(s *clitest.Fixture, user string) {
	s.Helper()
	name := "chaos-" + s.NS
	s.GoneAfter("rbac.authorization.k8s.io/v1/clusterrolebindings", name)
	if err := bind(s, name, user); err != nil && !apierrors.IsAlreadyExists(err) {
		s.Fatal(err)
	}
	s.Everywhere("the rights are there", func() bool {
		review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": user, "resourceAttributes": map[string]any{"verb": "delete", "resource": "namespaces"}}}}
		answer, err := clientOf(s, "authorization.k8s.io/v1/subjectaccessreviews", "").Create(context.Background(), review, metav1.CreateOptions{})
		if err != nil {
			s.Fatal(err)
		}
		allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
		return allowed
	})
}

func bind(s *clitest.Fixture, name, user string) error {
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	}}
	_, err := clientOf(s, "rbac.authorization.k8s.io/v1/clusterrolebindings", "").Create(context.Background(), binding, metav1.CreateOptions{})
	return err
}

func takeRights(tr *trial) (*deed, error) {
	err := clientOf(tr.Fixture, "rbac.authorization.k8s.io/v1/clusterrolebindings", "").Delete(context.Background(), "chaos-"+tr.NS, metav1.DeleteOptions{})
	return &deed{what: "takes all rights away", undo: func() error { return nil }}, err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
