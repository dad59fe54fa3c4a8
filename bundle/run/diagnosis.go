package run

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/cluster"
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
	why := ready.NewDiagnosis(reader(r.client)).Explain(ctx, objects)
	for _, o := range late {
		if o.Result.Why = why[o.ID]; len(o.Result.Why) > 0 {
			r.record.Emit(report.Diagnosed{Object: o.Result})
		}
	}
}

func reader(c *cluster.Client) ready.Reader {
	return ready.Reader{
		Get: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
			resource, err := c.Any(gvk.GroupKind())
			if err != nil {
				return nil, err
			}
			return c.Get(ctx, resource, bundle.ID{GroupKind: gvk.GroupKind(), Namespace: namespace, Name: name})
		},
		List: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, labelSelector, fieldSelector string) ([]unstructured.Unstructured, error) {
			resource, err := c.Any(gvk.GroupKind())
			if err != nil {
				return nil, err
			}
			return c.List(ctx, resource, namespace, labelSelector, fieldSelector)
		},
		Logs: c.Logs,
	}
}
