package saved

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestSavedPlanOfAnotherClusterIsRefused(t *testing.T) {
	one := &Cluster{UID: "1", CA: "sha256:a"}
	for name, test := range map[string]struct {
		was, now *Cluster
		want     string // "": it is the same cluster
	}{
		"the same":                       {one, &Cluster{UID: "1", CA: "sha256:a"}, ""},
		"another uid":                    {one, &Cluster{UID: "2", CA: "sha256:a"}, "uid 1, this one's has 2"},
		"another CA":                     {one, &Cluster{UID: "1", CA: "sha256:b"}, "CA is sha256:a, this one's is sha256:b"},
		"CA cannot be read now":          {one, &Cluster{UID: "1"}, ""},
		"CA could not be read":           {&Cluster{UID: "1"}, one, ""},
		"uid could not be read":          {&Cluster{CA: "sha256:a"}, one, ""},
		"uid cannot be read now":         {one, &Cluster{CA: "sha256:a"}, "cannot be compared"},
		"nothing can be read now":        {one, &Cluster{}, "cannot be compared"},
		"nothing in common can be read":  {&Cluster{CA: "sha256:a"}, &Cluster{UID: "1"}, "cannot be compared"},
		"nothing could be read":          {&Cluster{}, one, "does not say which one"},
		"a plan of an older version":     {nil, one, "does not say which one"},
		"neither of them says":           {nil, &Cluster{}, "does not say which one"},
		"only the CA, and it is another": {&Cluster{CA: "sha256:a"}, &Cluster{CA: "sha256:b"}, "CA is sha256:a"},
	} {
		moved := (&Plan{Cluster: test.was}).Drift(&Plan{Cluster: test.now})
		if got := strings.Join(moved, "\n"); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", name, got, test.want)
		}
	}
}

// TestMoved: a saved plan against the one that is made now, every message.
func TestMoved(t *testing.T) {
	const saved = `
{cluster: {uid: "1"}, digest: "sha256:1", inventory: {namespace: home, name: inv, id: i, members: m}, options: {wait: ready, max-prune: "5"},
 steps: [{group: apps, version: v1, kind: Deployment, namespace: ns, name: d, action: configured, uid: u, resourceVersion: "1", generation: 1, changes: [{path: spec.replicas, old: 1, new: 2}]},
         {version: v1, kind: Secret, namespace: ns, name: s, action: configured, uid: u, resourceVersion: "1", changes: [{path: data.a, old: "***", new: "***"}]},
         {version: v1, kind: ConfigMap, namespace: ns, name: "new", action: created}]}`
	const (
		deployment = "{group: apps, version: v1, kind: Deployment, namespace: ns, name: d, action: configured, uid: u, resourceVersion: \"1\", generation: 1, changes: [{path: spec.replicas, old: 1, new: 2}]}"
		secret     = `{version: v1, kind: Secret, namespace: ns, name: s, action: configured, uid: u, resourceVersion: "1", changes: [{path: data.a, old: "***", new: "***"}]}`
		created    = `{version: v1, kind: ConfigMap, namespace: ns, name: "new", action: created}`
	)
	for _, c := range []struct{ name, old, now, want string }{
		{"nothing moved", "", "", ""},
		{"another cluster hides all else", `{uid: "1"}, digest: "sha256:1"`, `{uid: "2"}, digest: "sha256:2"`, "the cluster: the plan is for the one whose Namespace kube-system has the uid 1, this one's has 2"},
		{"another bundle", "sha256:1", "sha256:2", "the bundle: the plan was made from sha256:1, this is sha256:2"},
		{"other options", `wait: ready, max-prune: "5"`, "wait: none", "--max-prune: the plan was made with \"5\", this is \"\"\n--wait: the plan was made with \"ready\", this is \"none\""},
		{"an option that the plan does not know", "wait: ready", "wait: ready, newer: x", "--newer: the plan was made with \"\", this is \"x\""},
		{"an option that the plan does not know, and that does nothing", "wait: ready", "wait: ready, newer: \"\", other: \"false\"", ""},
		{"another inventory's name", "name: inv", "name: other", "the inventory: the plan is for home/inv (i), this is home/other (i)"},
		{"another inventory's namespace", "namespace: home", "namespace: other", "the inventory: the plan is for home/inv (i), this is other/inv (i)"},
		{"another inventory's id, which hides its steps", "id: i, members: m}, options: {wait: ready, max-prune: \"5\"},\n steps: [", "id: j, members: n}, options: {wait: ready, max-prune: \"5\"},\n steps: [{kind: X, name: x}, ", "the inventory: the plan is for home/inv (i), this is home/inv (j)"},
		{"other members", "members: m", "members: n", "the inventory: its members have changed since the plan was made"},
		{"nothing to do any more", created, "", "ConfigMap ns/new: the plan says created, and now nothing is to be done"},
		{"something more to do", created, created + ", {version: v1, kind: ConfigMap, name: more, action: pruned, uid: u}", "ConfigMap more: is not in the plan, and would be pruned now"},
		{"it came", "name: \"new\", action: created", "name: \"new\", action: configured, uid: u", "ConfigMap ns/new: did not exist, and exists now"},
		{"it went", "configured, uid: u, resourceVersion: \"1\", generation: 1", "created", "Deployment.apps ns/d: existed, and does not exist any more"},
		{"it was created again", "configured, uid: u, resourceVersion: \"1\", generation: 1", "configured, uid: v", "Deployment.apps ns/d: was deleted and recreated since the plan was made"},
		{"something else is done, for what", "name: d, action: configured", "name: d, action: recreated", "Deployment.apps ns/d: the plan says configured, and now it would be recreated: spec.replicas"},
		{"something else is done", created, strings.Replace(created, "created", "skipped", 1), "ConfigMap ns/new: the plan says created, and now it would be skipped"},
		{"a new version with the same changes", `resourceVersion: "1", generation: 1`, `resourceVersion: "2", generation: 2`, ""},
		{"a new version of the API", "apps, version: v1", "apps, version: v2", ""},
		{"a new version of a Secret", secret, strings.Replace(secret, `"1"`, `"2"`, 1), "Secret ns/s: has changed since the plan was made: version 1 then, 2 now"},
		{"a new version of a Secret that is not touched", secret, `{version: v1, kind: Secret, namespace: ns, name: s, action: unchanged, uid: u, resourceVersion: "2"}`, "Secret ns/s: the plan says configured, and now it would be unchanged"},
		{"another value", "new: 2", "new: 3", "Deployment.apps ns/d: would change in another way than the plan says: spec.replicas"},
		{"another value before", "old: 1", "old: 0", "Deployment.apps ns/d: would change in another way than the plan says: spec.replicas"},
		{"no change any more", "changes: [{path: spec.replicas, old: 1, new: 2}]", "changes: []", "Deployment.apps ns/d: would change in another way than the plan says: spec.replicas"},
		{"more changes", "spec.replicas, old: 1, new: 2}", "spec.replicas, old: 1, new: 2}, {path: b, old: 1}, {path: c, old: 1}, {path: d, old: 1}, {path: e, old: 1}, {path: f, old: 1}, {path: g, old: 1}", "Deployment.apps ns/d: would change in another way than the plan says: b, c, d, e, f and 1 more"},
		{"another order of the same", deployment + ",\n         " + secret, secret + ", " + deployment, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(saved, c.old) {
				t.Fatalf("the plan does not hold %q", c.old)
			}
			now := saved
			if c.old != "" {
				now = strings.Replace(saved, c.old, c.now, 1)
			}
			if got := strings.Join(readBound(t, saved).Drift(readBound(t, now)), "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	unchanged := `{cluster: {uid: "1"}, steps: [{version: v1, kind: Secret, name: s, action: unchanged, uid: u, resourceVersion: "1"}]}`
	if moved := readBound(t, unchanged).Drift(readBound(t, strings.Replace(unchanged, `"1"}]`, `"2"}]`, 1))); len(moved) > 0 {
		t.Errorf("a Secret that nobody changes may have another version: %q", moved)
	}
	for _, c := range []struct{ was, now, want string }{
		{"unchanged", "unchanged", ""},
		{"recreated", "created", ""},
		{"unchanged", "created", "Job.batch j: existed, and does not exist any more"},
		{"configured", "created", "Job.batch j: existed, and does not exist any more"},
	} {
		job := `{cluster: {uid: "1"}, steps: [{group: batch, version: v1, kind: Job, name: j, action: ` + c.was + `, uid: u, changes: [{path: spec, old: 1, new: 2}]}]}`
		expired := `{cluster: {uid: "1"}, steps: [{group: batch, version: v1, kind: Job, name: j, action: ` + c.now + `}]}`
		if got := strings.Join(readBound(t, job).Drift(readBound(t, expired)), "\n"); got != c.want {
			t.Errorf("a Job was %s and is %s since it expired: %q, want %q", c.was, c.now, got, c.want)
		}
	}
	for _, action := range []string{"pruned", "detached", "skipped"} {
		gone := `{cluster: {uid: "1"}, steps: [{version: v1, kind: ConfigMap, name: old, action: ` + action + `, uid: u, resourceVersion: "1"}]}`
		if moved := readBound(t, gone).Drift(readBound(t, `{cluster: {uid: "1"}}`)); len(moved) > 0 {
			t.Errorf("of what was to be %s and is gone nothing is left to do: %q", action, moved)
		}
	}
}

func readBound(t *testing.T, text string) *Plan {
	t.Helper()
	b := &Plan{}
	if err := yaml.UnmarshalStrict([]byte(text), b); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return b
}

// An option counts whichever of the two plans has it; one that does nothing is none.
func TestSavedPlanOfOtherOptions(t *testing.T) {
	here := &Cluster{UID: "u"}
	for name, test := range map[string]struct {
		was, is map[string]string
		want    int
	}{
		"the same":         {map[string]string{"recreate": "Job"}, map[string]string{"recreate": "Job"}, 0},
		"another":          {map[string]string{"recreate": "Job"}, map[string]string{"recreate": ""}, 1},
		"a new one":        {nil, map[string]string{"recreate": "Job"}, 1},
		"a new one, unset": {nil, map[string]string{"recreate": "", "no-prune": "false"}, 0},
		"an old one":       {map[string]string{"recreate": "Job"}, nil, 1},
	} {
		got := (&Plan{Cluster: here, Options: test.was}).Drift(&Plan{Cluster: here, Options: test.is})
		if len(got) != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
