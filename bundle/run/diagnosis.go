package run

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/inspect"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// diagnosisTime bounds the search for causes: the answer is wanted now.
const diagnosisTime = 8 * time.Second

// diagnose finds out, once and with a few requests, why objects are not ready.
// What cannot be found out in time is left out.
func (r *run) diagnose(ctx context.Context, outcomes []apply.Outcome) {
	var late []*apply.Outcome
	var objects []*unstructured.Unstructured
	for i := range outcomes {
		o := &outcomes[i]
		if o.Deletes() || o.Latest == nil || (o.Result.Ready != report.StateNotReady && o.Result.Ready != report.StateFailed) {
			continue
		}
		late, objects = append(late, o), append(objects, o.Latest)
	}
	if len(late) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	why := ready.NewDiagnosis(inspect.Reader(r.client)).Explain(ctx, objects)
	for _, o := range late {
		if o.Result.Why = why[o.ID]; len(o.Result.Why) > 0 {
			r.record.Emit(report.Diagnosed{Object: o.Result})
		}
	}
}

// hints are what the readiness of the plan's objects depends on besides them.
func (r *run) hints(ctx context.Context, p *plan.Plan) ready.Hints {
	var ids []bundle.ID
	for _, s := range slices.Concat(p.Steps, p.Outside) {
		ids = append(ids, s.ID)
	}
	return inspect.ReadHints(ctx, r.client, ids, r.bundle.Objects)
}
