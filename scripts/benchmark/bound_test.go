package main

import (
	"encoding/json"
	"math"
	"testing"
)

func TestBound(t *testing.T) {
	for name, c := range map[string]struct {
		objects string
		want    float64
	}{
		"nothing was sent": {`[{"name":"a","action":"unchanged"}]`, 0},
		"side by side":     {`[{"name":"a","startedAt":1,"actedAt":2,"readyAt":4},{"name":"b","startedAt":3,"actedAt":4,"readyAt":4}]`, 3},
		"until it is ready": {`[{"name":"a","startedAt":1,"actedAt":2,"readyAt":4},
			{"name":"b","startedAt":9,"actedAt":9.5,"readyAt":10,"needs":[{"name":"a","want":"ready"}]}]`, 4},
		"until it is applied": {`[{"name":"a","startedAt":1,"actedAt":2,"readyAt":4},
			{"name":"b","startedAt":9,"actedAt":9.5,"readyAt":9.5,"needs":[{"name":"a","want":"applied"}]}]`, 3},
		"deletions come last": {`[{"name":"a","startedAt":1,"actedAt":2,"readyAt":2},
			{"name":"b","action":"pruned","startedAt":9,"actedAt":9.5,"readyAt":10},
			{"name":"c","action":"pruned","startedAt":9,"actedAt":9.5,"readyAt":9.5,"needs":[{"name":"b","want":"gone"}]}]`, 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			var all trace
			if err := json.Unmarshal([]byte(`{"objects":`+c.objects+`}`), &all); err != nil {
				t.Fatal(err)
			}
			if got := all.bound(); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
