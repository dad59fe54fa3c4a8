package transport

import (
	"net/http"
	"strings"
)

// betaDiscovery lets client-go read the aggregated discovery of Kubernetes 1.27 to
// 1.29, which is v2beta1: client-go reads only v2 by now, and would ask for each group
// alone, dozens of requests that no cache answers. The two versions
// have the same fields (k8s.io/api/apidiscovery/v2beta1/types.go).
type betaDiscovery struct{ next http.RoundTripper }

const (
	discoveryV2   = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	discoveryBeta = "g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

func (b betaDiscovery) RoundTrip(r *http.Request) (*http.Response, error) {
	if accept := r.Header.Get("Accept"); strings.Contains(accept, discoveryV2) {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", strings.Replace(accept, discoveryV2, discoveryV2+",application/json;"+discoveryBeta, 1))
	}
	response, err := b.next.RoundTrip(r)
	if err == nil {
		if kind := response.Header.Get("Content-Type"); strings.Contains(kind, discoveryBeta) {
			response.Header.Set("Content-Type", strings.Replace(kind, discoveryBeta, discoveryV2, 1))
		}
	}
	return response, err
}
