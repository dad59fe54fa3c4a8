package plan

import (
	"strings"
	"testing"

	"brine/bundle/bundletest"
)

// Objects that only a webhook can convert are rewritten before it goes, also where no version goes.
func TestConversionStaysUntilObjectsAreRewritten(t *testing.T) {
	const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, names: {plural: widgets, kind: Widget}, scope: Namespaced,
		conversion: %s, versions: [{name: v1, served: true, storage: true}%s]}, status: {storedVersions: [v1alpha1, v1]}}`
	const webhook, none = `{strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}`, `{strategy: None}`
	of := func(conversion, more string) string {
		return strings.NewReplacer("%s,", conversion+",", "}%s]", "}"+more+"]").Replace(crd)
	}
	older := ", {name: v1alpha1, served: false, storage: false}"
	for name, test := range map[string]struct {
		live, desired string
		keeps         string
	}{
		"the webhook goes, the version stays":    {live: of(webhook, older), desired: of(none, older), keeps: `"strategy":"Webhook"`},
		"both go":                                {live: of(webhook, older), desired: of(none, ""), keeps: `"strategy":"Webhook"`},
		"the version goes":                       {live: of(none, older), desired: of(none, ""), keeps: `"strategy":"None"`},
		"the webhook stays":                      {live: of(webhook, older), desired: of(webhook, older), keeps: `"strategy":"Webhook"`},
		"there was no webhook, and nothing goes": {live: of(none, older), desired: of(none, older), keeps: `"strategy":"None"`},
	} {
		desired := bundletest.Object(t, test.desired)
		body, err := desired.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		m := StoredVersions(desired, bundletest.Object(t, test.live))
		interim, err := m.Interim(body)
		if err != nil || !strings.Contains(string(interim), test.keeps) || !strings.Contains(string(interim), "v1alpha1") {
			t.Errorf("%s: %v %s", name, err, interim)
		}
	}
}
