package plan

import (
	"strings"
	"testing"
)

func TestPlanOfAnotherCluster(t *testing.T) {
	one := &BoundCluster{UID: "1", CA: "sha256:a"}
	for name, test := range map[string]struct {
		was, now *BoundCluster
		want     string // "": it is the same cluster
	}{
		"the same":                       {one, &BoundCluster{UID: "1", CA: "sha256:a"}, ""},
		"another uid":                    {one, &BoundCluster{UID: "2", CA: "sha256:a"}, "uid 1, this one's has 2"},
		"another CA":                     {one, &BoundCluster{UID: "1", CA: "sha256:b"}, "CA is sha256:a, this one's is sha256:b"},
		"CA cannot be read now":          {one, &BoundCluster{UID: "1"}, ""},
		"CA could not be read":           {&BoundCluster{UID: "1"}, one, ""},
		"uid could not be read":          {&BoundCluster{CA: "sha256:a"}, one, ""},
		"uid cannot be read now":         {one, &BoundCluster{CA: "sha256:a"}, "cannot be known"},
		"nothing can be read now":        {one, &BoundCluster{}, "cannot be known"},
		"nothing in common can be read":  {&BoundCluster{CA: "sha256:a"}, &BoundCluster{UID: "1"}, "cannot be known"},
		"nothing could be read":          {&BoundCluster{}, one, "does not say which one"},
		"a plan of an older version":     {nil, one, "does not say which one"},
		"neither of them says":           {nil, &BoundCluster{}, "does not say which one"},
		"only the CA, and it is another": {&BoundCluster{CA: "sha256:a"}, &BoundCluster{CA: "sha256:b"}, "CA is sha256:a"},
	} {
		moved := (&Bound{Cluster: test.was}).Moved(&Bound{Cluster: test.now})
		if got := strings.Join(moved, "\n"); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", name, got, test.want)
		}
	}
}
