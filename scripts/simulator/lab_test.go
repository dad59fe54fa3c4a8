package simulator

import (
	"context"
	"fmt"
	legacy "math/rand"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/bundle/shutdown"
	"brine/inventory/admin"
	"brine/inventory/store"
	"brine/scripts/simulator/apiserver"
)

// lab is a world in which one command runs at a time.
type lab struct {
	t *testing.T
	w *World
	n int
}

func inLab(t *testing.T, story func(*lab)) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	legacy.Seed(1) //nolint:staticcheck // client-go's watches pause by it
	home = "default"
	synctest.Test(t, func(t *testing.T) { story(&lab{t: t, w: newWorld(trial{seed: 1})}) })
}

func (l *lab) start(do func(context.Context, *cluster.Client)) *Process {
	l.n++
	ctx, cancel := shutdown.WithTimeout(context.Background(), timeout)
	return l.w.start(ctx, fmt.Sprintf("brine-%d", l.n), "shop", false, nil, func(ctx context.Context, c *cluster.Client) {
		defer cancel()
		do(ctx, c)
		c.Close()
	})
}

// do has a command run to its end.
func (l *lab) do(command func(context.Context, *cluster.Client)) {
	l.t.Helper()
	p := l.start(command)
	if !l.w.run(p) {
		l.t.Error("it did not end")
	}
	<-p.ended
}

// until serves requests, one at a time, until something is so.
func (l *lab) until(so func() bool) {
	for !so() {
		synctest.Wait()
		l.w.mu.Lock()
		waiting := slices.Clone(l.w.waiting)
		l.w.mu.Unlock()
		if len(waiting) == 0 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		l.w.serveOne(waiting[0])
	}
}

// at is an inventory by NAME, in namespace default, or by NAMESPACE/NAME.
func at(name string) report.Inventory {
	namespace, name, found := strings.Cut(name, "/")
	if !found {
		namespace, name = "default", namespace
	}
	return report.Inventory{Namespace: namespace, Name: name}
}

// command runs an apply of a bundle, a rollback to a revision ("" is the way back) or a destroy.
func (l *lab) command(command, inventoryName, text string, change func(*run.Options, *bundle.Bundle)) (r *report.Result, err error) {
	l.t.Helper()
	l.do(func(ctx context.Context, c *cluster.Client) {
		r, err = l.carryOut(ctx, c, command, inventoryName, text, change)
	})
	return r, err
}

func (l *lab) carryOut(ctx context.Context, c *cluster.Client, command, inventoryName, text string, change func(*run.Options, *bundle.Bundle)) (*report.Result, error) {
	o := run.Options{
		Header:  report.Header{Command: command, DryRun: report.None, Inventory: at(inventoryName)},
		Timeout: timeout, LockTimeout: timeout / 2, HistoryLimit: 10, Version: "simulated", Namespace: "default", Who: "me", Heartbeat: time.Minute,
	}
	b := &bundle.Bundle{}
	switch command {
	case "apply":
		var err error
		if b, err = read.Bundle(ctx, read.Options{Files: []string{"-"}, Stdin: strings.NewReader(text), AllowGenerateName: true}); err != nil {
			return nil, err
		}
	case "destroy":
		o.Mode = run.Destroy
	case "rollback":
		o.Mode = run.Rollback
		inv, err := store.Load(ctx, c, o.Inventory.Namespace, o.Inventory.Name, "", "simulated")
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Sscan(text, &o.Revision); err != nil {
			target, err := inv.RollbackTarget(ctx)
			if err != nil {
				return nil, err
			}
			o.Revision, o.Undoes = target.Number, inv.Latest()
		}
		content, err := inv.LoadRevision(ctx, o.Revision)
		if err != nil {
			return nil, err
		}
		b, o.RevisionOptions = content.Bundle, content.Options
	}
	if change != nil {
		change(&o, b)
	}
	return run.Run(ctx, c, b, o, func(report.Event) {}), nil
}

// kill kills an apply once something is so.
func (l *lab) kill(once func() bool, inventoryName, text string) {
	p := l.start(func(ctx context.Context, c *cluster.Client) {
		_, _ = l.carryOut(ctx, c, "apply", inventoryName, text, nil)
	})
	l.until(once)
	l.w.killNow(p)
	<-p.ended
}

// ends has a command end with an exit code, and returns its result.
func (l *lab) ends(code int, command, inventoryName, text string, change func(*run.Options, *bundle.Bundle)) *report.Result {
	l.t.Helper()
	r, err := l.command(command, inventoryName, text, change)
	switch {
	case err != nil:
		l.t.Fatalf("%s of %s: %v", command, inventoryName, err)
	case r.ExitCode != code:
		l.t.Fatalf("%s of %s: exit code %d, want %d: %s", command, inventoryName, r.ExitCode, code, strings.Join(errorsOf(r), "; "))
	}
	return r
}

// move splits, merges or renames an inventory, the ConfigMaps of names of it, or all.
func (l *lab) move(what, from, to string, names ...string) {
	l.t.Helper()
	m := admin.MoveOptions{From: []report.Inventory{at(from)}, To: at(to), Remove: what != "split", Rename: what == "rename", Version: "simulated", Report: func(string) {}}
	chosen, err := admin.ParseSelector(bundle.Each(names, func(name string) string { return "ConfigMap/default/" + name }))
	if err != nil {
		l.t.Fatal(err)
	}
	if len(names) > 0 {
		m.Select = chosen.Chooses
	}
	l.do(func(ctx context.Context, c *cluster.Client) {
		if moved, err := admin.MoveMembers(ctx, c, m); err != nil || moved.ExitCode != report.ExitOK {
			l.t.Errorf("%s of %s into %s: %v, %+v", what, from, to, err, moved)
		}
	})
}

func (l *lab) kind(kind string) apiserver.Kind {
	k, _ := l.w.server.Find(func(k apiserver.Kind) bool { return k.Kind == kind })
	return k
}

func (l *lab) get(kind, namespace, name string) *unstructured.Unstructured {
	return l.w.server.Get(schema.ParseGroupKind(kind), namespace, name)
}

func (l *lab) value(name string) string {
	return bundle.At[string](l.get("ConfigMap", "default", name).Object, "data", "value")
}

// create, edit and remove are what a person does.
func (l *lab) create(u *unstructured.Unstructured) {
	l.t.Helper()
	if _, err := l.w.server.Create(person, l.kind(u.GetKind()), u, false); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) edit(kind, namespace, name string, change func(*unstructured.Unstructured)) {
	l.t.Helper()
	live := l.get(kind, namespace, name)
	u := live.DeepCopy()
	change(u)
	if _, err := l.w.server.Put(person, "update", "kubectl-edit", l.kind(live.GetKind()), live, u, false); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) remove(kind, namespace, name string) {
	l.t.Helper()
	if _, err := l.w.server.Delete(person, l.kind(kind), apiserver.At(l.kind(kind), namespace, name), metav1.DeleteOptions{}, false); err != nil {
		l.t.Fatal(err)
	}
}

// wait has the controllers do what they do in a minute.
func (l *lab) wait() {
	for range 60 {
		time.Sleep(time.Second)
		l.w.server.Step()
	}
}

func (l *lab) stays(kind, namespace string, names ...string) {
	l.t.Helper()
	for _, name := range names {
		if u := l.get(kind, namespace, name); u == nil || u.GetDeletionTimestamp() != nil {
			l.t.Errorf("%s %s/%s is gone", kind, namespace, name)
		}
	}
}

// load reads an inventory.
func (l *lab) load(name string) (inv *store.Inventory) {
	l.t.Helper()
	l.do(func(ctx context.Context, c *cluster.Client) {
		var err error
		if inv, err = store.Load(ctx, c, at(name).Namespace, at(name).Name, "", "simulated"); err != nil {
			l.t.Error(err)
		}
	})
	return inv
}

func namespaceNamed(name string) *unstructured.Unstructured {
	return bundle.V1(bundle.ID{GroupKind: bundle.NamespaceKind, Name: name}, map[string]any{})
}

// configMap is a document: with a value, and with more metadata.
func configMap(namespace, name, value string, metadata ...string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s%s}\ndata: {value: %q}\n", name, namespace, strings.Join(metadata, ""), value)
}

func adoptFree(o *run.Options, _ *bundle.Bundle) { o.Planning.Policy = plan.AdoptIfNoInventory }

// copyNamespace does what a backup does that is restored in another namespace.
func (l *lab) copyNamespace(from, to string) {
	l.create(namespaceNamed(to))
	for _, p := range slices.Clone(l.w.server.Places()) {
		if p.Namespace != from || p.Resource != "configmaps" && p.Resource != "secrets" || p.Name == "kube-root-ca.crt" {
			continue
		}
		u := l.w.server.Objects[p].DeepCopy()
		u.SetNamespace(to)
		u.SetUID("")
		u.SetResourceVersion("")
		u.SetManagedFields(nil)
		l.create(u)
	}
}
