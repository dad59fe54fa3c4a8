package run

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/sls"
	"brine/inventory"
	"brine/inventory/store"
)

// How a run begins: discovery, the identities of the bundle's objects, the inventory.

// begin asks what the server serves, settles what the bundle's objects are, and reads the
// inventory meanwhile.
func begin(ctx context.Context, s *session, o *Options, b *bundle.Bundle) (*store.Inventory, error) {
	reportInvalid(s.record, b.Invalid)
	needsKey := holdsSecrets(o, b) // before the bundle is changed
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	var inv *store.Inventory
	read := make(chan error, 1)
	go func() { // ends with reading
		var err error
		inv, err = readInventory(reading, s, o, needsKey)
		read <- err
	}()
	err := s.client.Discover(ctx)
	if err == nil {
		s.client.AskFailed(ctx, func(group string) bool {
			return slices.ContainsFunc(b.Objects, func(object *bundle.Object) bool { return object.GVK.Group == group })
		})
		err = resolve(ctx, s, o, b)
	}
	if err != nil {
		cancel()
		<-read
		return nil, err
	}
	if err := <-read; err != nil {
		return nil, err
	}
	warnOfOtherOptions(s, o)
	return inv, nil
}

// readInventory waits until no other run has the lock, and reads the inventory, and its
// key where that is needed.
func readInventory(ctx context.Context, s *session, o *Options, needsKey bool) (*store.Inventory, error) {
	if o.DryRun == report.None && !s.held {
		if err := s.await(ctx, o); err != nil {
			return nil, err
		}
	}
	var inv *store.Inventory
	var key *inventory.Key
	reading, ctx := errgroup.WithContext(ctx)
	reading.Go(func() (err error) {
		inv, err = store.Load(ctx, s.client, o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID, o.Version)
		return err
	})
	if needsKey {
		reading.Go(func() (err error) {
			key, err = store.LoadKey(ctx, s.client, o.Inventory.Namespace, o.Inventory.Name)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	inv.Key = key
	return inv, nil
}

// resolve settles what the bundle's objects are, with the server's help.
func resolve(ctx context.Context, s *session, o *Options, b *bundle.Bundle) error {
	resolver := read.Resolver{Namespace: o.Namespace, Scope: s.client.Scope, Versions: s.client.Versions, Strict: true}
	err := read.Resolve(b, resolver)
	s.record.Secrets.Bundle(b.Objects)
	var problems bundle.Problems
	if errors.As(err, &problems) && skipInvalid(s.record, o, b, problems) == nil {
		err = read.Resolve(b, resolver)
	}
	if err == nil {
		if err := sls.FillSlots(b, func(id bundle.ID) (*unstructured.Unstructured, error) { return s.client.Find(ctx, id) }); err != nil {
			return err
		}
		if err := skipInvalid(s.record, o, b, read.FillDigests(b)); err != nil {
			return err
		}
	}
	for _, w := range b.Warnings {
		s.record.Warn(w.Error())
	}
	if err != nil {
		return &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
	}
	for _, object := range b.Objects {
		s.client.Prefer(object.GVK)
	}
	return nil
}

// skipInvalid takes the objects that problems are about out of the bundle, and reports
// them, where the user allows it (SkipInvalid, as in cli-utils). Otherwise the problems
// are the error that stops the run.
func skipInvalid(record *report.Recorder, o *Options, b *bundle.Bundle, problems []bundle.Problem) error {
	switch {
	case len(problems) == 0:
		return nil
	case !o.SkipInvalid:
		return report.BadBundle(problems...)
	}
	known := len(b.Invalid)
	if rest := b.Skip(problems); len(rest) > 0 {
		return report.BadBundle(rest...)
	}
	reportInvalid(record, b.Invalid[known:])
	return nil
}

func reportInvalid(record *report.Recorder, problems []bundle.Problem) {
	known := map[bundle.ID]*report.ObjectResult{}
	for _, p := range problems {
		record.Fail(p.Error())
		if p.Path != "" {
			p.Message = p.Path + ": " + p.Message
		}
		if o := known[p.ID]; o != nil && p.ID != (bundle.ID{}) {
			o.Reason += "; " + p.Message
			continue
		}
		o := &report.ObjectResult{
			Group: p.ID.GroupKind.Group, Kind: p.ID.GroupKind.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name,
			Source: p.Source, Action: plan.Skipped, Reason: "invalid: " + p.Message, Needs: []report.Need{},
		}
		known[p.ID] = o
		record.Result.Objects = append(record.Result.Objects, o)
	}
}

// planning are the options of the plan of what is left of the bundle. Nothing is pruned
// while objects of it are invalid: a member that only looks unwanted may be one of them.
func (o *Options) planning(b *bundle.Bundle) plan.Options {
	p := o.Planning
	if len(b.Invalid) > 0 {
		p.NoPrune, p.NoPruneReason = true, "nothing is pruned while objects of the bundle are invalid"
	}
	return p
}
