package simulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/report"
	"brine/scripts/simulator/apiserver"
)

// Jobs, which run, are removed, and cannot be changed; CronJobs, which make others.

// haveJobs: bundles have Jobs and CronJobs.
func haveJobs(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		one.step.around.scheduled = r.IntN(2) == 0
		if one.step.isAdministrative() || one.step.secret || one.step.carriesOut {
			return
		}
		one.step.text += jobs(r)
		if r.IntN(4) == 0 {
			one.step.options.recreate = []string{"Job"}
		}
		if one.too != nil {
			one.too.text += jobs(r)
		}
	}
}

func jobs(r *rand.Rand) (text string) {
	image := "good"
	if r.IntN(6) == 0 {
		image = "broken"
	}
	pod := fmt.Sprintf("{spec: {restartPolicy: Never, containers: [{name: job, image: %s, args: [\"%d\"]}]}}", image, r.IntN(2))
	if r.IntN(4) > 0 {
		annotations := []string{"", ", annotations: {brine.dev/on-immutable: recreate}", ", annotations: {brine.dev/run: always}"}[r.IntN(3)]
		ttl := []string{"", "ttlSecondsAfterFinished: 0, ", "ttlSecondsAfterFinished: 30, "}[r.IntN(3)]
		text += fmt.Sprintf("---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, namespace: app%s}\nspec: {%sbackoffLimit: 0, template: %s}\n", annotations, ttl, pod)
	}
	if r.IntN(2) == 0 {
		text += fmt.Sprintf("---\napiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly, namespace: app}\nspec: {schedule: '%d 0 * * *', jobTemplate: {spec: {template: %s}}}\n", r.IntN(3), pod)
	}
	return text
}

// somethingSchedules is the controller of CronJobs, which makes a Job of each.
func (w *World) somethingSchedules() {
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "Job" })
	for _, p := range slices.Clone(w.server.Places()) {
		if p.Resource != "cronjobs" || !w.happens() {
			continue
		}
		owns := w.server.Objects[p]
		spec, _, _ := unstructured.NestedMap(owns.Object, "spec", "jobTemplate", "spec")
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": spec}}
		u.SetNamespace(p.Namespace)
		u.SetGenerateName(p.Name + "-")
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: p.Name, UID: owns.GetUID(), Controller: new(true)}})
		if _, err := w.server.Create(person, k, u, false); err == nil {
			w.note("CronJob %s/%s makes Job %s", p.Namespace, p.Name, u.GetName())
		}
	}
}

func isComplete(u *unstructured.Unstructured) bool { return hasCondition(u, "Complete") }

func hasCondition(u *unstructured.Unstructured, name string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == name && condition["status"] == "True"
	})
}

// expires says whether an object of a bundle is a Job that is removed after its end.
func expires(u *unstructured.Unstructured) bool {
	_, has, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "ttlSecondsAfterFinished")
	return has && u.GetKind() == "Job"
}

// jobsRan: with exit code 0, a Job that the bundle has ran to its end with what the bundle says,
// in this run if it runs in each.
func (o *oracle) jobsRan() (wrong []string) {
	if o.d.result.ExitCode != 0 || o.d.command != "apply" || o.d.options.waitApplied || o.d.only != nil || o.d.bundle == nil {
		return nil
	}
	for _, object := range o.d.bundle.Objects {
		if object.ID.GroupKind != bundle.JobKind {
			continue
		}
		wanted, _, _ := unstructured.NestedSlice(object.Content.Object, "spec", "template", "spec", "containers")
		ran, since := false, 0
		if object.Content.GetAnnotations()[bundle.Run] != "" {
			since = o.d.from
		}
		for _, w := range o.server.Log[since:o.d.to] {
			if w.After == nil || w.Kind != bundle.JobKind || w.Namespace != object.ID.Namespace || w.Name != object.ID.Name || !isComplete(w.After) {
				continue
			}
			has, _, _ := unstructured.NestedSlice(w.After.Object, "spec", "template", "spec", "containers")
			ran = ran || covers(has, wanted)
		}
		if !ran {
			wrong = append(wrong, "has not run: "+bundle.Name(object.ID))
		}
	}
	return wrong
}

// endedJobsStay: a Job that has ended, and that the run deletes, it does not create again as it was,
// unless the bundle has it so.
func (o *oracle) endedJobsStay() (wrong []string) {
	if o.goesBack() || o.d.bundle == nil {
		return nil
	}
	containers := func(u *unstructured.Unstructured) []any {
		all, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		return all
	}
	ended := map[bundle.ID]*unstructured.Unstructured{}
	for _, w := range o.own() {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		switch {
		case w.Kind != bundle.JobKind:
		case w.Verb == "delete" && (isComplete(w.Before) || hasCondition(w.Before, "Failed")):
			ended[id] = w.Before
		case w.Before == nil && ended[id] != nil && covers(containers(ended[id]), containers(w.After)):
			i := slices.IndexFunc(o.d.bundle.Objects, func(object *bundle.Object) bool { return object.ID == id })
			if i < 0 || !covers(containers(ended[id]), containers(o.d.bundle.Objects[i].Content)) {
				wrong = append(wrong, w.String())
			}
		}
	}
	return wrong
}

// brine status says what a run would do with a Job that completed and is gone: it runs again where its
// namespace was made again since.
func TestStatusOfACompletedJob(t *testing.T) {
	const job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: job, namespace: apart}\nspec: {ttlSecondsAfterFinished: 5, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good}]}}}\n"
	const namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: apart}\n"
	for name, text := range map[string]string{"the namespace is a member": namespace + job, "it is not": job} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				if text == job {
					l.create(namespaceNamed("apart"))
				}
				state := func() (said string) {
					l.do(func(ctx context.Context, c *cluster.Client) {
						r, err := inspect.Status(ctx, c, at("shop"), "simulated", "", nil, func(*report.Result) {})
						if err != nil {
							t.Fatal(err)
						}
						for _, o := range r.Objects {
							if o.Kind == "Job" {
								said = o.Ready + ": " + o.Reason
							}
						}
					})
					return said
				}
				l.ends(report.ExitOK, "apply", "shop", text, nil)
				l.wait()
				if said := state(); l.get("Job.batch", "apart", "job") != nil || said != "ready: completed" {
					t.Error(said)
				}
				l.remove("Namespace", "", "apart")
				l.wait()
				if said := state(); !strings.HasPrefix(said, "gone: it completed in a namespace") {
					t.Error(said)
				}
				l.create(namespaceNamed("apart"))
				if said := state(); !strings.HasPrefix(said, "gone: it completed in a namespace") {
					t.Error(said)
				}
				l.ends(report.ExitOK, "apply", "shop", text, adoptFree)
				if said := state(); said != "ready: " { // it ran again, and is there
					t.Error(said)
				}
			})
		})
	}
}
