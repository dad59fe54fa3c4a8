package simulator

import (
	"time"

	"brine/bundle"
)

// found are histories as scripts/simulate --shrink prints them, by what went wrong.
var found = map[string]trial{
	"an object was marked before the inventory had it": {seed: 1, scenes: []scene{}},
	"both forgot what was given back, and refused in part": {seed: 8, scenes: []scene{{at: "0", chance: 10791929937620761386, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 4447902419453025223, step: step{command: "preview", inventory: "other", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.theirs.example.com}
spec:
  group: theirs.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, patience: 300000000000, saves: true}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 11107983319629702371, step: step{calm: true, carriesOut: true}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 3606261869329961560, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, policy: 2}, mood: mood{name: "undisturbed"}}, {at: "11", chance: 13748392276045313491, step: step{command: "rollback", inventory: "other", refused: true}, mood: mood{name: "aimed at JSON patches", faults: []fault{"403"}, rate: 0.7, aim: "JSON patches"}}}},
	"a plan was saved of what could not be read": {seed: 28000042, scenes: []scene{{at: "3", chance: 11101117907680761130, step: step{command: "preview", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, saves: true}, mood: mood{name: "aimed at single reads", faults: []fault{"plain 404"}, rate: 0.1, aim: "single reads"}}, {at: "4", chance: 11920694557566778338, step: step{calm: true, carriesOut: true}, mood: mood{name: "undisturbed"}}}},
	"an apply took the lock each time, and wrote nothing, after a split that was killed": {seed: 50281, scenes: []scene{{at: "0", chance: 6241148084655432505, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
`}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 13189509422673321274, step: step{command: "split", inventory: "shop", into: "other", names: []string{"ConfigMap/*/*"}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "10", chance: 6904718109242993268, step: step{command: "split", inventory: "shop", into: "other", names: []string{"ConfigMap/*/a", "Secret/*/*"}}, mood: mood{name: "undisturbed"}}}},
	"a rollback deleted what its bundle wants absent, and a person had created": {seed: 18, scenes: []scene{{at: "0", chance: 3730535722030567033, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 13189037337000019801, step: step{command: "apply", inventory: "other", options: options{absent: []string{"d", "guest"}}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 3466905609594523976, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, policy: 1, found: true}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 6998684768995585408, step: step{command: "rollback", inventory: "other"}, mood: mood{name: "undisturbed"}}}},
	"what was pruned went while the new was not ready: an API server that was behind showed what had been there before": {seed: 9615, scenes: []scene{{at: "2", chance: 6625779426048482790, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`, policy: 1}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 408732274161715928, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "0"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, calm: true, options: options{waitApplied: true}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 974382695541698574, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
`, policy: 1, found: true}, mood: mood{name: "some API servers are behind", behind: []time.Duration{0, 982000000, 7000000000}, old: true}}}},
	"a rename could not be completed where a first run had left its key": {seed: 50043, scenes: []scene{{at: "1", chance: 15514689603020420600, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 6448408504466688010, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, policy: 2}, too: &step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: theirs}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-theirs}
data: {value: "0"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.theirs.example.com}
spec:
  group: theirs.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
`, policy: 2}, mood: mood{name: "an API server restarts", outage: &outage{mood: "an API server restarts", from: 10, to: 37}}}, {at: "10", chance: 6178193952707666682, step: step{command: "rename", inventory: "shop", into: "other"}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`}, mood: mood{name: "some API servers are behind", behind: []time.Duration{0, 851000000, 4000000000}}}}},
	"a resource that may be recreated was refused for a rule about changes": {seed: 50050, scenes: []scene{{at: "1", chance: 17576677227991372677, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: x}
`, patience: 300000000000}, mood: mood{name: "undisturbed"}}}},
	"what a webhook denied was told as a right that is missing, and what was refused as created": {seed: 200047, scenes: []scene{{at: "0", chance: 3363889112386241374, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
`, around: surroundings{hooks: []string{"refuse configmaps b", "refuse deployments"}}}, mood: mood{name: "undisturbed"}}, {at: "12", chance: 5332365408180959938, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`, onFailure: true, policy: 1, around: surroundings{hooks: []string{"refuse configmaps b", "refuse deployments"}}}, mood: mood{name: "undisturbed"}}}},
	"a saved plan was out of date by what its own run had written, whose answers were lost": {seed: 200040, scenes: []scene{{at: "0", chance: 12596683233306174417, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, lifetime: 3600000000000, around: surroundings{planned: true, twice: true}}, mood: mood{name: "504 after", faults: []fault{"504 after"}, rate: 0.1}}}, without: []string{"0:29", "0:28", "0:27", "0:26", "0:25", "0:24", "0:23", "0:22", "0:21", "0:20", "0:19", "0:18", "0:17", "0:15", "0:10", "0:43", "0:42", "0:41", "0:40", "0:16", "0:39", "0:38", "0:37", "0:36", "0:35", "0:30", "0:34", "0:33", "0:8", "0:12", "0:7", "0:14", "0:11"}},
	"a saved plan was out of date as soon as what it prunes, and was being deleted by then, was gone": {seed: 60101137, scenes: []scene{{at: "0", chance: 17954092228926246768, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, lifetime: 60000000000, options: options{history: 1}, around: surroundings{leaving: "widgets", planned: true}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 5021305326854755676, step: step{command: "drift", inventory: "shop", policy: 1, patience: 300000000000, options: options{pruneAnyway: true}, around: surroundings{leaving: "app"}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 1746879212908400832, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, calm: true, lifetime: 3600000000000, later: 120000000000, around: surroundings{leaving: "extra-app", planned: true}}, mood: mood{name: "undisturbed"}}}},
	"the namespace of the inventory was not planned: the bundle does not have it, and the preview warns of it": {seed: 60000579, scenes: []scene{{at: "0", chance: 8238237180684163781, step: step{command: "apply", inventory: "shop", around: surroundings{planned: true}}, mood: mood{name: "undisturbed"}}}},
	"a destroyed inventory's namespace was made again by another run, whose inventory went": {seed: 60101229, scenes: []scene{{at: "2", chance: 18207881237546640200, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, calm: true, options: options{conflicts: []string{"autoscaler=take", "*=fail"}}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 9935223671871009799, step: step{command: "destroy", inventory: "shop", options: options{absent: []string{"guest"}}, around: surroundings{controlled: true}}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, around: surroundings{controlled: true}}, mood: mood{name: "cut before", faults: []fault{"cut before"}, rate: 0.1}}}, without: []string{"4:38", "4:37", "4:36", "4:35", "4:34", "4:33", "4:32", "4:31", "4:30", "4:29", "4:28", "4:27", "4:26", "4:25", "4:24", "4:23", "4:22", "4:21", "4:20", "4:16"}},
	"a namespace was deleted with the lock that another run had taken in it": {seed: 5089, scenes: []scene{{at: "0", chance: 6215310369528063550, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, options: options{migrate: true}, around: surroundings{denied: []string{"patch secrets"}}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 4733531643258379005, step: step{command: "destroy", inventory: "shop", options: options{migrate: true}}, mood: mood{name: "machine is suspended", outage: &outage{mood: "machine is suspended", from: 49, to: 77, lasts: 279000000000}}}}},
	"a CRD that was gone was not deleted, as its resources could not be read": {seed: 60100892, scenes: []scene{{at: "2", chance: 4018487885216474595, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 0}
`, calm: true, options: options{pruneAnyway: true}, around: surroundings{denied: []string{"get widgets"}, leaving: "widgets"}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 9879997641444164559, step: step{command: "apply", inventory: "shop", calm: true, around: surroundings{denied: []string{"get widgets"}, leaving: "customresourcedefinitions"}}, mood: mood{name: "undisturbed"}}}},
	"a saved plan was out of date when a Job had expired that it replaces": {seed: 63800068, scenes: []scene{{at: "0", step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {ttlSecondsAfterFinished: 30, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}
`}, mood: mood{name: "undisturbed"}}, {at: "1", step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {ttlSecondsAfterFinished: 30, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["0"]}]}}}
`, later: 120000000000, around: surroundings{planned: true}}, mood: mood{name: "undisturbed"}}}},
	"a saved plan was out of date when a Job had expired that had completed": {seed: 63800068, scenes: []scene{{at: "0", step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {ttlSecondsAfterFinished: 30, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}
`}, mood: mood{name: "undisturbed"}}, {at: "1", step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {ttlSecondsAfterFinished: 30, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}
`, later: 120000000000, around: surroundings{planned: true}}, mood: mood{name: "undisturbed"}}}},
	"a webhook quoted the Secret that was to be moved": {seed: 64102364, scenes: []scene{{at: "0", chance: 14359861854165735819, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
`}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 8235775889450668265, step: step{command: "merge", inventory: "shop", into: "other", around: surroundings{hooks: []string{"label configmaps", "refuse secrets"}}}, mood: mood{name: "undisturbed"}}}},
	"an object could not be released as its CRD was gone": {seed: 64001194, scenes: []scene{{at: "0", chance: 11839839720676175796, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: y}
`, lifetime: 3600000000000, later: 120000000000, around: surroundings{leaving: "deployments", planned: true}}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 11139834088333375074, step: step{command: "preview", inventory: "shop", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
`, policy: 1, saves: true, around: surroundings{leaving: "customresourcedefinitions"}}, mood: mood{name: "somebody acts", people: 0.05}}}, without: []string{"8:3"}},
	"a tool kept an object that it was named to let go of, because another one had it, too": {seed: 60101354, scenes: []scene{{at: "0", chance: 13043137612706396038, step: step{command: "apply", inventory: "shop", policy: 1, options: options{takeOver: []string{"kustomize-controller"}}, around: surroundings{tool: "helm"}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 8497862046480632190, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
`, policy: 1, options: options{pruneAnyway: true, recreate: []string{"ConfigMap"}, takeOver: []string{"flux:flux-system/web"}}, around: surroundings{tool: "flux"}}, mood: mood{name: "undisturbed"}}}, without: []string{"2:2", "0:2"}},
	"the next run removed the marks of a tool whose fields were taken over by one that was killed: so it is": {seed: 60001175, scenes: []scene{{at: "1", chance: 3786574000195349642, step: step{command: "apply", inventory: "shop", policy: 1, options: options{recreate: []string{"ConfigMap"}, takeOver: []string{"argocd:web"}}, around: surroundings{denied: []string{"create namespaces", "patch secrets"}, tool: "argo"}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 4164995033589596160, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
`, policy: 1, guests: true, calm: true, options: options{noPrune: true, skipInvalid: true, takeOver: []string{"argocd:web"}}, around: surroundings{denied: []string{"create namespaces", "patch secrets"}}}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 5182570782314015484, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "0"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
`, policy: 1, found: true, options: options{takeOver: []string{"argocd-controller"}}, around: surroundings{denied: []string{"create namespaces", "patch secrets"}, tool: "argo"}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}}, without: []string{"1:1"}},
	"a CRD was forgotten whose migration got stuck": {seed: 66001956, scenes: []scene{{at: "2", chance: 6671555566343326603, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
  - name: v3
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
`, options: options{migrate: true}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 11728363889501908243, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v3
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v3
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 0}
`, policy: 2, options: options{waitApplied: true, migrate: true}}, mood: mood{name: "429", faults: []fault{"429"}, rate: 0.1}}}, without: []string{"3:63", "3:62", "3:61", "3:60", "3:59", "3:57", "3:56", "3:55", "3:53", "3:51", "3:47", "3:43", "3:41", "3:33", "3:31", "3:25", "3:23", "3:18", "3:17", "3:28", "3:26", "3:20", "3:14", "3:9", "3:8", "3:7", "3:15", "3:10"}},
	"a rollback deleted what a person had taken out of the inventory": {seed: 66001904, scenes: []scene{{at: "0", chance: 16922438730830814540, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`, lifetime: 60000000000, around: surroundings{planned: true}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 15469602140861145779, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
`, onFailure: true, lifetime: 3600000000000, around: surroundings{planned: true, twice: true, moved: true}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 13612910092680292993, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, calm: true, options: options{waitApplied: true, absent: []string{"b", "d", "fixed"}}, around: surroundings{planned: true}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 5158370677719516951, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "0"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`, guests: true, calm: true, lifetime: 3600000000000, later: 120000000000, around: surroundings{planned: true, twice: true}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 1506614800697394542, step: step{command: "rollback", inventory: "shop", patience: 300000000000}, mood: mood{name: "some API servers are behind", people: 0.05, behind: []time.Duration{0, 226000000, 3000000000}, old: true}}}, without: []string{"5:6", "5:5", "5:4", "5:3", "4:1"}},
	"a repair said that all was found, where the one before it could not list it": {seed: 65500091, scenes: []scene{{at: "0", chance: 16410514638182045794, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
`, around: surroundings{denied: []string{"list * everywhere"}, planned: true}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 18411636531940397224, step: step{command: "repair", inventory: "shop", into: "shop", damaged: true, around: surroundings{denied: []string{"list * everywhere"}}}, mood: mood{name: "undisturbed"}}}},
	"fields in two versions that were gone were moved one after the other, for ever": {seed: 67100892, scenes: []scene{{at: "6", chance: 15897359063904874337, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v3
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v2
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 0}
`, policy: 1, found: true, options: options{migrate: true}}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 2330487115812946524, step: step{command: "apply", inventory: "other", text: `---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: app}
spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["0"]}]}}}}}
`, policy: 2, options: options{migrate: true}}, mood: mood{name: "undisturbed"}}, {at: "11", chance: 16978726195636196332, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v3
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v3
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 0}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app}
spec: {ttlSecondsAfterFinished: 0, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["0"]}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: app}
spec: {schedule: '2 0 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["0"]}]}}}}}
`, policy: 2, options: options{maxPrune: "50%", migrate: true}}, mood: mood{name: "undisturbed"}}, {at: "12", chance: 12809938329707707, step: step{command: "rollback", inventory: "other", refused: true, options: options{migrate: true}, around: surroundings{scheduled: true}}, mood: mood{name: "aimed at JSON patches", faults: []fault{"403"}, rate: 0.7, aim: "JSON patches"}}, {at: "13", chance: 8918943747653470948, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app}
spec: {ttlSecondsAfterFinished: 30, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}
`, options: options{migrate: true}}, mood: mood{name: "undisturbed"}}}, without: []string{"12:3", "12:1"}},
	"an inventory lost its overflow as a proxy answered to the DELETE before": {seed: 70006605, scenes: []scene{{at: "3", chance: 1070741788130220884, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "0"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong1, namespace: app}
data: {value: "2"}
`, calm: true, options: options{noPrune: true}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 18106136942004774905, step: step{command: "preview", inventory: "shop", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, policy: 2, force: true, calm: true, saves: true, secret: true}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 958388176052691619, step: step{command: "destroy", inventory: "shop", policy: 2, patience: 300000000000}, mood: mood{name: "aimed at the inventory's writes", faults: []fault{"HTML 200"}, rate: 0.4, aim: "the inventory's writes"}}}, without: []string{"8:1"}},
	"a namespace was deleted that is another inventory's member by now": {seed: 69000434, scenes: []scene{{at: "2", chance: 3853876171515605005, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Not_A_Name, namespace: app}
`, policy: 2, options: options{skipInvalid: true}, around: surroundings{planned: true, twice: true}}, too: &step{command: "apply", inventory: "other", policy: 2, around: surroundings{planned: true, twice: true}}, mood: mood{name: "empty 200", faults: []fault{"empty 200"}, rate: 0.1}}, {at: "4", chance: 18227522864050870072, step: step{command: "apply", inventory: "shop"}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 18440010305177887364, step: step{command: "destroy", inventory: "shop", guests: true, calm: true, options: options{maxPrune: "0"}}, mood: mood{name: "undisturbed"}}}},
	"two first runs at once: one makes the inventory's namespace, which the other one cannot apply": {seed: 82102414, scenes: []scene{{at: "0", chance: 2554641729497576655, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, options: options{conflicts: []string{"autoscaler=leave"}}, around: surroundings{controlled: true}}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, around: surroundings{controlled: true}}, mood: mood{name: "429 with Retry-After of a day", faults: []fault{"429 with Retry-After of a day"}, rate: 0.1}}}, without: []string{"0:8", "0:7", "0:5"}},
	"the namespace cannot be read, and a member in it counts as gone": {seed: 90014584, scenes: []scene{{at: "0", chance: 1082142874777645626, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 0, fixed: x}
`}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`}, mood: mood{name: "aimed at single reads", faults: []fault{"302"}, rate: 0.1, aim: "single reads"}}}},
	"a run makes the inventory's namespace, another one makes it a member": {seed: 90012399, scenes: []scene{{at: "2", chance: 17251574535935287847, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, policy: 2}, too: &step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: theirs}
data: {value: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: theirs}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.theirs.example.com}
spec:
  group: theirs.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, policy: 2}, mood: mood{name: "some API servers are behind", behind: []time.Duration{0, 919000000, 6000000000}, twice: true}}}},
	"an object that is to be let go waits for one that is kept, in every run": {seed: 90004728, scenes: []scene{{at: "1", chance: 12867544411343298578, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: theirs}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: theirs, annotations: {config.kubernetes.io/depends-on: '/namespaces/theirs/ConfigMap/a'}}
data: {value: "2"}
`}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 18054305695532365960, step: step{command: "merge", inventory: "other", calm: true, into: "shop"}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 15241418285955745012, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, onFailure: true, patience: 300000000000}, mood: mood{name: "some API servers are behind", people: 0.05, behind: []time.Duration{0, 288000000, 2000000000}, old: true}}}, without: []string{"6:6", "6:5", "6:4", "6:2", "6:1"}},
	"a namespace went with what an API server that did not know its CRD yet did not show": {seed: 90104542, scenes: []scene{{at: "5", chance: 6695222824343129616, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: y}
`, calm: true, options: options{conflicts: []string{"autoscaler=leave"}}, around: surroundings{controlled: true}}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 12557890404843036298, step: step{command: "apply", inventory: "other", options: options{conflicts: []string{"autoscaler=leave"}}}, mood: mood{name: "somebody acts", people: 0.05}}, {at: "8", chance: 17556467563080211716, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
`, calm: true, options: options{conflicts: []string{"autoscaler=take", "*=fail"}}, around: surroundings{controlled: true}}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 5535465172004204523, step: step{command: "destroy", inventory: "shop", patience: 300000000000, options: options{conflicts: []string{"autoscaler=leave"}}, around: surroundings{controlled: true}}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
`, patience: 300000000000, around: surroundings{controlled: true}}, mood: mood{name: "some API servers are behind", behind: []time.Duration{0, 503000000, 5000000000}, twice: true, old: true}}}, without: []string{"8:1", "7:2"}},
	"a split that had taken one of two locks waited for the server's answer to give it back, beyond --timeout": {seed: 91000173, scenes: []scene{{at: "0", chance: 3884048954518085496, step: step{command: "apply", inventory: "shop", around: surroundings{denied: []string{"patch customresourcedefinitions"}}}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 0, fixed: y}
`, around: surroundings{denied: []string{"patch customresourcedefinitions"}}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "2", chance: 1262169419248441560, step: step{command: "split", inventory: "shop", patience: 300000000000, into: "other", names: []string{"ConfigMap/*/*"}, around: surroundings{denied: []string{"patch customresourcedefinitions"}}}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
`, patience: 300000000000, around: surroundings{denied: []string{"patch customresourcedefinitions"}}}, mood: mood{name: "no answer", faults: []fault{"no answer"}, rate: 0.1}}}, without: []string{"2:19", "2:11", "2:41", "2:40", "2:36", "2:47", "2:17", "2:20"}},
	"a proxy answers GET /api with a 404 in a repair": {seed: 94006809, scenes: []scene{{at: "7", chance: 6448348898444936038, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, policy: 1}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 11400736249386783728, step: step{command: "repair", inventory: "shop", into: "shop", damaged: true}, mood: mood{name: "plain 404", faults: []fault{"plain 404"}, rate: 0.1}}}},
	"a plan says configured, and nothing changes": {seed: 94006914, scenes: []scene{{at: "5", chance: 2270939942077463289, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: y}
`, calm: true, options: options{waitApplied: true}}, mood: mood{name: "undisturbed"}}, {at: "15", chance: 15452617967597225340, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, calm: true}, mood: mood{name: "undisturbed"}}, {at: "18", chance: 5983158330465564083, step: step{command: "preview", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: y}
`, policy: 2, force: true, calm: true, saves: true, secret: true}, mood: mood{name: "undisturbed"}}, {at: "19", chance: 12882139274660310241, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: y}
`, policy: 2, force: true, calm: true, secret: true, approved: true}, mood: mood{name: "undisturbed"}}}},
	"what is owned in a version that a CRD lost could not be moved, and stayed in the way": {seed: 94101540, scenes: []scene{{at: "2", chance: 2971207555113955600, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v2
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 1}
`, policy: 2}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 10894318424851189965, step: step{command: "apply", inventory: "shop"}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`}, mood: mood{name: "somebody acts", people: 0.05}}, {at: "9", chance: 6178035941752982018, step: step{command: "apply", inventory: "other", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v3
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v3
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 1}
`, policy: 2}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 7950505308162422349, step: step{command: "rollback", inventory: "other", refused: true}, mood: mood{name: "aimed at JSON patches", faults: []fault{"403"}, rate: 0.7, aim: "JSON patches"}}}, without: []string{"4:4", "4:1", "4:3"}},
	"a rollback that was killed while it gave back could not go on": {seed: 97114433, scenes: []scene{{at: "0", chance: 2868871009693210441, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
`}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 5016344632146927315, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: theirs}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: theirs}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: theirs, annotations: {config.kubernetes.io/depends-on: '/namespaces/theirs/ConfigMap/a'}}
data: {value: "2"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: theirs}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`}, mood: mood{name: "somebody acts", people: 0.05}}, {at: "8", chance: 17491067406983319424, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, guests: true, calm: true}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 13241525939579034836, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
`, policy: 1, only: []string{"ConfigMap/*/*"}, patience: 300000000000, options: options{waitApplied: true}}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 3544427500180950038, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
`, policy: 2}, mood: mood{name: "undisturbed"}}, {at: "11", chance: 4101930268427624226, step: step{command: "rollback", inventory: "other", refused: true}, mood: mood{name: "aimed at JSON patches", faults: []fault{"kill before"}, rate: 0.4, aim: "JSON patches"}}}, without: []string{"1:4", "1:3", "1:2"}},
	"a rollback after a partial run recreated what the run had not chosen": {seed: 97006308, scenes: []scene{{at: "0", chance: 10781543182921091782, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: orphan}}
immutable: true
data: {value: "2"}
`}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 14210068970200224458, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
immutable: true
data: {value: "0"}
`, guests: true, calm: true}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 11860088259017156272, step: step{command: "apply", inventory: "shop", policy: 1, found: true}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 9481270059468398126, step: step{command: "rollback", inventory: "shop", revision: 1}, mood: mood{name: "undisturbed"}}, {at: "14", chance: 16726921857793798202, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
`, onFailure: true, only: []string{"ConfigMap/*/*"}, patience: 300000000000, options: options{absent: []string{"b", "fixed"}}}, mood: mood{name: "undisturbed"}}}},
	"a Job expired while a saved plan was checked": {seed: 97105123, scenes: []scene{{at: "1", chance: 825909796654445893, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
immutable: true
data: {value: "2"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {ttlSecondsAfterFinished: 0, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["0"]}]}}}
`, lifetime: 60000000000, options: options{waitApplied: true}, around: surroundings{planned: true, twice: true}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 7921465158528237600, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "0"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {ttlSecondsAfterFinished: 30, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}
`, calm: true, later: 120000000000, options: options{recreate: []string{"Deployment.apps"}}, around: surroundings{planned: true, moved: true}}, mood: mood{name: "undisturbed"}}}},
	"a plan said unchanged of a CRD whose stored versions a migration was to leave": {seed: 97115972, scenes: []scene{{at: "0", chance: 1202894653412006148, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com, annotations: {brine.dev/on-stored-version: migrate}}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
`, around: surroundings{leaving: "customresourcedefinitions"}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 12539806473810108998, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com, annotations: {brine.dev/on-stored-version: migrate}}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, options: options{waitApplied: true}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "2", chance: 11518888041724131105, step: step{command: "preview", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com, annotations: {brine.dev/on-stored-version: migrate}}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, saves: true}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 9581386665170453280, step: step{calm: true, carriesOut: true, around: surroundings{leaving: "secrets"}}, mood: mood{name: "undisturbed"}}}},
	"what the bundle keeps was recreated, as the annotation was not on the cluster yet": {seed: 100000829, scenes: []scene{{at: "2", chance: 5005790450367338500, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app}
immutable: true
data: {value: "0"}
`, calm: true, options: options{history: 1}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 12962138744935376411, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {cli-utils.sigs.k8s.io/on-remove: keep, brine.dev/on-immutable: orphan}}
immutable: true
data: {value: "2"}
`, calm: true, options: options{skipInvalid: true}}, mood: mood{name: "undisturbed"}}}},
	"an apply was forgotten, as a killed rollback had left a revision with its number": {seed: 460002608, scenes: []scene{{at: "5", chance: 14846346297644264475, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, policy: 1, found: true}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, policy: 1}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 5210875251753245975, step: step{command: "rollback", inventory: "shop", revision: 1}, mood: mood{name: "aimed at the inventory's writes", faults: []fault{"kill before"}, rate: 0.4, aim: "the inventory's writes"}}, {at: "9", chance: 13941191978899237718, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, policy: 1, found: true, later: 120000000000, options: options{pruneAnyway: true, skipInvalid: true}, around: surroundings{planned: true}}, mood: mood{name: "aimed at Secrets", faults: []fault{"403"}, rate: 0.4, aim: "Secrets"}}, {at: "10", chance: 1282887359896664522, step: step{command: "rollback", inventory: "shop"}, mood: mood{name: "undisturbed"}}, {at: "11", chance: 3552361163991068543, step: step{command: "rollback", inventory: "shop"}, mood: mood{name: "undisturbed"}}}},
	"a member went with its owner, which was recreated, with --cascade=orphan": {seed: 490610948, scenes: []scene{{at: "2", chance: 14245423306281031577, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
immutable: true
data: {value: "0"}
`, calm: true, options: options{cascade: "Orphan", absent: []string{"guest"}}, around: surroundings{hooks: []string{"inject deployments"}, owned: true}}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 5175203327184766884, step: step{command: "apply", inventory: "shop", calm: true, around: surroundings{hooks: []string{"inject deployments"}, owned: true}}, mood: mood{name: "undisturbed"}}, {at: "12", chance: 1693413488089645209, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
immutable: true
data: {value: "2"}
`, calm: true, options: options{recreate: []string{"*:orphan"}, cascade: "Orphan"}, around: surroundings{hooks: []string{"inject deployments"}, owned: true}}, mood: mood{name: "undisturbed"}}}},
	"a repair added an object that the history named, and not another one of its kind": {seed: 1795874941331, scenes: []scene{{at: "0", chance: 3556083046687026550, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 16371280445757266541, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
`, calm: true, around: surroundings{hooks: []string{"silent configmaps d"}}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 17351860461482981792, step: step{command: "split", inventory: "shop", calm: true, into: "other", names: []string{"Namespace/*", "Deployment.apps/*/*"}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 5115444810014320880, step: step{command: "repair", inventory: "other", into: "other", damaged: true, around: surroundings{denied: []string{"list namespaces", "list persistentvolumeclaims"}, hooks: []string{"silent configmaps d"}}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "9", chance: 14891433885539086890, step: step{command: "rename", inventory: "shop", calm: true, into: "other", around: surroundings{hooks: []string{"silent configmaps d"}}}, mood: mood{name: "undisturbed"}}}},
	"a repair searched the kinds that the inventory lists": {seed: 1795874941331, scenes: []scene{{at: "0", chance: 3556083046687026550, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 16371280445757266541, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: extra-app}
data: {value: "1"}
`, calm: true, around: surroundings{hooks: []string{"silent configmaps d"}}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 17351860461482981792, step: step{command: "split", inventory: "shop", calm: true, into: "other", names: []string{"Namespace/*", "Deployment.apps/*/*"}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 5115444810014320880, step: step{command: "repair", inventory: "other", into: "other", damaged: true, around: surroundings{denied: []string{"list namespaces", "list persistentvolumeclaims"}, hooks: []string{"silent configmaps d"}}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "9", chance: 14891433885539086890, step: step{command: "rename", inventory: "shop", calm: true, into: "other", around: surroundings{hooks: []string{"silent configmaps d"}}}, mood: mood{name: "undisturbed"}}}},
	"trimming forgot the rollback that says what was undone": {seed: 491107409, scenes: []scene{{at: "0", chance: 4361800963208525528, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "0"}
`}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 14599810141649975084, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, policy: 1, found: true, options: options{maxPrune: "50%"}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 1056612763115681909, step: step{command: "rollback", inventory: "shop", revision: 1, options: options{waitApplied: true, verify: true}}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 12658089556260909498, step: step{command: "apply", inventory: "shop", policy: 1, options: options{waitApplied: true, empty: true}}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 5202342113002091760, step: step{command: "rollback", inventory: "shop", options: options{history: 2}}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 13485214899210450047, step: step{command: "rollback", inventory: "shop"}, mood: mood{name: "undisturbed"}}}},
	"what a rollback had undone was lost with the inventory object": {seed: 494004138, scenes: []scene{{at: "0", chance: 1576047496453268484, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 10728198604157843106, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, policy: 1, found: true}, mood: mood{name: "machine is suspended", outage: &outage{mood: "machine is suspended", from: 48, to: 54, lasts: 419000000000}}}, {at: "3", chance: 10091357904627876182, step: step{command: "rollback", inventory: "shop"}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 7415806368068321458, step: step{command: "repair", inventory: "shop", into: "shop", damaged: true}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 5814357543526422951, step: step{command: "rollback", inventory: "shop", options: options{noPrune: true, maxPrune: "1"}}, mood: mood{name: "undisturbed"}}}},
	"a patch beside an inventory object of a backup was taken for a run of that inventory": {seed: 500008716, scenes: []scene{{at: "2", chance: 18026153734656974115, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, calm: true, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 5380405666066964488, step: step{command: "apply", inventory: "other", policy: 1, found: true, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 9321917443836445402, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
`}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, patience: 300000000000}, mood: mood{name: "undisturbed"}}, {at: "13", chance: 15188736646598902378, step: step{command: "patch", inventory: "shop", text: `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
`, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}}},
	"a run that may not list Secrets wrote over a revision of which its inventory object, of a backup, did not know": {seed: 500113582, scenes: []scene{{at: "0", chance: 9141603356275459506, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
`, options: options{noPrune: true}}, too: &step{command: "apply", inventory: "shop", text: `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 506282480988615526, step: step{command: "apply", inventory: "shop", policy: 1, found: true, options: options{absent: []string{"b", "d", "guest"}}, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 13574022204351681018, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, calm: true, around: surroundings{denied: []string{"list secrets"}, putBack: true}}, mood: mood{name: "undisturbed"}}}},
	"an adoption was to go on beside an inventory whose object was deleted, and whose repair had no right to make it": {seed: 520114122, scenes: []scene{{at: "0", chance: 3421326112597416639, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
`, options: options{namespace: "app", absent: []string{"fixed", "guest"}}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 9153669574020743054, step: step{command: "repair", inventory: "shop", into: "shop", damaged: true, around: surroundings{denied: []string{"create configmaps"}}}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 15382952007477368546, step: step{command: "adopt", inventory: "other", calm: true, into: "shop", names: []string{"ConfigMap/app/a"}, owners: []string{"an-inventory-elsewhere"}}, mood: mood{name: "undisturbed"}}}},
	"a copy that was a member by a repair, of which nothing else was left, was called a new one where it moved": {seed: 520120576, scenes: []scene{{at: "0", chance: 680276011783325993, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 1, fixed: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unplaced}
data: {value: "1"}
`, options: options{namespace: "kube-system", named: true}, around: surroundings{copied: true}}, mood: mood{name: "aimed at Secrets", faults: []fault{"403"}, rate: 0.4, aim: "Secrets"}}, {at: "1", chance: 17087882873728704932, step: step{command: "repair", inventory: "shop", into: "shop", damaged: true, around: surroundings{copied: true}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 4180474674371533478, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, policy: 2, options: options{recreate: []string{"ConfigMap"}, namespace: "app"}, around: surroundings{ofCopy: true}}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 5580723867038672861, step: step{command: "split", inventory: "shop", into: "other", names: []string{"ConfigMap/*/*"}}, mood: mood{name: "undisturbed"}}}},
	"a member of another inventory had the name of one that was merged, and an apply of that was to succeed": {seed: 520039040, scenes: []scene{{at: "0", chance: 12951994838423775597, step: step{command: "apply", inventory: "shop", around: surroundings{part: bundle.ID{Name: "other-origins-1", GroupKind: bundle.ConfigMapKind}, partAbsent: true}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 6285831888829947792, step: step{command: "apply", inventory: "other", policy: 2, around: surroundings{part: bundle.ID{Name: "shop", GroupKind: bundle.ConfigMapKind}}}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 2270176340820067652, step: step{command: "merge", inventory: "shop", into: "other"}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 15913505532226204616, step: step{command: "rollback", inventory: "other", revision: 1}, mood: mood{name: "undisturbed"}}}},
	"a rollback deleted what a killed rename had recorded, and an apply had taken from the old inventory": {seed: 530102547, scenes: []scene{{at: "2", chance: 10843722171825544337, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, policy: 1, found: true}, mood: mood{name: "undisturbed"}}, {at: "5", chance: 18121822955095609265, step: step{command: "rename", inventory: "shop", into: "other"}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "7", chance: 3022871848222559202, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
`, policy: 2}, too: &step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: theirs}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-theirs}
`, policy: 2}, mood: mood{name: "undisturbed"}}, {at: "10", chance: 5724683236850375151, step: step{command: "rollback", inventory: "other", patience: 300000000000}, mood: mood{name: "undisturbed"}}}},
	"the owner of what left stayed a member": {seed: 553014466, scenes: []scene{{at: "2", chance: 9546436252015235878, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, around: surroundings{hooks: []string{"refuse-update configmaps"}, owned: true}}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 3881243696415111409, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "0"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, calm: true, options: options{cascade: "Orphan"}, around: surroundings{hooks: []string{"refuse-update configmaps"}, owned: true}}, mood: mood{name: "undisturbed"}}, {at: "13", chance: 10664443495716618595, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
`, onFailure: true, only: []string{"ConfigMap/*/*"}, patience: 300000000000, around: surroundings{hooks: []string{"refuse-update configmaps"}}}, mood: mood{name: "somebody acts", people: 0.05}}, {at: "16", chance: 12527740417542491309, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, around: surroundings{hooks: []string{"refuse-update configmaps"}, owned: true}}, mood: mood{name: "undisturbed"}}}, without: []string{"13:4", "13:2", "13:1"}},
	"a part of the last bundle failed, and was undone": {seed: 553008492, scenes: []scene{{at: "0", chance: 13485239205821830320, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, options: options{cascade: "Foreground"}, around: surroundings{scheduled: true, owned: true}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 12817506058566215020, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, patience: 300000000000, options: options{recreate: []string{"Job"}}, around: surroundings{scheduled: true, owned: true}}, mood: mood{name: "somebody acts", people: 0.05}}, {at: "4", chance: 8387979961470142482, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, only: []string{"ConfigMap/*/*"}, around: surroundings{scheduled: true}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 15521246814750800144, step: step{command: "rollback", inventory: "shop", around: surroundings{scheduled: true}}, mood: mood{name: "undisturbed"}}}, without: []string{"3:13", "3:12", "3:11", "3:10", "3:17", "3:16", "3:15", "3:14", "3:8", "3:7", "3:6", "3:5", "3:4", "3:3", "3:2", "3:1"}},
	"a member without its mark went slowly": {seed: 570015103, scenes: []scene{{at: "2", chance: 4051457680922995712, step: step{command: "apply", inventory: "shop", calm: true, options: options{absent: []string{"a", "fixed", "guest"}}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 3703344857654691625, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: broken}]}
`, late: true, options: options{cascade: "Orphan", namespace: "app"}, around: surroundings{owned: true}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 1199156058154841865, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: theirs}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: theirs, annotations: {config.kubernetes.io/depends-on: '/namespaces/theirs/ConfigMap/a'}}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: theirs}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-theirs}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-theirs}
data: {value: "1"}
`, options: options{cascade: "Foreground"}}, too: &step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`}, mood: mood{name: "somebody acts", people: 0.05}}, {at: "5", chance: 6890061462462300456, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unplaced}
data: {value: "1"}
`, calm: true}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 4225270133041067378, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: unplaced}
data: {value: "0"}
`, late: true, options: options{cascade: "Foreground"}, around: surroundings{owned: true}}, mood: mood{name: "undisturbed"}}}, without: []string{"4:23", "4:22", "4:21", "4:20", "4:19", "4:18", "4:17", "4:16", "4:15", "4:13", "4:12", "4:10", "4:8", "4:6", "4:4", "4:1"}},
	"a rename back was interrupted, and its target rolled back": {seed: 570017752, scenes: []scene{{at: "0", chance: 1974752541257082204, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, options: options{waitApplied: true}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 588717355652876641, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app}
spec: {size: 0}
`}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 15718607077803739288, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, policy: 1, found: true}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 11155451684913506958, step: step{command: "rollback", inventory: "shop", options: options{pruneAnyway: true}}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 11375518219448673404, step: step{command: "rename", inventory: "shop", into: "other"}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 14036126191581347334, step: step{command: "rename", inventory: "other", into: "shop"}, mood: mood{name: "aimed at Secrets", faults: []fault{"403"}, rate: 0.4, aim: "Secrets"}}, {at: "10", chance: 7596796612032081611, step: step{command: "rollback", inventory: "shop", policy: 2, patience: 300000000000}, mood: mood{name: "undisturbed"}}}},
	"what went slowly took what it owned along": {seed: 570019459, scenes: []scene{{at: "0", chance: 10036564788002870663, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, around: surroundings{dependents: true}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 18082001576823405085, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`}, mood: mood{name: "some API servers are behind", people: 0.05, behind: []time.Duration{0, 158000000, 5000000000}, twice: true}}, {at: "4", chance: 4587164418589608557, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`, calm: true, options: options{cascade: "Foreground"}, around: surroundings{dependents: true}}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 17539107085779259048, step: step{command: "apply", inventory: "shop", calm: true, options: options{cascade: "Foreground"}, around: surroundings{owned: true}}, mood: mood{name: "undisturbed"}}, {at: "9", chance: 14623713408790492001, step: step{command: "apply", inventory: "other", policy: 1, found: true, options: options{cascade: "Orphan", forceNamespaces: true}, around: surroundings{dependents: true}}, mood: mood{name: "undisturbed"}}}, without: []string{"9:6", "9:5", "9:4", "9:3", "9:2", "9:1", "4:3", "4:2", "2:5", "2:2", "2:1"}},
	"what is taken over went before it was applied": {seed: 570025619, scenes: []scene{{at: "0", chance: 16160699321890407653, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, options: options{cascade: "Foreground", takeOver: []string{"argocd-controller"}}, around: surroundings{tool: "kapp", owned: true}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 14689174437009183156, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
`, policy: 1, found: true, options: options{takeOver: []string{"kapp:web"}, history: 2}, around: surroundings{owned: true}}, mood: mood{name: "undisturbed"}}}},
	"what could not be read went with its owner": {seed: 571029439, scenes: []scene{{at: "2", chance: 3519488489717616667, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "1"}
`, calm: true, options: options{maxPrune: "1", cascade: "Foreground"}}, mood: mood{name: "undisturbed"}}, {at: "3", chance: 15944273438798781694, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "1"}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
`, guests: true, options: options{cascade: "Orphan"}}, mood: mood{name: "some API servers are behind", people: 0.05, behind: []time.Duration{0, 677000000, 5000000000}, old: true}}, {at: "5", chance: 3400565209680274907, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, policy: 2, options: options{skipInvalid: true}, around: surroundings{owned: true}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 8690899320752360918, step: step{command: "rollback", inventory: "other", refused: true, options: options{cascade: "Foreground"}, around: surroundings{owned: true}}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 12907378216477882420, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: theirs}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: orphan}}
immutable: true
data: {value: "1"}
`, policy: 1, found: true, options: options{cascade: "Foreground"}, around: surroundings{owned: true}}, too: &step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: theirs}
stringData: {password: canary-in-the-coal-mine-0}
`, policy: 1, around: surroundings{owned: true}}, mood: mood{name: "aimed at single reads", faults: []fault{"plain 404"}, rate: 0.1, aim: "single reads"}}}, without: []string{"3:12", "3:11", "3:10", "3:9", "3:8", "3:7", "3:6", "3:5", "3:4", "3:3", "3:2"}},
	"a namespace that could not be read stayed without a word": {seed: 581000599, scenes: []scene{{at: "0", chance: 16818458880662812302, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`}, mood: mood{name: "no answer", faults: []fault{"no answer"}, rate: 0.1}}, {at: "3", chance: 11770185199935821359, step: step{command: "destroy", inventory: "shop"}, mood: mood{name: "aimed at single reads", faults: []fault{"HTML 200"}, rate: 0.1, aim: "single reads"}}}},
	"a Secret of a killed run was unchanged": {seed: 580000336, scenes: []scene{{at: "0", chance: 14601188457950766682, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 13452000816586517370, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.app.example.com}
spec:
  group: app.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 0}, mode: {type: string, enum: [a, b], default: a}, fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable}]}}}}}}
---
apiVersion: app.example.com/v1
kind: Widget
metadata: {name: w, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
spec: {size: 0, fixed: y}
`, policy: 1, options: options{noPrune: true, maxPrune: "50%"}}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "2", chance: 17763540015297383046, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-0}
`, calm: true}, mood: mood{name: "undisturbed"}}}},
	"what a person keeps left before its orphaning owner": {seed: 611013270, scenes: []scene{{at: "0", chance: 10406764037151602102, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, around: surroundings{hooks: []string{"refuse-delete configmaps", "inject deployments"}}}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 1301125369243307701, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed, namespace: app, annotations: {brine.dev/on-immutable: recreate}}
immutable: true
data: {value: "2"}
`, options: options{cascade: "Orphan"}, around: surroundings{hooks: []string{"refuse-delete configmaps", "inject deployments"}, owned: true}}, mood: mood{name: "undisturbed"}}}},
	"what a gate hides of a removed annotation was unchanged": {seed: 610014150, scenes: []scene{{at: "3", chance: 555205249082295059, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, policy: 2, around: surroundings{hooks: []string{"gate configmaps d"}}}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 12456146343290481170, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "2"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate, labels: {team: a}}
webhooks: [{name: gate.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://gate.example.com'}}]
`, policy: 1, found: true, around: surroundings{hooks: []string{"gate configmaps d"}}}, mood: mood{name: "undisturbed"}}, {at: "7", chance: 10799226800361879043, step: step{command: "preview", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "2"}
`, patience: 300000000000, saves: true, options: options{pruneFirst: []string{"ValidatingWebhookConfiguration/gate"}}, around: surroundings{hooks: []string{"gate configmaps d"}}}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 14753802858201672155, step: step{carriesOut: true, around: surroundings{hooks: []string{"gate configmaps d"}}}, mood: mood{name: "undisturbed"}}}},
	"a rollback was killed before its inventory, and another gave back": {seed: 611016749, scenes: []scene{{at: "0", chance: 10605354578340746821, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
`, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 4875135550848352756, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
`, onFailure: true, policy: 1, options: options{pruneAnyway: true, waitApplied: true}}, mood: mood{name: "undisturbed"}}, {at: "2", chance: 5195426435669609950, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: theirs}
`, policy: 2}, mood: mood{name: "undisturbed"}}, {at: "4", chance: 10526784747561778183, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
`, calm: true, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 3892787538880759231, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: Namespace
metadata: {name: extra-app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inner, namespace: extra-app}
data: {value: "0"}
`, policy: 1, found: true}, mood: mood{name: "undisturbed"}}, {at: "8", chance: 8041656437862184293, step: step{command: "rollback", inventory: "shop"}, mood: mood{name: "killed", faults: []fault{"kill before", "kill after"}, rate: 0.03}}, {at: "10", chance: 8153910981098215332, step: step{command: "apply", inventory: "other", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app}
data: {value: "1"}
`, policy: 2, options: options{absent: []string{"b"}}, around: surroundings{putBack: true}}, mood: mood{name: "undisturbed"}}, {at: "11", chance: 10515284753504430126, step: step{command: "rollback", inventory: "other", refused: true}, mood: mood{name: "aimed at JSON patches", faults: []fault{"403"}, rate: 0.7, aim: "JSON patches"}}, {at: "13", chance: 18431672544133949130, step: step{command: "rollback", inventory: "shop"}, mood: mood{name: "undisturbed"}}}},
	"what the bundle has went with the owner of its owner": {seed: 690001037, scenes: []scene{{at: "0", chance: 17530608928372971563, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "1"}
`, patience: 300000000000, around: surroundings{through: true}}, mood: mood{name: "undisturbed"}}, {at: "6", chance: 3615416352703495299, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
`, calm: true, around: surroundings{owned: true, through: true}}, mood: mood{name: "undisturbed"}}}},
	"a rollback recreated a Job that nobody owned": {seed: 711026433, scenes: []scene{{at: "0", chance: 6717573441412363067, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app, annotations: {brine.dev/run: always}}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: app}
spec: {schedule: '2 0 * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["1"]}]}}}}}
`, around: surroundings{denied: []string{"list * everywhere"}}}, mood: mood{name: "undisturbed"}}, {at: "1", chance: 15445562075605869172, step: step{command: "apply", inventory: "shop", text: `---
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: app}
data: {value: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: app}
data: {value: "0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: app, annotations: {config.kubernetes.io/depends-on: '/namespaces/app/ConfigMap/a'}}
data: {value: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: app}
stringData: {password: canary-in-the-coal-mine-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: app}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: app}
spec:
  replicas: 1
  progressDeadlineSeconds: 30
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: good}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: app}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: job, image: good, args: ["0"]}]}}}
`, onFailure: true, policy: 1, patience: 300000000000, around: surroundings{denied: []string{"list * everywhere"}}}, mood: mood{name: "somebody acts", people: 0.05}}}, without: []string{"1:24", "1:23", "1:22", "1:21", "1:20", "1:19", "1:18", "1:17", "1:16", "1:15", "1:14", "1:13", "1:12", "1:11", "1:10", "1:9", "1:8", "1:7", "1:5", "1:4", "1:2"}},
}
