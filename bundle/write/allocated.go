package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
)

// allocated judges the refusal of a Service because an IP address or port that it asks
// for is taken. If another Service has it, the answer names that. If none has, an API
// server ended after it had deleted a Service and before it freed what that had; then
// the refusal stands until Kubernetes' repair loop frees it. Up to 1.33, which still keeps
// all addresses in one record, that takes about ten minutes
// (pkg/registry/core/service/ipallocator/controller/repair.go). The run waits as long as
// it has time.
func (w *Writer) allocated(ctx context.Context, s *plan.Step, err error) (wait bool, refusal error) {
	if s.ID.GroupKind != bundle.ServiceKind || !answers.Allocated(err) {
		return false, err
	}
	resource, unknown := w.Client.Resource(s.GVK)
	if unknown != nil {
		return false, err
	}
	services, unknown := w.Client.List(ctx, resource, "", "", "")
	if unknown != nil { // no right to list them: who has it is not known
		return false, err
	}
	asked, text := allocations(s.Object.Content.Object), w.Explain(s, err).Error()
	for i := range services {
		other := &services[i]
		if other.GetNamespace() == s.ID.Namespace && other.GetName() == s.ID.Name {
			continue
		}
		for _, taken := range allocations(other.Object) {
			if slices.Contains(asked, taken) {
				return false, &answer{text: fmt.Sprintf("%s. Service %s/%s has %s", text, other.GetNamespace(), other.GetName(), taken), err: err}
			}
		}
	}
	if !w.Deadline.IsZero() && time.Now().After(w.Deadline) {
		return false, &answer{text: text + ". No Service has it: an API server that ended has not freed it. Kubernetes does so, up to 1.33 after about 10 minutes: run this again then", err: err}
	}
	return true, fmt.Errorf("%w, but no Service has it: waiting until Kubernetes frees it, up to 1.33 for about 10 minutes", err)
}

// allocations are the IP addresses and node ports that a Service has or asks for.
func allocations(service map[string]any) []string {
	all := append(bundle.Items[string](service, "spec", "clusterIPs"), bundle.At[string](service, "spec", "clusterIP"))
	for _, port := range bundle.Items[map[string]any](service, "spec", "ports") {
		if port["nodePort"] != nil {
			all = append(all, fmt.Sprintf("nodePort %v/%v", port["nodePort"], cmp.Or(port["protocol"], any("TCP"))))
		}
	}
	if port := bundle.At[any](service, "spec", "healthCheckNodePort"); port != nil {
		all = append(all, fmt.Sprintf("nodePort %v/TCP", port))
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" || text == "None" })
}
