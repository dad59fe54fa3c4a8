package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/transport"
)

// Single writes: apply, patch, create, update and delete.

// Write says how one write is done.
type Write struct {
	// DryRun stores nothing, and holds for whatever version is there.
	DryRun bool
	// Live is the object as it was read, and decided about: an apply changes this very
	// version of it. Where it is nil an apply creates, and changes nothing.
	Live *unstructured.Unstructured
	// Force takes the fields in conflict, whatever the client's options say.
	Force bool
	// Strict refuses unknown and duplicate fields, whatever the client's options
	// say.
	Strict bool
	// Manager is the field manager of an apply; "" is brine's own.
	Manager string
}

func (w Write) dryRun() []string {
	if w.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// Apply sends one server-side apply of body, the object as JSON, and returns
// the object as the server stored it and its warnings. Transient
// answers are retried.
func (c *Client) Apply(ctx context.Context, r Resource, id bundle.ID, body []byte, w Write) (*unstructured.Unstructured, []string, error) {
	ctx, warned := transport.CollectWarnings(ctx)
	body = readable(body)
	force := c.options.ForceConflicts || w.Force
	o := metav1.PatchOptions{
		FieldManager:    cmp.Or(w.Manager, bundle.FieldManager),
		FieldValidation: c.options.FieldValidation,
		Force:           &force,
		DryRun:          w.dryRun(),
	}
	if w.Strict {
		o.FieldValidation = metav1.FieldValidationStrict
	}
	if w.DryRun {
		ctx = Briefly(ctx)
	} else {
		var err error
		if body, err = bound(body, w.Live); err != nil {
			return nil, nil, err
		}
	}
	final := func(err error) bool {
		return !w.DryRun && apierrors.IsConflict(err) || UnservedOwnership(err, r) != ""
	}
	stored, err := c.send(ctx, final, func(ctx context.Context) (*unstructured.Unstructured, error) {
		*warned = (*warned)[:0]
		return answers.About(id.Name)(c.resource(r, id.Namespace).Patch(ctx, id.Name, types.ApplyPatchType, body, o))
	})
	return stored, *warned, answers.ExplainSize(mayNotCreate(err, r, id), func() int { return len(body) })
}

// send sends a write until it succeeds. final says which errors no retry mends: after a conflict
// the caller has to read the object again, as the write holds for one version only.
func (c *Client) send(ctx context.Context, final func(error) bool, write func(context.Context) (*unstructured.Unstructured, error)) (stored *unstructured.Unstructured, err error) {
	err = c.retry(ctx, func(ctx context.Context) error {
		stored, err = write(ctx)
		if final(err) {
			return answers.Permanent(err)
		}
		return err
	})
	c.secret(stored)
	return stored, err
}

// readable is JSON that the server can read as the YAML it takes it for: control
// characters that JSON allows as they are, YAML allows only escaped.
func readable(body []byte) []byte {
	refused := func(r rune) bool { return r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff }
	if bytes.IndexFunc(body, refused) < 0 {
		return body
	}
	var b bytes.Buffer
	for _, r := range string(body) {
		if refused(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// Patch sends a JSON or merge patch, as for managedFields and for labels that
// are taken off an object.
func (c *Client) Patch(ctx context.Context, r Resource, id bundle.ID, kind types.PatchType, body []byte, w Write) (*unstructured.Unstructured, error) {
	return c.send(ctx, apierrors.IsConflict, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return answers.About(id.Name)(c.resource(r, id.Namespace).Patch(ctx, id.Name, kind, body, metav1.PatchOptions{FieldManager: bundle.FieldManager, DryRun: w.dryRun()}))
	})
}

// Create posts an object; AlreadyExists is returned as it is.
func (c *Client) Create(ctx context.Context, r Resource, u *unstructured.Unstructured, w Write) (*unstructured.Unstructured, error) {
	if w.DryRun {
		ctx = Briefly(ctx)
	}
	var stored *unstructured.Unstructured
	sent := false
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		stored, err = answers.About(u.GetName())(c.resource(r, u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{FieldManager: bundle.FieldManager, DryRun: w.dryRun()}))
		if sent && apierrors.IsAlreadyExists(err) && !w.DryRun {
			// The answer to the first try may have been lost, not the request.
			live, getErr := c.resource(r, u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
			switch {
			case getErr == nil && sameContent(live, u):
				stored, err = live, nil
			case answers.Transient(answers.Judge(getErr)):
				return getErr // it is not known yet whose it is
			}
		}
		sent = true
		if u.GetName() == "" && err != nil && !w.DryRun && !answers.Refused(err) {
			return answers.Permanent(answers.Unsure(fmt.Errorf("it may have been created nevertheless: %w", err))) // with a retry there might be two
		}
		return err
	})
	c.secret(stored)
	return stored, answers.ExplainSize(err, func() int { return sizeOf(u) })
}

// Update puts an object; its resourceVersion makes it fail with a conflict
// when somebody else was there first.
func (c *Client) Update(ctx context.Context, r Resource, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var stored *unstructured.Unstructured
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		stored, err = answers.About(u.GetName())(c.resource(r, u.GetNamespace()).Update(ctx, u, metav1.UpdateOptions{FieldManager: bundle.FieldManager}))
		if !apierrors.IsConflict(err) {
			return err
		}
		live, getErr := c.resource(r, u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
		if answers.ProvesAbsence(getErr, u.GetName()) {
			return getErr // Kubernetes 1.29 calls it a conflict where the uid of a deleted object is sent
		}
		switch {
		case getErr == nil && sameContent(live, u):
			stored = live
			return nil
		case answers.Transient(answers.Judge(getErr)):
			return getErr
		}
		return answers.Permanent(err)
	})
	c.secret(stored)
	return stored, answers.ExplainSize(err, func() int { return sizeOf(u) })
}

func sizeOf(u *unstructured.Unstructured) int {
	text, _ := json.Marshal(u.Object)
	return len(text)
}

// DryUpdate is a dry run of Update.
func (c *Client) DryUpdate(ctx context.Context, r Resource, u *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	ctx, warned := transport.CollectWarnings(ctx)
	stored, err := c.send(ctx, apierrors.IsConflict, func(ctx context.Context) (*unstructured.Unstructured, error) {
		*warned = (*warned)[:0]
		return c.resource(r, u.GetNamespace()).Update(ctx, u, metav1.UpdateOptions{FieldManager: bundle.FieldManager, DryRun: []string{metav1.DryRunAll}})
	})
	return stored, *warned, err
}

// sameContent says whether the live object is what we meant to write.
func sameContent(live, meant *unstructured.Unstructured) bool {
	for _, field := range []string{"data", "binaryData", "spec", "stringData"} {
		a, _ := json.Marshal(live.Object[field])
		b, _ := json.Marshal(meant.Object[field])
		if !bytes.Equal(a, b) {
			return false
		}
	}
	return fmt.Sprint(live.GetLabels(), live.GetAnnotations()) == fmt.Sprint(meant.GetLabels(), meant.GetAnnotations())
}

// Deletion are the options of a DELETE.
type Deletion struct {
	Propagation metav1.DeletionPropagation
	DryRun      bool
	// Confirm is asked directly before the request where it had to wait, and before it is repeated: what was
	// decided may not hold any more. Its error ends the deletion.
	Confirm func(context.Context) error
}

// confirmed is a context whose requests ask Confirm, and what that said.
func (d Deletion) confirmed(ctx context.Context) (_ context.Context, said func() error) {
	var last error
	said = func() error { return last }
	if d.Confirm == nil || d.DryRun {
		return ctx, said
	}
	decided, first := time.Now(), true
	return transport.WithConfirmation(ctx, func(ctx context.Context) error {
		quick := first && time.Since(decided) < time.Second
		first = false
		if quick {
			return nil
		}
		last = d.Confirm(ctx)
		return last
	}), said
}

// Delete deletes an object if it is still the very version that was read, and decided
// about: else it is Overtaken. It returns true if the object is gone with the
// answer, false if it goes later (finalizers, grace periods, a namespace's
// contents). An object that is not there is gone.
func (c *Client) Delete(ctx context.Context, r Resource, live metav1.Object, d Deletion) (bool, error) {
	uid, version := live.GetUID(), live.GetResourceVersion()
	o := metav1.DeleteOptions{PropagationPolicy: &d.Propagation, Preconditions: &metav1.Preconditions{}}
	if d.Propagation == "" {
		o.PropagationPolicy = nil
	}
	if uid != "" { // some aggregated API servers give none
		o.Preconditions.UID = &uid
	}
	if version != "" {
		o.Preconditions.ResourceVersion = &version
	}
	o.DryRun = Write{DryRun: d.DryRun}.dryRun()
	o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(o)
	if err != nil {
		return false, fmt.Errorf("encode the options of a delete: %w", err)
	}
	var answer []byte
	confirmed, said := d.confirmed(ctx)
	err = c.retry(confirmed, func(ctx context.Context) error {
		request := c.raw.Delete().AbsPath(r.path(live.GetNamespace()), r.GVR.Resource, live.GetName()).SetHeader("Content-Type", "application/json").Body(body)
		if d.DryRun { // the server goes by the body; this is for who reads its audit log
			request = request.Param("dryRun", metav1.DryRunAll)
		}
		result := request.Do(ctx)
		answer, _ = result.Raw() // its error lacks what the server said
		if err := result.Error(); apierrors.IsConflict(err) {
			return answers.Permanent(err) // the version that the caller decided about is no more
		} else if err != nil {
			return err
		}
		return nil
	})
	switch {
	case err != nil && said() != nil:
		return false, answers.Permanent(said())
	case err != nil:
		return c.missing(ctx, r, live.GetName(), err)
	}
	var answered struct {
		Kind     string            `json:"kind"`
		Status   any               `json:"status"`
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	err = json.Unmarshal(answer, &answered)
	switch {
	case err != nil:
	case answered.Kind == "Status" && answered.Status == metav1.StatusSuccess:
		return true, nil
	case answered.Kind != "" && answered.Metadata.Name == live.GetName() && answered.Metadata.UID == live.GetUID():
		return answered.Metadata.DeletionTimestamp == nil, nil
	default:
		err = fmt.Errorf("it has kind %q, and is not about the object", answered.Kind)
	}
	if d.DryRun {
		return false, nil // some aggregated server's own kind of answer
	}
	return c.deleted(ctx, r, live, err)
}

// deleted reads an object again whose DELETE was answered with something else than an API
// server's JSON: by a proxy, perhaps, and then it is still there.
func (c *Client) deleted(ctx context.Context, r Resource, live metav1.Object, answer error) (bool, error) {
	now, err := c.Get(ctx, r, bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName()})
	switch {
	case err != nil:
		return false, fmt.Errorf("the answer is not one of an API server (%w); read it again: %w", answer, err)
	case now == nil, now.GetUID() != live.GetUID():
		return true, nil
	case now.GetDeletionTimestamp() == nil:
		return false, fmt.Errorf("it is still there, and the answer is not one of an API server: %w", answer)
	}
	return false, nil
}

// mayNotCreate completes the answer to an apply that may not create what is not
// there: older servers leave out which right is missing, newer ones say it as
// everywhere (apiserver's endpoints/handlers/update.go, withAuthorization).
func mayNotCreate(err error, r Resource, id bundle.ID) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return err
	}
	answer := status.Status()
	before, reason, said := strings.Cut(answer.Message, " is forbidden: ")
	if reason = strings.TrimSpace(reason); !said || reason != "" && !strings.HasPrefix(reason, "RBAC: ") { // webhooks deny in words of their own
		return err
	}
	answer.Message = fmt.Sprintf("%s is forbidden: the user cannot create resource %q in API group %q", before, r.GVR.Resource, r.GVR.Group)
	if id.Namespace != "" {
		answer.Message += fmt.Sprintf(" in the namespace %q", id.Namespace)
	}
	if reason != "" {
		answer.Message += ": " + reason
	}
	return &apierrors.StatusError{ErrStatus: answer}
}
